"""The bench that plays whole days, on the beginning of one."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bench.days import answered, asked, asking, kept, play
from perdure.store.fact import Fact
from training.alike import SAME, overlap
from training.check import DATA, load
from training.forms import Day, Kept, Turn


@pytest.fixture(scope="module")
def morning() -> Day:
    """A day script, cut down to three turns that leave something."""
    day = next(file for file in load(DATA / "development").files.values() if isinstance(file, Day))
    session = day.sessions[0]
    turns = tuple(turn for turn in session.turns if turn.keep)[:3]
    assert len(turns) == 3
    return day.model_copy(update={"sessions": (session.model_copy(update={"turns": turns}),)})


@pytest.mark.parametrize("learnt", [False, True])
def test_every_label_is_kept_or_missed(morning: Day, learnt: bool) -> None:
    figures = play(morning, learnt=learnt, embedder="none")
    labels = sum(len(turn.keep) for session in morning.sessions for turn in session.turns)
    assert figures["kept"] > 0
    assert figures["kept"] + figures["missed"] == labels


def test_what_is_filed_or_replaced_wrongly_is_counted() -> None:
    one = Kept(id="a", text="The fair opens on the ninth of May.", category="fact", lasting=True)
    other = Kept(id="b", text="Odile runs the stall.", category="fact", lasting=True)
    facts = [
        Fact(text=one.text, category="decision", superseded_at=1.0),
        Fact(text="Lemons are sold by the crate.", category="fact"),
    ]
    figures = kept(facts, [one, other])
    assert {name: figures[name] for name in ("kept", "missed", "junk", "wrongly filed", "wrongly replaced")} == {
        "kept": 1, "missed": 1, "junk": 1, "wrongly filed": 1, "wrongly replaced": 1,
    }  # fmt: skip


def test_what_ends_by_itself_is_not_wrongly_replaced_and_what_ends_something_is_not_that() -> None:
    trip = Kept(id="a", text="I am in Bergen until Friday.", category="fact", lasting=False)
    old = Kept(id="b", text="Odile runs the stall on Sundays.", category="fact", lasting=True)
    new = Kept(
        id="c", text="Odile left and Bram runs the stall on Sundays.", category="fact", lasting=True, replaces=("b",)
    )
    facts = [
        Fact(text=trip.text, category="fact", superseded_at=1.0),
        Fact(text=old.text, category="fact", superseded_at=1.0),
        Fact(text=new.text, category="fact"),
    ]
    figures = kept(facts, [trip, old, new])
    assert (figures["wrongly replaced"], figures["changes"], figures["taken"]) == (0, 1, 1)


@pytest.mark.parametrize(("one", "other", "alike"), [
    ("八月三日から十日まで函館を離れて札幌だ", "八月三日から十日まで函館を離れて札幌だ。手伝い、相談なし、休み", True),
    ("九月に子どもが生まれるんだ", "うちの車は軽のスライドドアになった、礼子が喜ぶから、いいんだ", False),
])  # fmt: skip
def test_where_a_script_has_no_spaces_signs_are_compared(one: str, other: str, alike: bool) -> None:
    assert (overlap(one, other) >= SAME) is alike


@pytest.mark.parametrize(("texts", "name"), [
    (["Odile runs the stall.", "The fair opens on the ninth of May."], "right"),
    (["Odile runs the stall."], "partial"),
    ([], "missed prompts"),
])  # fmt: skip
def test_a_prompt_that_needs_two_memories(texts: list[str], name: str) -> None:
    labels = {
        "a": Kept(id="a", text="The fair opens on the ninth of May.", category="fact", lasting=True),
        "b": Kept(id="b", text="Odile runs the stall.", category="fact", lasting=True),
    }
    turn = Turn(id="t", user="Who must be there, and when?", assistant="Odile, in May.", needs=("a", "b"))
    figures = asked(turn, texts, labels, [*texts, "Odile runs the stall."])
    assert figures[name] == 1
    assert (figures["needs"], figures["met"]) == (2, max(1, len(texts)))


def test_answers_to_what_the_librarian_is_asked_take_effect(morning: Day, tmp_path: Path) -> None:
    assert asking(morning, tmp_path / "out" / morning.day, embedder="none") == 1
    request = json.loads((tmp_path / "out" / morning.day / "01.json").read_text())
    assert {*request} >= {"system", "prompt", "schema", "turns", "memories"}
    labels = [kept for turn in morning.sessions[0].turns for kept in turn.keep]
    told = [{"op": "remember", "quote": each.text, "note": each.text} for each in labels]
    stale = {"op": "withdraw", "target": "m999", "why": "over", "quote": labels[0].text}
    (tmp_path / "in" / morning.day).mkdir(parents=True)
    (tmp_path / "in" / morning.day / "01.json").write_text(json.dumps({"operations": [*told, stale]}))
    figures = answered([morning], tmp_path / "out", tmp_path / "in", embedder="none")
    assert figures["librarian"]["missed"] == 0
    assert figures["operations"]["refused: names a memory that was not shown"] == 1
