"""Use strengthens a memory, being shown does not; what the model still sees is not shown again."""

from __future__ import annotations

from pathlib import Path

import pytest

from perdure.api.memory import Memory
from perdure.clock import ManualClock
from perdure.hooks.types import TurnContext
from perdure.ranking.decay import DAY
from tests.kit import OpenMemory

QUESTION = "Which database is the staging one?"
TWINS = ("The staging database Heron is for tests.", "The staging database Ibis is for tests.")


@pytest.fixture
def memory(open_memory: OpenMemory) -> Memory:
    memory = open_memory(embedder="none", record_sessions=False, compare={"normalised": False})
    for text in TWINS:
        memory.store(text, decay_class="durable")
    return memory


def order(memory: Memory, session: str = "s", keeps_block: bool = False) -> list[str]:
    recall = memory.turns.before(QUESTION, TurnContext(session_id=session, keeps_block=keeps_block))
    memory.settle()
    return [item.text for item in recall.items] if recall else []


def reply(memory: Memory, text: str, session: str = "s") -> None:
    said = [{"role": "user", "content": QUESTION}, {"role": "assistant", "content": text}]
    memory.turns.after(said, True, TurnContext(session_id=session))
    memory.settle()


def test_being_shown_raises_no_rank(memory: Memory) -> None:
    first = order(memory)
    assert sorted(first) == sorted(TWINS)
    before = [memory.get(fact.id).expires_at for fact in memory.admin.list()]
    for turn in range(200):
        assert order(memory, f"s{turn}") == first
        reply(memory, "Let me think about it.", f"s{turn}")
    facts = memory.admin.list()
    assert all(fact.injected_count >= 200 and fact.access_count == 0 for fact in facts)
    assert [fact.expires_at for fact in facts] == before
    memory.close()


def test_each_memory_that_reached_a_block_was_recalled_once_more(memory: Memory) -> None:
    other = memory.store("The lighthouse has a red door.")
    for turn in range(3):
        assert len(order(memory, f"s{turn}")) == 2
    assert memory.recall(QUESTION) is not None
    memory.settle()
    counts = {fact.text: (fact.recall_count, fact.injected_count) for fact in memory.admin.list()}
    assert counts == {TWINS[0]: (4, 4), TWINS[1]: (4, 4), other.text: (0, 0)}
    # Looking is no recall: a search for the owner's eyes, a recall whose receipt goes elsewhere.
    memory.admin.search(QUESTION)
    memory.recall(QUESTION, receipt_to=lambda receipt: None)
    memory.settle()
    assert {fact.text: (fact.recall_count, fact.injected_count) for fact in memory.admin.list()} == counts
    memory.close()


def test_to_count_needs_no_write_on_the_way_of_a_turn(memory: Memory) -> None:
    store = memory._engine.store
    with store.database.write():
        # Whoever writes holds all others up; a turn is answered none the less.
        recall = memory.turns.before(QUESTION, TurnContext(session_id="s"))
        assert recall is not None
        assert all(memory.get(item.id).recall_count == 0 for item in recall.items)
    memory.settle()
    assert all(memory.get(item.id).recall_count == 1 for item in recall.items)
    memory.close()


def test_a_used_memory_outranks_its_twin_and_lives_longer(memory: Memory) -> None:
    last = order(memory)[-1]
    name = "Heron" if "Heron" in last else "Ibis"
    [fact] = [fact for fact in memory.admin.list() if fact.text == last]
    clock = memory._engine.clock
    assert isinstance(clock, ManualClock)
    clock.advance(10 * DAY)
    for turn in range(5):
        order(memory, f"s{turn}")
        reply(memory, f"That is {name}.", f"s{turn}")
    assert order(memory)[0] == last
    kept = memory.get(fact.id)
    assert kept.access_count == 5
    assert kept.expires_at is not None
    assert fact.expires_at is not None
    assert kept.expires_at == pytest.approx(fact.expires_at + 10 * DAY)
    memory.close()


def test_a_host_that_keeps_the_block_gets_a_memory_once(memory: Memory) -> None:
    assert sorted(order(memory, keeps_block=True)) == sorted(TWINS)
    assert order(memory, keeps_block=True) == []
    assert sorted(order(memory, "other", keeps_block=True)) == sorted(TWINS)
    memory.turns.before_compaction([], TurnContext(session_id="s", keeps_block=True))
    assert sorted(order(memory, keeps_block=True)) == sorted(TWINS)
    memory.close()


def test_what_stood_in_the_system_prompt_is_brought_up_again(tmp_path: Path) -> None:
    with Memory.open(tmp_path, embedder="none", record_sessions=False, recall_placement="system") as memory:
        memory.store(TWINS[0])
        assert order(memory, keeps_block=True) == order(memory, keeps_block=True) == [TWINS[0]]


def test_a_compaction_renews_the_profile(memory: Memory) -> None:
    order(memory)
    pinned = memory.store("Coffee is served at ten.")
    memory.pin(pinned.id)
    assert pinned.text not in order(memory)  # a conversation keeps the profile it began with
    memory.turns.before_compaction([], TurnContext(session_id="s"))
    assert pinned.text in order(memory)
    memory.close()


def test_with_capture_off_nothing_is_kept_of_a_conversation(tmp_path: Path) -> None:
    with Memory.open(tmp_path, embedder="none", auto_capture=False) as memory:
        reply(memory, "That is Heron.")
        memory.turns.session_end(TurnContext(session_id="s"))
        memory.settle()
        assert memory.admin.stats().total == 0
        assert memory.files.search("staging database").results == ()


def test_the_same_turn_gives_the_same_bytes(memory: Memory) -> None:
    blocks = {memory.turns.before(QUESTION, TurnContext(session_id="same")) for _ in range(3)}
    assert len({recall.block for recall in blocks if recall}) == 1
    memory.close()
