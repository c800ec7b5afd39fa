"""What the assistant said, if that is wanted: kept for review only, and never in the place of what the user said."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any

from perdure.capture.decide import own_view
from perdure.capture.guards import held
from perdure.capture.writing import Prepared
from perdure.hooks.types import Channel
from perdure.regex import lazy
from perdure.store.fact import Fact
from perdure.store.search import by_hash, lexical
from perdure.store.transaction import Transaction
from perdure.text.echo import Trace, echoes, trace, traces
from perdure.text.normalise import fingerprint, fold

ROLE = "assistant"
CONFIDENCE = 0.5
NEIGHBOURS = 8
_ITSELF = lazy(r"\b(?:i|i'(?:m|ve|ll|d)|me|my|mine|myself|we|us|our)\b")


def split(messages: Iterable[Mapping[str, Any]]) -> tuple[list[Mapping[str, Any]], list[Mapping[str, Any]]]:
    """Return the messages of an inbox entry by who spoke: the user's, the assistant's."""
    by_role: tuple[list[Mapping[str, Any]], list[Mapping[str, Any]]] = ([], [])
    for message in messages:
        by_role["role" in message and message["role"] == ROLE].append(message)
    return by_role


def candidates(drafts: Iterable[Fact]) -> Iterator[Fact]:
    """Yield what an assistant's drafts say of the world, marked as its word. What it says of itself is no memory."""
    for draft in drafts:
        if not _ITSELF.search(fold(draft.text)):
            yield replace(
                draft, channel=Channel.ASSISTANT, confidence=CONFIDENCE, extraction_confidence=CONFIDENCE,
                **held("said by the assistant"),
            )  # fmt: skip


def heard(messages: Iterable[Mapping[str, Any]], shown: Mapping[str, Sequence[Trace]], key: bytes) -> list[Trace]:
    """Return the traces of what the assistant had before its eyes: the user's messages, and what it was shown."""
    return [
        *(each for message in messages for each in traces(message["text"], key)),
        *(each for seen in shown.values() for each in seen),
    ]


def note(tx: Transaction, prepared: Prepared, before: Iterable[Trace], key: bytes) -> Fact | None:
    """Keep a statement of the assistant for review, unless it repeats what is known; return what was kept.

    Raises:
        StoreError: it could not be written.
    """
    fact = prepared.fact
    said = trace(fact.text, key)
    view = own_view(fact, tx.now)
    # The same slot with another value is worded nearly alike, and is news all the same.
    value = set(trace(fact.value or "", key).words)
    known = [hit.fact for hit in lexical(tx.connection, fact.text, view, NEIGHBOURS).hits]
    seen = chain(before, (each for old in known for each in traces(old.text, key)))
    if any(echoes(said, each) and value <= set(each.words) for each in seen):
        return None
    if tx.is_purged(fact.text) or by_hash(tx.connection, fingerprint(fact.text), view):
        return None
    return tx.add(fact, prepared.vector)
