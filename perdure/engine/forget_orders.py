"""Orders to forget that a turn begins with: obeyed before anything is recalled for it, each once."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass

from perdure.capture.forgetting import Meant, forget, meant, told
from perdure.hooks.types import Channel
from perdure.recent import Recent
from perdure.regex import lazy
from perdure.speech.forgetting import orders_to_forget
from perdure.speech.spans import spoken
from perdure.speech.typed import typed
from perdure.store.fact import Fact
from perdure.store.scope import Audience
from perdure.store.sql import get_meta, put_meta
from perdure.store.store import Store
from perdure.store.transaction import Author
from perdure.text.fence import fence, strip_fenced
from perdure.text.history import mark
from perdure.text.normalise import fold

MAX_CHARS = 4_000
"""Characters of a prompt that may hold an order: who pastes more works on it."""
PATIENCE = 2.0
"""Seconds that a turn waits until what was said before it is remembered."""
OPEN = 2
"""Turns in which a list of what may be meant can be answered."""
ANSWERED = 16
"""Orders that are known to be obeyed, of all conversations."""
_KEPT = 256
_ORDERS = "forget_orders"
_ORDINALS = ["first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth"]
_ALL = r"(?:all|both|everything|alle|beide|tous|toutes|tod[oa]s|tutt[ie])(?: of (?:them|those|these))?"
_PLACES = rf"(?:{'|'.join(_ORDINALS)}|last|\d\d?)"
_ONE = rf"(?:(?:the|number|no|only|just|die|der|das|nur|le|la|el|il|o|a) )*{_PLACES}(?: one)?"
_PLEASE = r"(?: ?(?:please|pls|thanks|bitte|stp|por favor|per favore))*"
_EVERY_ONE = lazy(
    rf"(?:(?:yes|yeah|yep|sure|ok|okay|ja|oui|si|sim|{_ALL})(?: |$))+"
    rf"(?:(?:forget|delete|remove|do|go ahead|them|it|that|those|{_ALL})(?: |$))*{_PLEASE}"
)
_SOME = lazy(
    rf"(?:yes )?(?P<but>{_ALL} (?:but|except|ausser|sauf|excepto|menos|exceto|tranne)(?: for)? )?"
    rf"(?P<named>{_ONE}(?: (?:and |und |et |y |e )?{_ONE})*){_PLEASE}"
)
_NONE = lazy(
    r"(?:no|none|neither|nope|nothing|keep|never ?mind|nein|keine[rs]?|non|aucun\w*|ningun\w*|nao|nenhum\w*|nessuno)\b"
)
_PLACE = lazy(rf"\b{_PLACES}\b")


@dataclass(slots=True)
class _Open:
    several: tuple[Fact, ...]
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
        if chosen is None and not any(orders_to_forget(text)):
            return ""
        plain = spoken(text).plain
        orders = [] if chosen is not None else list(orders_to_forget(plain))
        if chosen is None and not orders:
            return ""
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
                self._open.put(conversation, _Open(each.several, each))
        return block

    def _chosen(self, conversation: str, text: str) -> list[Meant] | None:
        """Return what is meant by an answer to a list that is open; None: it is no answer."""
        listed = self._open.get(conversation)
        if listed is None or listed.turns < 1:
            return None
        listed.turns -= 1
        folded = " ".join(re.sub(r"[^\w' ]", " ", fold(text)).split())
        if _NONE.match(folded):
            listed.turns = 0
            return None
        facts = listed.several if _EVERY_ONE.fullmatch(folded) else None
        if facts is None and (some := _SOME.fullmatch(folded)) is not None:
            places = {_place(found[0], len(listed.several)) for found in _PLACE.finditer(some["named"])}
            if places <= set(range(len(listed.several))):
                left = bool(some["but"])
                facts = tuple(fact for place, fact in enumerate(listed.several) if (place in places) is not left)
        if facts is None:
            return None
        listed.turns = 0
        return [Meant(listed.order.order, facts)]

    def _answer(self, name: str) -> str | None:
        """Return the block that told of an order."""
        known: list[tuple[str, str]] = json.loads(self._store.meta(_ORDERS) or "[]")
        return dict(known).get(name)

    def _name(self, conversation: str, text: str) -> str:
        # How far the conversation has been read tells an order from the same one given again later.
        said = f"{conversation}\0{self._store.cursor(conversation)}\0{text}"
        return mark({"role": "user", "content": said}, self._store.key)


def _place(word: str, of: int) -> int:
    if word == "last":
        return of - 1
    return _ORDINALS.index(word) if word in _ORDINALS else int(word) - 1
