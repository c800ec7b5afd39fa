"""Fits the judge that tells additions, updates, ends and repetitions apart, and says how well it does on unseen items.

python -m bench.fit_judge [--write]

Multinomial logistic regression with a quadratic penalty, by gradient descent from zero: the same data give the same
weights. Fitted on the sets "tuned" and "more" alone. The printed figure is the macro F1 over the four actions of
ten-fold cross-validation by item, as `bench.capture` counts it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import numpy as np

from bench.capture import ACTIONS, DATA, Item, Score, read
from perdure.capture.compare import WEIGHTS, Action, Weights, rank, verdict
from perdure.capture.explicit import Given, explicit_fact
from perdure.capture.features import Pair, features
from perdure.embed.load import load_default
from perdure.hooks.types import Channel
from perdure.store.fact import Fact
from perdure.store.scope import Scope
from perdure.store.slots import vector_text

PENALTY = 0.004
STEPS = 3000
RATE = 0.5
FOLDS = 10
SAID_AT = 1_770_000_000.0
_ORDER = tuple(Action(name.lower()) for name in ACTIONS)


@dataclass(frozen=True, slots=True)
class Case:
    """A labelled item with its facts and the cosines of the known ones to the new one."""

    item: Item
    known: Sequence[Fact]
    new: Fact
    cosines: Sequence[float]

    def pairs(self) -> list[Pair]:
        """Return the known facts, each with the new one."""
        nearest = max(self.cosines)
        return [
            Pair.of(old, self.new, cosine, cosine == nearest)
            for old, cosine in zip(self.known, self.cosines, strict=True)
        ]


def cases(items: Sequence[Item]) -> list[Case]:
    """Describe and embed the statements of items."""
    scope = Scope.parse("user:owner")
    embedder = load_default()
    found = []
    for item in items:
        facts = [
            explicit_fact(text, Given(), scope, Channel.LIBRARY, SAID_AT) for text in (*item["known"], item["new"])
        ]
        vectors = embedder.embed([vector_text(fact.text, fact.entity, fact.key) for fact in facts])
        cosines = [float(vectors[-1] @ vector) for vector in vectors[:-1]]
        found.append(Case(item, facts[:-1], facts[-1], cosines))
    return found


def fit(chosen_cases: Sequence[Case]) -> Weights:
    """Return the weights of each feature for each action."""
    rows, labels = [], []
    for case in chosen_cases:
        for place, pair in enumerate(case.pairs()):
            action = case.item["action"] if case.item["target"] == place else "ADD"
            rows.append({"constant": 1.0, **features(pair)})
            labels.append(ACTIONS.index(action))
    names = list(rows[0])
    matrix = np.array([[row[name] for name in names] for row in rows])
    wanted = np.eye(len(ACTIONS))[labels]
    # Each action counts alike, however often it occurs.
    share = (wanted / wanted.sum(axis=0)).sum(axis=1, keepdims=True) / len(ACTIONS)
    weights = np.zeros((len(names), len(ACTIONS)))
    for _ in range(STEPS):
        scores = np.exp(matrix @ weights)
        error = (scores / scores.sum(axis=1, keepdims=True) - wanted) * share
        weights -= RATE * (matrix.T @ error + PENALTY * weights)
    return {
        name: dict(zip(_ORDER, map(float, row.round(2)), strict=True)) for name, row in zip(names, weights, strict=True)
    }


def judged(case: Case, weights: Weights) -> tuple[str, bool]:
    """Return what is done with an item, and whether to the right fact."""
    found, place = max(
        ((verdict(pair, weights), place) for place, pair in enumerate(case.pairs())), key=lambda each: rank(each[0])
    )
    action = found.action.value.upper()
    return action, action in ("ADD", "NOOP") or place == case.item["target"]


def macro_f1(done: Sequence[tuple[Case, tuple[str, bool]]]) -> dict[str, float]:
    """Return F1 of each action and their mean."""
    scores = {}
    for action in ACTIONS:
        found = [case.item["id"] for case, (what, _) in done if what == action]
        astray = [case.item["id"] for case, (_, right) in done if not right]
        wanted = [case.item["id"] for case, _ in done if case.item["action"] == action]
        scores[action] = round(Score.of(found, wanted, astray).f1, 3)
    return {"macro_f1": round(sum(scores.values()) / len(scores), 3), **scores}


def cross_validate(all_cases: Sequence[Case]) -> list[tuple[Case, tuple[str, bool]]]:
    """Judge each tenth of the items by what the others teach."""
    done = []
    for fold in range(FOLDS):
        weights = fit([case for at, case in enumerate(all_cases) if at % FOLDS != fold])
        done += [(case, judged(case, weights)) for at, case in enumerate(all_cases) if at % FOLDS == fold]
    return done


def as_toml(weights: Weights) -> str:
    """Return the weights as they are kept."""
    lines = [
        f"{name} = {{ " + ", ".join(f"{action.value} = {row[action]:g}" for action in _ORDER) + " }"
        for name, row in weights.items()
    ]
    return "# Written by `python -m bench.fit_judge --write`.\n" + "\n".join(lines) + "\n"


@click.command()
@click.option("--write", is_flag=True, help="Keep the weights that all items teach.")
def main(write: bool) -> None:
    """Fit the judge."""
    halves: dict[str, list[Case]] = {name: cases(read(DATA / f"decisions-{name}.json")) for name in ("tuned", "more")}
    ids: dict[str, Any] = {case.item["id"]: name for name, found in halves.items() for case in found}
    everything = [case for found in halves.values() for case in found]
    done = cross_validate(everything)
    for name in halves:
        click.echo(f"{name:6} {macro_f1([each for each in done if ids[each[0].item['id']] == name])}")
    if write:
        Path(WEIGHTS).write_text(as_toml(fit(everything)), encoding="utf-8")


if __name__ == "__main__":
    main()
