"""The gate: from features to the probability that a memory helps a prompt. Stored as plain JSON, applied with numpy.

    {"features": [...], "kind": "trees", "base": b, "slope": s, "shift": t, "trees": [{"feature", "threshold", "left",
     "right", "value"}], "points": {"strict", "balanced", "generous"}}
    {"features": [...], "kind": "linear", "mean": [...], "spread": [...], "weights": [...], "base": b, ...}

A tree's node is a leaf where `feature` is -1; a row goes left if its feature is at most the threshold. The sum of the
leaves and `base` is a log-odds; times `slope`, plus `shift`, it is calibrated at the rate of life.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from training.features import NAMES

Array = NDArray[np.floating[Any]]
Plain = dict[str, Any]


def read(path: Path) -> Plain:
    """Read a gate.

    Raises:
        ValueError: it was fitted on other features.
    """
    gate: Plain = json.loads(path.read_text(encoding="utf-8"))
    if gate["features"] != list(NAMES):
        raise ValueError(f"{path} was fitted on other features; fit it anew with python -m training.fit")
    return gate


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
    total = np.full(len(rows), float(gate["base"]))
    for tree in gate["trees"]:
        total += _leaves(tree, rows)
    return total


def _leaves(tree: Mapping[str, Sequence[float]], rows: Array) -> Array:
    feature, threshold = np.array(tree["feature"]), np.array(tree["threshold"])
    left, right, value = np.array(tree["left"]), np.array(tree["right"]), np.array(tree["value"])
    node = np.zeros(len(rows), dtype=int)
    every = np.arange(len(rows))
    while (inner := feature[node] >= 0).any():
        smaller = rows[every, feature[node]] <= threshold[node]
        node = np.where(inner, np.where(smaller, left[node], right[node]), node)
    return np.asarray(value[node])
