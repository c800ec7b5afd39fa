"""The gate: from features to the probability that a memory helps a prompt. Stored as plain JSON, applied with numpy.

    {"features": [...], "kind": "trees", "base": b, "slope": s, "shift": t, "roots": [...], "feature": [...],
     "threshold": [...], "left": [...], "right": [...], "value": [...], "points": {"strict", "balanced", "generous"}}
    {"features": [...], "kind": "linear", "mean": [...], "spread": [...], "weights": [...], "base": b, ...}

All trees stand one behind the other. A node is a leaf where `feature` is -1; a row goes left if its feature is at most
the threshold. The sum of the leaves and `base` is a log-odds; times `slope`, plus `shift`, it is calibrated at the rate
of life.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from training.features import NAMES

Array = NDArray[np.floating[Any]]
Plain = dict[str, Any]
_COLUMNS = frozenset({"roots", "feature", "threshold", "left", "right", "value", "mean", "spread", "weights"})


def read(path: Path) -> Plain:
    """Read a gate.

    Raises:
        ValueError: it was fitted on other features.
    """
    gate: Plain = json.loads(path.read_text(encoding="utf-8"))
    if gate["features"] != list(NAMES):
        raise ValueError(f"{path} was fitted on other features; fit it anew with python -m training.fit")
    return {name: np.array(value) if name in _COLUMNS else value for name, value in gate.items()}


def probability(gate: Mapping[str, Any], rows: Array) -> Array:
    """Return the probability that each row's memory helps, 0 to 1."""
    odds = np.clip(gate["slope"] * log_odds(gate, rows) + gate["shift"], -30, 30)
    return np.asarray(1 / (1 + np.exp(-odds)))


def log_odds(gate: Mapping[str, Any], rows: Array) -> Array:
    """Return the log-odds before calibration."""
    if not len(rows):
        return np.zeros(0)
    if gate["kind"] == "linear":
        scaled = (rows - np.array(gate["mean"])) / np.array(gate["spread"])
        return np.asarray(np.clip(scaled, -5, 5) @ np.array(gate["weights"]) + gate["base"])
    return np.asarray(gate["base"] + _leaves(gate, rows).sum(axis=1))


def _leaves(gate: Mapping[str, Any], rows: Array) -> Array:
    """Return the value of the leaf that each row reaches in each tree; all trees are walked at once."""
    feature, threshold = np.asarray(gate["feature"]), np.asarray(gate["threshold"])
    left, right = np.asarray(gate["left"]), np.asarray(gate["right"])
    node = np.tile(np.asarray(gate["roots"]), (len(rows), 1))
    every = np.arange(len(rows))[:, None]
    while (inner := feature[node] >= 0).any():
        smaller = rows[every, feature[node]] <= threshold[node]
        node = np.where(inner, np.where(smaller, left[node], right[node]), node)
    return np.asarray(np.asarray(gate["value"])[node])
