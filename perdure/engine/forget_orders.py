"""Orders to forget that a turn begins with: obeyed before anything is recalled for it, each once."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from perdure.hooks.types import Channel
from perdure.recent import Recent
from perdure.speech.answers import chosen
from perdure.speech.forgetting import orders_to_forget
from perdure.speech.spans import spoken
from perdure.speech.typed import typed
from perdure.store.scope import Audience
from perdure.store.sql import get_meta, put_meta
from perdure.store.store import Store
from perdure.store.transaction import Author
from perdure.text.fence import fence, strip_fenced
from perdure.text.history import mark

MAX_CHARS = 4_000
"""Characters of a prompt that may hold an order: who pastes more works on it."""
if TYPE_CHECKING:
    from perdure.capture.forgetting import Meant

PATIENCE = 2.0
"""Seconds that a turn waits until what was said before it is remembered."""
OPEN = 2
"""Turns in which a list of what may be meant can be answered."""
ANSWERED = 16
"""Orders that are known to be obeyed, of all conversations."""
_KEPT = 256
_ORDERS = "forget_orders"


@dataclass(slots=True)
class _Open:
    order: Meant
    turns: int = OPEN


class ForgetOrders:
    """Obeys what a user asks to be forgotten. Usable from any thread."""

    def __init__(self, store: Store, settle: Callable[[float], bool]) -> None:
        """Obey in `store`; `settle` waits until what was said is remembered, for so many seconds at most."""
        self._store, self._settle = store, settle
        self._open: Recent[str, _Open] = Recent(_KEPT)
        self._said: Recent[str, float] = Recent(_KEPT)

    def said(self, conversation: str, at: float) -> None:
        """Take note of when the user spoke in a conversation, epoch seconds: that is what "that" means."""
        self._said.put(conversation, at)

    def obeyed(self, conversation: str, text: str) -> bool:
        """Return whether a message was obeyed when its turn began, in whichever process."""
        return self._answer(self._name(conversation, text)) is not None

    def obey(self, prompt: str, audience: Audience, session: str | None, host: str) -> str:
        """Forget what a prompt asks for; return the block that tells the agent so, or "" if it asks for nothing."""
        if len(prompt) > MAX_CHARS or audience.home is None or self._store.refusal is not None:
            return ""
        conversation = f"{audience.home}\0{session or ''}"
        text = typed(strip_fenced(prompt, self._store.key, session))
        chosen = self._chosen(conversation, text)
        # What is no order as it stands is none without what it quotes.
        plain = spoken(text).plain if chosen is not None or any(orders_to_forget(text)) else ""
        orders = list(orders_to_forget(plain)) if chosen is None else []
        if chosen is None and not orders:
            return ""
        from perdure.capture.forgetting import forget, meant, told

        self._settle(PATIENCE)
        name = self._name(conversation, plain)
        if (answered := self._answer(name)) is not None:
            return answered
        with self._store.write(Author(Channel.USER, host, session)) as tx:
            since = self._said.get(conversation) if session is not None else None
            done = chosen or [meant(tx.connection, order, audience, tx.now, since, session) for order in orders]
            # What may be about work, and finds nothing, is.
            done = [each for each in done if each.clear or each.several or each.order.sure]
            for each in done:
                forget(tx, each.clear)
            block = fence(told(done, tx.batch), self._store.key, session) if done else ""
            known = json.loads(get_meta(tx.connection, _ORDERS) or "[]")
            put_meta(tx.connection, _ORDERS, json.dumps([*known, [name, block]][-ANSWERED:]))
        for each in done:
            if each.several and session is not None:
                self._open.put(conversation, _Open(each))
        return block

    def _chosen(self, conversation: str, text: str) -> list[Meant] | None:
        """Return what is meant by an answer to a list that is open; None: it is no answer."""
        listed = self._open.get(conversation)
        if listed is None or listed.turns < 1:
            return None
        listed.turns -= 1
        several = listed.order.several
        places = chosen(text, len(several))
        if places is None:
            return None
        listed.turns = 0
        from perdure.capture.forgetting import Meant

        return [Meant(listed.order.order, tuple(several[place] for place in places))] if places else None

    def _answer(self, name: str) -> str | None:
        """Return the block that told of an order."""
        known: list[tuple[str, str]] = json.loads(self._store.meta(_ORDERS) or "[]")
        return dict(known).get(name)

    def _name(self, conversation: str, text: str) -> str:
        # How far the conversation has been read tells an order from the same one given again later.
        said = f"{conversation}\0{self._store.cursor(conversation)}\0{text}"
        return mark({"role": "user", "content": said}, self._store.key)
