"""Fits boosted trees, and writes them as plain numbers: the form that `perdure.ranking.trees` applies."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression

from perdure.ranking.trees import Trees
from training.examples import SEED

Plain = dict[str, Any]
RATE, LEAST = 0.05, 30


def fitted(
    rows: NDArray[np.float32],
    labels: NDArray[np.bool_],
    weights: NDArray[np.float64],
    names: Sequence[str],
    *,
    rising: Collection[str] = (),
    rounds: int,
    leaves: int = 10,
) -> Plain:
    """Fit trees.

    Args:
        rows: of shape (rows, features).
        labels: of each row.
        weights: of each row.
        names: of the features.
        rising: features of which more never makes a row less likely.
        rounds: how many trees.
        leaves: of each at the most.
    """
    model = HistGradientBoostingClassifier(
        max_iter=rounds, learning_rate=RATE, max_leaf_nodes=leaves, min_samples_leaf=LEAST, l2_regularization=5.0,
        max_features=0.5, monotonic_cst=[int(name in rising) for name in names], early_stopping=False,
        random_state=SEED,
    )  # fmt: skip
    model.fit(rows, labels, sample_weight=weights)
    return {
        "features": list(names), "base": float(model._baseline_prediction.ravel()[0]), "slope": 1.0, "shift": 0.0,
        **_joined([step[0].nodes for step in model._predictors]),
    }  # fmt: skip


def calibrated(
    plain: Plain, rows: NDArray[np.float32], labels: NDArray[np.bool_], weights: NDArray[np.float64]
) -> Plain:
    """Return the trees with a slope and a shift fitted on rows that they were not fitted on."""
    slope, shift = platt(Trees.of(plain, plain["features"]).log_odds(rows), labels, weights)
    return plain | {"slope": slope, "shift": shift}


def platt(odds: NDArray[np.float64], labels: NDArray[np.bool_], weights: NDArray[np.float64]) -> tuple[float, float]:
    """Return slope and shift that bring log-odds to probabilities (Platt 1999)."""
    model = LogisticRegression(C=1e6)
    model.fit(odds[:, None], labels, sample_weight=weights)
    return float(model.coef_[0, 0]), float(model.intercept_[0])


def _joined(grown: Sequence[Any]) -> Plain:
    """Return trees one behind the other; the value of a node inside is the mean of its leaves."""
    starts = np.cumsum([0, *(len(nodes) for nodes in grown)])
    every = np.concatenate(grown)
    leaf, start = every["is_leaf"].astype(bool), np.repeat(starts[:-1], np.diff(starts))
    left = np.where(leaf, 0, every["left"] + start).tolist()
    right = np.where(leaf, 0, every["right"] + start).tolist()
    value, count = every["value"].tolist(), every["count"].tolist()
    # A child stands behind its parent.
    for node in reversed(range(len(every))):
        if not leaf[node]:
            below = (left[node], right[node])
            value[node] = sum(value[child] * count[child] for child in below) / sum(count[child] for child in below)
    return {
        "roots": starts[:-1].tolist(),
        "feature": np.where(leaf, -1, every["feature_idx"]).tolist(),
        "threshold": _short(np.where(leaf, 0.0, every["num_threshold"])),
        "left": left,
        "right": right,
        "value": _short(value),
    }


def _short(values: Any) -> list[float]:
    return [float(f"{value:.6g}") for value in values]
