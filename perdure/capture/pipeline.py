"""The steps of capture in their order: what is behind an inbox entry becomes facts, in one transaction."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from perdure.capture.dates import freeze_until
from perdure.capture.describe import describe
from perdure.capture.rules import guarded
from perdure.capture.statements import CaptureRule, Statement, statements
from perdure.capture.writing import Writer, Written
from perdure.hooks.types import Channel
from perdure.store.fact import Fact
from perdure.store.scope import Scope
from perdure.store.store import Store
from perdure.store.transaction import Author

IMPORTANCE = 0.7


class Capturer:
    """Turns inbox entries into facts."""

    def __init__(self, store: Store, writer: Writer, rules: Callable[[], tuple[CaptureRule, ...]]) -> None:
        """Capture into `store`.

        Args:
            store: where facts go.
            writer: compares and writes them.
            rules: returns the capture rules of extensions.
        """
        self._store = store
        self._writer = writer
        self._rules = rules

    def process(self, entry: Mapping[str, Any], pause: Callable[[], None] = lambda: None) -> list[Written]:
        """Deal with an entry, once: a repeated call finds it done.

        Args:
            entry: as the inbox holds it.
            pause: called between steps, so that a turn that begins meanwhile need not wait.

        Raises:
            StoreError: nothing of the entry was kept; repeat it later.
        """
        if self._store.is_finished(entry["id"]):
            return []
        rules = tuple(guarded(rule) for rule in self._rules())
        prepared = []
        for message in entry["messages"]:
            pause()
            drafts = [_draft(statement, message, entry) for statement in statements(message["text"], rules)]
            for draft in drafts:
                pause()
                prepared += self._writer.prepare([draft], self._store.clock.now())
        author = Author(Channel.USER, entry.get("host", "python"), entry.get("session"))
        with self._store.write(author) as tx:
            written = [self._writer.write(tx, each) for each in prepared]
            tx.move_cursor(entry["cursor"], entry["tail"])
            tx.finish_entry(entry["id"])
        return written


def _draft(statement: Statement, message: Mapping[str, Any], entry: Mapping[str, Any]) -> Fact:
    description = describe(statement)
    scope = Scope.parse(entry["scope"])
    slot = description.slot
    said_at = message.get("at") or entry["at"]
    return Fact(
        text=statement.text,
        why=description.why,
        category=description.category,
        importance=IMPORTANCE,
        entity=slot.entity if slot else None,
        key=slot.key if slot else None,
        value=slot.value if slot else None,
        channel=Channel.USER,
        source_date=said_at,
        decay_class=description.decay_class,
        decay_freeze_until=freeze_until(statement.text, said_at),
        scope=scope.kind,
        scope_target=scope.target,
        provenance_session=entry.get("session"),
        source_turn=entry.get("turn"),
        extraction_method=f"rule:{statement.cue}",
    )
