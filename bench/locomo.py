"""How many of the turns that answer a question a search of past conversations finds, on LoCoMo.

python -m bench locomo locomo.json --conversations conv-26,conv-30,conv-41 --json

Every turn is recorded as a transcript by `Memory.files.add_transcript`, every question with evidence is asked by
`Memory.files.search`. The questions, answers and evidence are read after the index is finished. The data is under
CC BY-NC 4.0, so it is not in this repository: https://github.com/snap-research/locomo.
"""

from __future__ import annotations

import json
import os
import re
import tempfile
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from statistics import fmean
from typing import Any

import click

from bench.memories import Words, brought, opened
from bench.program import SkippedError, program
from perdure.api.memory import Memory
from perdure.hooks.types import TurnContext
from perdure.text.tokens import estimate_tokens

VARIABLE = "LOCOMO_FILE"
TOP = 10
DEEP = 50
"""Results asked for when sessions are counted: ten results may be of fewer sessions."""
KINDS: dict[str, dict[str, Any]] = {
    "lexical": {"search": {"vector_weight": 0.0}},
    "vector": {"search": {"vector_weight": 1.0}},
    "fused": {},
}
TIME = "%I:%M %p on %d %B, %Y"
_SESSION = re.compile(r"session_(\d+)")
_CITED = re.compile(r"/(session-\d+)-[0-9a-f]+\.jsonl#L(\d+)")
_TURN = re.compile(r"D(\d+):0*(\d+)")


@dataclass(frozen=True, slots=True)
class Turn:
    """One turn: its id as evidence names it, its session, and the message."""

    id: str
    session: str
    message: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Question:
    """A question, the turns that answer it, and its category (1 multi-hop to 5 adversarial)."""

    text: str
    evidence: frozenset[str]
    category: int
    answer: str = ""


def located(file: Path | None) -> Path:
    """Return the file of LoCoMo, or the one that the environment names.

    Raises:
        SkippedError: it is not there.
    """
    path = file or Path(os.environ.get(VARIABLE, ""))
    if not path.is_file():
        raise SkippedError(f"no LoCoMo file; name it as an argument or in {VARIABLE}")
    return path


def turns(conversation: Mapping[str, Any]) -> list[Turn]:
    """Return the turns of a conversation in order; a photo is told by its caption."""
    found = []
    numbers = sorted(int(match[1]) for key in conversation if (match := _SESSION.fullmatch(key)))
    for number in numbers:
        began = datetime.strptime(conversation[f"session_{number}_date_time"], TIME).replace(tzinfo=UTC)
        for place, turn in enumerate(conversation[f"session_{number}"]):
            content: list[dict[str, str]] = [{"type": "text", "text": turn["text"]}]
            if turn.get("blip_caption"):
                content.append({"type": "image", "caption": turn["blip_caption"]})
            at = (began + timedelta(seconds=place)).timestamp()
            message = {"role": "user", "name": turn["speaker"], "content": content, "timestamp": at}
            found.append(Turn(_named(turn["dia_id"]), f"session_{number}", message))
    return found


def questions(asked: Iterable[Mapping[str, Any]], known: Iterable[str]) -> list[Question]:
    """Return the questions whose evidence is in the conversation."""
    there = set(known)
    found = []
    for one in asked:
        evidence = {f"D{match[1]}:{match[2]}" for text in one.get("evidence", ()) for match in _TURN.finditer(text)}
        if evidence & there:
            answer = str(one.get("answer", ""))
            found.append(Question(one["question"], frozenset(evidence & there), one["category"], answer))
    return found


def index(memory: Memory, said: Sequence[Turn]) -> None:
    """Record and index a conversation, as a host would that ends each session."""
    for session in dict.fromkeys(turn.session for turn in said):
        messages = [turn.message for turn in said if turn.session == session]
        if memory.files.add_transcript(messages, session) != len(messages):
            raise click.ClickException(f"{session}: not every turn was recorded, so lines cannot be told apart")
    memory.files.sync()
    memory.files.embed()


def ask(memory: Memory, said: Sequence[Turn], question: str, limit: int) -> list[Turn]:
    """Return the turns that a search brings, best first."""
    by_place = places(said)
    answer = memory.files.search(question, max_results=limit, min_score=0.0)
    found = [by_place[result.session or "", result.start_line] for result in answer.results]
    return list({turn.id: turn for turn in found}.values())


def by_words(said: Sequence[Turn]) -> Words:
    """Return a keyword search of turns, each with the name of its speaker."""
    return Words(f"{turn.message['name']}: {turn.message['content'][0]['text']}" for turn in said)


class Tally:
    """What one way of searching found."""

    def __init__(self) -> None:
        self._values: dict[str, list[float]] = defaultdict(list)
        self._categories: dict[int, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))

    def count(
        self, question: Question, found: Sequence[Turn], deep: Sequence[Turn], sessions: Mapping[str, str]
    ) -> None:
        """Count a question: the first results, and enough of them to tell the first sessions."""
        ids = [turn.id for turn in found]
        wanted = {sessions[turn] for turn in question.evidence}
        ranked = list(dict.fromkeys(turn.session for turn in deep))
        values = {
            **{f"turn_recall_at_{k}": len(question.evidence & set(ids[:k])) / len(question.evidence) for k in (5, 10)},
            "turn_any_at_5": float(bool(question.evidence & set(ids[:5]))),
            **{f"session_any_at_{k}": float(bool(wanted & set(ranked[:k]))) for k in (5, 10)},
            "mrr": next((1 / rank for rank, turn in enumerate(ids, 1) if turn in question.evidence), 0.0),
        }
        for name, value in values.items():
            self._values[name].append(value)
            self._categories[question.category][name].append(value)

    def figures(self) -> dict[str, Any]:
        """Return the means in percent, in all and by category."""
        by_category = {str(kind): _means(values) for kind, values in sorted(self._categories.items())}
        return {**_means(self._values), "by_category": by_category}


class Injected:
    """What a host's turn is really given."""

    def __init__(self) -> None:
        self._found: list[float] = []
        self._tokens: list[int] = []
        self._silent: list[float] = []
        self.read: list[dict[str, str]] = []
        """Each question that has an answer, with the block that a turn is given for it."""

    def count(self, memory: Memory, said: Sequence[Turn], asked: Sequence[Question], foreign: Sequence[str]) -> None:
        """Ask a conversation's questions, and those of another, as prompts."""
        by_place = places(said)
        for question in asked:
            recall = memory.turns.before(question.text, TurnContext(session_id="bench", host="bench"))
            ids = {
                by_place[place].id
                for item in (recall.items if recall else ())
                if (place := place_of(item.id)) in by_place
            }
            self._found.append(len(question.evidence & ids) / len(question.evidence))
            self._tokens.append(estimate_tokens(recall.block) if recall else 0)
            if question.answer:
                block = recall.block if recall else ""
                self.read.append({"question": question.text, "answer": question.answer, "block": block})
        self._silent += [float(not brought(memory, text, "bench")) for text in foreign]

    def figures(self) -> dict[str, float]:
        """Return evidence in the block and silence for another conversation's questions in percent, tokens per turn."""
        return {
            "evidence_in_block": round(100 * fmean(self._found), 1),
            "tokens_per_turn": round(fmean(self._tokens), 1),
            "silent_for_others": round(100 * fmean(self._silent), 1) if self._silent else 100.0,
        }


def measure(
    item: Mapping[str, Any], tallies: Mapping[str, Tally], embedder: str, given: Injected, foreign: Sequence[str]
) -> int:
    """Index one conversation and ask its questions in every way; return how many there were."""
    said = turns(item["conversation"])
    asked = questions(item["qa"], (turn.id for turn in said))
    sessions = {turn.id: turn.session for turn in said}
    with tempfile.TemporaryDirectory() as folder:
        with opened(folder, embedder=embedder) as memory:
            index(memory, said)
        for kind, settings in KINDS.items():
            with opened(folder, embedder=embedder, **settings) as memory:
                for question in asked:
                    found, deep = (ask(memory, said, question.text, limit) for limit in (TOP, DEEP))
                    tallies[kind].count(question, found, deep, sessions)
                if kind == "fused":
                    given.count(memory, said, asked, foreign)
    words = by_words(said)
    for question in asked:
        found, deep = ([said[place] for place in words.best(question.text, limit)] for limit in (TOP, DEEP))
        tallies["fts5_baseline"].count(question, found, deep, sessions)
    return len(asked)


def places(said: Sequence[Turn]) -> dict[tuple[str, int], Turn]:
    """Return each turn by its session and its line in the session's record."""
    by_place = {}
    lines: dict[str, int] = defaultdict(lambda: 1)  # the first line of a record is its header
    for turn in said:
        lines[turn.session] += 1
        by_place[turn.session, lines[turn.session]] = turn
    return by_place


def place_of(item: str) -> tuple[str, int]:
    """Return which turn an item of a block is; its id is a citation."""
    match = _CITED.search(item)
    return (match[1].replace("-", "_"), int(match[2])) if match else ("", 0)


def _means(values: Mapping[str, list[float]]) -> dict[str, float]:
    return {name: round(100 * fmean(found), 1) for name, found in values.items()}


def _named(turn: str) -> str:
    match = _TURN.fullmatch(turn)
    return f"D{match[1]}:{match[2]}" if match else turn


def _chosen(data: Sequence[Mapping[str, Any]], names: str | None) -> Iterator[Mapping[str, Any]]:
    wanted = names.split(",") if names else [item["sample_id"] for item in data]
    by_name = {item["sample_id"]: item for item in data}
    for name in wanted:
        if name not in by_name:
            raise click.ClickException(f"conversation {name} is not in the file; it has {', '.join(by_name)}")
        yield by_name[name]


@click.argument("data", required=False, type=click.Path(path_type=Path))
@click.option("--conversations", help="Which ones, with commas between; without it all of the file.")
@click.option("--embedder", default="auto", help="As the setting of this name.")
@click.option("--out", type=click.Path(path_type=Path), help="Write questions, blocks and answers here, to be judged.")
def bench(data: Path | None, conversations: str | None, embedder: str, out: Path | None = None) -> dict[str, Any]:
    """Measure the search of past conversations on LoCoMo."""
    chosen = list(_chosen(json.loads(located(data).read_text(encoding="utf-8")), conversations))
    tallies = {name: Tally() for name in (*KINDS, "fts5_baseline")}
    given, count = Injected(), 0
    for at, item in enumerate(chosen):
        other = chosen[(at + 1) % len(chosen)] if len(chosen) > 1 else {"qa": ()}
        foreign = [one["question"] for one in other["qa"] if one.get("evidence")]
        count += measure(item, tallies, embedder, given, foreign)
        click.echo(f"{item['sample_id']} done", err=True)
    if out is not None:
        out.write_text(json.dumps(given.read, ensure_ascii=False, indent=1), encoding="utf-8")
    return {
        "conversations": [item["sample_id"] for item in chosen],
        "questions": count,
        **{name: tally.figures() for name, tally in tallies.items()},
        "injected": given.figures(),
    }


main = program(bench)
