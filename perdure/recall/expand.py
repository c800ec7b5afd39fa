"""Beside the query: other wordings of it from a language model, if one is set. Without one nothing is added."""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Literal, Protocol

from perdure.embed.base import Floats
from perdure.errors import ModelError, StoreError
from perdure.llm import WORDINGS, Asker
from perdure.ranking.gates import Evidence, Gate
from perdure.recall.retrievers import Found, Passage
from perdure.recall.slot import Slot, Ticket
from perdure.store import llm
from perdure.store.fact import Fact
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
        self._slot = Slot("expansion")

    def begin(self, query: str, expand: Expand, seconds: float) -> Pending:
        """Return what has the wordings of a query, or will have them."""
        model = self._model
        if model is None or expand == "no":
            return Pending(OFF)
        began = time.monotonic()
        if expand == "wait":
            return Pending(replace(self._asked(model, query, None), seconds=time.monotonic() - began))
        ticket = self._slot.start(lambda: self._asked(model, query, seconds))
        return Pending(Expansion(state="busy")) if ticket is None else Pending(None, ticket)

    def close(self) -> None:
        """End what runs, and the thread."""
        if self._model is not None:
            self._model.interrupt()
        self._slot.close()

    def _asked(self, model: Model, query: str, timeout: float | None) -> Expansion:
        key = llm.wordings_key(self._store.key, query)
        try:
            known = self._store.database.query(llm.wordings_of, key)
            if known is not None:
                return Expansion(known, "known")
            answer = model.ask_json(query, purpose=WORDINGS, system=_SYSTEM, timeout=timeout)
            wordings = wordings_of(answer, query)
            if not wordings:
                return Expansion(state="no wordings in the answer")
            with self._store.database.write(durable=False) as connection:
                llm.put_wordings(connection, key, self._store.clock.now(), wordings)
        except (ModelError, StoreError) as error:
            return Expansion(state=type(error).__name__)
        return Expansion(wordings, "ok")


class Pending:
    """Wordings that may still be on their way."""

    def __init__(self, ready: Expansion | None, ticket: Ticket[Expansion] | None = None) -> None:
        self._ready = ready
        self._ticket = ticket
        self.waited = ready.seconds if ready else 0.0

    def take(self, deadline: float) -> Expansion:
        """Return the wordings if they are there before `deadline` (`time.monotonic()`); else they are dropped."""
        if self._ready is not None or self._ticket is None:
            return self._ready or OFF
        began = time.monotonic()
        found = self._ticket.result(deadline - began)
        if found is None:
            return Expansion(state=self._ticket.error or "late", seconds=time.monotonic() - began)
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


def merged(first: Found, others: Sequence[Found], gate: Gate) -> Found:
    """Return what a query and its other wordings found, as one.

    A fact keeps the evidence of the first of them by which it passes the gate, the query before the others. Cosines
    are shifted so that one floor holds for all: each query has a background, and so a floor, of its own.
    """
    floors = [found.floor for found in (first, *others) if found.floor is not None]
    floor = floors[0] if floors else None
    gate = replace(gate, floor=floor if floor is not None else 1.0)
    features: dict[str, Floats] = {}
    facts: dict[str, Fact] = {}
    evidence: dict[str, Evidence] = {}
    scores: dict[str, dict[str, float]] = {}
    passages: dict[str, Passage] = {}
    for found in (first, *others):
        for fact_id, fact in found.facts.items():
            shifted = _shifted(found.evidence[fact_id], found.floor, floor)
            if fact_id not in facts or (gate.verdict(evidence[fact_id]) is None and gate.verdict(shifted) is not None):
                facts[fact_id], evidence[fact_id] = fact, shifted
                features |= {fact_id: found.features[fact_id]} if fact_id in found.features else {}
        for leg, by_id in found.scores.items():
            best = scores.setdefault(leg, {})
            best.update({fact_id: max(score, best.get(fact_id, score)) for fact_id, score in by_id.items()})
        for passage in found.passages:
            if passage.id not in passages or passages[passage.id].score < passage.score:
                passages[passage.id] = passage
    ordered = sorted(passages.values(), key=lambda passage: (-passage.score, passage.id))
    return replace(
        first, facts=facts, evidence=evidence, scores=scores, passages=ordered, floor=floor, features=features
    )


def _shifted(evidence: Evidence, own: float | None, floor: float | None) -> Evidence:
    if evidence.cosine is None or own is None or floor is None or own == floor:
        return evidence
    return replace(evidence, cosine=evidence.cosine - own + floor)
