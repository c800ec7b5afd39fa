"""Writes the receipts of what was brought up, behind the turn."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from perdure.clock import Clock
from perdure.engine.audiences import audience_of
from perdure.hooks.types import Opening, Recall, TurnContext
from perdure.recall.options import RecallOptions
from perdure.recall.receipt import Receipt
from perdure.recall.session_state import of_passages
from perdure.store import receipts
from perdure.store.lifecycle import note_recalled
from perdure.store.scope import Scope
from perdure.store.store import Store


@dataclass(frozen=True, slots=True)
class ReceiptWriter:
    """Keeps receipts, and counts the memories in them as recalled."""

    store: Store
    options: RecallOptions
    clock: Clock
    soon: Callable[[str, Callable[[], object]], None]  # has work of a name done in the background

    def keep_turn(self, receipt: Receipt, home: Scope, recall: Recall | None, scopes: Sequence[str]) -> None:
        """Keep the receipt of a turn; `scopes` are those that its audience has beside the usual ones."""
        self.soon("receipt", partial(self._turn, receipt, home, recall, scopes))

    def keep_look(self, receipt: Receipt, context: TurnContext) -> None:
        """Keep the receipt of a recall that was no turn, if it can be written."""
        home = audience_of(context).home
        if home is not None and self.store.refusal is None:
            body = {**receipt.body(self.options), receipts.LOOK: True}
            # A conversation of its own, so that nothing counts as shown in any other.
            self.soon("receipt", partial(self._put, receipt.id, receipt.at, receipt.id, home, body, ()))

    def keep(self, shown: Opening | Recall, body: receipts.Body, session: str | None, home: Scope) -> None:
        """Keep the receipt of what was shown without a prompt: an opening or a reminder."""
        ids = [item.id for item in shown.items]
        self.soon("receipt", partial(self._put, shown.receipt_id, self.clock.now(), session, home, body, ids))

    def compacted(self, session: str) -> None:
        """Note that the model no longer sees what the conversation of this name was given."""
        scope, _, name = session.partition("\0")
        self.store.database.jot(receipts.compacted, name, scope)

    def _turn(self, receipt: Receipt, home: Scope, recall: Recall | None, scopes: Sequence[str]) -> None:
        body = {**receipt.body(self.options), "echo": of_passages(recall, self.store.key)}
        body |= {"scopes": scopes} if scopes else {}
        injected = [item for item, verdict in receipt.verdicts.items() if verdict == "injected"]
        self._put(receipt.id, receipt.at, receipt.session, home, body, injected)

    def _put(
        self, receipt_id: str, at: float, session: str | None, home: Scope, body: receipts.Body, injected: Sequence[str]
    ) -> None:
        with self.store.database.write(durable=False) as connection:
            note_recalled(connection, injected, injected=True)
            receipts.put(connection, receipt_id, at, session, str(home), body)
