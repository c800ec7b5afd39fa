"""The host that plays a conversation."""

from __future__ import annotations

from dataclasses import FrozenInstanceError, replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pluggy import HookimplMarker

from perdure.clock import ManualClock
from perdure.hooks.fake_host import FakeHost
from perdure.hooks.host import HookRunner
from perdure.hooks.spec import DEFAULT_PROJECT
from perdure.hooks.types import Messages, Placement, Recall, TurnContext

hookimpl = HookimplMarker(DEFAULT_PROJECT)


class Memory:
    """Recalls one block, and keeps what the host tells it."""

    def __init__(self, placement: Placement = Placement.HEAD, block: str = "<memory/>") -> None:
        self.recall = Recall(block, placement=placement)
        self.events: list[tuple[str, str | None]] = []
        self.asked: list[tuple[str, Messages]] = []
        self.ended: list[Messages] = []
        self.contexts: list[TurnContext] = []

    @hookimpl
    def host_started(self, context: TurnContext) -> None:
        self.events.append(("host_started", context.session_id))

    @hookimpl
    def session_start(self, context: TurnContext) -> None:
        self.events.append(("session_start", context.session_id))

    @hookimpl
    def before_agent_start(self, prompt: str, messages: Messages, context: TurnContext) -> Recall:
        self.asked.append((prompt, messages))
        self.contexts.append(context)
        return self.recall

    @hookimpl
    def agent_end(self, messages: Messages, success: bool, context: TurnContext) -> None:
        assert success
        self.ended.append(messages)
        self.contexts.append(context)

    @hookimpl
    def session_end(self, context: TurnContext) -> None:
        self.events.append(("session_end", context.session_id))

    @hookimpl
    def host_stopping(self, context: TurnContext) -> None:
        self.events.append(("host_stopping", context.session_id))


def with_memory(*memories: Memory) -> HookRunner:
    runner = HookRunner()
    for memory in memories:
        runner.register(memory)
    return runner


def contents(messages: Messages) -> list[str]:
    return [message["content"] for message in messages]


def test_each_turn_fires_with_the_history_before_and_after_it() -> None:
    memory = Memory()
    host = FakeHost(with_memory(memory))

    host.turn("my cat is Schnurri", "Noted.")
    host.turn("who is my cat?", "Schnurri.")

    said = ["my cat is Schnurri", "Noted.", "who is my cat?", "Schnurri."]
    assert [prompt for prompt, _ in memory.asked] == said[::2]
    assert [contents(messages) for _, messages in memory.asked] == [[], said[:2]]
    assert [contents(messages) for messages in memory.ended] == [said[:2], said]
    assert [message["role"] for message in host.messages] == ["user", "assistant"] * 2


@pytest.mark.parametrize(
    ("placement", "seen", "kept"),
    [
        (Placement.HEAD, "<memory/>\n\nhello", "<memory/>\n\nhello"),
        (Placement.TAIL, "hello\n\n<memory/>", "hello\n\n<memory/>"),
        (Placement.SYSTEM, "<memory/>\n\nhello", "hello"),
    ],
)
@pytest.mark.parametrize("keeps_block", [False, True])
def test_a_block_stands_where_its_placement_says(placement: Placement, seen: str, kept: str, keeps_block: bool) -> None:
    memory = Memory(placement)
    host = FakeHost(with_memory(memory), keeps_block=keeps_block)

    turn = host.turn("hello")

    assert turn.prompt_seen == seen
    assert turn.recalls == (memory.recall,)
    assert contents(memory.ended[0]) == [kept if keeps_block else "hello", "OK."]
    assert memory.contexts[0].keeps_block is keeps_block


def test_blocks_of_several_plugins_are_all_placed() -> None:
    memories = [Memory(placement, f"<{placement}/>") for placement in Placement]

    turn = FakeHost(with_memory(*memories)).turn("hello")

    assert turn.prompt_seen == "<system/>\n\n<head/>\n\nhello\n\n<tail/>"


def test_a_scripted_model_answers_what_it_sees() -> None:
    turn = FakeHost(with_memory(Memory())).turn("hello", lambda seen: seen.upper())

    assert turn.reply == "<MEMORY/>\n\nHELLO"


@given(st.lists(st.tuples(st.text(), st.text()), max_size=5))
@settings(max_examples=100, deadline=None)
def test_without_plugins_the_model_sees_just_what_was_said(said: list[tuple[str, str]]) -> None:
    host = FakeHost(HookRunner())

    turns = [host.turn(user, reply) for user, reply in said]

    assert [(turn.prompt_seen, turn.reply) for turn in turns] == said
    assert contents(host.messages) == [text for pair in said for text in pair]


def test_a_host_lives_through_its_sessions() -> None:
    memory = Memory()
    host = FakeHost(with_memory(memory), session_id="first")

    host.start()
    host.turn("hello")
    host.new_session("second")
    host.turn("hello again")
    host.stop()

    assert memory.events == [
        ("host_started", "first"),
        ("session_start", "first"),
        ("session_end", "first"),
        ("session_start", "second"),
        ("session_end", "second"),
        ("host_stopping", "second"),
    ]
    assert contents(memory.ended[1]) == ["hello again", "OK."]


def test_the_context_says_who_when_and_which_turn() -> None:
    memory, clock = Memory(), ManualClock(1_800_000_000.25)
    host = FakeHost(with_memory(memory), agent_id="main", now=clock.now)

    host.turn("hello")
    clock.advance(60)
    host.turn("hello again")

    first = TurnContext("session-1", "main", turn_id="turn-1", host="fake", now=1_800_000_000.25)
    second = replace(first, turn_id="turn-2", now=1_800_000_060.25)
    assert memory.contexts == [first, first, second, second]
    stamps = [message["timestamp"] for message in host.messages]
    assert stamps == [1_800_000_000_250] * 2 + [1_800_000_060_250] * 2


def test_without_a_clock_the_plugins_use_their_own() -> None:
    memory = Memory()
    host = FakeHost(with_memory(memory))

    host.turn("hello")

    assert memory.contexts[0].now is None
    assert isinstance(host.messages[0]["timestamp"], int)


def test_a_turn_is_a_record() -> None:
    turn = FakeHost(HookRunner()).turn("hello", "Hi.")

    assert (turn.user, turn.reply, turn.recalls) == ("hello", "Hi.", ())
    assert turn.recall_seconds >= 0
    assert turn.capture_seconds >= 0
    with pytest.raises(FrozenInstanceError):
        turn.reply = "Bye."  # type: ignore[misc]
