"""Says what each doubling of the data brings: families of need, pairs of sentences, messages.

python -m training.curves [--model FILE] [--only KIND] [--json]

A logistic regression over the encoder's vectors learns from an eighth, a quarter, a half and all of `train`, drawn by
what belongs together (a family, a file), and is judged on `development` by average precision. Of two texts it sees the
cosine, the product of their vectors and the distance in each direction; of a sentence its vector. "cosine": the cosine
alone, which learns nothing.

families: does the memory matter to the prompt (one prompt in three)?
pairs: does the new sentence end or change the known one?
messages: is the sentence worth keeping? Is it somebody else's?
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import click
import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression

from perdure.embed.catalogue import RECALL
from training.check import DATA, load
from training.evaluate import OUT
from training.forms import Families, Messages, Pairs
from training.measures import average_precision
from training.vectors import cached

Form = TypeVar("Form", Families, Messages, Pairs)
SEED = 20
SHARES = (0.125, 0.25, 0.5, 1.0)
STRENGTH = 0.3
"""Inverse of the penalty on weights."""
CHANGES = frozenset({"replaces", "withdraws", "contradicts"})


@dataclass(frozen=True, slots=True)
class Row:
    """What is judged: one text or two, what is true of it, and what it belongs together with."""

    texts: tuple[str, ...]
    true: bool
    group: str


def families(split: str) -> Iterator[Row]:
    """Yield a memory with the prompt that it matters to, and with those near to it."""
    for file in of(Families, split):
        for link in file.items:
            for prompt in (link.prompt, *link.near):
                yield Row((link.memory, prompt), prompt == link.prompt, f"{file.families} {link.family}")


def pairs(split: str) -> Iterator[Row]:
    """Yield what is known with what is said later."""
    for file in of(Pairs, split):
        for item in file.items:
            for place, known in enumerate(item.known):
                yield Row((known, item.new), item.relation in CHANGES and place == item.target, file.pairs)


def keep(split: str) -> Iterator[Row]:
    """Yield sentences of messages, and whether they are worth keeping."""
    for file in of(Messages, split):
        for item in file.items:
            yield from (Row((each.text,), each.keep, file.messages) for each in item.sentences)


def author(split: str) -> Iterator[Row]:
    """Yield sentences of messages, and whether they are another's."""
    for file in of(Messages, split):
        for each in (sentence for item in file.items for sentence in item.sentences if sentence.author):
            yield Row((each.text,), each.author == "other", file.messages)


def of(form: type[Form], split: str) -> Iterator[Form]:
    """Yield the files of a split that have a form."""
    yield from (file for file in load(DATA / split).files.values() if isinstance(file, form))


KINDS: dict[str, Callable[[str], Iterator[Row]]] = {
    "families": families, "pairs": pairs, "messages, keep": keep, "messages, author": author,
}  # fmt: skip


def features(rows: Sequence[Row], vectors: dict[str, NDArray[np.float32]]) -> NDArray[np.float32]:
    """Return an array of shape (rows, 384), or (rows, 769) of two texts: cosine, products, distances."""
    first = np.stack([vectors[row.texts[0]] for row in rows])
    if len(rows[0].texts) == 1:
        return first
    second = np.stack([vectors[row.texts[1]] for row in rows])
    product = first * second
    return np.hstack([product.sum(1, keepdims=True), product * 20, np.abs(first - second)])


def part(rows: Sequence[Row], share: float) -> list[int]:
    """Return the places of a share of the groups, drawn at random; a larger share holds every smaller one."""
    groups = sorted({row.group for row in rows})
    random.Random(SEED).shuffle(groups)
    taken = set(groups[: max(1, round(share * len(groups)))])
    return [place for place, row in enumerate(rows) if row.group in taken]


def curve(kind: str, model: Path) -> dict[str, Any]:
    """Return the average precision on `development`, by the number of rows that were learnt from."""
    rows, judged = list(KINDS[kind]("train")), list(KINDS[kind]("development"))
    OUT.mkdir(exist_ok=True)
    vectors = cached([text for row in (*rows, *judged) for text in row.texts], model, OUT / f"{model.stem}-curves.npz")
    known, asked = features(rows, vectors), features(judged, vectors)
    labels, truth = np.array([row.true for row in rows]), np.array([row.true for row in judged])
    found: dict[str, Any] = {"rate": round(float(truth.mean()), 3), "judged": len(judged)}
    if known.shape[1] > len(vectors[rows[0].texts[0]]):
        found["cosine"] = round(average_precision(truth, asked[:, 0]), 3)
    for share in SHARES:
        places = part(rows, share)
        fit = LogisticRegression(C=STRENGTH, max_iter=2000).fit(known[places], labels[places])
        found[f"{len(places)} rows"] = round(average_precision(truth, fit.decision_function(asked)), 3)
    return found


@click.command()
@click.option(
    "--model",
    type=click.Path(exists=True, path_type=Path),
    default=RECALL.data_path,
    help="An ONNX file of the encoder.",
)
@click.option("--only", type=click.Choice(list(KINDS)), multiple=True, default=list(KINDS), help="Only this kind.")
@click.option("--json", "as_json", is_flag=True, help="Print one object and nothing else.")
def main(model: Path, only: Sequence[str], as_json: bool) -> None:
    """Say what each doubling of the data brings."""
    found = {kind: curve(kind, model) for kind in only}
    if as_json:
        click.echo(json.dumps(found))
        return
    for kind, figures in found.items():
        click.echo(f"{kind:<18} " + "  ".join(f"{name} {value}" for name, value in figures.items()))


if __name__ == "__main__":
    main()
