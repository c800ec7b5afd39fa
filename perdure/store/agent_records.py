"""What an agent did, as it is kept: facts of the agent's own, in the project that it did it in."""

from __future__ import annotations

import uuid
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

from perdure.hooks.types import Channel
from perdure.store.fact import Fact
from perdure.store.scope import Scope
from perdure.store.search import View, seen
from perdure.store.sql import Connection, dialect, marks, run
from perdure.store.transaction import StoredVector, Transaction

METHOD = CATEGORY = "agent_log"
"""How such a fact was derived; nothing that an agent stores or says can claim it."""
KIND, AT = "kind", "at"
"""Under these names its metadata tells the kind, and when it was last so, epoch seconds."""
WORK, RUNS, LEFT, FAILED = "work", "runs", "left", "failed"
"""The kinds: what was changed, how commands ended, what was left open; what failed, and what mended it."""
MENDED = "mended"
"""Under this name the metadata of what failed tells whether the command passed in the end, and by what."""
SESSION = (WORK, RUNS, LEFT)
LIFETIMES = {FAILED: "durable"}
"""How long each kind is kept, if not as long as what is of these weeks."""
LOOKED_AT = 100
"""So many records are read, to find those of the last session or what failed before."""
_RENEWED = "renew"
"""How the journal calls it when more was done in a session."""


def fact_of(kind: str, text: str, signs: Mapping[str, Any], project: Scope, session: str, at: float) -> Fact:
    """Return what is kept of a session as a fact of the project; of the same thing it is always the same fact.

    `signs`: by which something that failed is known again, `command`, `error` and `files`, with `MENDED`; `at`: epoch
    seconds.
    """
    name = "\0".join((str(project), session, kind, str(signs.get("command", "")), str(signs.get("error", ""))))
    return Fact(
        text, id=str(uuid.uuid5(uuid.NAMESPACE_OID, name)), category=CATEGORY, source="session",
        channel=Channel.TOOL_UNASKED, source_date=at, decay_class=LIFETIMES.get(kind, "normal"), summary=text,
        scope=project.kind, scope_target=project.target, provenance_session=session, extraction_method=METHOD,
        preserve_tags=True, metadata={KIND: kind, AT: at, **signs},
    )  # fmt: skip


def is_purged(tx: Transaction, ids: Collection[str]) -> bool:
    """Return whether one of a session's records was purged: others would tell of the same."""
    sql = f"SELECT 1 FROM journal WHERE fact_id IN ({marks(ids)}) AND action = 'purge' LIMIT 1"
    return bool(run(tx.connection, sql, tuple(ids)))


def is_same(kept: Fact, told: Fact) -> bool:
    """Return whether what is kept tells all that is told now, whenever it was so.

    Files alone make no difference: until a failure is mended they grow with each edit, and its text names none.
    """
    passing = {AT: None, "files": None}
    return kept.text == told.text and {**kept.metadata, **passing} == {**told.metadata, **passing}


def keep(tx: Transaction, fact: Fact, vector: StoredVector | None) -> None:
    """Write what is kept of a session, in the place of what was kept of it before.

    What the user forgot or has replaced stays so, and what was purged is not written.
    """
    if tx.is_purged(fact.text):
        return
    if not run(tx.connection, "SELECT 1 FROM facts WHERE id = ?", (fact.id,)):
        # The mark of what was forgotten outlives it.
        if not run(tx.connection, "SELECT 1 FROM forgotten WHERE fact_id = ?", (fact.id,)):
            tx.add(fact, vector)
        return
    old = tx.fact(fact.id)
    if is_same(old, fact) or old.forgotten_at is not None or old.superseded_at is not None:
        return
    told = {name: getattr(fact, name) for name in ("text", "summary", "metadata")}
    tx.rewrite(replace(old, **told), {}, _RENEWED)
    if vector is not None:
        tx.put_vector(fact.id, vector)


def kept(connection: Connection, view: View, kinds: Sequence[str]) -> list[Fact]:
    """Return the latest `LOOKED_AT` of some kinds that are kept of sessions and may be seen, the latest first."""
    source = (
        f"facts {dialect(connection).by_index('facts_category')} WHERE facts.category = ?"
        f" AND facts.extraction_method = ? AND json_extract(facts.metadata, '$.{KIND}') IN ({marks(kinds)})"
    )
    values = (CATEGORY, METHOD, *kinds)
    return seen(connection, view, source, values, "ORDER BY facts.seq DESC LIMIT ?", (LOOKED_AT,))


def of_last_session(connection: Connection, view: View, session: str | None) -> list[Fact]:
    """Return what is kept of the session before this one, in two to four lines."""
    records = kept(connection, view, SESSION)
    found = [fact for fact in records if session is None or fact.provenance_session != session]
    # One that began before another may have gone on after it.
    last = max(found, key=last_at, default=None)
    of_it = [fact for fact in found if last is not None and fact.provenance_session == last.provenance_session]
    return sorted(of_it, key=lambda fact: SESSION.index(fact.metadata[KIND]))


def last_at(fact: Fact) -> float:
    """Return when what is kept of a session was last so, epoch seconds."""
    at = fact.metadata.get(AT)
    return at if isinstance(at, int | float) else fact.effective_date
