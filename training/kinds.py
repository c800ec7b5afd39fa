"""Fits what is looked at where all of a kind is asked for. `python -m bench siblings` measures what it brings.

python -m training.kinds MODEL FILE... [--out FILE]

MODEL is the exported int8 file; each FILE has labelled kinds (bench/data/siblings-tuned.json): what one person has of
each, and how all of it is asked for. The stores of training/data add prompts of that form that mean one thing or none.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import click
import numpy as np
from numpy.typing import NDArray

from bench.siblings import SIZES, around
from perdure.recall.gate import COLUMNS, Prompt, looked_at, shipped
from perdure.recall.gate import KINDS_FILE as FILE
from perdure.recall.kinds import kind_asked
from perdure.recall.query import parts
from perdure.recall.retrievers import OF_A_KIND
from training.examples import examples
from training.vectors import cached
from training.views import Floats, View, features

RIDGE = 1.0
ROUNDS = 50
STORES = 400.0
"""Weight of all prompts of the stores, in prompts."""


def is_asked(prompt: str) -> bool:
    """Return whether a prompt asks for all of a kind that is the asker's."""
    kind = kind_asked(prompt)
    return kind is not None and kind.own


@dataclass(frozen=True, slots=True)
class Asked:
    """A question, what may answer it, and which of it does."""

    text: str
    texts: Sequence[str]
    wanted: frozenset[str]


def of_kinds(files: Sequence[Path]) -> Iterator[Asked]:
    """Yield each question of each kind, over stores of every size, alone and among others."""
    for file in files:
        kinds = json.loads(file.read_text(encoding="utf-8"))["kinds"]
        for kind in kinds:
            others = around(kinds, kind)
            for size in (0, *SIZES):
                mine = kind["memories"][:size]
                for beside in ((), others):
                    for question in kind["questions"]:
                        yield Asked(question, [*mine, *beside], frozenset(mine))
                    for question in kind["others_questions"]:
                        yield Asked(question, [*mine, *beside], frozenset())


def of_stores(split: str) -> Iterator[Asked]:
    """Yield the prompts of stores that have the form."""
    for store in examples(split):
        for prompt in store.prompts if not store.passages else ():
            yield Asked(prompt.text, store.texts, frozenset(store.texts[place] for place in prompt.needs))


def rows_of(asked: Sequence[Asked], model: Path, cache: Path) -> list[tuple[Floats, NDArray[np.bool_]]]:
    """Return for each question the features of its candidates, and which are wanted."""
    told = dict.fromkeys(text for each in asked for text in (*each.texts, *parts(each.text)))
    vectors = cached(list(told), model, cache)
    views: dict[tuple[str, ...], View] = {}
    found = []
    for each in asked:
        key = tuple(each.texts)
        if not key:
            continue
        view = views.get(key) or views.setdefault(key, View(each.texts, np.stack([vectors[text] for text in key])))
        prompt = Prompt(each.text, parts(each.text))
        query = np.stack([vectors[part] for part in prompt.parts])
        places, rows = features(view, prompt, query, near=OF_A_KIND, shared=OF_A_KIND)
        wanted = np.array([each.texts[place] in each.wanted for place in places])
        found.append((looked_at(rows, shipped().probabilities(rows)), wanted))
    return found


def fitted(rows: Floats, labels: NDArray[np.bool_], weights: Floats) -> Floats:
    """Return the weights of a logistic regression, the constant last (Newton's method, a ridge on all but it)."""
    x = np.hstack([rows, np.ones((len(rows), 1), dtype=np.float32)]).astype(np.float64)
    found = np.zeros(x.shape[1])
    ridge = np.diag([RIDGE] * rows.shape[1] + [0.0])
    for _ in range(ROUNDS):
        told = 1 / (1 + np.exp(-x @ found))
        slope = x.T @ (weights * (labels - told)) - ridge @ found
        found = found + np.linalg.solve((x * (weights * told * (1 - told))[:, None]).T @ x + ridge, slope)
    return found.astype(np.float32)


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("model", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.argument("files", nargs=-1, required=True, type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--out", type=click.Path(path_type=Path), default=FILE, help="File to be written.", show_default=True)
def main(model: Path, files: Sequence[Path], out: Path) -> None:
    """Fit the weights for questions of a kind."""
    cache = out.with_suffix(".npz") if out != FILE else Path(__file__).with_name("out") / "kinds.npz"
    cache.parent.mkdir(exist_ok=True)
    kinds = [each for each in of_kinds(files) if is_asked(each.text)]
    stores = [each for each in of_stores("train") if is_asked(each.text)]
    rows: list[Floats] = []
    labels: list[NDArray[np.bool_]] = []
    weights: list[Floats] = []
    for asked, total in ((kinds, float(len(kinds))), (stores, STORES)):
        read = rows_of(asked, model, cache)
        for each, wanted in read:
            rows.append(each)
            labels.append(wanted)
            # Every question counts the same, and in it what is wanted as much as what is not.
            share = total / len(read)
            weights.append(np.where(wanted, 1 / max(1, wanted.sum()), 1 / max(1, (~wanted).sum())) * share)
    found = fitted(np.vstack(rows), np.concatenate(labels), np.concatenate(weights))
    out.write_text(
        json.dumps({"weights": [round(float(each), 4) for each in found]}) + "\n",
        encoding="utf-8",
    )
    click.echo(f"{len(kinds)} questions of kinds, {len(stores)} of stores: {out}")
    for column, weight in zip((*COLUMNS, "constant"), found, strict=True):
        click.echo(f"  {column:<12} {weight:8.3f}")


if __name__ == "__main__":
    main()
