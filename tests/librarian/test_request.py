"""What a librarian is shown, and which answers have the form."""

from __future__ import annotations

import json
from typing import Any

from perdure.api.memory import Memory
from perdure.engine.audiences import audience_of
from perdure.hooks.types import TurnContext
from perdure.librarian.operations import Nothing, Remember, parse, schema
from perdure.librarian.request import Batch, Reader, system, turn_of
from tests.kit import START, for_each

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
