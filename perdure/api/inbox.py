"""Turns that were acknowledged and are no memories: those that wait, those that failed, and those that were damaged."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from perdure.errors import NotFoundError, ScopeError
from perdure.store.inbox_lines import damaged_turns, drop
from perdure.store.scope import OWNER, Audience, Scope
from perdure.store.sql import run
from perdure.store.store import Store

WAITS = "waits"
DAMAGED_STATE = "damaged"


@dataclass(frozen=True, slots=True)
class InboxTurn:
    """A turn that is not captured yet, or cannot be.

    Attributes:
        id: its name.
        at: when it was said, epoch seconds; for a damaged one, when its file was last written.
        state: "waits", "failed: ValueError", or "damaged".
        text: what was said in it, without secrets; for a damaged one, its readable part.
    """

    id: str
    at: float
    state: str
    text: str

    def to_dict(self) -> dict[str, Any]:
        """Return the values as JSON can hold them."""
        return asdict(self)


def turns(store: Store, audience: Audience) -> list[InboxTurn]:
    """Return the turns of the inbox that a caller may read, oldest first.

    The owner of a damaged turn is unknown: it is shown to the owner of the machine.

    Raises:
        StoreError: the store cannot be read.
    """
    found = [
        InboxTurn(str(entry["id"]), _at(entry), WAITS, _text(entry))
        for entry in store.waiting()
        if _readable(entry, audience)
    ]
    parked = store.database.query(run, "SELECT entry_id, at, error, entry FROM inbox_parked")
    for entry_id, at, error, body in parked:
        entry = _entry(body)
        if _readable(entry, audience):
            found.append(InboxTurn(entry_id, at, f"failed: {error}", _text(entry)))
    if _is_owner(audience):
        kept = damaged_turns(store.folder / "inbox")
        found += [InboxTurn(turn.id, turn.at, DAMAGED_STATE, turn.text) for turn in kept]
    return sorted(found, key=lambda turn: (turn.at, turn.id))


def remove(store: Store, audience: Audience, ids: Sequence[str], *, dry_run: bool = False) -> list[InboxTurn]:
    """Permanently remove failed and damaged turns; waiting ones stay.

    Args:
        store: the store that holds them.
        audience: the caller.
        ids: which.
        dry_run: only return them.

    Returns:
        The turns removed, or that would be.

    Raises:
        NotFoundError: there is no failed or damaged turn of this id.
        StoreError: they could not be removed.
    """
    known = {turn.id: turn for turn in turns(store, audience) if turn.state != WAITS}
    unknown = [turn_id for turn_id in ids if turn_id not in known]
    if unknown:
        raise NotFoundError(f"no failed or damaged turn has the id {unknown[0][:80]}; list them with: perdure review")
    chosen = [known[turn_id] for turn_id in dict.fromkeys(ids)]
    if not dry_run and chosen:
        drop(store.folder / "inbox", [turn.id for turn in chosen if turn.state == DAMAGED_STATE])
        failed = [(turn.id,) for turn in chosen if turn.state != DAMAGED_STATE]
        if failed:
            with store.database.write() as connection:
                connection.executemany("DELETE FROM inbox_parked WHERE entry_id = ?", failed)
    return chosen


def _is_owner(audience: Audience) -> bool:
    return audience.home == Scope("user", OWNER)


def _readable(entry: Mapping[str, Any], audience: Audience) -> bool:
    try:
        return audience.may_read(Scope.parse(entry["scope"]))
    except (AttributeError, KeyError, ScopeError, TypeError):
        return _is_owner(audience)


def _entry(body: str) -> Mapping[str, Any]:
    try:
        entry = json.loads(body)
    except ValueError:
        return {}
    return entry if isinstance(entry, Mapping) else {}


def _at(entry: Mapping[str, Any]) -> float:
    at = entry.get("at")
    return float(at) if isinstance(at, int | float) else 0.0


def _text(entry: Mapping[str, Any]) -> str:
    messages = entry.get("messages")
    said = [each.get("text") for each in messages if isinstance(each, Mapping)] if isinstance(messages, list) else []
    return " ".join(text for text in said if isinstance(text, str))
