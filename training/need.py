"""Fits how often a memory is needed, by its text alone and most of all where nobody asks: what openings go by.

python -m training.need MODEL [--out FILE]

MODEL is the exported int8 file. A ridge regression from a memory's vector, and how likely it is of each topic
(training/topics.py, which is fitted first), to how many prompts of its store need it, over the mean of its store. A
prompt that asks for it by words counts a third of one that does not (kinds "implicit" and "task"). Prints, for the
split `development`, the share of such needs, and of all needs, that the first part of the memories meets, in this
order and by chance.
"""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import click
import numpy as np
from numpy.typing import NDArray

from perdure.recall.opening import FILE
from perdure.recall.topics import TOPICS, topics
from training.check import DATA
from training.vectors import cached

UNASKED = ("implicit", "task")
ASKED = 0.5
"""What a need counts whatever the prompt, beside the one for each prompt that does not ask."""
RIDGE = 60.0
BROAD = 3.0
"""How much further a topic's weight may go than that of a number of the vector."""
MOST = 4.0
"""A memory that is needed more often than so many times the mean counts as one that is needed so often."""
SHARES = (0.2, 0.3, 0.5, 0.7)
Floats = NDArray[np.float64]


class Needs:
    """The memories of a split, and how many prompts need each."""

    def __init__(self, split: str, model: Path, cache: Path) -> None:
        """Read the stores and embed their memories."""
        files = sorted((DATA / split / "stores").glob("*.json"))
        self.stores: list[dict[str, Any]] = [json.loads(file.read_text(encoding="utf-8")) for file in files]
        texts = [memory["text"] for store in self.stores for memory in store["memories"]]
        vectors = cached(texts, model, cache)
        rows = np.stack([vectors[text] for text in texts])
        chances = topics().chances(rows @ topics().weights.T)
        self.features = np.hstack([rows, BROAD * chances]).astype(np.float64)

    def counts(self, *, asked: bool) -> list[Floats]:
        """Return for each store how many prompts need each memory; with `asked` those that ask for it as well."""
        found = []
        for store in self.stores:
            needs = Counter(
                name for prompt in store["prompts"] if asked or prompt["kind"] in UNASKED for name in prompt["needs"]
            )
            found.append(np.array([float(needs[memory["id"]]) for memory in store["memories"]]))
        return found

    def met(self, order: Floats, *, asked: bool) -> dict[float, float]:
        """Return the share of needs that the first part of each store's memories meets, by these scores."""
        counts = self.counts(asked=asked)
        ends = np.cumsum([len(count) for count in counts])[:-1]
        met = dict.fromkeys(SHARES, 0.0)
        for count, scores in zip(counts, np.split(order, ends), strict=True):
            for share in SHARES:
                met[share] += float(count[np.argsort(-scores)[: round(share * len(count))]].sum())
        total = sum(float(count.sum()) for count in counts)
        return {share: round(met[share] / total, 3) for share in SHARES}


def fitted(needs: Needs) -> tuple[Floats, float]:
    """Return a weight for each feature, and what is added: together how often a memory is needed, the mean being 1."""
    wanted = np.concatenate(
        [
            np.minimum(count / max(float(count.mean()), 1e-9), MOST)
            for count in (
                some + ASKED * all_
                for some, all_ in zip(needs.counts(asked=False), needs.counts(asked=True), strict=True)
            )
        ]
    )
    means = needs.features.mean(axis=0)
    rows = needs.features - means
    weights: Floats = np.linalg.solve(rows.T @ rows + RIDGE * np.eye(rows.shape[1]), rows.T @ (wanted - wanted.mean()))
    return weights, float(wanted.mean() - means @ weights)


@click.command(help=__doc__.splitlines()[0])
@click.argument("model", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--out", type=click.Path(path_type=Path), default=FILE, show_default=True)
def main(model: Path, out: Path) -> None:
    """Fit, print what it brings on other stores, and write the file."""
    cache = Path(__file__).with_name("out") / "need.npz"
    cache.parent.mkdir(exist_ok=True)
    train, held = (Needs(split, model, cache) for split in ("train", "development"))
    weights, base = fitted(train)
    chance = np.random.default_rng(0).random(len(held.features))
    for name, asked in (("needed unasked", False), ("needed at all", True)):
        found, random = (held.met(order, asked=asked) for order in (held.features @ weights, chance))
        told = (f"{share:.0%} of memories: {found[share]:.3f} ({random[share]:.3f})" for share in SHARES)
        click.echo("; ".join((name, *told)))
    vector, topic = np.split(np.round(weights, 3), [-len(TOPICS)])
    written = {
        "base": round(base, 3),
        "topics": dict(zip(TOPICS, np.round(BROAD * topic, 3).tolist(), strict=True)),
        "weights": vector.tolist(),
    }
    out.write_text(json.dumps(written) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
