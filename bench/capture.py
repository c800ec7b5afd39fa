"""What is kept of what people say, and is it filed correctly? On labelled sets that were written without the rules.

python -m bench capture --json [--data DIR] [--locomo FILE]

The sets and how they are labelled: bench/data/LABELS.md. Rules may be chosen on the halves "tuned" alone;
these the heads have learnt.

capture_precision, capture_recall: of the messages that something was kept of, the share that deserved it (and of
which no part was kept that is to be dropped); of those that deserve it, the share that something was kept of.
category_accuracy, slot_exact: of the labelled facts of messages that were rightly kept, the share with this category,
with exactly this entity, key and value. decision_macro_f1: the mean of the F1 of ADD, UPDATE, DELETE and NOOP, told
by what the store holds afterwards. language_f1: F1 of capture for each language.

LoCoMo (CC BY-NC 4.0, not in this repository; by argument or LOCOMO_FILE): a turn should be kept if an observation
cites it. That is noisy: a turn that nobody cites is not always worthless.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

import click

from bench.locomo import located, turns
from bench.memories import changed, live, opened, say
from bench.program import SkippedError, program
from perdure.api.memory import Memory
from perdure.store.fact import Fact

DATA = Path(__file__).parent / "data"
HALVES = ("tuned", "more", "untouched")
ACTIONS = ("ADD", "UPDATE", "DELETE", "NOOP")
_TURN = re.compile(r"D(\d+):0*(\d+)")
_HYBRID_WORDS = (
    "remember", "prefer", "decided", "my", "is my", "i like", "i prefer", "i hate", "i love", "i want", "i need",
    "always", "never", "important", "born on", "birthday", "lives in", "works at", "password is", "api key",
    "token is", "chose", "selected", "went with", "picked", "because", "since", "for", "architecture", "stack",
    "approach",
)  # fmt: skip
_HYBRID = re.compile("|".join(_HYBRID_WORDS), re.IGNORECASE)
_HYBRID_SHAPES = re.compile(r"\+\d{10,}|[\w.-]+@[\w-]+\.\w+", re.IGNORECASE)
_PRO = re.compile(
    r"\bremember\b|\bi (?:prefer|like|hate|love|want|need)\b|\bmy \w+ is\b|\bis my\b|\b(?:always|never|important)\b"
    r"|\bwe (?:decided|will use)\b|\bdecided\b|\+\d{10,}|[\w.-]+@[\w-]+\.\w+",
    re.IGNORECASE,
)
_FIRST_PERSON = re.compile(r"\b(?:i|i'm|i've|i'd|my|mine|me|we|we're|our|us)\b", re.IGNORECASE)
_SENTENCE = re.compile(r"[^.!?\n]+[.!?]*")
Item = Mapping[str, Any]
Kept = Mapping[str, Sequence[Fact]]


@dataclass(frozen=True, slots=True)
class Score:
    """Precision, recall and F1, each 0 to 1."""

    precision: float
    recall: float

    @property
    def f1(self) -> float:
        """The harmonic mean of both."""
        return 2 * self.precision * self.recall / (self.precision + self.recall) if self.precision else 0.0

    @classmethod
    def of(cls, kept: Collection[str], wanted: Collection[str], spoilt: Collection[str] = ()) -> Score:
        """Score what was kept against what was wanted; what was spoilt counts as kept, not as wanted."""
        right = len(set(kept) & set(wanted) - set(spoilt))
        return cls(right / len(kept) if kept else 1.0, right / len(wanted) if wanted else 1.0)

    def figures(self) -> dict[str, float]:
        """Return all three, rounded."""
        return {"precision": round(self.precision, 3), "recall": round(self.recall, 3), "f1": round(self.f1, 3)}


def keep(messages: Iterable[tuple[str, str]], *, learnt: bool = False) -> Kept:
    """Capture messages, each by id and text, in a session of its own so that none is taken for a repetition.

    With `learnt` the heads decide what is kept, else the rules alone.
    """
    kept: dict[str, list[Fact]] = defaultdict(list)
    with opened(
        compare={"classify": False, "exact": False, "normalised": False},
        record_sessions=False,
        embedder="none",
        capture_learnt=learnt,
    ) as memory:
        for name, text in messages:
            say(memory, text, name)
        memory.settle(600)
        for fact in live(memory):
            kept[fact.provenance_session or ""].append(fact)
    return kept


def hybrid_memory(text: str) -> bool:
    """Keep what holds one of the hybrid-memory plugin's trigger words, anywhere in a word."""
    return 10 <= len(text) <= 5000 and bool(_HYBRID.search(text) or _HYBRID_SHAPES.search(text))


def lancedb_pro(text: str) -> bool:
    """Keep what matches one of memory-lancedb-pro's triggers, unless it is long."""
    return 10 <= len(text) <= 500 and bool(_PRO.search(text))


def six_words(text: str) -> bool:
    """Keep what has at least six words and is no question."""
    return len(text.split()) >= 6 and "?" not in text


def first_person(text: str) -> bool:
    """Keep what has a sentence in the first person that is no question."""
    return any(_FIRST_PERSON.search(part) and "?" not in part for part in _SENTENCE.findall(text))


PEERS: Mapping[str, Callable[[str], bool]] = {
    "hybrid_memory": hybrid_memory,
    "memory_lancedb_pro": lancedb_pro,
    "six_words_no_question": six_words,
    "first_person_sentence": first_person,
}
"""The capture rules of other memory plugins, re-expressed: each says of a whole message whether it is kept."""


def judge(items: Sequence[Item], kept: Kept) -> dict[str, Any]:
    """Return the figures of a half of the capture set."""
    wanted = [item["id"] for item in items if item["capture"]]
    spoilt = [item["id"] for item in items if _spoilt(item, kept.get(item["id"], ()))]
    score = Score.of([item["id"] for item in items if kept.get(item["id"])], wanted, spoilt)
    labelled = [
        (fact, kept[item["id"]]) for item in items if kept.get(item["id"]) for fact in item.get("facts", ())
    ]  # fmt: skip
    slots = [_slot_found(fact["slot"], found) for fact, found in labelled if fact.get("slot")]
    return {
        "capture_precision": round(score.precision, 3),
        "capture_recall": round(score.recall, 3),
        "category_accuracy": round(fmean(_category_found(fact, found) for fact, found in labelled), 3),
        "slot_exact": round(fmean(slots), 3),
    }


def _spoilt(item: Item, found: Sequence[Fact]) -> bool:
    return any(words.casefold() in fact.text.casefold() for words in item.get("drop") or () for fact in found)


def _category_found(label: Item, found: Sequence[Fact]) -> bool:
    allowed = label["category"]
    return any(fact.category in ([allowed] if isinstance(allowed, str) else allowed) for fact in found)


def _slot_found(slot: Sequence[str], found: Sequence[Fact]) -> bool:
    wanted = [_plain(part) for part in slot]
    return any([_plain(part or "") for part in (fact.entity, fact.key, fact.value)] == wanted for fact in found)


def _plain(text: str) -> str:
    text = re.sub(r"\b(?:an?|the) ", "", text.casefold())
    return " ".join(text.split()).strip(" .,;:!?\"'")


def decided(memory: Memory, item: Item) -> tuple[str, bool]:
    """Store what was known and then the new statement; return what was done, and whether to the right fact."""
    known, gone, come = changed(memory, f"project:{item['id']}", item["known"], item["new"])
    action = ("UPDATE" if come else "DELETE") if gone else ("ADD" if come else "NOOP")
    return action, not gone or gone == {known[item["target"]] if item["target"] is not None else None}


def judge_decisions(items: Sequence[Item]) -> dict[str, Any]:
    """Return macro F1 over the actions, F1 of each, and how often the right fact was meant."""
    with opened(scopes=[f"project:{item['id']}" for item in items]) as memory:
        done = {item["id"]: decided(memory, item) for item in items}
    found = {action: [name for name, (what, _) in done.items() if what == action] for action in ACTIONS}
    # The right thing done to the wrong fact is a mistake.
    astray = [name for name, (_, right) in done.items() if not right]
    wanted = {action: [item["id"] for item in items if item["action"] == action] for action in ACTIONS}
    scores = {action: Score.of(found[action], wanted[action], astray) for action in ACTIONS}
    return {
        "decision_macro_f1": round(fmean(score.f1 for score in scores.values()), 3),
        "decisions": {action: score.figures() for action, score in scores.items()},
        "wrong_target": len(astray),
    }


def judge_messages(items: Sequence[Item], captures: Callable[[str], bool]) -> dict[str, float]:
    """Return the figures of a rule that looks at whole messages."""
    kept = [item["id"] for item in items if captures(item["text"])]
    return Score.of(kept, [item["id"] for item in items if item["capture"]]).figures()


def cited(sample: Item) -> list[Item]:
    """Return the turns of a LoCoMo conversation as items; those that an observation cites should be kept."""
    sources = json.dumps(sample["observation"])
    evidence = {f"D{match[1]}:{match[2]}" for match in _TURN.finditer(sources)}
    return [
        {"id": f"{sample['sample_id']} {turn.id}", "text": turn.message["content"][0]["text"],
         "capture": turn.id in evidence}
        for turn in turns(sample["conversation"])
    ]  # fmt: skip


def read(path: Path) -> list[Item]:
    """Return the items of a set."""
    items: list[Item] = json.loads(path.read_text(encoding="utf-8"))["items"]
    return items


def measure(data: Path, half: str, wrong: bool, *, learnt: bool = False) -> dict[str, Any]:
    """Measure one half of every set."""
    items = read(data / f"capture-{half}.json")
    kept = keep(((item["id"], item["text"]) for item in items), learnt=learnt)
    result = judge(items, kept)
    result |= judge_decisions(read(data / f"decisions-{half}.json"))
    result["peers"] = {name: judge_messages(items, captures) for name, captures in PEERS.items()}
    languages = {}
    for path in sorted((data / f"languages-{half}").glob("*.json")):
        said = read(path)
        found = keep(((item["id"], item["text"]) for item in said), learnt=learnt)
        wanted = [item["id"] for item in said if item["capture"]]
        languages[path.stem] = Score.of([name for name, facts in found.items() if facts], wanted).figures()
    result["languages"] = languages
    result["language_f1"] = {language: figures["f1"] for language, figures in languages.items()}
    if wrong and half == "tuned":
        result["wrong"] = [item["id"] for item in items if bool(kept.get(item["id"])) != item["capture"]]
    return result


def measure_locomo(path: Path, *, learnt: bool = False) -> dict[str, Any]:
    """Measure capture on conversations, beside the peers and chance."""
    items = [item for sample in json.loads(path.read_text(encoding="utf-8")) for item in cited(sample)]
    kept = keep(((item["id"], item["text"]) for item in items), learnt=learnt)
    wanted = [item["id"] for item in items if item["capture"]]
    facts = sum(map(len, kept.values()))
    return {
        "turns": len(items),
        "perdure": {**Score.of(list(kept), wanted).figures(), "facts_per_100_turns": round(100 * facts / len(items))},
        "chance": Score.of([item["id"] for item in items], wanted).figures(),
        "peers": {name: judge_messages(items, captures) for name, captures in PEERS.items()},
    }


@click.option("--data", type=click.Path(path_type=Path, exists=True), default=DATA, help="Folder with sets.")
@click.option("--locomo", type=click.Path(path_type=Path, exists=True), help="The LoCoMo file.")
@click.option("--half", type=click.Choice(HALVES), multiple=True, default=HALVES, help="Only this half.")
@click.option("--rules", is_flag=True, help="By the rules alone, without the heads beside them.")
@click.option("--wrong", is_flag=True, help="Also which messages of the half to tune on went wrong.")
def bench(data: Path, locomo: Path | None, half: Sequence[str], rules: bool, wrong: bool) -> dict[str, Any]:
    """Measure what capture keeps, and how it files it."""
    result: dict[str, Any] = {name: measure(data, name, wrong, learnt=not rules) for name in half}
    try:
        source = located(locomo)
    except SkippedError as error:
        click.echo(f"LoCoMo is left out: {error}", err=True)
        return result
    return result | {"locomo": measure_locomo(source, learnt=not rules)}


main = program(bench)
