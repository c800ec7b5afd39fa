"""What is kept of messages with others' words in them, and of plain ones that look alike.

python -m bench speech OTHERS PLAIN [--json] [--verbose]

Each message is said in a conversation of its own to a memory that knows its user. `kept`: messages of the first file of
which a memory has a word of others (asked: none of a hundred); `replaced`: what the user said and is no longer held.
Of the second file, messages of which a memory has all the words that matter. See bench/data/LABELS.md.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import click

from bench.memories import live, opened, say
from bench.program import program
from perdure.api.memory import Memory

KNOWN = (
    "My name is Mira Kovac.", "I live in Ghent.", "My birthday is 9 March.", "My partner is called Jonas.",
    "I work as a nurse at AZ Sint-Lucas.", "I'm allergic to penicillin.", "I'm vegetarian.",
    "I have a dog called Biscuit.", "My phone number is 0470 12 34 56.", "We use Postgres.",
    "I prefer tabs over spaces.", "Our deadline is 12 June.", "I drive a Skoda.", "I speak Dutch and Croatian.",
    "Always answer me in British English.",
)  # fmt: skip
PATIENCE = 120.0
"""Seconds that the capture of the messages so far may take."""
STEP = 25


def _play(memory: Memory, items: Iterable[Mapping[str, Any]], words: str) -> dict[str, list[str]]:
    """Say each message; return the texts kept of those whose words a memory holds, by their ids."""
    listed = list(items)
    for number, item in enumerate(listed, 1):
        say(memory, item["text"], item["id"])
        if not number % STEP and not memory.settle(PATIENCE):
            raise TimeoutError(f"capture was not done in {PATIENCE:.0f} seconds")
    memory.settle(PATIENCE)
    held: dict[str, list[str]] = {}
    for fact in live(memory):
        held.setdefault(fact.provenance_session or "", []).append(fact.text)
    every = all if words == "expect" else any
    return {
        item["id"]: texts
        for item in listed
        if (texts := held.get(item["id"], [])) and every(_in(word, texts) for word in item[words])
    }


def _in(word: str, texts: Iterable[str]) -> bool:
    return any(word.casefold() in text.casefold() for text in texts)


@click.argument("others", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.argument("plain", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--verbose", is_flag=True, help="Print what was kept wrongly, and what was missed.")
def bench(others: Path, plain: Path, verbose: bool) -> dict[str, Any]:
    """Measure what is kept of messages with others' words, and of plain ones."""
    foreign, own = (json.loads(path.read_text(encoding="utf-8"))["items"] for path in (others, plain))
    figures: dict[str, Any] = {}
    with opened(timers=False) as memory:
        for number, text in enumerate(KNOWN):
            say(memory, text, f"known{number}")
        memory.settle(PATIENCE)
        before = {fact.id: fact.text for fact in live(memory)}
        kept = _play(memory, foreign, "foreign")
        after = {fact.id for fact in live(memory)}
        gone = [text for name, text in before.items() if name not in after]
    with opened(timers=False) as memory:
        right = _play(memory, own, "expect")
    manners = Counter(item["manner"] for item in foreign if item["id"] in kept)
    figures["others"] = {"of": len(foreign), "kept": len(kept), "replaced": len(gone), "manners": dict(manners)}
    figures["plain"] = {"of": len(own), "kept": len(right), "share": round(len(right) / len(own), 3)}
    if verbose:
        figures["wrong"] = [{"id": name, "kept": texts} for name, texts in kept.items()]
        figures["gone"] = gone
        figures["missed"] = [{"id": item["id"], "text": item["text"]} for item in own if item["id"] not in right]
    return figures


main = program(bench)
if __name__ == "__main__":
    main()
