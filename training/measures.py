"""Figures over prompts and memories, at the rate of life, in numpy."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.floating[Any]]
Marks = NDArray[np.bool_]
IDLE = 0.65
"""Share of real prompts that need no memory, by field reports."""
LIMIT = 10
"""Memories that are brought for a prompt at most."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What a model says of a prompt: a score for each candidate, whether it helps, and how many help in all."""

    scores: Floats
    labels: Marks
    wanted: int
    kind: str = ""
    lang: str = "en"


def life(answers: Sequence[Answer]) -> tuple[float, float]:
    """Return the weights of a prompt that needs something, and of one that needs nothing, at the rate of life."""
    idle = sum(not answer.wanted for answer in answers)
    if not idle or idle == len(answers):
        return 1.0, 1.0
    return 1.0, IDLE / (1 - IDLE) * (len(answers) - idle) / idle


def average_precision(
    labels: Marks, scores: Floats, weights: Floats | None = None, wanted: float | None = None
) -> float:
    """Return the area under the steps of precision over recall, all pairs ranked together.

    Args:
        labels: whether a pair's memory helps its prompt.
        scores: higher is better.
        weights: of each pair; None: all the same.
        wanted: weight of all that helps, those that are no candidates among it; None: of the pairs.

    Raises:
        ValueError: no memory helps any prompt.
    """
    if not labels.any():
        raise ValueError("no memory helps any prompt: there is nothing to find")
    order = np.argsort(-scores, kind="stable")
    worth = np.ones(len(labels)) if weights is None else np.asarray(weights, dtype=float)
    helping = np.where(labels, worth, 0.0)[order]
    right = np.cumsum(helping)
    return float((right / np.cumsum(worth[order]) * helping).sum() / (wanted or right[-1]))


def ranked(answers: Sequence[Answer]) -> float:
    """Return the average precision of all answers, at the rate of life."""
    weights = life(answers)
    worth = np.concatenate([np.full(len(each.scores), weights[not each.wanted]) for each in answers])
    labels = np.concatenate([each.labels for each in answers])
    scores = np.concatenate([each.scores for each in answers])
    return average_precision(labels, scores, worth, float(sum(each.wanted for each in answers)))


def recall_at(answers: Sequence[Answer], precision: float) -> float:
    """Return the highest recall at which the answers still have a precision, at the rate of life; 0: they never do."""
    weights = life(answers)
    scores = np.concatenate([each.scores for each in answers])
    labels = np.concatenate([each.labels for each in answers])
    worth = np.concatenate([np.full(len(each.scores), weights[not each.wanted]) for each in answers])
    order = np.argsort(-scores, kind="stable")
    right = np.cumsum((worth * labels)[order])
    enough = right >= precision * np.cumsum(worth[order])
    return float((right[enough] / sum(each.wanted for each in answers)).max(initial=0.0))


@dataclass(frozen=True, slots=True)
class Figures:
    """Precision, recall and silence, 0 to 1, and the share of prompts of each kind that was found or kept quiet."""

    precision: float
    recall: float
    silence: float
    shown: float

    def line(self) -> str:
        """Return them for people."""
        return (
            f"precision {self.precision:.3f}, recall {self.recall:.3f}, silence {self.silence:.3f}, "
            f"memories a prompt {self.shown:.2f}"
        )


def at(answers: Sequence[Answer], threshold: float) -> Figures:
    """Return the figures when every candidate that reaches a threshold is shown, at the rate of life."""
    weights = life(answers)
    right = brought = wanted = quiet = idle = shown = everything = 0.0
    for each in answers:
        weight = weights[not each.wanted]
        taken = np.argsort(-each.scores, kind="stable")[:LIMIT]
        taken = taken[each.scores[taken] >= threshold]
        right += weight * float(each.labels[taken].sum())
        brought += weight * len(taken)
        wanted += each.wanted
        everything += weight
        if not each.wanted:
            idle += 1
            quiet += not len(taken)
    shown = brought / max(everything, 1e-9)
    return Figures(
        right / brought if brought else 1.0, right / wanted if wanted else 1.0, quiet / idle if idle else 1.0, shown
    )


def thresholds(answers: Sequence[Answer], balanced: float = 0.75) -> dict[str, float]:
    """Return the three named points, chosen where these answers reach what each promises.

    strict: precision of .85; balanced: silence of .95 and this precision; generous: precision of .38. The lowest
    threshold that keeps the promise; a promise that none keeps is broken as little as can be.
    """
    promises: dict[str, Callable[[Figures], float]] = {
        "strict": lambda found: min(0.0, found.precision - 0.85),
        "balanced": lambda found: min(0.0, found.precision - balanced) + min(0.0, found.silence - 0.95),
        "generous": lambda found: min(0.0, found.precision - 0.38),
    }
    grid = np.unique(np.concatenate([each.scores for each in answers]).round(3))
    grid = grid[grid > 0.02] if grid.max() <= 1 else grid
    steps = grid[:: max(1, len(grid) // 200)]
    found = [(float(step), at(answers, float(step))) for step in steps]
    return {
        name: max(found, key=lambda pair: (round(kept(pair[1]), 3), pair[1].recall))[0]
        for name, kept in promises.items()
    }
