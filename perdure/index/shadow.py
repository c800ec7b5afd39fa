"""The shadow score of a switch: two models compared on the user's own memories before the new one answers.

Questions are made from memories, and each model is asked which memory is nearest. What is kept holds numbers only.
"""

from __future__ import annotations

import logging
import random
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

from perdure.embed.base import Embedder, Vectors
from perdure.errors import ModelError, PerdureError
from perdure.index.calibrate import embedded
from perdure.store.fact import live_sql, read_facts
from perdure.store.spaces import VectorSpace
from perdure.store.sql import marks, run
from perdure.store.store import Store
from perdure.text.questions import exact, paraphrase

NOTE: Final = "shadow"
MOST_QUESTIONS: Final = 100
SEED: Final = 0
PATIENCE_SECONDS: Final = 5.0
"""The switch waits so long for the score at the most, once both models are loaded."""
CHUNK: Final = 256
"""Memories whose vectors are read and compared at a time."""
_NOT_LOADED: Final = "the previous model cannot be loaded"
_FAILED: Final = "a model failed on the questions"
_LATE: Final = f"it would have taken longer than {PATIENCE_SECONDS:.0f} seconds"
_NOTHING: Final = "there are no memories to ask about"
_BOTH: Final = (
    "FROM facts JOIN vectors a ON a.fact_id = facts.id AND a.embedding_id = ? AND length(a.vector) = ?"
    " JOIN vectors b ON b.fact_id = facts.id AND b.embedding_id = ? AND length(b.vector) = ?"
)
_log = logging.getLogger("perdure.worker")


@dataclass(frozen=True, slots=True)
class _Question:
    seq: int
    scope: tuple[str, str]
    text: str


class _Late(ModelError):
    """The time for the score is over."""


def compare(
    store: Store, new: VectorSpace, embedder: Embedder, embedder_of: Callable[[VectorSpace], Embedder | None]
) -> dict[str, Any]:
    """Return how the model that answers and the one that is to answer do on questions made from memories.

    It is noted with the new space: "against", the id of the former one, and either "asked", "former" and "new"
    (questions, and for how many each model has the memory they were made from as the nearest of its scope) or
    "left_out", why nothing was compared. Empty if no model answers.
    """
    former = store.space()
    if former is None:
        return {}
    try:
        theirs = embedder_of(former)
    except PerdureError as error:
        _log.warning("the previous model cannot be loaded for a comparison: %s", error)
        theirs = None
    if theirs is None or theirs.identity.id != former.id:
        return {"against": former.id, "left_out": _NOT_LOADED}
    try:
        figures = _compared(store, (former, new), (theirs, embedder))
    except ModelError as error:
        # What a server says may quote the question, so it is not kept.
        _log.warning("the previous model and the new one are not compared: %s", type(error).__name__)
        return {"against": former.id, "left_out": _LATE if isinstance(error, _Late) else _FAILED}
    return {"against": former.id} | figures


def told(note: Mapping[str, Any]) -> str:
    """Return what `compare` found in words."""
    if "left_out" in note:
        return f"the previous model and the new one were not compared: {note['left_out']}"
    return (
        f"of {note['asked']} questions made from your memories, the previous model ranked the right memory first for"
        f" {note['former']}, the new one for {note['new']}"
    )


def _compared(store: Store, spaces: Sequence[VectorSpace], embedders: Sequence[Embedder]) -> dict[str, Any]:
    with _limited(embedders) as pause:
        questions = _questions(store, spaces)
        if not questions:
            return {"left_out": _NOTHING}
        texts = [question.text for question in questions]
        asked = [embedded(embedder, texts, pause, query=True) for embedder in embedders]
        former, new = _firsts(store, spaces, questions, asked, pause)
    return {"asked": len(questions), "former": former, "new": new}


@contextmanager
def _limited(embedders: Sequence[Embedder]) -> Iterator[Callable[[], None]]:
    """Give a function that raises when the time is over; a call of a model that is under way then is broken off."""
    deadline = time.monotonic() + PATIENCE_SECONDS

    def pause() -> None:
        if time.monotonic() >= deadline:
            raise _Late(_LATE)

    def interrupt() -> None:
        for embedder in embedders:
            embedder.interrupt()

    timer = threading.Timer(PATIENCE_SECONDS, interrupt)
    timer.daemon = True
    timer.start()
    try:
        yield pause
    except ModelError:
        pause()
        raise
    finally:
        timer.cancel()


def _questions(store: Store, spaces: Sequence[VectorSpace]) -> list[_Question]:
    """Return two questions of each of some memories that have vectors in both spaces, always the same ones."""
    dice = random.Random(SEED)
    condition, values = _condition(store, spaces)
    with store.database.read() as connection:
        seqs = [row[0] for row in run(connection, f"SELECT facts.seq {condition} ORDER BY facts.seq", values)]
        drawn = sorted(dice.sample(seqs, min(len(seqs), MOST_QUESTIONS // 2)))
        facts = read_facts(connection, f"facts WHERE seq IN ({marks(drawn)}) ORDER BY seq", drawn)
    return [
        _Question(seq, (fact.scope, fact.scope_target), text)
        for seq, fact in zip(drawn, facts, strict=True)
        for text in (exact(fact), paraphrase(fact, dice))
        if text
    ]


def _firsts(
    store: Store, spaces: Sequence[VectorSpace], questions: Sequence[_Question], asked: Sequence[Vectors],
    pause: Callable[[], None],
) -> list[int]:  # fmt: skip
    """Return for how many questions the own memory is nearer than all others of its scope, in each space."""
    import numpy as np

    condition, values = _condition(store, spaces)
    sql = (
        f"SELECT facts.seq, facts.scope, facts.scope_target, a.vector, b.vector {condition}"
        " AND facts.seq > ? ORDER BY facts.seq LIMIT ?"
    )
    seqs = np.array([question.seq for question in questions])
    codes = {scope: code for code, scope in enumerate(sorted({question.scope for question in questions}))}
    scopes = np.array([codes[question.scope] for question in questions])
    own, others = (np.full((len(spaces), len(questions)), -np.inf, dtype=np.float32) for _ in range(2))
    for rows in store.database.pages(sql, values, CHUNK):
        mine = seqs[:, None] == np.array([row[0] for row in rows])
        rivals = (scopes[:, None] == np.array([codes.get(row[1:3], -1) for row in rows])) & ~mine
        for place, (space, vectors) in enumerate(zip(spaces, asked, strict=True)):
            rows_of = np.frombuffer(b"".join(row[3 + place] for row in rows), dtype="<f4").reshape(-1, space.dims)
            with np.errstate(invalid="ignore", over="ignore"):  # a damaged vector is near nothing
                cosines = np.nan_to_num(vectors @ rows_of.T, nan=-np.inf, posinf=-np.inf)
            for best, counted in ((own, mine), (others, rivals)):
                best[place] = np.maximum(best[place], np.where(counted, cosines, -np.inf).max(1, initial=-np.inf))
        pause()
    return [int(count) for count in (own > others).sum(1)]


def _condition(store: Store, spaces: Sequence[VectorSpace]) -> tuple[str, tuple[Any, ...]]:
    live, values = live_sql(store.clock.now())
    joined = tuple(value for space in spaces for value in (space.id, 4 * space.dims))
    return f"{_BOTH} WHERE {live}", (*joined, *values)
