"""What an agent did in a session, taken from its messages as the session goes on, and kept in its project."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from perdure.capture.acts import Session, records
from perdure.capture.writing import Writer
from perdure.clock import Clock
from perdure.hooks.types import Channel, Messages, TurnContext
from perdure.recent import Recent
from perdure.store.agent_records import KIND, RUNS, WORK, fact_of, is_purged, is_same, keep
from perdure.store.fact import Fact, read_facts
from perdure.store.scope import Scope
from perdure.store.sql import Connection, marks
from perdure.store.store import Store
from perdure.store.transaction import Author
from perdure.text.timestamps import seconds

SESSIONS = 16
"""Sessions of which it is at hand what was done so far: some hosts tell the last turn alone."""


@dataclass(eq=False, repr=False)
class AgentLog:
    """Keeps what agents did. For the background."""

    store: Store
    writer: Writer
    clock: Clock

    def __post_init__(self) -> None:
        self._sessions: Recent[str, Session] = Recent(SESSIONS)

    def take(self, messages: Messages, project: str, context: TurnContext) -> None:
        """Keep what a session's messages tell, together with what was told of it before."""
        session, scope = context.session_id or "", Scope.parse(project)
        known = self._sessions.first(f"{project}\0{session}", Session())
        if not known.take(messages):
            return
        at = seconds(context.now) or self.clock.now()
        facts = self._changed(known, scope, session, at)
        prepared = self.writer.prepare(facts, self.clock.now()) if facts else []
        if not prepared:
            return
        with self.store.write(Author(Channel.TOOL_UNASKED, context.host, session)) as tx:
            if is_purged(tx, [each.fact.id for each in prepared]):
                return
            for each in prepared:
                # Not compared with others: what was done is no statement about the world.
                keep(tx, each.fact, each.vector)

    def _changed(self, known: Session, scope: Scope, session: str, at: float) -> list[Fact]:
        """Return what is to be kept of a session and is not as it was kept before."""
        with self.store.database.read() as connection:
            before = _stored(connection, [
                fact_of(kind, "", {}, scope, session, at).id for kind in (WORK, RUNS)
            ])  # fmt: skip
            signs = {str(fact.metadata.get(KIND)): fact.metadata for fact in before.values()}
            facts = [
                fact_of(each.kind, each.text, each.signs, scope, session, at) for each in records(known.done, signs)
            ]
            kept = _stored(connection, [fact.id for fact in facts])
        return [fact for fact in facts if fact.id not in kept or not is_same(kept[fact.id], fact)]


def _stored(connection: Connection, ids: Sequence[str]) -> dict[str, Fact]:
    return {fact.id: fact for fact in read_facts(connection, f"facts WHERE id IN ({marks(ids)})", ids)}
