"""Checkpoints: what an agent is about to do, where it stands and what should come of it; kept for four hours."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from perdure.capture.writing import Writer
from perdure.errors import InputError, NotFoundError
from perdure.store.fact import Fact
from perdure.store.listing import Filter, list_facts
from perdure.store.scope import Audience, Scope
from perdure.store.search import View
from perdure.store.store import Store
from perdure.store.transaction import Author

CATEGORY = "checkpoint"
IMPORTANCE = 0.7
MAX_FIELD = 20_000
"""Characters of each of the three parts."""


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A checkpoint."""

    id: str  # of its fact
    at: float  # when it was saved, epoch seconds
    expires_at: float  # until when it can be restored, epoch seconds
    intent: str  # what was about to be done
    state: str  # where things stood
    expected: str  # the expected outcome; empty if none was given

    def to_dict(self) -> dict[str, Any]:
        """Return the values as JSON can hold them."""
        return asdict(self)


def save(
    store: Store, writer: Writer, home: Scope, author: Author, intent: str, state: str, expected: str = ""
) -> Checkpoint:
    """Keep a checkpoint; it is on disk when this returns."""
    parts = {"intent": intent.strip(), "state": state.strip(), "expected": expected.strip()}
    if not parts["intent"]:
        raise InputError("a checkpoint needs an intent; say what you are about to do")
    for name, text in parts.items():
        if len(text) > MAX_FIELD:
            raise InputError(f"{name} has {len(text)} characters; the limit is {MAX_FIELD}; give a summary")
    fact = Fact(
        text=_text(parts),
        category=CATEGORY,
        importance=IMPORTANCE,
        source=CATEGORY,
        channel=author.channel,
        decay_class=CATEGORY,
        tags=(CATEGORY,),
        preserve_tags=True,
        scope=home.kind,
        scope_target=home.target,
        extraction_method="explicit",
        metadata=parts,
    )
    [prepared] = writer.prepare([fact], store.clock.now())
    with store.write(author) as tx:
        # Not compared with others: to be in the same place again is no repetition.
        return _checkpoint(tx.add(prepared.fact, prepared.vector))


def saved(store: Store, home: Scope, limit: int = 20) -> list[Checkpoint]:
    """Return the checkpoints of a scope that can still be restored, newest first."""
    view = View(Audience(frozenset({home}), home), store.clock.now())
    return [_checkpoint(fact) for fact in store.database.query(list_facts, view, Filter(category=CATEGORY), limit)]


def newest(store: Store, home: Scope) -> Checkpoint:
    """Return the newest checkpoint of a scope."""
    for found in saved(store, home, 1):
        return found
    raise NotFoundError("there is no checkpoint from the last four hours; create one with checkpoint save")


def _text(parts: Mapping[str, str]) -> str:
    named = {"About to": parts["intent"], "State": parts["state"], "Expected": parts["expected"]}
    return "\n".join(f"{name}: {text}" for name, text in named.items() if text)


def _checkpoint(fact: Fact) -> Checkpoint:
    parts = [str(fact.metadata.get(name, "")) for name in ("intent", "state", "expected")]
    return Checkpoint(fact.id, fact.created_at, fact.expires_at or fact.created_at, *parts)
