"""The calibration of a vector space: how its cosines compare with the reference's, and how near chance comes.

The first is measured once for a model, the second again as the store grows. Both stand in the description of the space,
where every process finds them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from typing import Final

from perdure.embed.base import Embedder, Vectors
from perdure.embed.catalogue import RECALL
from perdure.index.vector_index import ExactIndex, ScaledIndex, VectorIndex
from perdure.ranking.calibration import CLEAR, DEFAULT, EMPTY, NEIGHBOURS, Calibration, Levels, Scale, lift
from perdure.store import spaces
from perdure.store.spaces import VectorSpace
from perdure.store.sql import run
from perdure.store.store import Store
from perdure.text.pluralize import counted
from perdure.text.questions import FOREIGN_QUESTIONS, PAIRS

NOTE: Final = "calibration"
_SHIPPED: Final = {RECALL.identity.id: DEFAULT}
"""Levels by space that need not be measured: those of the model that comes with perdure."""
LEAST_FACTS: Final = 200
"""In a smaller store chance has brought nothing near yet."""
GROWTH: Final = 1.05
CHUNK: Final = 256
"""Vectors that are compared before turns may go first: 0.1 MB to read, and 0.2 ms to multiply."""
_YARDSTICK: Final = hashlib.sha256(repr(PAIRS).encode()).hexdigest()[:16]
"""Levels that were measured on other pairs do not count."""
_LIVE: Final = (
    "FROM facts f JOIN vectors v ON v.fact_id = f.id AND v.embedding_id = ?"
    " WHERE f.forgotten_at IS NULL AND f.superseded_at IS NULL"
)
_BATCH: Final = 60
"""Texts of one call. Models let go of the interpreter in it; a server that counts requests is asked twice in all."""
_CHANCE: Final = 0.99
_DIGITS: Final = 4


def known(space: VectorSpace, fixed: float | None = None) -> Calibration | None:
    """Return the calibration of a space as far as it is known; None: its model has not been measured."""
    noted = space.description.get(NOTE, {})
    if space.id in _SHIPPED:
        return Calibration(Scale.of(_SHIPPED[space.id]), noted.get("lift", 0.0), fixed)
    if noted.get("yardstick") != _YARDSTICK:
        return None
    return Calibration(Scale.of(Levels(**noted["levels"])), noted["lift"], fixed)


def scaled(store: Store, space: VectorSpace) -> VectorIndex:
    """Return an index over all vectors of a space, by comparing each; its cosines are on the common scale."""
    calibration = known(space)
    index = ExactIndex(store.database, space.id, space.dims)
    # Who asks replaces and forgets: of a model that was not measured yet nothing is taken to be near.
    return ScaledIndex(index, calibration.scale if calibration else Scale(stretch=0.0))


def measure(
    store: Store, space: VectorSpace, embedder: Embedder, pause: Callable[[], None], fixed: float | None = None
) -> Calibration:
    """Return the calibration of a space; measure and note where its cosines lie if that is not known."""
    present = store.space()
    # As it stands in the store: another process may have measured it.
    found = known(present, fixed) if present is not None and present.id == space.id else None
    if found is not None:
        return found
    levels = levels_of(embedder, pause)
    # A lift that was found on another scale does not count: it is found anew, as in a store that has grown.
    note = {"yardstick": _YARDSTICK, "levels": asdict(levels), "lift": 0.0, "facts": 0}
    if store.refusal is None:
        store.database.jot(spaces.note, space.id, NOTE, note)
    return Calibration(Scale.of(levels), fixed=fixed)


def grown(store: Store) -> bool:
    """Return whether so many facts have come since the last calibration that it should be made anew."""
    space = store.space()
    return space is not None and _count(store, space) >= max(
        LEAST_FACTS, GROWTH * space.description.get(NOTE, {}).get("facts", 0)
    )


def calibrate(store: Store, embedder_of: Callable[[VectorSpace], Embedder | None], pause: Callable[[], None]) -> str:
    """Measure how near chance comes in a store; return one line about it.

    `pause`: called every few milliseconds.
    """
    space = store.space()
    embedder = embedder_of(space) if space else None
    if space is None or embedder is None:
        return "there is no model"
    scale, facts, raised = measure(store, space, embedder, pause).scale, _count(store, space), 0.0
    if facts >= LEAST_FACTS:
        questions = embedded(embedder, FOREIGN_QUESTIONS, pause, query=True)
        near = _nearest(store, space, questions, pause).tolist()
        raised = round(lift([[scale.common(cosine) for cosine in row] for row in near]), 4)
    store.database.jot(spaces.note, space.id, NOTE, {"lift": raised, "facts": facts})
    return told(Calibration(scale, raised)) + f", {counted(facts, 'memory')}"


def told(calibration: Calibration) -> str:
    """Return a calibration in words, in the model's own cosines."""
    scale = calibration.scale
    if not scale.stretch:
        return "the model cannot tell texts apart; similarity of meaning is ignored"
    clear, here, unrelated = map(scale.own, (CLEAR, CLEAR + calibration.lift, EMPTY))
    more = f" (plus {here - clear:.2f}, as chance hits come close)" if calibration.lift else ""
    return f"cosine of a clear hit: {clear:.2f}{more}; of unrelated texts: {unrelated:.2f}"


def _nearest(store: Store, space: VectorSpace, questions: Vectors, pause: Callable[[], None]) -> Vectors:
    """Return the cosines of the facts that are nearest to each question, best first: all are compared, none is kept."""
    import numpy as np

    best = np.full((len(questions), NEIGHBOURS + 1), -np.inf, dtype=np.float32)
    sql = f"SELECT f.seq, v.vector {_LIVE} AND length(v.vector) = ? AND f.seq > ? ORDER BY f.seq LIMIT ?"
    for rows in store.database.pages(sql, (space.id, 4 * space.dims), CHUNK):
        vectors = np.frombuffer(b"".join(blob for _, blob in rows), dtype="<f4").reshape(-1, space.dims)
        both = np.concatenate([best, questions @ vectors.T], axis=1)
        best = np.partition(both, both.shape[1] - best.shape[1], axis=1)[:, -best.shape[1] :]
        pause()
    return -np.sort(-best, axis=1)


def _count(store: Store, space: VectorSpace) -> int:
    return int(store.database.query(run, f"SELECT count(*) {_LIVE}", (space.id,))[0][0])


def levels_of(embedder: Embedder, pause: Callable[[], None] = lambda: None) -> Levels:
    """Embed the pairs and return the levels."""
    import numpy as np

    questions = embedded(embedder, [question for question, _ in PAIRS], pause, query=True)
    memories = embedded(embedder, [memory for _, memory in PAIRS], pause)
    cosines = questions @ memories.T
    own = np.eye(len(PAIRS), dtype=bool)
    others = cosines[~own]
    found = others.mean(), np.quantile(others, _CHANCE), cosines[own].mean()
    return Levels(*(round(float(level), _DIGITS) for level in found))


def embedded(
    embedder: Embedder, texts: Sequence[str], pause: Callable[[], None] = lambda: None, *, query: bool = False
) -> Vectors:
    """Embed texts; turns go first between two calls.

    Returns float32 array of shape (len(texts), dims).
    """
    import numpy as np

    def batches() -> Iterator[Vectors]:
        for start in range(0, len(texts), _BATCH):
            yield embedder.embed(texts[start : start + _BATCH], query=query)
            pause()

    return np.concatenate(list(batches()))
