"""A batch takes effect whole, once, and one undo takes it back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from perdure.api.memory import Memory
from perdure.engine.audiences import audience_of
from perdure.hooks.types import Channel, TurnContext
from perdure.librarian.apply import Applier, Outcome
from perdure.librarian.operations import parse
from perdure.librarian.request import Batch, Reader, Request, Turn
from perdure.store.fact import Fact
from perdure.store.lifecycle import MOST, Wish, ask
from perdure.store.lifecycle import Request as Wanted
from perdure.store.listing import Filter
from perdure.store.transaction import Author

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


def asked(memory: Memory, said: str = SAID, tools: str = "") -> Request:
    engine = memory._engine
    batch = Batch("bench", "s", (str(audience_of(CONTEXT).home),), (Turn(engine.clock.now(), said, tools=tools),))
    return Reader(engine.store, engine.leg).request(batch)


def apply(memory: Memory, operations: Sequence[dict[str, Any]], request: Request) -> Outcome:
    engine = memory._engine
    shown = sorted(request.memories.items(), key=lambda pair: -len(pair[1].text))
    names = {word: each for each, fact in shown for word in fact.text.lower().strip(".").split()}
    told = [each | ({"target": names[each["target"]]} if "target" in each else {}) for each in operations]
    told = [
        each | ({"targets": [names[word] for word in each["targets"]]} if "targets" in each else {}) for each in told
    ]
    found, wrong = parse({"operations": told})
    assert not wrong
    return Applier(engine.store, lambda: engine.writer, lambda: engine.categories, engine.leg).apply(request, found)


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


EACH_KIND: list[dict[str, Any]] = [
    *OPERATIONS,
    {"op": "merge", "targets": ["toner", "paper"], "note": "The printer needs black toner and thick paper.",
     "quote": "The printer needs paper"},
    {"op": "file", "target": "heron", "category": "entity", "quote": "The staging host is heron"},
    {"op": "triggers", "target": "heron", "triggers": ["where do I test the release"],
     "quote": "The staging host is heron"},
    {"op": "lesson", "quote": "the build needs Java 21 and a clean cache",
     "note": "the build needs Java 21 and a clean cache"},
]  # fmt: skip


def everything(memory: Memory) -> list[tuple[str, str, str, list[str]]]:
    page = memory.admin.inventory(limit=100)
    return sorted(
        (row.fact.text, str(row.state), row.fact.category, [each.text for each in memory.admin.triggers(row.fact.id)])
        for row in page.facts
    )


def test_one_undo_takes_back_operations_of_each_kind(memory: Memory) -> None:
    texts = ("My dentist is Dr Kade.", "We have a boat in Turku.", "The staging host is heron.",
             "The printer needs toner.", "The printer needs black toner and thick paper.")  # fmt: skip
    for text in texts:
        memory.store(text, category="other")
    before, last = everything(memory), memory.admin.changes()[-1].seq
    said = f"{SAID} The printer needs paper. The staging host is heron."
    outcome = apply(memory, EACH_KIND, asked(memory, said, tools="error: the build needs Java 21 and a clean cache"))
    assert not outcome.refused
    assert {*outcome.done} == {each["op"] for each in EACH_KIND}
    made = memory.admin.changes(last)
    assert {each.action for each in made} >= {"add", "supersede", "retract", "classify", "triggers"}
    assert {(each.host, each.session) for each in made} == {("bench", "s")}
    [dentist] = [fact for fact in memory.admin.list(Filter()) if "Holm" in fact.text]
    assert [fact.text for fact in memory.history(dentist.id).versions] == [
        "My dentist is Dr Kade.", "My dentist is Dr Holm now.",
    ]  # fmt: skip
    assert memory.undo(dry_run=True).batch == outcome.batch  # what the page offers to undo
    undone = memory.undo(outcome.batch[:8])  # as the log names it
    assert not undone.conflicts
    assert [row for row in everything(memory) if row[1] != "forgotten"] == before


def test_what_was_captured_from_the_turn_may_go_and_what_was_stored_may_not(memory: Memory) -> None:
    said = "My dentist is Dr Holm. My sister lives in Lund."
    memory.store("I like tea with my sister.")
    memory.turns.after([{"role": "user", "content": said}], True, CONTEXT)
    assert memory.settle()
    gone = [{"op": "withdraw", "target": word, "why": "not_users", "quote": "My dentist"} for word in ("holm", "tea")]
    outcome = apply(memory, gone, asked(memory, said))
    assert dict(outcome.done) == {"withdraw": 1}
    assert [each.reason for each in outcome.refused] == ["not in these turns"]
    assert live(memory) >= {"I like tea with my sister."}


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


def test_what_finds_no_room_in_review_is_refused_and_the_rest_is_done(memory: Memory) -> None:
    said = (
        "My mother lives in Lund. My son lives in Turku. My aunt lives in Bergen. My boss lives in Kiel. We ski in May."
    )
    memory.turns.after([{"role": "user", "content": said}], True, CONTEXT)
    assert memory.settle()
    engine = memory._engine
    home = audience_of(CONTEXT).home
    assert home is not None
    [held, *_] = memory.admin.list(Filter())
    with engine.store.write(Author(Channel.ASSISTANT)) as tx:
        for number in range(MOST):
            note = Fact(text=f"Request {number}", scope=home.kind, scope_target=home.target)
            ask(tx, note, None, Wanted(Wish.FORGET, held.id))
    gone = [{"op": "withdraw", "target": word, "why": "not_users", "quote": "My mother"}
            for word in ("lund", "turku", "bergen", "kiel")]  # fmt: skip
    kept = {
        "op": "remember",
        "quote": "We ski in May",
        "note": "We ski in May.",
        "triggers": ["what about our holiday"],
    }
    outcome = apply(memory, [*gone, kept], asked(memory, said))
    assert {each.reason for each in outcome.refused} == {"too much waits for review already"}
    assert sum(outcome.done.values()) == 1


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


def test_the_last_day_that_there_is_ends_nothing(memory: Memory) -> None:
    said = "The lease ends on 9999-12-31."
    note = {"op": "remember", "quote": said, "note": said, "until": "9999-12-31"}
    outcome = apply(memory, [note], asked(memory, said))
    assert sum(outcome.done.values()) == 1
