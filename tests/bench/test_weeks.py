"""The bench that plays two weeks: its scripts agree with themselves, and its counts are those of a short week."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from bench.weeks import ROWS, SCRIPTS, Tally, holds, play, verdict

DATE = re.compile(r"\d{4}-\d\d-\d\d")
SHORT: dict[str, Any] = {
    "turns": [
        {
            "session": "a", "day": "2027-05-03", "project": "one", "reply": "Noted.",
            "text": "We deploy on Tuesdays with kubectl. I prefer short answers.",
            "keep": [
                {"id": "deploy", "words": ["kubectl", "Tuesday"]},
                {"id": "short", "words": ["short answers"], "everywhere": True},
            ],
        },
        {"session": "b", "day": "2027-05-04", "project": "one", "text": "what's 2 + 2?", "reply": "4", "silent": True},
        {
            "session": "c", "day": "2027-05-04", "project": "two", "text": "when do we deploy with kubectl?",
            "reply": "I don't know.", "second": True,
        },
    ],
    "questions": [
        {"ask": "When do we deploy with kubectl?", "told": "deploy", "right": ["kubectl", "Tuesday"]},
        {"ask": "Do I prefer short answers?", "told": "short", "right": ["short answers"]},
    ],
    "work": [],
    "second": [],
    "idle": [{"ask": "thanks!"}],
}  # fmt: skip


@pytest.mark.parametrize("name", ["coding", "private"])
def test_a_script_agrees_with_itself(name: str) -> None:
    script = json.loads((SCRIPTS / f"{name}.json").read_text(encoding="utf-8"))
    turns = script["turns"]
    keeps = {keep["id"]: keep for turn in turns for keep in turn.get("keep", ())}
    assert len(turns) == 45
    assert len(keeps) == sum(len(turn.get("keep", ())) for turn in turns)
    before = ""
    for turn in turns:
        assert before <= (before := turn["day"])
        for label in (*turn.get("keep", ()), *turn.get("drop", ())):
            said = " ".join(each["text"] for each in turns if each["session"] == turn["session"])
            assert all(holds(said, [word]) or DATE.search(word) or word == "python" for word in label["words"]), label
    gone = {keep["replaces"] for keep in keeps.values() if "replaces" in keep}
    gone |= {turn["forget"]["of"] for turn in turns if "of" in turn.get("forget", ())}
    assert gone <= keeps.keys()
    assert sorted(asked["told"] for asked in script["questions"]) == sorted(keeps.keys() - gone)


def test_a_short_week_is_counted() -> None:
    tally = Tally(play(SHORT))
    found, cases = tally.rows, tally.cases
    assert {row: found[row] for row in ("told", "asked", "no need", "second", "replaced")} == {
        "told": {"clean": 2, "crippled": 0, "passage": 0, "lost": 0},
        "asked": {"right": 2, "missed": 0, "wrong": 0},
        "no need": {"silent": 2, "noise": 0},
        "second": {"clean": 1, "with the first's": 0},
        "replaced": {"falsely": 0},
    }, cases
    assert found.keys() == ROWS.keys()
    assert cases == []


@pytest.mark.parametrize(("texts", "said"), [
    (["We deploy on Thursdays", "We deploy on Tuesdays"], "right"),
    (["We moved from Tuesday to Thursday"], "right"),
    (["We deploy on Tuesdays", "We deploy on Thursdays"], "wrong"),
    (["We deploy on Tuesdays"], "wrong"),
    (["We deploy by hand"], "missed"),
    ([], "missed"),
])  # fmt: skip
def test_what_comes_up_is_right_missed_or_wrong(texts: list[str], said: str) -> None:
    assert verdict(texts, {"right": ["Thursday"], "wrong": ["Tuesday"]}) == said
