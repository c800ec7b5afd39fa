"""Fits the head that says whether a statement makes an older one out of date, and judges it.

python -m training.pairs [--model FILE] [--out FILE] [--split development]

Rows are the pairs of a new statement and each memory that is known, of `train`. A pair counts as a change if the new
one replaces, withdraws or contradicts the known one. Calibrated by halves of the files of `train`. The point from which
a pair is shown is chosen on the stores of `development`, in which all is true at once: the lowest with which one memory
in a hundred is shown there, though nothing has changed.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path

import click
import numpy as np
from numpy.typing import NDArray

from perdure.capture.relations import FILE, NAMES, rows
from perdure.ranking.trees import Trees
from training import boosted
from training.check import DATA, SPLITS, load
from training.evaluate import OUT
from training.examples import examples, texts_of
from training.forms import Pairs
from training.measures import average_precision
from training.vectors import cached

CHANGES = frozenset({"replaces", "withdraws", "contradicts"})
ROUNDS = 200
WRONG = 0.01
"""Share of the memories of a store without a change that may be shown."""
NEAR = 5
"""Older memories, the nearest, that one is compared with."""


@dataclass(frozen=True, slots=True)
class Rows:
    """Features of pairs, whether each is a change, and the number of each one's file."""

    rows: NDArray[np.float32]
    changes: NDArray[np.bool_]
    files: NDArray[np.int_]


def pairs_of(split: str, model: Path) -> Rows:
    """Return the rows of a split.

    Raises:
        ValueError: a file does not have its form.
    """
    found = load(DATA / split)
    if found.wrong:
        raise ValueError(found.wrong[0])
    files = [file for file in found.files.values() if isinstance(file, Pairs)]
    vectors = cached([text for file in files for text in file.texts()], model, model.with_suffix(".npz"))
    features, changes, numbers = [], [], []
    for number, file in enumerate(files):
        for item in file.items:
            cosines = [float(vectors[old] @ vectors[item.new]) for old in item.known]
            features.append(rows(item.new, item.known, cosines))
            changes += [item.relation in CHANGES and item.target == at for at in range(len(item.known))]
            numbers += [number] * len(item.known)
    return Rows(np.concatenate(features), np.array(changes), np.array(numbers))


def head(given: Rows) -> boosted.Plain:
    """Fit the trees; probabilities are calibrated on files that trees of the other half had not seen."""
    halves = given.files % 2 == 0
    odds = np.zeros(len(halves))
    for half in (halves, ~halves):
        odds[half] = Trees.of(_fitted(given, ~half), NAMES).log_odds(given.rows[half])
    slope, shift = boosted.platt(odds, given.changes, np.ones(len(odds)))
    return _fitted(given, np.ones(len(halves), dtype=bool)) | {"slope": slope, "shift": shift}


def _fitted(given: Rows, some: NDArray[np.bool_]) -> boosted.Plain:
    return boosted.fitted(given.rows[some], given.changes[some], np.ones(int(some.sum())), NAMES, rounds=ROUNDS)


def without_change(head: Trees, split: str, model: Path) -> NDArray[np.float64]:
    """Return of each memory of a split's stores how likely it makes one before it out of date; none does."""
    stores = [store for store in examples(split) if not store.passages]
    vectors = cached(texts_of(stores), model, model.with_suffix(".npz"))
    found = []
    for store in stores:
        matrix = np.stack([vectors[text] for text in store.texts])
        for at in range(1, len(matrix)):
            cosines = matrix[:at] @ matrix[at]
            near = np.argsort(-cosines)[:NEAR].tolist()
            known = [store.texts[place] for place in near]
            found.append(max(head.probabilities(rows(store.texts[at], known, cosines[near].tolist()))))
    return np.array(found)


def figures(scores: NDArray[np.float64], changes: NDArray[np.bool_], threshold: float) -> str:
    """Return the average precision, and what is shown at a threshold, on a line."""
    shown = scores >= threshold
    right = int((shown & changes).sum())
    return (
        f"average precision {average_precision(changes, scores):.3f}; shown {int(shown.sum())} of {len(changes)} pairs,"
        f" right {right}: precision {right / max(1, int(shown.sum())):.3f}, recall {right / int(changes.sum()):.3f}"
    )


@click.command()
@click.option("--model", type=click.Path(exists=True, path_type=Path), default=OUT / "model.onnx")
@click.option("--out", type=click.Path(path_type=Path), help="Where the head goes; without it nothing is fitted anew.")
@click.option("--split", type=click.Choice(SPLITS), default="development", show_default=True, help="Which is judged.")
def main(model: Path, out: Path | None, split: str) -> None:
    """Fit the head, and judge it."""
    if out is not None:
        plain = head(pairs_of("train", model))
        point = np.quantile(without_change(Trees.of(plain, NAMES), "development", model), 1 - WRONG)
        plain |= {"encoder": hashlib.sha256(model.read_bytes()).hexdigest(), "point": round(float(point), 3)}
        out.write_text(json.dumps(plain, separators=(",", ":")), encoding="utf-8")
        click.echo(f"{out}: {out.stat().st_size} bytes")
    plain = json.loads((out or FILE).read_text(encoding="utf-8"))
    trees, judged = Trees.of(plain, NAMES), pairs_of(split, model)
    cosine = average_precision(judged.changes, judged.rows[:, 0].astype(float))
    shown = without_change(trees, split, model) >= plain["point"]
    click.echo(f"{split}: {figures(np.array(trees.probabilities(judged.rows)), judged.changes, plain['point'])}")
    click.echo(f"average precision of the cosine {cosine:.3f}; of {len(shown)} memories that change nothing, "
               f"{int(shown.sum())} are shown")  # fmt: skip


if __name__ == "__main__":
    main()
