"""Fits what a memory is about, by its vector: it decides who may hear of a memory, and when that matters.

python -m training.topics MODEL [--data FOLDER] [--split development] [--out FILE]

MODEL is the exported int8 file. A linear softmax on the vectors of the memories that `topics/` of the split `train`
labels. Prints, for the other split, how many topics are right, and what is called private: the share of it that is
(precision), how much of what is private (recall), and how many rules, decisions and tools a coding host would miss.
"""

from __future__ import annotations

import json
from hashlib import sha256
from pathlib import Path
from typing import Any

import click
import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression

from perdure.recall.topics import FILE, PRIVATE, TOPICS, Topics
from training.check import DATA
from training.vectors import cached

SMOOTHNESS = 2.0
"""The inverse of the ridge on the weights, by scikit-learn's measure."""
DIGITS = 2
WORK = ("rule", "project", "tools")
Floats = NDArray[np.float32]


def labelled(data: Path, split: str, model: Path, cache: Path) -> tuple[Floats, list[str]]:
    """Return the vectors of the labelled memories of a split, of shape (memories, dims), and the topic of each."""
    texts, topics = [], []
    for file in sorted((data / split / "topics").glob("*.json")):
        told: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
        store = json.loads((data / split / "stores" / f"{told['store']}.json").read_text(encoding="utf-8"))
        known = {memory["id"]: memory["text"] for memory in store["memories"]}
        texts += [known[name] for name in told["items"]]
        topics += told["items"].values()
    vectors = cached(texts, model, cache)
    return np.stack([vectors[text] for text in texts]), topics


def fitted(encoder: str, vectors: Floats, topics: list[str]) -> Topics:
    """Return the reading that was fitted on these; `encoder`: the sha256 of what made the vectors."""
    fit = LogisticRegression(C=SMOOTHNESS, max_iter=1_000).fit(vectors, topics)
    order = [list(fit.classes_).index(topic) for topic in TOPICS]
    weights, bias = np.round(fit.coef_[order], DIGITS), np.round(fit.intercept_[order], DIGITS)
    return Topics(encoder, weights.astype(np.float32), bias.astype(np.float32))


def told(reading: Topics, vectors: Floats, topics: list[str]) -> str:
    """Return what the reading is worth on others."""
    chances = reading.chances(vectors @ reading.weights.T)
    right = np.array([TOPICS[row] for row in chances.argmax(1)]) == np.array(topics)
    called, private = reading.private(chances), np.isin(topics, sorted(PRIVATE))
    kept = ~reading.withheld(chances)[np.isin(topics, WORK)]
    return (
        f"topic: {right.mean():.3f} right; private: precision {private[called].mean():.2f}, recall"
        f" {called[private].mean():.2f}; rules, projects, tools that a coding host is told: {kept.mean():.2f}"
    )


@click.command(help=__doc__.splitlines()[0])
@click.argument("model", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--data", type=click.Path(exists=True, path_type=Path), default=DATA, show_default=True)
@click.option("--split", default="development", show_default=True, help="That it is tried on.")
@click.option("--out", type=click.Path(path_type=Path), default=FILE, show_default=True)
def main(model: Path, data: Path, split: str, out: Path) -> None:
    """Fit, print what it is worth on other stores, and write the file."""
    cache = Path(__file__).with_name("out") / "need.npz"
    cache.parent.mkdir(exist_ok=True)
    reading = fitted(sha256(model.read_bytes()).hexdigest(), *labelled(data, "train", model, cache))
    click.echo(told(reading, *labelled(data, split, model, cache)))
    rows = {
        topic: row.tolist() for topic, row in zip(TOPICS, np.round(reading.weights.astype(float), DIGITS), strict=True)
    }
    bias = np.round(reading.bias.astype(float), DIGITS).tolist()
    written = {"encoder": reading.encoder, "weights": rows, "bias": bias}
    out.write_text(json.dumps(written, separators=(",", ":")) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
