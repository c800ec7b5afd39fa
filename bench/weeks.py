"""What a week leaves with one user: a week of coding in two repositories, and a week of private life, scored by words.

python -m bench weeks [--json] [--verbose]

The scripts are bench/data/weeks/*.json. Each is played as a host does it, with a clock that is set; then its questions
are asked in fresh sessions. A turn says what of it is to be kept (`keep`; `replaces`: what it corrects) and what is not
(`drop`: pasted text, an order to forget, what holds for a moment). Words are held where each of them, or one of its
alternatives (`a|b`), stands in a text.

told: of what still holds at the end, kept clean (one memory has all the words, and nothing outdated stands beside it),
crippled (words are missing, it is stale, or what is not to be kept hangs on it), passage (only a past conversation
answers the question about it), lost. asked: the questions about it; at work: prompts that it matters for, unasked. Both
are right, missed, or wrong: what is wrong comes up first, or alone. no need: prompts that need no memory, silent or
with noise. second: prompts in another repository, and those that brought up what belongs to the first. kept: memories
in the end; labelled nowhere, or junk, which is counted by kind below. forget: orders to forget, obeyed (nothing held
says it; it may never have been kept), stored as memories themselves, and those whose matter still comes up.
corrections: what comes up for the question, the new value first or the outdated one. replaced, falsely: what is no
longer held, though nothing corrected it. pasted: pieces of others' text, passed over or kept as the user's.
"""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

import click

from bench.memories import runner_of
from bench.program import program
from perdure import Fact, Memory, TurnContext
from perdure.clock import ManualClock
from perdure.store.listing import MAX_LIMIT, Filter

SCRIPTS = Path(__file__).parent / "data" / "weeks"
PATIENCE = 120.0
"""Seconds that the capture of a turn may take."""
MORNING = 9 * 3600.0
"""Seconds from midnight to the first turn of a day."""
TURN = 180.0
"""Seconds from one turn to the next."""
Label = dict[str, Any]
"""A turn, a question, or what one of them says, as it stands in a script."""


@dataclass(slots=True)
class Week:
    """A script that was played."""

    script: Label
    came: list[tuple[str, Label, list[str]]] = field(default_factory=list)  # each prompt, and what came up for it
    live: list[Fact] = field(default_factory=list)
    former: list[Fact] = field(default_factory=list)

    @property
    def keeps(self) -> dict[str, Label]:
        """What is to be kept, by its id, with the project that it belongs to alone."""
        return {
            keep["id"]: {"project": None if keep.get("everywhere") else turn.get("project"), **keep}
            for turn in self.script["turns"]
            for keep in turn.get("keep", ())
        }

    @property
    def drops(self) -> list[Label]:
        """What is not to be kept."""
        dropped = [drop for turn in self.script["turns"] for drop in turn.get("drop", ())]
        return dropped + [{"kind": "order", "words": order["order"]} for order in self.forgets]

    @property
    def forgets(self) -> list[Label]:
        """The orders to forget."""
        return [turn["forget"] for turn in self.script["turns"] if "forget" in turn]

    @property
    def gone(self) -> set[str]:
        """What was corrected or is to be forgotten, by its id."""
        corrected = {keep["replaces"] for keep in self.keeps.values() if "replaces" in keep}
        return corrected | {order["of"] for order in self.forgets if "of" in order}


def holds(text: str, words: Iterable[str]) -> bool:
    """Return whether a text has all the words, each as it is or with a plain ending."""
    return all(
        re.search(rf"(?<!\w)(?:{'|'.join(map(re.escape, each.split('|')))})(?:e?s|e?d|'s)?(?!\w)", text, re.IGNORECASE)
        for each in words
    )


def play(script: Label, **settings: Any) -> Week:
    """Play a week as a host does, and ask its questions in fresh sessions."""
    week = Week(script)
    clock = ManualClock()
    home = script["turns"][0].get("project")
    scopes = sorted({f"project:{turn['project']}" for turn in script["turns"] if "project" in turn})
    with tempfile.TemporaryDirectory() as folder:
        with Memory.open(folder, clock=clock, timers=False, **settings) as memory:
            memory.ready(PATIENCE)
            runner = runner_of(memory)
            runner.host_started(TurnContext())
            context, history = TurnContext(), list[dict[str, str]]()
            for turn in script["turns"]:
                morning = datetime.fromisoformat(turn["day"]).timestamp() + MORNING
                clock.set(max(clock.now() + TURN, morning) if history else morning)
                if context.session_id != turn["session"]:
                    runner.session_end(context)
                    context, history = _context(turn["session"], turn.get("project")), []
                came = runner.before_agent_start(turn["text"], tuple(history), context)
                week.came.append(("turns", turn, [item.text for recall in came for item in recall.items]))
                history += [{"role": "user", "content": turn["text"]}, {"role": "assistant", "content": turn["reply"]}]
                runner.agent_end(tuple(history), True, context)
                memory.settle(PATIENCE)
            runner.session_end(context)
            memory.settle(PATIENCE)
            for kind, asked in _asked(week):
                clock.advance(TURN)
                context = _context(f"{kind} {len(week.came)}", asked.get("project", home))
                came = runner.before_agent_start(asked["ask"], (), context)
                week.came.append((kind, asked, [item.text for recall in came for item in recall.items]))
        with Memory.open(folder, clock=clock, scopes=scopes, timers=False, **settings) as memory:
            every = memory.admin.list(Filter(), limit=MAX_LIMIT, include_superseded=True)
            week.live = [fact for fact in every if fact.superseded_at is None]
            week.former = [fact for fact in every if fact.superseded_at is not None]
    return week


def _context(session: str, project: str | None) -> TurnContext:
    return TurnContext(session_id=session, project=f"project:{project}" if project else None, host="bench")


def _asked(week: Week) -> list[tuple[str, Label]]:
    kinds = ("questions", "work", "second", "idle")
    return [(kind, each) for kind in kinds for each in week.script[kind]] + [("forget", each) for each in week.forgets]


def verdict(texts: Sequence[str], label: Label) -> str:
    """Return whether what came up has all that is right, and nothing wrong in front of it."""
    first, wrong = label["right"][:1], label.get("wrong", ())
    found = all(any(holds(text, [word]) for text in texts) for word in label["right"])
    good = [holds(text, first) for text in texts]
    bad = [not held and any(holds(text, [word]) for word in wrong) for text, held in zip(texts, good, strict=True)]
    if any(bad) and not (found and good.index(True) < bad.index(True)):
        return "wrong"
    return "right" if found else "missed"


def told(week: Week, name: str, answered: bool) -> str:
    """Return what became of something that was told and still holds."""
    label = week.keeps[name]
    clean = [fact.text for fact in week.live if not _dropped(week, fact)]
    if any(holds(text, label["words"]) for text in clean):
        old = week.keeps.get(label.get("replaces", ""))
        stale = old and any(holds(text, old["words"]) and not holds(text, label["words"][:1]) for text in clean)
        return "crippled" if stale else "clean"
    if any(holds(text, label["words"][:1]) for text in clean) or any(
        holds(fact.text, label["words"]) for fact in week.live
    ):
        return "crippled"
    return "passage" if answered else "lost"


def _dropped(week: Week, fact: Fact) -> set[str]:
    return {drop["kind"] for drop in week.drops if holds(fact.text, drop["words"])}


class Tally:
    """The figures of a week, and a line for each thing that went wrong."""

    def __init__(self, week: Week) -> None:
        self.week = week
        self.rows = {row: dict.fromkeys(names, 0) for row, names in ROWS.items()}
        self.cases: list[str] = []
        for kind, label, texts in week.came:
            self._prompt(kind, label, texts, f"{label.get('text') or label['ask']} -> {texts}")
        for fact in week.live:
            self._fact(fact)
        for drop in week.drops:
            if drop["kind"] == "pasted":
                held = self._held(drop["words"])
                self._count("pasted", "kept" if held else "passed over", held, " ".join(drop["words"]))
        for name in week.keeps.keys() - week.gone:
            words = week.keeps[name]["words"]
            if not self._held(words) and any(holds(fact.text, words) for fact in week.former):
                self._count("replaced", "falsely", True, name)

    def _count(self, row: str, name: str, bad: bool, case: str) -> None:
        self.rows[row][name] += 1
        self.cases.extend([f"{row}, {name}: {case}"] if bad else [])

    def _held(self, words: Sequence[str]) -> bool:
        return any(holds(fact.text, words) for fact in self.week.live)

    def _prompt(self, kind: str, label: Label, texts: list[str], case: str) -> None:
        if needs := label.get("needs") or (kind == "work" and label):
            found = verdict(texts, needs)
            self._count("at work", found, found != "right", case)
        if kind == "questions":
            self._question(label, texts, case)
        if kind == "idle" or label.get("silent"):
            self._count("no need", "noise" if texts else "silent", bool(texts), case)
        if kind == "forget":
            self._order(label, texts, case)
        if kind == "second" or label.get("second"):
            others = [keep for keep in self.week.keeps.values() if keep["project"] not in (None, label["project"])]
            leak = any(holds(text, keep["words"][:1]) for text in texts for keep in others)
            self._count("second", "with the first's" if leak else "clean", leak, case)

    def _question(self, label: Label, texts: list[str], case: str) -> None:
        found = verdict(texts, label)
        self._count("asked", found, found != "right", case)
        became = told(self.week, label["told"], found == "right")
        self._count("told", became, became != "clean", label["told"])
        if "replaces" in self.week.keeps[label["told"]]:
            late = any(holds(text, label["right"][:1]) for text in texts)
            new = {"right": "new first", "missed": "nothing", "wrong": "outdated first" if late else "only outdated"}
            self._count("corrections", new[found], found != "right", case)

    def _order(self, label: Label, texts: list[str], case: str) -> None:
        matter = [fact for fact in self.week.live if holds(fact.text, label["words"])]
        held = any("order" not in _dropped(self.week, fact) for fact in matter)
        self._count("forget", "not obeyed" if held else "obeyed", held, label["ask"])
        if self._held(label["order"]):
            self._count("forget", "stored", True, label["ask"])
        if any(holds(text, label["words"]) for text in texts):
            self._count("forget", "coming up", True, case)

    def _fact(self, fact: Fact) -> None:
        junk = _dropped(self.week, fact)
        labels = (*self.week.keeps.values(), *self.week.forgets)
        known = any(holds(fact.text, each["words"][:1]) for each in labels)
        name = "junk" if junk else "labelled" if known else "unlabelled"
        self._count("kept", name, name != "labelled", fact.text)
        for kind in junk:
            self.rows["junk"][kind] += 1


ROWS = {
    "told": ("clean", "crippled", "passage", "lost"),
    "asked": ("right", "missed", "wrong"),
    "at work": ("right", "missed", "wrong"),
    "no need": ("silent", "noise"),
    "second": ("clean", "with the first's"),
    "kept": ("labelled", "unlabelled", "junk"),
    "junk": ("pasted", "order", "moment"),
    "forget": ("obeyed", "not obeyed", "stored", "coming up"),
    "corrections": ("new first", "outdated first", "only outdated", "nothing"),
    "replaced": ("falsely",),
    "pasted": ("passed over", "kept"),
}


@click.option("--verbose", is_flag=True, help="Also print each thing that went wrong.")
def bench(verbose: bool) -> dict[str, Any]:
    """Play two weeks, and count what became of what was said in them."""
    found: dict[str, Any] = {}
    for path in sorted(SCRIPTS.glob("*.json")):
        tally = Tally(play(json.loads(path.read_text(encoding="utf-8"))))
        found[path.stem] = {**tally.rows, "cases": tally.cases} if verbose else tally.rows
    return found


main = program(bench)
