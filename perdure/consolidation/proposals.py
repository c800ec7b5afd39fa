"""Changes to MEMORY.md that are proposed, never made unasked: what was said so often that the agent should always know.

A proposal names facts and holds no text of its own: what it says is what its fact says, and it goes with the fact.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from perdure.consolidation.reflect import CATEGORY as PATTERN
from perdure.consolidation.reflect import TRUSTED
from perdure.errors import AmbiguousIdError, InputError, NotFoundError
from perdure.files.notes import add_line, plain_line
from perdure.ranking.decay import DAY
from perdure.store.fact import SELECT, Fact, from_row
from perdure.store.links import links_of
from perdure.store.scope import Audience, Scope
from perdure.store.search import View, by_ids, seen
from perdure.store.short_ids import MIN_PREFIX
from perdure.store.sql import Connection, dialect, run
from perdure.store.store import Store

FILE = "MEMORY.md"
STRONG = 3
"""So often something must have been said before it is proposed."""
LIFETIME = 30 * DAY
"""Seconds that a proposal waits for an answer."""
KINDS = ("preference", "aversion", "habit")
"""Of patterns; what somebody merely speaks of often is nothing to tell the agent about."""
OPEN, ACCEPTED, REFUSED = "open", "accepted", "refused"


@dataclass(frozen=True, slots=True)
class Proposal:
    """A line for MEMORY.md."""

    id: str  # its name
    text: str  # the line
    state: str  # "open", "accepted" or "refused"
    made_at: float  # epoch seconds
    expires_at: float  # when it expires unanswered, epoch seconds
    evidence: tuple[str, ...]  # the texts that support it

    def to_dict(self) -> dict[str, Any]:
        """Return the values as JSON can hold them."""
        return asdict(self)


def propose(store: Store, home: Scope, *, dry_run: bool = False) -> list[Proposal]:
    """Propose what was said at least three times; return what is new.

    What was proposed before is not proposed again, whatever the answer was; what nobody answered may be, once its
    time is over.
    """
    now = store.clock.now()
    view = _view(home, now)
    with store.database.read() as connection:
        known = _asked_for(connection, now)
        strong = [(fact, found) for fact in _candidates(connection, view) if (found := _evidence(connection, fact))]
    new = []
    for fact, found in strong:
        ids = [each.id for each in found]
        if known & {fact.id, *ids}:
            continue
        texts = tuple(each.text for each in found)
        new.append(Proposal(str(uuid.uuid4()), plain_line(fact.text), OPEN, now, now + LIFETIME, texts))
        if not dry_run:
            values = (new[-1].id, fact.id, json.dumps(ids), OPEN, now, now + LIFETIME)
            store.database.apply(run, "INSERT INTO proposals VALUES (?, ?, ?, ?, ?, ?)", values)
    return new


def proposals(store: Store, home: Scope, *, everything: bool = False) -> list[Proposal]:
    """Return the proposals of a scope that wait for an answer, oldest first."""
    now = store.clock.now()
    found = store.database.query(_listed, _view(home, now))
    return [each for _, each in found if everything or (each.state == OPEN and each.expires_at > now)]


def answer(store: Store, home: Scope, name: str, folder: Path | None) -> Proposal:
    """Accept a proposal: its line is written into MEMORY.md of the folder; or refuse it, if there is no folder.

    `folder`: the agent's workspace; None: refuse.
    """
    if len(name) < MIN_PREFIX:
        raise InputError(f"id {name!r} must be at least {MIN_PREFIX} digits of a proposal's id")
    # The lock of the database keeps two processes from writing the file at once.
    with store.database.write() as connection:
        now = store.clock.now()
        found = [each for _, each in _listed(connection, _view(home, now)) if each.id.startswith(name)]
        if not found:
            raise NotFoundError(f"no proposal has the id {name[:40]}; see perdure review")
        if len(found) > 1:
            raise AmbiguousIdError(f"several proposals have an id that begins with {name[:40]}; give more digits")
        [proposal] = found
        if proposal.state != OPEN:
            raise InputError(f"proposal {proposal.id[:8]} was already {proposal.state}")
        if proposal.expires_at <= now:
            raise InputError(f"proposal {proposal.id[:8]} has expired; look for new ones: perdure review propose")
        if folder is not None:
            add_line(folder, FILE, proposal.text)
        state = REFUSED if folder is None else ACCEPTED
        run(connection, "UPDATE proposals SET state = ? WHERE id = ?", (state, proposal.id))
    return Proposal(proposal.id, proposal.text, state, proposal.made_at, proposal.expires_at, proposal.evidence)


def _view(home: Scope, now: float) -> View:
    channels = [each.value for each in TRUSTED]
    return View(Audience(frozenset({home}), home), now, channels=channels, approved_only=True)


def _candidates(connection: Connection, view: View) -> list[Fact]:
    source = "facts WHERE facts.category IN ('preference', 'decision', ?)"
    found = seen(connection, view, source, (PATTERN,), "ORDER BY facts.reinforced_count DESC, facts.seq")
    return [fact for fact in found if fact.category != PATTERN or fact.metadata.get("kind") in KINDS]


def _evidence(connection: Connection, fact: Fact) -> list[Fact]:
    """Return what speaks for a fact, if that is enough: what it was derived from, and how often it was said."""
    found = links_of(connection, [fact.id])
    ids = [link.target for link in found if link.source == fact.id and link.type == "DERIVED_FROM"]
    scope = Scope(fact.scope, fact.scope_target)
    view = View(Audience(frozenset({scope}), scope), fact.created_at, everything=True)
    derived = [each for each in by_ids(connection, ids, view).values() if each.forgotten_at is None] if ids else []
    said = len(derived) if fact.category == PATTERN else max(1, len(derived)) + fact.reinforced_count
    return (derived or [fact]) if said >= STRONG else []


def _asked_for(connection: Connection, now: float) -> set[str]:
    sql = "SELECT fact_id, evidence FROM proposals WHERE state <> ? OR expires_at > ?"
    rows = run(connection, sql, (OPEN, now))
    return {fact_id for lead, evidence in rows for fact_id in (lead, *json.loads(evidence))}


def _listed(connection: Connection, view: View) -> Sequence[tuple[Fact, Proposal]]:
    condition, values = view.sql(dialect(connection))
    rows = run(
        connection,
        f"SELECT {SELECT}, p.id, p.evidence, p.state, p.made_at, p.expires_at FROM proposals p"
        f" JOIN facts ON facts.id = p.fact_id WHERE {condition} ORDER BY p.made_at, facts.seq",
        values,
    )
    everything = View(view.audience, view.now, everything=True)
    found = []
    for row in rows:
        fact, (name, evidence, state, made_at, expires_at) = from_row(row[:-5]), row[-5:]
        texts = tuple(each.text for each in by_ids(connection, json.loads(evidence), everything).values())
        found.append((fact, Proposal(name, plain_line(fact.text), state, made_at, expires_at, texts)))
    return found
