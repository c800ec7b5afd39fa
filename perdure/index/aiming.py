"""Triggers on their way to their vectors: those that are near prompts which need no memory are refused."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from perdure.embed.base import Embedder, Vectors
from perdure.errors import InputError, ModelError
from perdure.index.calibrate import embedded
from perdure.ranking.calibration import Scale
from perdure.store.transaction import StoredVector
from perdure.text.questions import QUIET

NEAR: Final = 0.5
"""The cosine of two texts that ask for nearly the same, on the common scale."""
PASSING: Final = 0.02
"""The share of quiet prompts that a trigger may be near."""
_known: dict[str, Vectors] = {}
"""The vectors of the quiet prompts, by the id of an embedder's identity."""


def aimed(embedder: Embedder | None, scale: Scale, texts: Sequence[str]) -> dict[str, StoredVector]:
    """Return the vectors of triggers by their texts; none without a model, whose worker then makes them later.

    Raises:
        InputError: a trigger is near too many quiet prompts: it would bring its memory up at any time.
    """
    if embedder is None or not texts:
        return {}
    try:
        vectors = embedder.embed(texts)
        for text, near in zip(texts, near_quiet(embedder, scale, vectors), strict=True):
            if near:
                raise InputError(
                    f"triggers: {text[:40]!r} is close to {len(near)} of {len(QUIET)} prompts that need no memory, such"
                    f" as {near[0]!r}; the limit is {int(PASSING * len(QUIET))}; make it specific to the situation"
                )
    except ModelError:
        return {}
    return dict(zip(texts, StoredVector.rows(vectors, embedder.identity.id), strict=True))


def near_quiet(embedder: Embedder, scale: Scale, vectors: Vectors) -> list[list[str]]:
    """Return for each vector, of shape (texts, dims), the quiet prompts that it is near, if these are too many."""
    import numpy as np

    quiet = _known.get(embedder.identity.id)
    if quiet is None:
        quiet = _known[embedder.identity.id] = embedded(embedder, QUIET, query=True)
    near = [
        [int(place) for place in np.argsort(-row) if scale.common(float(row[place])) >= NEAR]
        for row in vectors @ quiet.T
    ]
    return [[QUIET[place] for place in each] if len(each) > PASSING * len(QUIET) else [] for each in near]
