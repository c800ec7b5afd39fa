"""Fits the gate on stores that the encoder has not learnt from, and names its thresholds on the development split.

python -m training.fit MODEL [--triggers] [--out FILE]

MODEL is the exported int8 file: all features are computed on its vectors. With --triggers it fits the gate of memories
that have triggers: on stores with triggers at several shares of memories that have any, and on all stores without.
"""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import numpy as np
from numpy.typing import NDArray

from perdure.recall.gate import ALL_NAMES, FILE, NAMES, RISING, TRIGGERED_FILE, LearnedGate, Prompt, rescaled
from training import boosted
from training.examples import Example, digest, examples, texts_of
from training.measures import Answer, at, life, ranked, recall_at, thresholds
from training.vectors import cached
from training.views import Floats, View, features

Plain = dict[str, Any]
Vectors = dict[str, NDArray[np.float32]]
SIZES = (0, 1, 2, 4, 12, 30, 300)
"""Texts of the stores that the gate is fitted on: each as it is (0), and as its user's begins, and as it may become."""
SHARES = (0.1, 0.5, 1.0)
"""Of a store's memories that have triggers; and once more none has any."""
MOST = 4
"""Triggers of a memory that recall looks at."""
BALANCED = {False: 0.75, True: 0.65}
"""Precision at `balanced`, without and with triggers: a judge brings the points of both gates to one scale."""
PRECISIONS = (0.8, 0.7, 0.6, 0.5)
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


def rows_of(
    given: Sequence[Example],
    vectors: Vectors,
    *,
    more: Sequence[Example] = (),
    size: int = 0,
    share: float = 0.0,
    most: int | None = None,
) -> list[Rows]:
    """Return the features of every prompt.

    Args:
        given: stores and conversations.
        vectors: of all their texts, triggers and parts.
        more: stores are filled up with texts of these, of the same language.
        size: how many texts a store has then, and at the most: what is taken out of it helps nobody any more.
        share: of the memories that keep their triggers, 0 to 1.
        most: how many each of these keeps, the first ones; None: any number up to `MOST`.
    """
    told = {
        text: triggers
        for each in (*more, *given)
        for text, triggers in zip(each.texts, each.triggers or [()] * len(each.texts), strict=True)
    }
    found = []
    for each in given:
        chance = random.Random(each.name)
        kept = sorted(chance.sample(range(len(each.texts)), min(len(each.texts), size or len(each.texts))))
        texts = [each.texts[place] for place in kept]
        others = {text for other in more if other.lang == each.lang for text in other.texts} - set(each.texts)
        strangers = sorted(others)
        texts += chance.sample(strangers, min(max(0, size - len(texts)), len(strangers)))
        triggers = [
            told[text][: most or chance.randint(1, MOST)] if share and chance.random() < share else () for text in texts
        ]
        aims = [vectors[trigger] for some in triggers for trigger in some]
        view = View(texts, np.stack([vectors[text] for text in texts]), triggers, *([np.stack(aims)] if aims else []))
        for prompt in each.prompts:
            asked = np.stack([vectors[part] for part in prompt.parts])
            places, rows = features(view, Prompt(prompt.text, prompt.parts), asked)
            needs = [kept.index(need) for need in prompt.needs if need in kept]
            labels = np.isin(places, needs)
            found.append(Rows(rows, labels, len(needs), prompt.kind, each.lang, each.passages))
    return found


def grown(
    given: Sequence[Example], more: Sequence[Example], vectors: Vectors, size: int, *, triggers: bool
) -> list[Rows]:
    """Return the features of every prompt in stores of a size; with triggers also at each share of memories."""
    aimed = [each for each in given if each.triggers]
    found = rows_of(given, vectors, more=more, size=size)
    for share in SHARES if aimed and triggers else ():
        found += rows_of(aimed, vectors, more=more, size=size, share=share)
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


def trees(
    given: Iterable[Sequence[Rows]], judged: Iterable[Sequence[Rows]], names: Sequence[str] = NAMES
) -> Plain:  # fmt: skip
    """Fit a gate's trees; the probabilities are calibrated on prompts that they were not fitted on.

    `names`: `NAMES`, or `ALL_NAMES` with triggers.
    """
    rising = RISING.intersection(names)
    rows, labels, weights = stacked(given)
    plain = boosted.fitted(
        rows[:, : len(names)], labels, weights, names, rising=rising, rounds=ROUNDS, leaves=LEAVES
    )  # fmt: skip
    rows, labels, weights = stacked(judged)
    return boosted.calibrated(plain, rows[:, : len(names)], labels, weights)


def answers(gate: LearnedGate, given: Sequence[Rows], triggered: LearnedGate | None = None) -> list[Answer]:
    """Return what a gate says of prompts, and another, as a turn would, of the memories that have triggers."""
    rows = np.concatenate([each.rows for each in given])
    told = np.array(gate.probabilities(rows))
    if triggered is not None:
        lifted = np.array(rescaled(triggered.probabilities(rows), triggered.points, gate.points))
        told = np.where(rows[:, ALL_NAMES.index("triggers")] > 0, np.maximum(told, lifted), told)
    scores = np.split(told, np.cumsum([len(each.rows) for each in given])[:-1])
    return [each.answer(score) for each, score in zip(given, scores, strict=True)]


def by(given: Sequence[Rows], name: str) -> list[Answer]:
    """Return answers whose score is one feature."""
    return [each.answer(each.rows[:, NAMES.index(name)]) for each in given]


def report(name: str, found: Sequence[Answer], points: Mapping[str, float] | None = None) -> None:
    """Print average precision, recall at precisions, and the figures at points; None: at those that they would name."""
    points = points or thresholds(found)
    reached = ", ".join(f"{recall_at(found, precision):.2f} at {precision}" for precision in PRECISIONS)
    click.echo(f"{name}: AP {ranked(found):.3f}, recall {reached}")
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
@click.option("--triggers", is_flag=True, help="Fit the gate of memories that have triggers.")
@click.option("--out", type=click.Path(path_type=Path), help="Default: where the package has it.")
def main(model: Path, parts: tuple[Path, ...], triggers: bool, out: Path | None) -> None:
    """Fit a gate and write it."""
    out, names = out or (TRIGGERED_FILE if triggers else FILE), ALL_NAMES if triggers else NAMES
    everything = [each for each in examples("train") if not each.passages]
    held = [each for each in everything if each.held]
    judged = [each for each in examples("development") if not each.passages]
    click.echo(f"data {digest(held)} (held), {digest(judged)} (development)")
    vectors = cached(texts_of([*held, *judged]), model, model.with_suffix(".npz"))
    fitted = [grown(held, held, vectors, size, triggers=triggers) for size in SIZES]
    for fold, other in enumerate(parts):
        some = [each for each in everything if not each.held and each.fold == fold]
        their = cached(texts_of(some), other, other.with_suffix(".npz"))
        for group, size in zip(fitted, SIZES, strict=True):
            group += grown(some, some, their, size, triggers=triggers)
    sizes = [grown(judged, judged, vectors, size, triggers=triggers) for size in SIZES]
    development = rows_of(judged, vectors)
    report("cosine", by(development, "cosine"))
    report("above the background", by(development, "above"))
    plain = trees(fitted, sizes, names) | {"encoder": hashlib.sha256(model.read_bytes()).hexdigest(), "points": {}}
    found = answers(LearnedGate.of(plain), development)
    report("gate", found)
    plain["points"] = {key: round(value, 3) for key, value in thresholds(found, BALANCED[triggers]).items()}
    aimed = [each for each in judged if each.triggers]
    for share, most in ((0.0, None), *((share, None) for share in SHARES), (1.0, 2), (1.0, MOST)) if triggers else ():
        rows = rows_of(aimed, vectors, share=share, most=most)
        name = f"stores with triggers, {share:.0%} of {most or 'any number'}"
        report(name, answers(LearnedGate.of(plain), rows), plain["points"])
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(json.dumps(plain, separators=(",", ":")), encoding="utf-8")
    click.echo(f"{out}: {out.stat().st_size} bytes")


if __name__ == "__main__":
    main()
