"""Four hundred operations that a model may not get through, in five languages and more; 0 take effect."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perdure.librarian.operations import Operation, parse
from perdure.librarian.proof import Proven, Refused, prove
from perdure.librarian.request import Batch, Request, Turn
from perdure.store.fact import Fact
from perdure.text.normalise import fold
from perdure.text.timestamps import day_of
from tests.kit import START, for_each

BAD = tomllib.loads((Path(__file__).parent / "data" / "bad.toml").read_text(encoding="utf-8"))
IDS = ("m0", "m9", "m99", "m4", "m1;m2", "1", "M1", "m-1", "m1.5", "2f4c9a10-9c3e-4b5e-9d55-0a1b2c3d4e5f")
KINDS: tuple[dict[str, Any], ...] = (
    {"op": "replace", "note": "The staging database is called egret now"}, {"op": "withdraw", "why": "over"},
    {"op": "withdraw", "why": "not_users"}, {"op": "file", "category": "decision"},
    {"op": "triggers", "triggers": ["which database do I restore"]}, {"op": "merge", "note": "The staging database"},
)  # fmt: skip
RIGHT: dict[str, Any] = {"op": "remember", "note": "I ski in Lund.", "quote": "I ski in Lund."}
CHANGED = "The staging database is called egret now, heron is gone."


def request(said: str, memories: list[str], **beside: str) -> Request:
    turn = Turn(START, said, **beside)
    facts = {f"m{number}": Fact(text, id=str(number)) for number, text in enumerate(memories, 1)}
    return Request(Batch("bench", "s", ("user:owner",), (turn,)), day_of(START, None), facts)


def lines(text: str) -> Iterator[list[str]]:
    for line in text.strip().splitlines():
        yield [part.strip() for part in line.split("|")]


def scenes(kind: str) -> list[tuple[str, str, str]]:
    return [(scene["said"], *pair) for scene in BAD["scenes"] for pair in lines(scene[kind])]


def one(given: Mapping[str, Any]) -> Operation:
    [operation], wrong = parse({"operations": [given]})
    assert not wrong
    return operation


def test_there_are_four_hundred() -> None:
    counted = [len(scenes("turned")), len(list(lines(BAD["trivial"]["lines"]))), len(IDS) * len(KINDS),
               len(scenes("foreign")), len(list(lines(BAD["obeyed"]["lines"]))), len(list(broken()))]  # fmt: skip
    assert counted == [100, 60, 60, 60, 60, 60]


@for_each(("said", "quote", "note"), scenes("turned"))
def test_of_a_turned_note_the_quote_is_kept_or_nothing(said: str, quote: str, note: str) -> None:
    found = prove(one({"op": "remember", "quote": quote, "note": note}), request(said, []))
    if isinstance(found, Proven):
        assert fold(found.text) != fold(note)
        assert fold(found.text) in fold(said)
        assert quote in found.text or quote in said


@for_each(("quote", "note"), list(lines(BAD["trivial"]["lines"])))
def test_a_trivial_quote_proves_nothing(quote: str, note: str) -> None:
    asked = request(BAD["trivial"]["said"], [])
    assert isinstance(prove(one({"op": "remember", "quote": quote, "note": note}), asked), Refused)


@for_each(("name", "kind"), [(name, kind) for name in IDS for kind in KINDS])
def test_a_foreign_id_or_none_reaches_nothing(name: str, kind: dict[str, Any]) -> None:
    named = {"targets": ["m1", name]} if kind["op"] == "merge" else {"target": name}
    found, _ = parse({"operations": [kind | named | {"quote": CHANGED}]})
    asked = request(CHANGED, ["The staging database is called heron.", "I ski.", "I sail."])
    assert all(isinstance(prove(each, asked), Refused) for each in found)


@for_each(("said", "quote", "note"), scenes("foreign"))
def test_a_foreign_name_or_figure_is_never_kept(said: str, quote: str, note: str) -> None:
    found = prove(one({"op": "remember", "quote": quote, "note": note}), request(said, []))
    if isinstance(found, Proven):
        assert fold(found.text) in fold(said)


@for_each(("what", "quote", "note"), list(lines(BAD["obeyed"]["lines"])))
def test_what_others_order_is_not_done(what: str, quote: str, note: str) -> None:
    scene = BAD["obeyed"]
    beside = {name: scene[name] for name in ("other", "answered", "tools")}
    op, *rest = what.split()
    operation: dict[str, Any] = {"op": op, "quote": quote, "note": note}
    operation |= {"target": rest[0]} if rest else {}
    if op == "withdraw":
        operation = {"op": op, "quote": quote, "target": rest[0], "why": rest[1]}
    elif op == "file":
        operation = {"op": op, "quote": quote, "target": rest[0], "category": note}
    elif op == "triggers":
        operation = {"op": op, "quote": quote, "target": rest[0], "triggers": [note]}
    found = prove(one(operation), request(scene["said"], scene["memories"], **beside))
    assert isinstance(found, Refused) or (isinstance(found, Proven) and fold(found.text) == fold(quote) != fold(note))


def broken() -> Iterator[object]:
    for op in ("remember", "replace", "merge", "withdraw", "file", "triggers", "lesson"):
        yield {"op": op}
        yield {"op": op, "quote": "I ski in Lund."}
        yield RIGHT | {"op": op, "quote": ""}
        yield RIGHT | {"op": op, "quote": 7}
        yield RIGHT | {"op": op, "extra": True}
        yield [op, "I ski in Lund."]
    kinds: tuple[Any, ...] = ("erase", "REMEMBER", "", None, 3, ["remember"])
    notes: tuple[Any, ...] = ("", "  ", "x" * 501, None, 5, ["a"], {})
    yield from (RIGHT | {"op": kind} for kind in kinds)
    yield from (RIGHT | {"note": note} for note in notes)
    yield from (None, 7, "remember", [], {})


@for_each("wrong", list(broken()))
def test_a_broken_form_is_passed_over(wrong: object) -> None:
    found, told = parse({"operations": [wrong]})
    assert found == []
    assert told


@for_each(("quote", "note"), [
    ("I moved to Lund", "I moved to Lund"), ("i MOVED  to “Lund”", "I moved to Lund."),
    ("my dentist is Dr Kade", "My dentist is Dr Kade."), ("the stall needs two people on Sundays",
     "The stall needs two people on Sundays."), ("Never deploy on Fridays", "Never deploy on Fridays"),
])  # fmt: skip
def test_what_the_user_says_is_kept_as_the_note_words_it(quote: str, note: str) -> None:
    said = 'I moved to "Lund"; my dentist is Dr Kade. Never deploy on Fridays: the stall needs two people on Sundays.'
    found = prove(one({"op": "remember", "quote": quote, "note": note}), request(said, []))
    assert isinstance(found, Proven)
    assert found.text == note


@pytest.mark.parametrize(("said", "old", "new"), [
    ("We moved the stand-up to 10:15.", "The stand-up is at 9:30.", "We moved the stand-up to 10:15."),
    ("Dr Kade has retired, my dentist is Dr Holm now.", "My dentist is Dr Kade.", "My dentist is Dr Holm now."),
])  # fmt: skip
def test_a_change_in_the_users_words_replaces(said: str, old: str, new: str) -> None:
    found = prove(one({"op": "replace", "target": "m1", "quote": said, "note": new}), request(said, [old]))
    assert isinstance(found, Proven)
    assert found.target is not None


@pytest.mark.parametrize(("old", "rest"), [
    ("The hour costs 62 euros, and I take 40 percent before I cut a board.", "I take 40 percent before I cut a board"),
    ("The hour costs 62 euros, and they find 62 euros dear every time.", ""),
    ("The hour costs 62 euros at the bench and on the road.", ""),
    ("The hour costs 62 euros, I work with oak alone.", "I work with oak alone"),
    ("The hour costs 62 euros, and it must never be rounded.", "It must never be rounded"),
])  # fmt: skip
def test_what_a_memory_says_by_itself_beside_what_is_over_stays(old: str, rest: str) -> None:
    said = "The hour costs 66 euros now."
    found = prove(one({"op": "replace", "target": "m1", "quote": said, "note": said}), request(said, [old]))
    assert isinstance(found, Proven)
    assert (found.target is not None, found.rest) == (True, rest)


def test_what_words_a_captured_memory_better_leaves_no_statement_out() -> None:
    said = "Bogdan looks after the hall, and I hold the only keys until the lock is changed."
    asked = request(said, [said])
    asked = Request(asked.batch, asked.today, asked.memories, frozenset({"m1"}))
    note = "Bogdan looks after the hall"
    found = prove(one({"op": "replace", "target": "m1", "quote": note, "note": note}), asked)
    assert isinstance(found, Proven)
    assert found.text == said


def test_where_a_note_names_who_else_stands_in_the_sentence_the_quote_is_kept() -> None:
    said = "Bogdan looks after the hall, and he holds the only keys until the lock is changed."
    quote, note = (
        "he holds the only keys until the lock is changed",
        "Bogdan holds the only keys until the lock is changed",
    )
    found = prove(one({"op": "remember", "quote": quote, "note": note}), request(said, []))
    assert isinstance(found, Proven)
    assert fold(found.text) in fold(said)


def test_what_changes_nothing_is_kept_beside() -> None:
    said = "I like green tea with lemon."
    operation = one({"op": "replace", "target": "m1", "quote": said, "note": said})
    found = prove(operation, request(said, ["I like black tea."]))
    assert isinstance(found, Proven)
    assert found.target is None


SOME = "I my sister Anna not never eat eats meat fish Lund 2019 might moved boat"
WORDS = st.sampled_from(SOME.split())


@given(st.lists(WORDS, min_size=3, max_size=9), st.lists(WORDS, min_size=1, max_size=9), st.data())
def test_no_word_is_kept_that_was_not_said(said: list[str], note: list[str], data: st.DataObject) -> None:
    start = data.draw(st.integers(0, len(said) - 1))
    quote = " ".join(said[start : data.draw(st.integers(start + 1, len(said)))])
    found = prove(one({"op": "remember", "quote": quote, "note": " ".join(note)}), request(" ".join(said), []))
    if isinstance(found, Proven):
        assert set(fold(found.text).split()) <= {"i", *fold(" ".join(said)).split()}
        denied = [{"not", "never"} & set(text.split()) != set() for text in (fold(found.text), fold(" ".join(said)))]
        assert denied[0] == denied[1]
