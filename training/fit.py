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

from perdure.recall.gate import FILE, NAMES, RISING, LearnedGate, Prompt
from training import boosted
from training.examples import Example, digest, examples, texts_of
from training.measures import Answer, at, life, ranked, thresholds
from training.vectors import cached
from training.views import Floats, View, features

Plain = dict[str, Any]
Vectors = dict[str, NDArray[np.float32]]
SIZES = (0, 1, 2, 4, 12, 30, 300)
"""Texts of the stores that the gate is fitted on: each as it is (0), and as its user's begins, and as it may become."""
ROUNDS, LEAVES = 400, 20
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


def trees(given: Iterable[Sequence[Rows]], judged: Iterable[Sequence[Rows]]) -> Plain:
    """Fit the gate's trees; the probabilities are calibrated on prompts that they were not fitted on."""
    plain = boosted.fitted(*stacked(given), NAMES, rising=RISING, rounds=ROUNDS, leaves=LEAVES)
    return boosted.calibrated(plain, *stacked(judged))


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
@click.option(
    "--part",
    "parts",
    type=click.Path(exists=True, path_type=Path),
    multiple=True,
    help="For each part of the stores, in order, an encoder that has not learnt it.",
)
@click.option("--out", type=click.Path(path_type=Path), default=FILE, show_default=False)
def main(model: Path, parts: tuple[Path, ...], out: Path) -> None:
    """Fit the gate, and write it to where the package has it."""
    everything = [each for each in examples("train") if not each.passages]
    held = [each for each in everything if each.held]
    judged = [each for each in examples("development") if not each.passages]
    click.echo(f"data {digest(held)} (held), {digest(judged)} (development)")
    vectors = cached(texts_of([*held, *judged]), model, model.with_suffix(".npz"))
    fitted = [rows_of(held, vectors, more=held, size=size) for size in SIZES]
    for fold, other in enumerate(parts):
        some = [each for each in everything if not each.held and each.fold == fold]
        their = cached(texts_of(some), other, other.with_suffix(".npz"))
        for group, size in zip(fitted, SIZES, strict=True):
            group += rows_of(some, their, more=some, size=size)
    sizes = [rows_of(judged, vectors, more=judged, size=size) for size in SIZES]
    development = sizes[0]
    report("cosine", by(development, "cosine"))
    report("above the background", by(development, "above"))
    plain = trees(fitted, sizes) | {"encoder": hashlib.sha256(model.read_bytes()).hexdigest(), "points": {}}
    found = answers(LearnedGate.of(plain), development)
    report("gate", found)
    plain["points"] = {key: round(value, 3) for key, value in thresholds(found).items()}
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(json.dumps(plain, separators=(",", ":")), encoding="utf-8")
    click.echo(f"{out}: {out.stat().st_size} bytes")


if __name__ == "__main__":
    main()
