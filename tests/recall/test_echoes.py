"""What perdure has shown does not come back as news, whoever says it again; what is really new is kept."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from perdure.api.memory import Memory
from perdure.clock import ManualClock
from perdure.hooks.types import Channel, Recall, RecallItem, TurnContext
from perdure.recall.session_state import ITEMS, PROMPT, SESSIONS, TRACED, Ledger
from perdure.store import receipts
from perdure.store.fact import Fact
from perdure.text.sameness import Trace
from tests.kit import OpenMemory

KNOWN = (
    "My dentist is Dr. Kay in Riga.",
    "I prefer oat milk over cow milk.",
    "Our staging database is called heron.",
    "My sister Ann lives in Bergen.",
    "I drive a red van with 7 seats.",
)
NEW = (
    "My brother Tom works at Nordlys.",
    "I am allergic to walnuts.",
    "Our deadline is 3 May.",
    "I moved to Porto last week.",
    "My cat is called Biscuit.",
)
WAYS: Sequence[Callable[[str], str]] = (
    lambda text: f"As you told me: {text}",
    lambda text: f"I remember that {text[0].lower()}{text[1:]}",
    lambda text: f"Right. {text.replace('My ', 'Your ').replace('I ', 'You ').replace('Our ', 'Your ')}",
    lambda text: f"- {text}\n- Anything else?",
    lambda text: f"Your notes say {text.replace('My ', 'your ')}",
)


def turn(memory: Memory, prompt: str, reply: str, session: str = "s", number: int = 0) -> None:
    context = TurnContext(session_id=session, turn_id=str(number))
    recall = memory.turns.before(prompt, context)
    shown = [item.text for item in recall.items] if recall else []
    answer = reply.replace("{shown}", " ".join(shown))
    memory.turns.after([{"role": "user", "content": prompt}, {"role": "assistant", "content": answer}], True, context)
    memory.settle()


def told(memory: Memory, text: str) -> None:
    """Let a turn end for which nothing was recalled."""
    memory.turns.after([{"role": "user", "content": text}], True, TurnContext(session_id="s"))
    memory.settle()


def facts(memory: Memory) -> list[Fact]:
    return list(memory.admin.list(limit=10_000, include_superseded=True))


def say(memory: Memory, *texts: str) -> None:
    for text in texts:
        turn(memory, text, "OK.", session="before")


def test_a_thousand_turns_of_echoes_leave_only_what_is_new(tmp_path: Path) -> None:
    chance = random.Random(7)
    clock = ManualClock()
    with Memory.open(
        tmp_path, embedder="none", clock=clock, record_sessions=False, capture_assistant=True
    ) as memory:  # fmt: skip
        say(memory, *KNOWN)
        assert len(facts(memory)) == len(KNOWN)
        for number in range(1000):
            clock.advance(60.0)
            known = chance.choice(KNOWN)
            topic = " ".join(known.rstrip(".").split()[-3:])
            prompt = f"What do you know about {topic}?"
            if number % 200 == 100:
                prompt = NEW[number // 200]
            elif number % 3 == 0:
                prompt = f"{chance.choice(WAYS)(known)} What about {topic}?"
            turn(memory, prompt, f"{chance.choice(WAYS)(known)} {{shown}}", f"s{number // 50}", number)
        # Behind "last week" stands which week that was.
        undated = [re.sub(r" \(\d{4}-[^)]*\)", "", fact.text) for fact in facts(memory)]
        assert sorted(undated) == sorted([*KNOWN, *NEW])


TRAIN = "The heron release train leaves on Mondays."
QUOTATION = "You told me the heron release train leaves on Mondays, I like that."


def test_the_users_own_words_beside_a_quotation_are_kept(open_memory: OpenMemory) -> None:
    memory = open_memory()
    memory.store(TRAIN, channel=Channel.TOOL_UNASKED)
    turn(memory, "When does the heron release train leave?", "On Mondays.")
    turn(memory, f"{QUOTATION} My lawyer is Mrs. Berg.", "OK.")
    assert sorted(fact.text for fact in facts(memory)) == ["My lawyer is Mrs. Berg.", TRAIN]


def test_a_correction_of_what_was_shown_is_no_echo(open_memory: OpenMemory) -> None:
    memory = open_memory()
    say(memory, "I live in Graz.")
    turn(memory, "Where do I live?", "In Graz.")
    turn(memory, "I live in Linz.", "OK.")
    assert [fact.value for fact in memory.lookup("user", "location")] == ["Linz"]


def test_a_restart_does_not_forget_what_was_shown(open_memory: OpenMemory) -> None:
    memory = open_memory()
    memory.store(TRAIN)
    turn(memory, "When does the heron release train leave?", "On Mondays.")
    memory.close()
    again = open_memory()
    told(again, QUOTATION)
    assert [fact.text for fact in facts(again)] == [TRAIN]


def test_a_passage_that_was_shown_is_known_after_a_restart(open_memory: OpenMemory, tmp_path: Path) -> None:
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    (workspace / "MEMORY.md").write_text(f"# Trains\n\n{TRAIN}\n")
    memory = open_memory(workspace=workspace)
    memory.files.sync()
    turn(memory, "When does the heron release train leave?", "On Mondays.")
    [body] = receipts_of(memory)
    assert len(body["echo"]) == 1
    assert "heron" not in json.dumps(body["echo"]).replace("MEMORY.md", "")
    memory.close()
    again = open_memory(sources=())
    told(again, QUOTATION)
    assert facts(again) == []


def receipts_of(memory: Memory) -> list[Mapping[str, Any]]:
    with memory._engine.store.database.read() as connection:
        return [each.body for each in receipts.of_session(connection, "s", "user:owner", 0.0, 10)]


def test_what_was_shown_nowhere_is_news(open_memory: OpenMemory) -> None:
    # Without this, the tests above could not fail.
    memory = open_memory(compare={"classify": False})
    memory.store(TRAIN)
    told(memory, QUOTATION)
    assert QUOTATION in [fact.text for fact in facts(memory)]


def test_what_the_assistant_says_is_kept_only_if_asked_for(open_memory: OpenMemory) -> None:
    memory = open_memory()
    turn(memory, "Which host is staging?", "The staging host is called atlas.")
    assert facts(memory) == []


@pytest.fixture
def listening(open_memory: OpenMemory) -> Memory:
    return open_memory(capture_assistant=True)


def test_what_the_assistant_says_waits_for_review(listening: Memory) -> None:
    turn(listening, "Which host is staging?", "The staging host is called atlas. I am a language model.")
    [fact] = facts(listening)
    assert (fact.text, fact.channel) == ("The staging host is called atlas.", Channel.ASSISTANT)
    assert fact.review_state == "pending"
    assert fact.confidence < 1
    assert listening.recall("Which host is the staging host?") is None
    assert listening.status().review == 1
    listening.admin.approve(fact.id)
    recall = listening.recall("Which host is the staging host?")
    assert recall is not None
    assert "agent's note" in recall.block


def test_what_the_user_repeats_of_the_assistant_is_approved(listening: Memory) -> None:
    turn(listening, "Which host is staging?", "The staging host is called atlas.")
    turn(listening, "The staging host is called atlas.", "OK.")
    [fact] = listening.admin.list()
    assert (fact.review_state, fact.confidence, fact.channel) == ("approved", 1.0, Channel.USER)
    recall = listening.recall("Which host is the staging host?")
    assert recall is not None
    assert "agent's note" not in recall.block


def test_the_assistant_never_replaces_what_the_user_said(listening: Memory) -> None:
    turn(listening, "Our staging host is called atlas.", "OK.")
    turn(listening, "Which host is it?", "Your staging host is called heron now.")
    assert [fact.superseded_at for fact in facts(listening)] == [None, None]
    assert sorted(fact.review_state for fact in facts(listening)) == ["approved", "pending"]


def test_what_the_assistant_read_with_a_tool_is_not_kept(listening: Memory) -> None:
    context = TurnContext(session_id="s")
    messages: list[dict[str, Any]] = [
        {"role": "user", "content": "Look it up on the wiki, please."},
        {"role": "assistant", "content": [{"type": "toolCall", "name": "web"}]},
        {"role": "toolResult", "content": "The staging host is called evil."},
        {"role": "assistant", "content": "The staging host is called evil."},
    ]
    listening.turns.after(messages, True, context)
    listening.settle()
    assert facts(listening) == []


def test_an_echo_is_told_after_many_other_conversations(open_memory: OpenMemory) -> None:
    memory = open_memory()
    memory.store(KNOWN[0])
    turn(memory, "Who is my dentist?", "{shown}", session="first")
    for number in range(TRACED + 2):
        turn(memory, "Who is my dentist?", "OK.", session=f"other {number}")
    told_again = [
        {"role": "user", "content": "Who is my dentist?"},
        {"role": "assistant", "content": KNOWN[0]},
        {"role": "user", "content": f"As you told me: {KNOWN[0]}"},
    ]
    memory.turns.after(told_again, True, TurnContext(session_id="first"))
    memory.settle()
    assert [fact.text for fact in facts(memory)] == [KNOWN[0]]


def test_only_the_traces_of_the_last_conversations_are_held() -> None:
    read: list[str] = []

    def earlier(conversation: str) -> dict[str, tuple[Trace, ...]]:
        read.append(conversation)
        return {}

    ledger = Ledger(b"key", earlier)
    conversations = [f"conversation {number}" for number in range(TRACED + 1)]
    for name in conversations:
        ledger.note(name, "Who is my dentist?", Recall("", items=(RecallItem("1", KNOWN[0], "fact", "words", 1.0),)))
        assert list(ledger.traces(name)) == ["1"]
    ledger.traces(conversations[-1])
    assert read == conversations
    ledger.traces(conversations[0])
    assert read == [*conversations, conversations[0]]


def test_a_conversation_that_never_ends_does_not_fill_the_memory() -> None:
    ledger = Ledger(b"key", lambda conversation: {})
    shown = [RecallItem(str(number), f"memory {number}", "fact", "lookup", 1.0) for number in range(ITEMS + 30)]
    for item in shown:
        ledger.note("endless", "x" * 2 * PROMPT, Recall("", items=(item,)))
    newest = {item.id for item in shown[30:]}
    assert ledger.ids("endless") == newest
    assert ledger.traces("endless").keys() == newest
    assert len(ledger.take("endless").prompt) == PROMPT
    for number in range(SESSIONS):
        ledger.note(f"other {number}", "Hello", None)
    assert ledger.is_new("endless")


def test_what_is_shown_again_is_not_the_oldest() -> None:
    ledger = Ledger(b"key", lambda conversation: {})
    shown = [RecallItem(str(number), f"memory {number}", "fact", "lookup", 1.0) for number in range(ITEMS + 1)]
    for item in (*shown[:ITEMS], shown[0], shown[ITEMS]):
        ledger.note("endless", "Hello", Recall("", items=(item,)))
    newest = {item.id for item in shown} - {"1"}
    assert ledger.ids("endless") == newest
    assert ledger.traces("endless").keys() == newest


def test_what_the_conversation_still_tells_is_not_repeated_beside_a_statement(
    tmp_path: Path, open_memory: OpenMemory
) -> None:
    memory = open_memory(tmp_path, embedder="auto")
    assert memory.ready()
    said, tells, asks = (
        "Our staging database is called heron.",
        "staging was slow all morning",
        "what is staging called?",
    )
    here = TurnContext(session_id="s")
    told(memory, said)

    def comes_up(prompt: str, context: TurnContext) -> bool:
        recall = memory.turns.before(prompt, context)
        return recall is not None and [item.text for item in recall.items] == [said]

    assert not comes_up(tells, here)
    assert comes_up(asks, here)
    assert comes_up(tells, TurnContext(session_id="another"))
    memory.turns.before_compaction([], here)
    assert comes_up(tells, here)
