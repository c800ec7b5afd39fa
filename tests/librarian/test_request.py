"""What a librarian is shown, and which answers have the form."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from perdure.api.memory import Memory
from perdure.clock import ManualClock
from perdure.engine.audiences import audience_of
from perdure.hooks.types import TurnContext
from perdure.librarian.operations import Nothing, Remember, parse, schema
from perdure.librarian.request import EACH, MEMORIES, Batch, Reader, Request, Turn, system, turn_of
from tests.kit import START, OpenMemory, for_each

LETTER = "Please shorten this letter:\n\nDear Ms Kade,\nI live in Bergen and I am allergic to pollen.\nYours, Odd"


def test_only_what_the_user_says_plainly_is_marked_as_said() -> None:
    messages: list[dict[str, Any]] = [
        {"role": "user", "content": "I moved to Lund. My key is sk-ant-api03-abcdefghijklmnopqrstuvwxyz0123456789."},
        {"role": "assistant", "content": [{"type": "tool_use", "id": "1", "name": "read", "input": {"path": "a"}}]},
        {"role": "tool", "tool_call_id": "1", "content": "The build needs Java 21."},
        {"role": "assistant", "content": "Noted."},
        {"role": "user", "content": LETTER},
    ]
    turn = turn_of(messages, b"", "s", START)
    assert turn is not None
    assert "I moved to Lund." in turn.said
    assert "Bergen" not in turn.said
    assert "Bergen" in turn.other
    assert "sk-ant" not in turn.said + turn.other
    assert (turn.answered, turn.tools, turn.at) == ("Noted.", "The build needs Java 21.", START)


def test_a_turn_in_which_nothing_is_said_plainly_is_none() -> None:
    assert turn_of([{"role": "user", "content": LETTER}], b"", "s", START) is None
    assert turn_of([{"role": "assistant", "content": "I live in Bergen."}], b"", "s", START) is None


def test_memories_are_named_as_turns_come_upon_them(memory: Memory) -> None:
    memory.store("Odile runs the stall at the fair.")
    memory.store("The staging database is called heron.")
    other = memory.for_user("ben").store("Odile likes heron feathers.")
    context = TurnContext(session_id="s", host="bench")
    said = [{"role": "user", "content": "My dentist is Dr Kade. Where is the staging database?"}]
    memory.turns.after(said, True, context)
    assert memory.settle()
    engine = memory._engine
    turns = [turn_of(said, b"", "s", engine.clock.now()), turn_of([{"role": "user", "content": "Who runs the stall?"}],
             b"", "s", engine.clock.now())]  # fmt: skip
    batch = Batch("bench", "s", (str(audience_of(context).home),), tuple(filter(None, turns)))
    request = Reader(engine.store, engine.leg).request(batch)
    shown = json.loads(request.prompt)
    texts = {each["id"]: each["text"] for each in shown["memories"]}
    assert other.text not in texts.values()
    assert list(texts) == [f"m{number}" for number in range(1, len(texts) + 1)]
    assert [each["text"] for each in shown["memories"] if each.get("new")] == ["My dentist is Dr Kade."]
    assert list(texts.values()).index("The staging database is called heron.") < list(texts.values()).index(
        "Odile runs the stall at the fair."
    )
    assert json.dumps(schema(), separators=(",", ":")) in system()


def request_of(memory: Memory, *said: str, host: str = "bench", project: str | None = None) -> Request:
    engine = memory._engine
    context = TurnContext(session_id="s", host=host, project=project)
    scopes = (str(audience_of(context).home), *([project] if project else ()))
    turns = tuple(Turn(engine.clock.now(), each) for each in said)
    return Reader(engine.store, engine.leg, engine.settings.withholds).request(Batch(host, "s", scopes, turns))


def texts(request: Request) -> set[str]:
    return {fact.text for fact in request.memories.values()}


def test_what_is_near_no_turn_is_not_shown(memory: Memory) -> None:
    memory.store("The ferry to Turku leaves at nine.")
    memory.store("Dr Kade, in Lund.", entity="user", key="dentist", value="Dr Kade")
    for number in range(MEMORIES):
        memory.store(f"Crate {number} holds lemons.")
    shown = texts(request_of(memory, "I missed the ferry again.", "Who is my dentist?"))
    assert shown == {"The ferry to Turku leaves at nine.", "Dr Kade, in Lund."}


def test_of_the_same_conversation_the_newest_are_shown(memory: Memory, clock: ManualClock) -> None:
    context = TurnContext(session_id="s", host="bench")
    for name in ("Lund", "Turku", "Kiel", "Bergen", "Riga", "Gent", "Bari", "Brno"):
        memory.turns.after([{"role": "user", "content": f"My sister {name}a lives in {name}."}], True, context)
        assert memory.settle()
        clock.advance(60)
    memory.turns.after([{"role": "user", "content": "My boss is Odile."}], True, replace(context, session_id="t"))
    assert memory.settle()
    shown = texts(request_of(memory, "And what about that?"))
    assert len(shown) == EACH
    assert "My sister Brnoa lives in Brno." in shown


def test_where_there_is_not_room_for_all_each_turn_has_its_nearest(memory: Memory) -> None:
    words = [f"{one}{other}ado" for one in "bdfgklmnprstvz" for other in "aeiou"][: MEMORIES + 2]
    for word in words:
        for number in range(3):
            memory.store(f"The {word} stands in row {number}.")
    shown = texts(request_of(memory, *(f"Where is the {word}?" for word in words[:40])))
    assert len(shown) == MEMORIES
    assert all(any(word in text for text in shown) for word in words[:40])


@pytest.mark.parametrize(("host", "told"), [("claude-code", False), ("bench", True)])
def test_what_is_private_goes_to_no_host_at_work_but_where_it_was_said(
    open_memory: OpenMemory, host: str, told: bool
) -> None:
    project = "project:stall"
    memory = open_memory(embedder="none", watch=False, scopes=[project])
    ill, tool = "Odile of the stall has cancer.", "The stall is deployed with kamal."
    for text in (ill, tool):
        memory.store(text, scope=project)
    memory.store("I vote for the greens at the stall.")
    shown = texts(request_of(memory, "Odile runs the stall.", host=host, project=project))
    assert tool in shown
    assert (ill in shown) is told
    assert ("I vote for the greens at the stall." in shown) is told


@for_each("wrong", [
    {"op": "remember", "note": "I ski."}, {"op": "remember", "note": "", "quote": "I ski."}, {"op": "erase"},
    {"op": "withdraw", "target": "x1", "why": "over", "quote": "a"}, {"op": "replace", "note": "a", "quote": "b"},
    {"op": "merge", "targets": ["m1"], "note": "a", "quote": "b"}, "remember", None, 7,
    {"op": "remember", "note": "I ski.", "quote": "I ski.", "pinned": True},
])  # fmt: skip
def test_what_has_not_the_form_is_told_and_left_out(wrong: object) -> None:
    right = {"op": "remember", "note": "I ski.", "quote": "I ski."}
    found, problems = parse({"operations": [wrong, right, {"op": "nothing"}]})
    assert found == [Remember(op="remember", note="I ski.", quote="I ski."), Nothing(op="nothing")]
    assert problems
    assert all(each.startswith("operation 1:") for each in problems)


@for_each("answer", [None, 7, "no", {}, {"operations": None}, {"operations": {}}])
def test_an_answer_without_operations_has_none(answer: object) -> None:
    found, problems = parse(answer)
    assert found == []
    assert problems
