"""Fits the gate on stores that the encoder has not learnt from, and names its thresholds on the development split.

python -m training.fit MODEL [--out training/out/gate.json] [--also OTHER_MODEL:SHARE ...]

MODEL is the exported int8 file: all features are computed on its vectors. `--also` takes a second export, of an
encoder that learnt from a share of the stores, and fits on the stores that this one never saw too.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression

from training.examples import SEED, Example, digest, examples, texts_of
from training.features import NAMES, RISING, Asked, Floats, View, features
from training.gate import Plain, log_odds, probability
from training.measures import Answer, at, life, ranked, thresholds
from training.vectors import cached

Vectors = dict[str, NDArray[np.float32]]
ROUNDS, LEAVES, RATE, LEAST = 220, 10, 0.05, 30


@dataclass(frozen=True, slots=True)
class Rows:
    """A prompt's candidates: their features, which of them help, and how many help in all."""

    rows: Floats
    labels: NDArray[np.bool_]
    wanted: int
    kind: str
    lang: str
    passages: bool

    def answer(self, scores: NDArray[Any]) -> Answer:
        """Return these candidates with scores."""
        return Answer(scores, self.labels, self.wanted, self.kind, self.lang)


def rows_of(given: Sequence[Example], vectors: Vectors, *, more: Sequence[str] = (), size: int = 0) -> list[Rows]:
    """Return the features of every prompt; stores are filled up to `size` with texts of others."""
    found = []
    for each in given:
        strangers = [text for text in more if text not in set(each.texts)]
        room = max(0, size - len(each.texts))
        texts = [*each.texts, *random.Random(each.name).sample(strangers, min(room, len(strangers)))]
        view = View(texts, np.stack([vectors[text] for text in texts]), each.passages)
        for prompt in each.prompts:
            asked = Asked(prompt.text, prompt.parts, np.stack([vectors[part] for part in prompt.parts]))
            places, rows = features(view, asked)
            labels = np.isin(places, list(prompt.needs))
            found.append(Rows(rows, labels, len(prompt.needs), prompt.kind, each.lang, each.passages))
    return found


def stacked(given: Sequence[Rows]) -> tuple[Floats, NDArray[np.bool_], NDArray[np.float64]]:
    """Return all rows, labels, and weights that bring the prompts to the rate of life."""
    weights = life([each.answer(each.labels) for each in given])
    return (
        np.concatenate([each.rows for each in given]),
        np.concatenate([each.labels for each in given]),
        np.concatenate([np.full(len(each.rows), weights[not each.wanted]) for each in given]),
    )


def linear(given: Sequence[Rows]) -> Plain:
    """Fit a logistic regression."""
    rows, labels, weights = stacked(given)
    mean, spread = rows.mean(0), np.maximum(rows.std(0), 1e-3)
    model = LogisticRegression(C=0.05, max_iter=2000)
    model.fit(np.clip((rows - mean) / spread, -5, 5), labels, sample_weight=weights)
    return {
        "features": list(NAMES), "kind": "linear", "mean": _short(mean), "spread": _short(spread),
        "weights": _short(model.coef_[0]), "base": float(model.intercept_[0]), "slope": 1.0, "shift": 0.0,
    }  # fmt: skip


def trees(given: Sequence[Rows], rounds: int = ROUNDS, leaves: int = LEAVES) -> Plain:
    """Fit boosted trees that never hold more evidence against a memory."""
    rows, labels, weights = stacked(given)
    model = HistGradientBoostingClassifier(
        max_iter=rounds, learning_rate=RATE, max_leaf_nodes=leaves, min_samples_leaf=LEAST, l2_regularization=5.0,
        max_features=0.5, monotonic_cst=[int(name in RISING) for name in NAMES], early_stopping=False,
        random_state=SEED,
    )  # fmt: skip
    model.fit(rows, labels, sample_weight=weights)
    return {
        "features": list(NAMES), "kind": "trees", "base": float(model._baseline_prediction.ravel()[0]),
        "slope": 1.0, "shift": 0.0, **_joined([step[0].nodes for step in model._predictors]),
    }  # fmt: skip


def _joined(grown: Sequence[Any]) -> Plain:
    """Return trees one behind the other."""
    starts = np.cumsum([0, *(len(nodes) for nodes in grown)])
    every = np.concatenate(grown)
    leaf, start = every["is_leaf"].astype(bool), np.repeat(starts[:-1], np.diff(starts))
    return {
        "roots": starts[:-1].tolist(),
        "feature": np.where(leaf, -1, every["feature_idx"]).tolist(),
        "threshold": _short(np.where(leaf, 0.0, every["num_threshold"])),
        "left": np.where(leaf, 0, every["left"] + start).tolist(),
        "right": np.where(leaf, 0, every["right"] + start).tolist(),
        "value": _short(np.where(leaf, every["value"], 0.0)),
    }


def _short(values: Any) -> list[float]:
    return [float(f"{value:.6g}") for value in values]


def calibrated(gate: Plain, given: Sequence[Rows]) -> Plain:
    """Return the gate with a slope and a shift fitted on prompts that it was not fitted on (Platt)."""
    rows, labels, weights = stacked(given)
    model = LogisticRegression(C=1e6)
    model.fit(log_odds(gate, rows)[:, None], labels, sample_weight=weights)
    return gate | {"slope": float(model.coef_[0, 0]), "shift": float(model.intercept_[0])}


def answers(gate: Plain, given: Sequence[Rows]) -> list[Answer]:
    """Return what a gate says of prompts."""
    rows = np.concatenate([each.rows for each in given])
    scores = np.split(probability(gate, rows), np.cumsum([len(each.rows) for each in given])[:-1])
    return [each.answer(score) for each, score in zip(given, scores, strict=True)]


def by(given: Sequence[Rows], name: str) -> list[Answer]:
    """Return answers whose score is one feature."""
    return [each.answer(each.rows[:, NAMES.index(name)]) for each in given]


def report(name: str, found: Sequence[Answer]) -> None:
    """Print the average precision and the figures at the three points that these answers would name."""
    points = thresholds(found)
    click.echo(f"{name}: AP {ranked(found):.3f}")
    for point, threshold in points.items():
        click.echo(f"    {point:<9} {threshold:.3f}  {at(found, threshold).line()}")


@click.command()
@click.argument("model", type=click.Path(exists=True, path_type=Path))
@click.option("--out", type=click.Path(path_type=Path), default=Path(__file__).parent / "out" / "gate.json")
@click.option("--also", type=click.Path(exists=True, path_type=Path), help="An export that learnt from fewer stores.")
@click.option("--unseen", type=click.Path(exists=True, path_type=Path), help="JSON list of the stores it never saw.")
def main(model: Path, out: Path, also: Path | None, unseen: Path | None) -> None:
    """Fit the gate."""
    everything, judged = examples("train"), examples("development")
    held = [each for each in everything if each.held]
    click.echo(f"data {digest(held)} (held), {digest(judged)} (development)")
    vectors = cached(texts_of([*held, *judged]), model, model.with_suffix(".npz"))
    fitted = rows_of(held, vectors)
    if also and unseen:
        names = set(json.loads(unseen.read_text(encoding="utf-8")))
        others = [each for each in everything if each.name in names]
        fitted += rows_of(others, cached(texts_of(others), also, also.with_suffix(".npz")))
    development = rows_of(judged, vectors)
    stores = [rows for rows in development if not rows.passages]
    report("cosine", by(stores, "cosine"))
    report("above the background", by(stores, "above"))
    makers: dict[str, Callable[[Sequence[Rows]], Plain]] = {"linear": linear, "trees": trees}
    for name, make in makers.items():
        gate = calibrated(make(fitted), development)
        report(f"{name}, stores", answers(gate, stores))
        report(f"{name}, all", answers(gate, development))
        gate["points"] = {key: round(value, 3) for key, value in thresholds(answers(gate, stores)).items()}
        path = out if name == "trees" else out.with_name(f"{out.stem}-{name}.json")
        path.write_text(json.dumps(gate, separators=(",", ":")), encoding="utf-8")
        click.echo(f"{path}: {path.stat().st_size} bytes")


if __name__ == "__main__":
    main()
