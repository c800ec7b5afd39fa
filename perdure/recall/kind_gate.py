"""The gate where all of a kind is asked for: here no memory is the rival of another.

A logistic regression over a few of the gate's features, fitted by training/kinds.py.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Final

from perdure.embed.base import Floats
from perdure.errors import ModelError
from perdure.recall.gate import NAMES

FILE: Final = Path(__file__).with_name("data") / "kinds.json"
ANY: Final = 0.2
"""The probability that the gate gives the best candidate of a kind of which there is any."""
ONE: Final = 0.6
"""The probability from which a memory is held to be one of the kind."""
BESIDE: Final = 0.75
"""The same where others are of it by their words: then it is rarer that one is not."""
LEAST: Final = 1e-4
"""Probabilities are held to be no nearer to 0 and 1."""
_OF_GATE: Final = ("cosine", "above", "behind", "best", "share", "share_part", "rarest", "texts", "says_liking")
COLUMNS: Final = (*_OF_GATE, "odds", "best_odds")
"""What is looked at of a memory: features of the gate, and the log-odds that it gives the memory, and the best one."""


def looked_at(rows: Floats, judged: Sequence[float]) -> Floats:
    """Return the columns of the candidates of one prompt, of shape (memories, len(COLUMNS)).

    Args:
        rows: the gate's features.
        judged: the probabilities that the gate makes of them.
    """
    import numpy as np

    told = np.clip(np.asarray(judged, dtype=np.float32), LEAST, 1 - LEAST)
    odds = np.log(told / (1 - told))[:, None]
    return np.hstack([rows[:, [NAMES.index(name) for name in _OF_GATE]], odds, np.full_like(odds, odds.max())])


def of_kind(rows: Floats, judged: Sequence[float], named: bool) -> list[float]:
    """Return of each candidate the probability that it is one of the kind, 0 to 1; 0 if it is not likely to be.

    `named`: whether some are of it by their words. See `looked_at` for the others.
    """
    import numpy as np

    if not named and max(judged, default=0.0) < ANY:
        return [0.0] * len(judged)
    weights = _weights()
    told = 1 / (1 + np.exp(-(looked_at(rows, judged) @ weights[:-1] + weights[-1])))
    found: list[float] = np.where(told >= (BESIDE if named else ONE), told, 0.0).tolist()
    return found


@cache
def _weights() -> Floats:
    import numpy as np

    try:
        return np.array(json.loads(FILE.read_text(encoding="utf-8"))["weights"], dtype=np.float32)
    except (OSError, ValueError, KeyError) as error:
        raise ModelError(f"{FILE} cannot be used ({type(error).__name__}: {error}); reinstall perdure") from error
