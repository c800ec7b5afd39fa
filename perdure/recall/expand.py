"""Beside the query: other wordings of it from a language model, if one is set. Without one nothing is added."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final, Literal, Protocol

from perdure.errors import ModelError, StoreError
from perdure.llm import WORDINGS, Asker
from perdure.recall.lane import Lane, Ticket
from perdure.store import llm
from perdure.store.store import Store
from perdure.text.clean import clean
from perdure.text.lexicon import table

Expand = Literal["no", "wait", "turn"]
"""Not at all; before the search, however long the model may take; beside it, within the deadline of the turn."""

MAX_WORDINGS: Final = 4
_MAX_LETTERS: Final = 300
_SYSTEM: Final = table("recall", "prompts")["expand"]


class Model(Asker, Protocol):
    """The language model, as far as it is needed here."""

    def interrupt(self) -> None:
        """Break off what runs."""


@dataclass(frozen=True, slots=True)
class Expansion:
    """What was added to a query."""

    wordings: tuple[str, ...] = ()  # other ways to say it
    state: str = "off"  # "off", "ok", "known" (from an earlier time), or why there is nothing
    seconds: float = 0.0  # how long the search had to wait for it


OFF: Final = Expansion()


class Expander:
    """Words queries in other ways, and remembers how. Usable from any thread."""

    def __init__(self, store: Store, model: Model | None) -> None:
        """Ask `model`; None: nothing is ever added."""
        self._store = store
        self._model = model
        self._lane = Lane("expansion")

    def begin(self, query: str, expand: Expand, seconds: float) -> Callable[[float], Expansion]:
        """Return what gives the wordings of a query that are there before a time (`time.monotonic()`)."""
        model, began = self._model, time.monotonic()
        if model is None or expand == "no":
            return lambda deadline: OFF
        if expand == "wait":
            found = replace(self._asked(model, query, None), seconds=time.monotonic() - began)
            return lambda deadline: found
        ticket = self._lane.start(lambda: self._asked(model, query, seconds))
        return (lambda deadline: Expansion(state="busy")) if ticket is None else partial(_taken, ticket)

    def close(self) -> None:
        """End what runs, and the thread."""
        if self._model is not None:
            self._model.interrupt()
        self._lane.close()

    def _asked(self, model: Model, query: str, timeout: float | None) -> Expansion:
        key = llm.wordings_key(self._store.key, query)
        try:
            known = self._store.database.query(llm.wordings_of, key)
            if known is not None:
                return Expansion(known, "known")
            answer = model.ask_json(query, purpose=WORDINGS, system=_SYSTEM, timeout=timeout)
            wordings = wordings_of(answer, query)
            if not wordings:
                return Expansion(state="the answer has no rewordings")
            with self._store.database.write(durable=False) as connection:
                llm.put_wordings(connection, key, self._store.clock.now(), wordings)
        except (ModelError, StoreError) as error:
            return Expansion(state=type(error).__name__)
        return Expansion(wordings, "ok")


def _taken(ticket: Ticket[Expansion], deadline: float) -> Expansion:
    began = time.monotonic()
    found = ticket.result(deadline - began) or Expansion(state=ticket.error or "late")
    return replace(found, seconds=time.monotonic() - began)


def wordings_of(answer: Any, query: str) -> tuple[str, ...]:
    """Return the wordings in a model's answer, made harmless: short, on one line, each once, without the query."""
    given = answer.get("wordings") if isinstance(answer, dict) else answer
    found: dict[str, str] = {}
    for each in given if isinstance(given, list) else ():
        if isinstance(each, str):
            text = re.sub(r"\s+", " ", clean(each[:_MAX_LETTERS])).strip()
            found.setdefault(text.casefold(), text)
    found.pop("", None)
    found.pop(" ".join(query.casefold().split()), None)
    return tuple(found.values())[:MAX_WORDINGS]
