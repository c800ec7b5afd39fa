"""The gate: from features to the probability that a memory helps a prompt, and what speaks for and against it.

Its file holds the trees (`perdure.ranking.trees`) beside {"encoder": sha256, "points": {"strict", "balanced",
"generous"}}; `training/fit.py` writes it. Its probabilities hold at the rate of life, at which two prompts in three
need nothing.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from perdure.errors import ModelError
from perdure.ranking.trees import Trees
from perdure.recall.features import NAMES

if TYPE_CHECKING:
    from perdure.recall.features import Floats

FILE: Final = Path(__file__).with_name("data") / "gate.json"
STRICT, BALANCED, GENEROUS = POINTS = ("strict", "balanced", "generous")
"""The named points between precision and recall."""
REASONS: Final = 3
"""Features that a receipt names for a memory."""


@dataclass(frozen=True, slots=True)
class LearnedGate:
    """Trees over the features of `perdure.recall.features`.

    Attributes:
        encoder: sha256 of the encoder whose vectors it was fitted on; those of another mean nothing to it.
        points: the probability from which a memory comes up, by the names of `POINTS`.
        trees: tell it.
    """

    encoder: str
    points: Mapping[str, float]
    trees: Trees

    @classmethod
    def of(cls, plain: Mapping[str, Any]) -> LearnedGate:
        """Make a gate of its JSON.

        Raises:
            ModelError: it was fitted on other features.
        """
        return cls(plain["encoder"], plain["points"], Trees.of(plain, NAMES))

    def probabilities(self, rows: Floats) -> list[float]:
        """Return the probability that each row's memory helps, 0 to 1; `rows` of shape (memories, len(NAMES))."""
        return self.trees.probabilities(rows)

    def reasons(self, row: Floats) -> dict[str, float]:
        """Return the features that moved a memory's log-odds most, with how far, the strongest first."""
        return self.trees.reasons(row, REASONS)


@cache
def shipped() -> LearnedGate:
    """Return the gate that comes with perdure.

    Raises:
        ModelError: its file is missing, damaged or of another version.
    """
    try:
        return LearnedGate.of(json.loads(FILE.read_text(encoding="utf-8")))
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ModelError(f"{FILE} cannot be used ({type(error).__name__}: {error}); reinstall perdure") from error
