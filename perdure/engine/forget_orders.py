"""Orders to forget that a turn begins with: obeyed before anything is recalled for it, each once."""

from __future__ import annotations

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
_KEPT = 256
_ORDINALS = ["first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth"]
_ALL = lazy(r"(?:yes|yeah|yep|ok(?:ay)?|all|both|ja|alle|beide|oui|tou(?:s|tes)|si|tod[oa]s|sim|tutt[ie])\b")
_BUT = lazy(r"\b(?:but|except|ausser|sauf|excepto|menos|exceto|tranne)\b")
_ONE = lazy(rf"\b(?P<word>{'|'.join(_ORDINALS)}|last)\b|(?:^|\bnumber |\bno\.? ?|#)(?P<number>\d\d?)\b")


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
        self._answered: Recent[str, str] = Recent(_KEPT)
        self._open: Recent[str, _Open] = Recent(_KEPT)
        self._said: Recent[str, float] = Recent(_KEPT)

    def said(self, session: str | None, at: float) -> None:
        """Take note of when the user spoke in a session, epoch seconds: that is what "that" means."""
        if session is not None:
            self._said.put(session, at)

    def obeyed(self, session: str | None, text: str) -> bool:
        """Return whether a message was obeyed when its turn began."""
        return self._answered.get(self._name(session, text)) is not None

    def obey(self, prompt: str, audience: Audience, session: str | None, host: str) -> str:
        """Forget what a prompt asks for; return the block that tells the agent so, or "" if it asks for nothing."""
        if len(prompt) > MAX_CHARS or audience.home is None or self._store.refusal is not None:
            return ""
        text = typed(strip_fenced(prompt, self._store.key, session))
        name = self._name(session, text)
        if (answered := self._answered.get(name)) is not None:
            return answered
        chosen = self._chosen(session, text)
        orders = (
            [] if chosen is not None or not any(orders_to_forget(text)) else list(orders_to_forget(spoken(text).plain))
        )
        if chosen is None and not orders:
            return ""
        self._settle(PATIENCE)
        with self._store.write(Author(Channel.USER, host, session)) as tx:
            since = self._said.get(session) if session is not None else None
            done = chosen or [meant(tx.connection, order, audience, tx.now, since, session) for order in orders]
            for each in done:
                forget(tx, each.clear)
            batch = tx.batch
        for each in done:
            if each.several and session is not None:
                self._open.put(session, _Open(each.several, each))
        block = fence(told(done, batch), self._store.key, session)
        self._answered.put(name, block)
        return block

    def _chosen(self, session: str | None, text: str) -> list[Meant] | None:
        """Return what is meant by an answer to a list that is open; None: it is no answer."""
        listed = self._open.get(session) if session is not None else None
        if listed is None or session is None or listed.turns < 1:
            return None
        listed.turns -= 1
        folded = fold(text).strip()
        places = {_place(found["word"], found["number"], len(listed.several)) for found in _ONE.finditer(folded)}
        named = [fact for place, fact in enumerate(listed.several) if place in places]
        if _ALL.match(folded) or (named and len(folded.split()) <= len(listed.several) * 4):
            listed.turns = 0
            left_out = named if _BUT.search(folded) else [] if not named else None
            facts = named if left_out is None else [fact for fact in listed.several if fact not in left_out]
            return [Meant(listed.order.order, tuple(facts))]
        return None

    def _name(self, session: str | None, text: str) -> str:
        return f"{session}\0{mark({'role': 'user', 'content': text}, self._store.key)}"


def _place(word: str | None, number: str | None, of: int) -> int:
    if word == "last":
        return of - 1
    return _ORDINALS.index(word) if word else int(number or 0) - 1
