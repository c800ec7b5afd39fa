"""Fits the gate on stores that the encoder has not learnt from, and names its thresholds on the development split.

python -m training.fit MODEL [--out FILE]

MODEL is the exported int8 file: all features are computed on its vectors.
"""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression

from perdure.recall.features import NAMES, RISING, Prompt
from perdure.recall.gate import FILE, LearnedGate
from training.examples import SEED, Example, digest, examples, texts_of
from training.measures import Answer, at, life, ranked, thresholds
from training.vectors import cached
from training.views import Floats, View, features

Plain = dict[str, Any]
Vectors = dict[str, NDArray[np.float32]]
SIZES = (0, 1, 2, 4, 12, 30, 300)
"""Texts of the stores that the gate is fitted on: each as it is (0), and as its user's begins, and as it may become."""
ROUNDS, LEAVES, RATE, LEAST = 400, 10, 0.05, 30
PROMPTS = 1000.0
"""Weight of the prompts of stores of one size."""


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


def rows_of(given: Sequence[Example], vectors: Vectors, *, more: Sequence[Example] = (), size: int = 0) -> list[Rows]:
    """Return the features of every prompt.

    Args:
        given: stores and conversations.
        vectors: of all their texts and parts.
        more: stores are filled up with texts of these, of the same language.
        size: how many texts a store has then, and at the most: what is taken out of it helps nobody any more.
    """
    found = []
    for each in given:
        chance = random.Random(each.name)
        kept = sorted(chance.sample(range(len(each.texts)), min(len(each.texts), size or len(each.texts))))
        texts = [each.texts[place] for place in kept]
        others = {text for other in more if other.lang == each.lang for text in other.texts} - set(each.texts)
        strangers = sorted(others)
        texts += chance.sample(strangers, min(max(0, size - len(texts)), len(strangers)))
        view = View(texts, np.stack([vectors[text] for text in texts]))
        for prompt in each.prompts:
            asked = np.stack([vectors[part] for part in prompt.parts])
            places, rows = features(view, Prompt(prompt.text, prompt.parts), asked)
            needs = [kept.index(need) for need in prompt.needs if need in kept]
            labels = np.isin(places, needs)
            found.append(Rows(rows, labels, len(needs), prompt.kind, each.lang, each.passages))
    return found


def stacked(groups: Iterable[Sequence[Rows]]) -> tuple[Floats, NDArray[np.bool_], NDArray[np.float64]]:
    """Return all rows, labels, and weights that bring each group to the rate of life, and all groups to one weight."""
    rows, labels, weights = [], [], []
    for group in groups:
        by_need = life([each.answer(each.labels) for each in group])
        whole = sum(by_need[not each.wanted] for each in group)
        rows += [each.rows for each in group]
        labels += [each.labels for each in group]
        weights += [np.full(len(each.rows), PROMPTS / whole * by_need[not each.wanted]) for each in group]
    return np.concatenate(rows), np.concatenate(labels), np.concatenate(weights)


def trees(given: Iterable[Sequence[Rows]]) -> Plain:
    """Fit boosted trees that never hold more evidence against a memory."""
    rows, labels, weights = stacked(given)
    model = HistGradientBoostingClassifier(
        max_iter=ROUNDS, learning_rate=RATE, max_leaf_nodes=LEAVES, min_samples_leaf=LEAST, l2_regularization=5.0,
        max_features=0.5, monotonic_cst=[int(name in RISING) for name in NAMES], early_stopping=False,
        random_state=SEED,
    )  # fmt: skip
    model.fit(rows, labels, sample_weight=weights)
    return {
        "features": list(NAMES), "base": float(model._baseline_prediction.ravel()[0]), "slope": 1.0, "shift": 0.0,
        **_joined([step[0].nodes for step in model._predictors]),
    }  # fmt: skip


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


def calibrated(gate: Plain, given: Iterable[Sequence[Rows]]) -> Plain:
    """Return the gate with a slope and a shift fitted on prompts that it was not fitted on (Platt)."""
    rows, labels, weights = stacked(given)
    model = LogisticRegression(C=1e6)
    model.fit(LearnedGate.of(gate).log_odds(rows)[:, None], labels, sample_weight=weights)
    return gate | {"slope": float(model.coef_[0, 0]), "shift": float(model.intercept_[0])}


def answers(gate: LearnedGate, given: Sequence[Rows]) -> list[Answer]:
    """Return what a gate says of prompts."""
    rows = np.concatenate([each.rows for each in given])
    scores = np.split(np.array(gate.probabilities(rows)), np.cumsum([len(each.rows) for each in given])[:-1])
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
@click.option("--out", type=click.Path(path_type=Path), default=FILE, show_default=False)
def main(model: Path, out: Path) -> None:
    """Fit the gate, and write it to where the package has it."""
    held = [each for each in examples("train") if each.held]
    judged = [each for each in examples("development") if not each.passages]
    click.echo(f"data {digest(held)} (held), {digest(judged)} (development)")
    vectors = cached(texts_of([*held, *judged]), model, model.with_suffix(".npz"))
    fitted = [rows_of(held, vectors, more=held, size=size) for size in SIZES]
    sizes = [rows_of(judged, vectors, more=judged, size=size) for size in SIZES]
    development = sizes[0]
    report("cosine", by(development, "cosine"))
    report("above the background", by(development, "above"))
    plain = trees(fitted) | {"encoder": hashlib.sha256(model.read_bytes()).hexdigest(), "points": {}}
    plain = calibrated(plain, sizes)
    found = answers(LearnedGate.of(plain), development)
    report("gate", found)
    plain["points"] = {key: round(value, 3) for key, value in thresholds(found).items()}
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(json.dumps(plain, separators=(",", ":")), encoding="utf-8")
    click.echo(f"{out}: {out.stat().st_size} bytes")


if __name__ == "__main__":
    main()
