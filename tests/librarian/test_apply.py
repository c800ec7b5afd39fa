"""A batch takes effect whole, once, and one undo takes it back."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from perdure.api.memory import Memory
from perdure.engine.audiences import audience_of
from perdure.failpoints import EXIT_CODE, VARIABLE
from perdure.hooks.types import TurnContext
from perdure.librarian.apply import Applier, Outcome
from perdure.librarian.operations import parse
from perdure.librarian.request import Batch, Reader, Request, Turn
from perdure.store.listing import Filter

CONTEXT = TurnContext(session_id="s", host="bench")
SAID = (
    "My dentist is Dr Holm now, Dr Kade has retired. Never deploy on Fridays. "
    "We sold the boat, so it is over. The fair opens on the ninth of May."
)
OPERATIONS: list[dict[str, Any]] = [
    {"op": "remember", "quote": "Never deploy on Fridays", "note": "Never deploy on Fridays.", "category": "decision",
     "triggers": ["can you ship this tonight"]},
    {"op": "withdraw", "target": "boat", "why": "over", "quote": "We sold the boat"},
    {"op": "replace", "target": "dentist", "quote": "My dentist is Dr Holm now", "note": "My dentist is Dr Holm now."},
]  # fmt: skip


def asked(memory: Memory, said: str = SAID) -> Request:
    engine = memory._engine
    batch = Batch("bench", "s", (str(audience_of(CONTEXT).home),), (Turn(engine.clock.now(), said),))
    return Reader(engine.store, engine.leg).request(batch)


def apply(memory: Memory, operations: Sequence[dict[str, Any]], request: Request, name: str = "") -> Outcome:
    engine = memory._engine
    names = {word: each for each, fact in request.memories.items() for word in fact.text.lower().strip(".").split()}
    told = [each | ({"target": names[each["target"]]} if "target" in each else {}) for each in operations]
    found, wrong = parse({"operations": told})
    assert not wrong
    return Applier(engine.store, lambda: engine.writer, lambda: engine.categories, engine.leg).apply(
        request, found, name
    )


def live(memory: Memory) -> set[str]:
    return {fact.text for fact in memory.admin.list(Filter())}


@pytest.fixture
def known(memory: Memory) -> set[str]:
    for text in ("My dentist is Dr Kade.", "We have a boat in Turku."):
        memory.store(text)
    return live(memory)


def test_a_batch_is_one_change_that_one_undo_takes_back(memory: Memory, known: set[str]) -> None:
    outcome = apply(memory, OPERATIONS, asked(memory))
    assert live(memory) == {"My dentist is Dr Holm now.", "Never deploy on Fridays."}
    assert dict(outcome.done) == {"remember": 1, "replace": 1, "withdraw": 1}
    [replaced] = [fact for fact in memory.admin.list(Filter(), include_superseded=True) if "Kade" in fact.text]
    assert replaced.superseded_at is not None
    memory.undo(outcome.batch)
    assert live(memory) == known


def test_done_under_a_name_it_is_done_once(memory: Memory, known: set[str]) -> None:
    request = asked(memory)
    assert apply(memory, OPERATIONS, request, "one").done
    after = live(memory)
    assert not apply(memory, OPERATIONS, request, "one").done
    assert not apply(memory, OPERATIONS[1:], request).done
    assert live(memory) == after != known


def test_what_was_captured_from_the_turn_may_go_and_what_was_stored_may_not(memory: Memory) -> None:
    said = "My dentist is Dr Holm. My sister lives in Lund."
    memory.store("I like tea.")
    memory.turns.after([{"role": "user", "content": said}], True, CONTEXT)
    assert memory.settle()
    gone = [{"op": "withdraw", "target": word, "why": "not_users", "quote": "My dentist"} for word in ("holm", "tea")]
    outcome = apply(memory, gone, asked(memory, said))
    assert dict(outcome.done) == {"withdraw": 1}
    assert [each.reason for each in outcome.refused] == ["not of these turns"]
    assert live(memory) >= {"I like tea."}


def test_many_that_are_not_the_users_wait_for_review(memory: Memory) -> None:
    words = ("Lund", "Turku", "Bergen", "Kiel")
    said = " ".join(
        f"My {kin} lives in {word}." for kin, word in zip(("mother", "son", "aunt", "boss"), words, strict=True)
    )
    memory.turns.after([{"role": "user", "content": said}], True, CONTEXT)
    assert memory.settle()
    before = live(memory)
    gone = [{"op": "withdraw", "target": word.lower(), "why": "not_users", "quote": "My mother"} for word in words]
    assert dict(apply(memory, gone, asked(memory, said)).done) == {"waits": 4}
    assert before <= live(memory)
    assert len(memory.admin.review()) == 4


def test_a_note_takes_the_place_of_what_was_captured_of_the_same_words(memory: Memory) -> None:
    memory.store("Our boat is kept at the north pier.")
    told = ("They shut the pier, so my uncle has our boat now", "My mother lives in Lund", "My son lives in Turku")
    said = f"{'. '.join(told)}. My aunt lives in Bergen."
    memory.turns.after([{"role": "user", "content": said}], True, CONTEXT)
    assert memory.settle()
    request = asked(memory, said)
    assert len(request.new) == 4
    sentences = [f"{each.strip('.')}." for each in said.split(". ")]
    [pier] = [name for name, fact in request.memories.items() if "north" in fact.text]
    operations: list[dict[str, Any]] = [{"op": "remember", "quote": each, "note": each} for each in sentences[1:]]
    operations += [{"op": "replace", "target": pier, "quote": sentences[0], "note": sentences[0]}]
    operations += [
        {"op": "withdraw", "target": each, "why": "not_users", "quote": said} for each in sorted(request.new)
    ]
    found, _ = parse({"operations": operations})
    engine = memory._engine
    Applier(engine.store, lambda: engine.writer, lambda: engine.categories, engine.leg).apply(request, found)
    assert sorted(fact.text for fact in memory.admin.list(Filter())) == sorted(sentences)
    assert memory.admin.review() == []


def test_what_a_change_leaves_as_it_is_stays(memory: Memory) -> None:
    memory.store("We charge 62 euros an hour, and from private customers we take 40 percent before we cut a board.")
    said = "As of now the hour costs 66 euros."
    operations = [{"op": "replace", "target": "euros", "quote": said, "note": said}]
    outcome = apply(memory, operations, asked(memory, said))
    assert live(memory) == {said, "From private customers we take 40 percent before we cut a board"}
    memory.undo(outcome.batch)
    assert len(live(memory)) == 1


def test_a_lesson_waits_for_review(memory: Memory) -> None:
    engine = memory._engine
    turn = Turn(engine.clock.now(), "run the build please", tools="error: the build needs Java 21 and a clean cache")
    batch = Batch("bench", "s", (str(audience_of(CONTEXT).home),), (turn,))
    quote = "the build needs Java 21 and a clean cache"
    apply(memory, [{"op": "lesson", "quote": quote, "note": quote}], Reader(engine.store, engine.leg).request(batch))
    [waits] = memory.admin.review()
    assert waits.text == quote


DYING = """
import sys
from tests.librarian.test_apply import OPERATIONS, apply, asked
from perdure.api.memory import Memory
with Memory.open(sys.argv[1], embedder="none", watch=False, timers=False) as memory:
    apply(memory, OPERATIONS, asked(memory), "one")
"""


@pytest.mark.parametrize("point", [
    "fact.added:1", "fact.superseded:1", "fact.changed:1", "fact.changed:3", "entry.finished:1", "commit.before:1",
])  # fmt: skip
def test_killed_within_a_batch_nothing_of_it_is_there(tmp_path: Path, point: str) -> None:
    def opened() -> Memory:
        return Memory.open(tmp_path, embedder="none", watch=False, timers=False)

    with opened() as memory:
        for text in ("My dentist is Dr Kade.", "We have a boat in Turku."):
            memory.store(text)
        before = live(memory)
    environ = {**os.environ, VARIABLE: point}
    died = subprocess.run([sys.executable, "-c", DYING, str(tmp_path)], env=environ, check=False)
    assert died.returncode == EXIT_CODE
    with opened() as memory:
        assert live(memory) == before
        assert apply(memory, OPERATIONS, asked(memory), "one").done
