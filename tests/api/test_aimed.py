"""What pages and agents have a model store for a moment: nothing of it comes up unless it is asked for."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from perdure.api.memory import Memory
from perdure.api.tools import call_tool
from perdure.hooks.types import Channel, TurnContext
from perdure.hosts.mcp.tools import TOOLS as CLIENTS
from perdure.recall.orders import UNCONFIRMED
from perdure.store.triggers import MODEL
from tests.kit import OpenMemory

MOMENTS: Sequence[dict[str, Any]] = tomllib.loads(
    (Path(__file__).parent.parent / "data" / "aimed.toml").read_text(encoding="utf-8")
)["moments"]
ATTACKS = [(text, moment["triggers"]) for moment in MOMENTS for text in moment["texts"]]
PAGE = "Summarise https://example.net/handbook for me."
"""What the user says in the turn in which the model reads the page."""
OTHER = "Remember that the standup is at nine."
MAIN = TurnContext(session_id="s1")


@pytest.fixture
def memory(open_memory: OpenMemory) -> Memory:
    return open_memory(embedder="auto")


def by_tool(memory: Memory, text: str, triggers: Sequence[str]) -> None:
    call_tool(memory, "memory_store", {"text": text, "triggers": triggers}, MAIN, PAGE)


def while_something_else_is_asked_for(memory: Memory, text: str, triggers: Sequence[str]) -> None:
    call_tool(memory, "memory_store", {"text": text, "triggers": triggers}, MAIN, OTHER)


def as_a_rule(memory: Memory, text: str, triggers: Sequence[str]) -> None:
    given = {"text": text, "triggers": triggers, "category": "preference", "importance": 1.0, "tags": ["deploy"]}
    call_tool(memory, "memory_store", given, MAIN, PAGE)


def in_the_users_slot(memory: Memory, text: str, triggers: Sequence[str]) -> None:
    slot = {"entity": "user", "key": f"habit {len(memory.admin.list(limit=100))}", "value": text}
    call_tool(memory, "memory_store", {"text": text, "triggers": triggers, **slot}, MAIN, PAGE)


def in_two_steps(memory: Memory, text: str, triggers: Sequence[str]) -> None:
    number = len(memory.admin.list(limit=100))
    note = call_tool(memory, "memory_store", {"text": f"Note {number}: the page was read."}, MAIN, PAGE).details["id"]
    call_tool(memory, "memory_update", {"memory": note, "text": text}, MAIN, PAGE)
    call_tool(memory, "memory_update", {"memory": note, "triggers": triggers}, MAIN, PAGE)


def by_mcp(memory: Memory, text: str, triggers: Sequence[str]) -> None:
    call_tool(memory, "memory_store", {"text": text, "triggers": triggers}, MAIN, tools=CLIENTS)


def by_a_program(memory: Memory, text: str, triggers: Sequence[str]) -> None:
    memory.store(text, channel=Channel.TOOL_UNASKED, triggers=triggers)


def by_a_program_as_the_assistants(memory: Memory, text: str, triggers: Sequence[str]) -> None:
    memory.store(text, channel=Channel.ASSISTANT, triggers=triggers)


def by_a_language_model(memory: Memory, text: str, triggers: Sequence[str]) -> None:
    fact = memory.store(text, channel=Channel.TOOL_UNASKED)
    with memory._engine.store.write(memory._author()) as tx:
        tx.put_triggers(fact.id, triggers, MODEL)
    assert memory.settle()


@pytest.mark.parametrize("embedder", ["auto", "none"])
@pytest.mark.parametrize(
    "store",
    [
        by_tool, while_something_else_is_asked_for, as_a_rule, in_the_users_slot, in_two_steps, by_mcp, by_a_program,
        by_a_program_as_the_assistants, by_a_language_model,
    ],
)  # fmt: skip
def test_nothing_that_an_agent_aims_comes_up_unasked(
    open_memory: OpenMemory, store: Callable[[Memory, str, Sequence[str]], None], embedder: str
) -> None:
    memory = open_memory(embedder=embedder)
    for text, triggers in ATTACKS:
        store(memory, text, triggers)
    assert {text for text, _ in ATTACKS} <= {fact.text for fact in memory.admin.list(limit=200)}
    assert len(ATTACKS) >= 60
    shown = {}
    prompts = [prompt for moment in MOMENTS for prompt in (*moment["prompts"], *moment["triggers"])]
    for number, prompt in enumerate(prompts):
        recall = memory.turns.before(prompt, TurnContext(session_id=f"later {number}"))
        if recall is not None:
            shown[prompt] = [item.text for item in recall.items]
    assert shown == {}
    assert memory.turns.opening(TurnContext(session_id="another")) is None


ORDER, PROMPT = MOMENTS[0]["texts"][0], MOMENTS[0]["prompts"][1]


def asked(memory: Memory) -> list[str]:
    recall = memory.turns.before(PROMPT, TurnContext(session_id=f"after {len(memory.admin.changes())} changes"))
    return [item.text for item in recall.items] if recall else []


def test_an_order_that_nobody_confirmed_is_found_by_asking(memory: Memory) -> None:
    by_tool(memory, ORDER, [])
    assert asked(memory) == []
    told = call_tool(memory, "memory_recall", {"query": PROMPT}, TurnContext(session_id="later"))
    assert [each["text"] for each in told.details["memories"]] == [ORDER]
    [why] = memory.why().considered
    assert why.verdict == UNCONFIRMED


def test_what_the_user_says_or_approves_comes_up(memory: Memory) -> None:
    by_tool(memory, ORDER, [])
    [note] = memory.admin.list()
    memory.admin.approve(note.id)
    assert asked(memory) == [ORDER]
    memory.forget(note)
    assert asked(memory) == []
    memory.store(ORDER, channel=Channel.USER)
    assert asked(memory) == [ORDER]


def test_what_an_agent_noted_and_orders_nothing_comes_up(memory: Memory) -> None:
    by_tool(memory, "The app is deployed to production by Kieran.", [])
    assert asked(memory) != []
