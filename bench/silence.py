"""Does what was forgotten stay away, and only that?

python -m bench silence FOLDER [--memories 200] [--prompts 2000] [--json] [--verbose]

FOLDER holds the files of labelled stores, as training/data/train/stores: one person each. Each person tells their
memories in conversations; then every second one that was kept is forgotten, one by one, until so many are.

came: forgotten ones that came up for a prompt, by the way on which they did: the block of a turn, past conversations,
a search, the agent's tools. Each person's prompts are asked, and each forgotten sentence itself. imported: forgotten
ones that an import of the same conversations brought back. told_again: those that are found once their user has said
them again later. near: of each forgotten one, a sentence with another word in each clause, said before: those that a
search of past conversations still finds. kept: of the others, which were not forgotten, those found.
"""

from __future__ import annotations

import json
import re
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from bench.memories import live, opened
from bench.program import program
from perdure import Memory, TurnContext
from perdure.api.tools import call_tool
from perdure.clock import ManualClock
from perdure.importers.agents import load_claude_code
from perdure.importers.conversation_import import hear

PATIENCE = 120.0
"""Seconds that the capture of what was said so far may take."""
STEP = 30
DAY = 86_400.0
ASKING = TurnContext(session_id="asking", host="bench")
TOOLS = {"memory_recall": "query", "memory_search": "query"}
_SENTENCE = re.compile(r"(?<=[.!?…])\s+|\n+")
_WORD = re.compile(r"\w{4,}")
_CLAUSE = re.compile(r"((?:[.,;:–—]| and| but| because| since| so)\s)")


@click.argument("folder", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("--memories", type=click.IntRange(1), default=200, help="Memories that are forgotten.")
@click.option("--prompts", type=click.IntRange(1), default=2_000, help="Prompts that are asked afterwards.")
@click.option("--verbose", is_flag=True, help="Print what came up or was not found.")
def bench(folder: Path, memories: int, prompts: int, verbose: bool) -> dict[str, Any]:
    """Forget memories one by one, and look for them on every way."""
    total: Counter[str] = Counter()
    came: Counter[str] = Counter()
    cases: list[str] = []
    for path in sorted(folder.glob("*.json")):
        if total["forgotten"] >= memories:
            break
        person = json.loads(path.read_text(encoding="utf-8"))
        share = prompts * len(person["memories"]) // (2 * memories)
        with tempfile.TemporaryDirectory() as home, opened(home, clock=ManualClock(), timers=False) as memory:
            figures, ways, told = _played(memory, person, memories - total["forgotten"], share, Path(home))
        total += figures
        came += ways
        cases += [f"{path.stem}: {each}" for each in told]
    names = ("forgotten", "prompts", "imported", "told_again", "near", "others", "kept")
    counted = {name: total[name] for name in names}
    return {**counted, "came": came.total(), "ways": dict(came)} | ({"cases": cases} if verbose else {})


def _played(
    memory: Memory, person: Mapping[str, Any], most: int, prompts: int, home: Path
) -> tuple[Counter[str], Counter[str], list[str]]:
    clock = memory._engine.clock
    assert isinstance(clock, ManualClock)
    texts = [each["text"] for each in person["memories"]]
    _tell(memory, texts, "told")
    held = [text for text in texts if _found(memory, text)]
    gone = held[::2][:most]
    for number, text in enumerate(gone):
        memory.files.add_transcript([{"role": "user", "content": _near(text)}], f"near {number}")
    memory.files.sync()
    for text in gone:
        clock.advance(1)
        for fact in [fact for fact in live(memory) if _says(fact.text, text)]:
            memory.forget(fact.id)
    stays = {fact.text for fact in live(memory)}
    # What another memory says in the same words is no sign of what was forgotten.
    gone = [text for text in gone if not any(_says(each, text) for each in stays)]
    ways: Counter[str] = Counter()
    cases: list[str] = []
    asked = [*gone, *(each["text"] for each in person["prompts"])]
    for number in range(prompts):
        prompt = asked[number % len(asked)] if number < 2 * len(asked) else f"{asked[number % len(asked)]} {number}"
        for way, shown in _ways(memory, prompt, number):
            for text in gone:
                # What the prompt itself says is no news.
                if any(_says(part, text) for part in _SENTENCE.split(shown)):
                    ways[way] += 1
                    cases.append(f"{way}: {text!r} for {prompt!r}")
    _import(memory, gone, home)
    figures = Counter({"forgotten": len(gone), "prompts": prompts})
    back = [text for text in gone if _found(memory, text)]
    figures["imported"] = len(back)
    cases += [f"imported: {text!r}" for text in back]
    clock.advance(DAY)
    _tell(memory, gone, "told again")
    others = sorted(set(held) - set(gone))
    for name, said in (("near", [*map(_near, gone)]), ("told_again", gone), ("kept", others)):
        found = [text for text in said if any(_says(each, text) for each in _searched(memory, text, name))]
        figures[name] = len(found)
        cases += [f"{name}, lost: {text!r}" for text in said if text not in found]
    figures["others"] = len(others)
    return figures, ways, cases


def _tell(memory: Memory, texts: Sequence[str], session: str) -> None:
    for number, text in enumerate(texts, 1):
        context = TurnContext(session_id=f"{session} {number}", host="bench")
        memory.turns.before(text, context)
        memory.turns.after([{"role": "user", "content": text}], True, context)
        if not number % STEP:
            memory.settle(PATIENCE)
    memory.settle(PATIENCE)
    memory.files.sync()


def _ways(memory: Memory, prompt: str, number: int) -> Iterator[tuple[str, str]]:
    """Yield what each way shows for a prompt."""
    context = TurnContext(session_id=f"asking {number}", host="bench")
    recall = memory.turns.before(prompt, context)
    yield "turn", recall.block if recall else ""
    asked = memory.recall(prompt)
    yield "recall", "\n".join(item.text for item in asked.items) if asked else ""
    yield "search", "\n".join(hit.fact.text for hit in memory.admin.search(prompt))
    yield "files", "\n".join(result.snippet for result in memory.files.search(prompt, min_score=0).results)
    for tool, argument in TOOLS.items():
        yield tool, call_tool(memory, tool, {argument: prompt[:500]}, ASKING).text


def _import(memory: Memory, texts: Sequence[str], home: Path) -> None:
    """Import the conversations in which something was told, as Claude Code keeps them."""
    path = home / "told.jsonl"
    began = "2026-01-01T09:00:00Z"
    path.write_text(
        "".join(
            json.dumps({
                "type": "user", "sessionId": "told", "uuid": str(number), "timestamp": began, "entrypoint": "cli",
                "message": {"role": "user", "content": text},
            }) + "\n"
            for number, text in enumerate(texts)
        ),
        encoding="utf-8",
    )  # fmt: skip
    hear(memory._engine.store, load_claude_code(path))


def _searched(memory: Memory, text: str, name: str) -> list[str]:
    if name == "near":
        return [result.snippet for result in memory.files.search(text, max_results=20, min_score=0).results]
    return [hit.fact.text for hit in memory.admin.search(text)]


def _found(memory: Memory, text: str) -> bool:
    return any(_says(fact.text, text) for fact in live(memory))


def _says(shown: str, text: str) -> bool:
    """Return whether a text has every longer word of another."""
    words = set(_WORD.findall(text.casefold()))
    return bool(words) and words <= set(_WORD.findall(shown.casefold()))


def _near(text: str) -> str:
    """Return a text with the longest word of each clause spelled backwards."""
    clauses = _CLAUSE.split(text)
    for at, clause in enumerate(clauses):
        if words := _WORD.findall(clause):
            longest = max(words, key=len)
            clauses[at] = clause.replace(longest, longest[::-1])
    return "".join(clauses)


main = program(bench, lambda figures: figures["came"] or figures["imported"])
if __name__ == "__main__":
    main()
