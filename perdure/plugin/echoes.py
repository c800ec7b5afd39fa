"""What conversations were shown, as their receipts tell: facts by their ids, passages by keyed traces."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from perdure.hooks.types import Recall
from perdure.store import receipts
from perdure.store.database import run
from perdure.store.store import Store
from perdure.text.echo import Trace, traces

RECEIPTS = 64
"""So many receipts of a conversation are looked at, the newest."""
SECONDS = 30 * 86_400.0
Traces = Mapping[str, Sequence[Trace]]


def of_passages(recall: Recall | None, key: bytes) -> dict[str, Any]:
    """Return, as JSON values, the traces of the passages in a recall; facts are found again by their ids."""
    # Only a passage is named by where it stands.
    items = [item for item in recall.items if "#" in item.id] if recall else []
    return {
        item.id: [[each.words, sorted(each.details), sorted(each.senses)] for each in traces(item.text, key)]
        for item in items
    }


def earlier(store: Store) -> Callable[[str], Traces]:
    """Return a function that reads what a conversation, named by its cursor, was shown."""

    def read(conversation: str) -> Traces:
        scope, _, session = conversation.partition("\0")
        with store.database.read() as connection:
            since = store.clock.now() - SECONDS
            bodies = receipts.of_session(connection, session or None, scope, since, RECEIPTS)
            ids = {
                candidate["id"]
                for body in bodies
                for candidate in body.get("candidates", ())
                if candidate["verdict"] == "injected" and "change_seq" in candidate
            }
            sql = "SELECT id, text FROM facts WHERE id IN (SELECT value FROM json_each(?))"
            facts = run(connection, sql, (json.dumps(sorted(ids)),))
        passages = {name: _read(seen) for body in bodies for name, seen in body.get("echo", {}).items()}
        return passages | {fact_id: traces(text, store.key) for fact_id, text in facts}

    return read


def _read(seen: Sequence[Any]) -> tuple[Trace, ...]:
    return tuple(Trace(tuple(words), frozenset(details), frozenset(senses)) for words, details, senses in seen)
