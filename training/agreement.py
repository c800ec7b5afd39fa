"""How far two people who label the same data agree: the ceiling of any model that is judged by it.

python -m training.agreement [--json]

The second labels lie in training/second, in files named as the first; whoever made them saw the texts alone. A
store's and a life's are `{"store", "prompts": [{"text", "needs"}]}`; days' are
`{"day", "turns": [{"id", "keep", "needs"}]}`: is something worth keeping, is something earlier needed? Messages' are
`{"messages", "items": [{"id", "sentences": [{"text", "keep", "category", "lasting", "author", "intent"}]}]}`;
pairs' `{"pairs", "items": [{"id", "relation", "target"}]}`; families' `{"families", "items": [{"id", "prompt"}]}`, of
a memory's three prompts, in some order, the one to which it matters.

Cohen's kappa over each yes or no (a memory helps a prompt; a sentence is kept): (agreed - by chance) / (1 - by chance).
Precision and recall take the first labels for the truth and the second for what was found.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from training.check import DATA, load
from training.forms import Day, Families, Life, Messages, Pair, Pairs, Sentence, Store

SECOND = Path(__file__).parent / "second"
CHANGES = ("replaces", "withdraws", "contradicts")
Answer = tuple[bool, bool]
"""What the first and what the second person said."""


@dataclass(frozen=True, slots=True)
class Agreement:
    """How far two people agree on yes or no: kappa, and the second's precision and recall against the first."""

    items: int
    kappa: float
    precision: float
    recall: float

    @classmethod
    def of(cls, answers: Iterable[Answer]) -> Agreement:
        """Compare answers.

        Raises:
            ValueError: there are none.
        """
        given = list(answers)
        if not given:
            raise ValueError("there is nothing to compare")
        both, first, second = sum(map(all, given)), sum(one for one, _ in given), sum(other for _, other in given)
        total = len(given)
        agreed = (total - first - second + 2 * both) / total
        chance = (first * second + (total - first) * (total - second)) / total**2
        return cls(
            total,
            round((agreed - chance) / (1 - chance), 3) if chance < 1 else 1.0,
            round(both / second, 3) if second else 1.0,
            round(both / first, 3) if first else 1.0,
        )


def of_store(first: Store | Life, second: Mapping[str, Any]) -> Iterator[Answer]:
    """Yield both answers for each prompt and memory.

    Raises:
        ValueError: the second labels are of other prompts.
    """
    for prompt, other in zip(first.prompts, second["prompts"], strict=True):
        if prompt.text != other["text"]:
            raise ValueError(f"{first.store}: {prompt.text[:60]!r} stands where {other['text'][:60]!r} was labelled")
        for memory in first.memories:
            yield memory.id in prompt.needs, memory.id in other["needs"]


def of_messages(first: Messages, second: Mapping[str, Any]) -> Iterator[tuple[Sentence, Mapping[str, Any]]]:
    """Yield each sentence as labelled by the first and by the second.

    Raises:
        ValueError: the second labels are of other messages.
    """
    items = {item.id: item for item in first.items}
    for item in second["items"]:
        for sentence, other in zip(items[item["id"]].sentences, item["sentences"], strict=True):
            if sentence.text != other["text"]:
                raise ValueError(
                    f"{item['id']}: {sentence.text[:60]!r} stands where {other['text'][:60]!r} was labelled"
                )
            yield sentence, other


def of_pairs(first: Pairs, second: Mapping[str, Any]) -> Iterator[tuple[Pair, Mapping[str, Any]]]:
    """Yield each pair as labelled by the first and by the second."""
    items = {item.id: item for item in first.items}
    yield from ((items[other["id"]], other) for other in second["items"])


def of_families(first: Families, second: Mapping[str, Any]) -> Iterator[bool]:
    """Yield of each memory whether both name the same prompt."""
    items = {item.id: item for item in first.items}
    yield from (items[other["id"]].prompt == other["prompt"] for other in second["items"])


def of_day(first: Day, second: Mapping[str, Any]) -> Iterator[tuple[Answer, Answer]]:
    """Yield of each turn both answers to whether something is worth keeping, and whether something earlier is needed.

    Raises:
        ValueError: the second labels are of other turns.
    """
    turns = [turn for session in first.sessions for turn in session.turns]
    for turn, other in zip(turns, second["turns"], strict=True):
        if turn.id != other["id"]:
            raise ValueError(f"{first.day}: turn {turn.id} stands where {other['id']} was labelled")
        yield (bool(turn.keep), bool(other["keep"])), (bool(turn.needs), bool(other["needs"]))


def figures(folder: Path = DATA, second: Path = SECOND) -> dict[str, dict[str, Any]]:
    """Return the agreement on each kind of data.

    Raises:
        ValueError: there are no second labels, or they do not fit.
    """
    needs: list[Answer] = []
    kept: list[tuple[Sentence, Mapping[str, Any]]] = []
    pairs: list[tuple[Pair, Mapping[str, Any]]] = []
    prompts: list[bool] = []
    turns: list[tuple[Answer, Answer]] = []
    named = {(path.parent.name, path.name): file for path, file in load(folder).files.items()}
    for path in sorted(second.rglob("*.json")):
        other, file = json.loads(path.read_text(encoding="utf-8")), named[path.parent.name, path.name]
        if isinstance(file, Store | Life):
            needs += of_store(file, other)
        elif isinstance(file, Messages):
            kept += of_messages(file, other)
        elif isinstance(file, Pairs):
            pairs += of_pairs(file, other)
        elif isinstance(file, Day):
            turns += of_day(file, other)
        elif isinstance(file, Families):
            prompts += of_families(file, other)
    both = [(one, other) for one, other in kept if one.keep and other["keep"]]
    lasting = Agreement.of((bool(one.lasting), bool(other["lasting"])) for one, other in both)
    return {
        "a memory helps": _plain(Agreement.of(needs)),
        "a sentence is kept": _plain(Agreement.of((one.keep, bool(other["keep"])) for one, other in kept)),
        "it lasts": _plain(lasting),
        "its category": _same(one.category == other["category"] for one, other in both),
        "it is another's": _plain(Agreement.of((one.author == "other", other["author"] == "other")
                                               for one, other in kept if one.author is not None)),
        "its intent": _same(one.intent == other["intent"] for one, other in kept if one.intent is not None),
        "a memory changes": _plain(Agreement.of((one.relation in CHANGES, other["relation"] in CHANGES)
                                                for one, other in pairs)),
        "its relation": _same((one.relation, one.target) == (other["relation"], other["target"])
                              for one, other in pairs),
        "the prompt it matters to": _same(prompts),
        "a turn holds something to keep": _plain(Agreement.of(keep for keep, _ in turns)),
        "a turn needs something earlier": _plain(Agreement.of(needs for _, needs in turns)),
    }  # fmt: skip


def _same(found: Iterable[bool]) -> dict[str, Any]:
    answers = list(found)
    return {"items": len(answers), "same": round(sum(answers) / max(1, len(answers)), 3)}


def _plain(found: Agreement) -> dict[str, Any]:
    return {name: getattr(found, name) for name in ("items", "kappa", "precision", "recall")}


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print one object and nothing else.")
def main(as_json: bool) -> None:
    """Compare the labels of two people."""
    found = figures()
    if as_json:
        click.echo(json.dumps(found))
        return
    for name, given in found.items():
        click.echo(f"{name:<30} " + ", ".join(f"{what} {value}" for what, value in given.items()))


if __name__ == "__main__":
    main()
