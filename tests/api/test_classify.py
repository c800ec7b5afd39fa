"""What has no category gets the one that its words or its neighbours have."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from perdure.api.memory import Memory
from perdure.hooks.types import TurnContext
from perdure.store.sql import run
from tests.kit import OpenMemory
from tests.loopback import Loopback, Reply, Request, chat, loopback


@pytest.fixture
def memory(open_memory: OpenMemory) -> Memory:
    return open_memory()


def category(memory: Memory, fact_id: str) -> str:
    return memory.get(fact_id).category


def test_words_give_a_category(memory: Memory) -> None:
    fact = memory.store("I love strong green tea.", category="other")
    [done] = memory.admin.classify()
    assert (done.id, done.category, done.by) == (fact.id, "preference", "rules")
    assert category(memory, fact.id) == "preference"
    assert [found.id for found in memory.admin.list() if found.category == "preference"] == [fact.id]


def test_neighbours_give_a_category_where_words_do_not(memory: Memory) -> None:
    for number in (1, 2, 3):
        memory.store(f"heron release train platform number {number}", category="decision")
    memory.store("something else altogether", category="entity")
    fact = memory.store("heron release train platform number nine", category="other")
    [done] = memory.admin.classify()
    assert (done.id, done.category) == (fact.id, "decision")
    assert done.by.startswith("neighbours")
    memory.undo()
    assert category(memory, fact.id) == "other"


def test_a_dry_run_changes_nothing(memory: Memory) -> None:
    fact = memory.store("I love strong green tea.", category="other")
    assert [done.id for done in memory.admin.classify(dry_run=True)] == [fact.id]
    assert category(memory, fact.id) == "other"


def test_what_is_near_nothing_stays_as_it_is(memory: Memory) -> None:
    memory.store("heron release train", category="decision")
    memory.store("quartz umbrella violin", category="other")
    assert memory.admin.classify() == []


def test_without_a_model_words_alone_decide(open_memory: OpenMemory) -> None:
    memory = open_memory(embedder="none")
    memory.store("I love strong green tea.", category="other")
    memory.store("quartz umbrella violin", category="other")
    assert [done.category for done in memory.admin.classify()] == ["preference"]


def test_many_are_classified_in_batches(memory: Memory) -> None:
    for number in range(45):
        memory.store(
            f"I prefer the {chr(97 + number // 10)}{chr(97 + number % 10)}lip chair over the sofa.", category="other"
        )
    assert len(memory.admin.classify()) == 45
    assert len(memory.undo().facts) == 5  # the last batch of 20, 20 and 5


OPAQUE = "quartz umbrella violin"


def answering(*categories: str) -> Callable[[Request], Reply]:
    """Answer with a category for each item, in their order."""
    given = [{"item": number, "category": category} for number, category in enumerate(categories)]
    return lambda request: chat(json.dumps(given), 50)


@pytest.fixture
def server() -> Iterator[Loopback]:
    with loopback(answering("decision", "entity")) as running:
        yield running


def with_model(open_memory: OpenMemory, server: Loopback, **settings: Any) -> Memory:
    return open_memory(
        **{
            "embedder": "none",
            "llm_endpoint": f"{server.url}/v1",
            "llm_model": "m",
            "llm": {"nano": "small"},
            **settings,
        }
    )


def asked(request: Request) -> list[dict[str, Any]]:
    """Return the items of a question."""
    items: list[dict[str, Any]] = json.loads(request.body["messages"][-1]["content"])
    return items


class TestLanguageModel:
    def test_it_is_asked_before_the_rules(self, open_memory: OpenMemory, server: Loopback) -> None:
        memory = with_model(open_memory, server)
        first = memory.store("I love strong green tea.", category="other")
        second = memory.store(OPAQUE, category="other")
        memory.store("The lighthouse is red.", category="fact")
        done = memory.admin.classify()
        assert [(each.id, each.category, each.by) for each in done] == [
            (first.id, "decision", "language model"), (second.id, "entity", "language model"),
        ]  # fmt: skip
        assert (category(memory, first.id), category(memory, second.id)) == ("decision", "entity")
        [request] = server.requests
        assert request.body["model"] == "small"
        assert asked(request) == [{"item": 0, "text": first.text}, {"item": 1, "text": OPAQUE}]
        memory.undo()
        assert category(memory, first.id) == "other"

    def test_what_it_leaves_open_goes_by_the_rules(self, open_memory: OpenMemory, server: Loopback) -> None:
        server.answer = answering("other", "poetry", "decision")
        memory = with_model(open_memory, server)
        for text in ("I love strong green tea.", "I hate loud music.", OPAQUE):
            memory.store(text, category="other")
        assert [(each.category, each.by) for each in memory.admin.classify()] == [
            ("preference", "rules"), ("preference", "rules"), ("decision", "language model"),
        ]  # fmt: skip

    @pytest.mark.parametrize(
        "answer",
        [
            Reply(status=400), Reply(b"no json"), chat("I cannot do that."), chat('{"category": "decision"}'),
            chat('[{"item": 7, "category": "decision"}, {"item": true, "category": "decision"}, 3, null]'),
            chat('[{"item": 0, "category": ["decision"]}, {"item": 0}]'),
        ],
    )  # fmt: skip
    def test_an_answer_that_is_of_no_use_leaves_the_rules(
        self, open_memory: OpenMemory, server: Loopback, answer: Reply
    ) -> None:
        server.answer = lambda request: answer
        memory = with_model(open_memory, server)
        memory.store("I love strong green tea.", category="other")
        assert [(each.category, each.by) for each in memory.admin.classify()] == [("preference", "rules")]

    def test_without_tokens_nothing_is_sent(self, open_memory: OpenMemory, server: Loopback) -> None:
        memory = with_model(open_memory, server, llm={"daily_tokens": 0})
        memory.store("I love strong green tea.", category="other")
        assert [each.by for each in memory.admin.classify()] == ["rules"]
        assert server.connections == 0

    def test_each_memory_is_asked_about_once(self, open_memory: OpenMemory, server: Loopback) -> None:
        server.answer = answering("other", "other")
        memory = with_model(open_memory, server)
        for text in (OPAQUE, "marble trumpet"):
            memory.store(text, category="other")
        assert memory.admin.classify() == memory.admin.classify() == []
        late = memory.store("lantern pebble", category="other")
        memory.admin.classify()
        assert [[item["text"] for item in asked(request)] for request in server.requests] == [
            [OPAQUE, "marble trumpet"], [late.text],
        ]  # fmt: skip

    def test_after_a_failure_it_is_asked_again(self, open_memory: OpenMemory, server: Loopback) -> None:
        server.answer = lambda request: Reply(status=400)
        memory = with_model(open_memory, server)
        memory.store(OPAQUE, category="other")
        assert memory.admin.classify() == []
        server.answer = answering("decision")
        assert [each.category for each in memory.admin.classify()] == ["decision"]

    def test_a_dry_run_asks_and_changes_nothing(self, open_memory: OpenMemory, server: Loopback) -> None:
        memory = with_model(open_memory, server)
        fact = memory.store(OPAQUE, category="other")
        for _ in range(2):
            assert [each.category for each in memory.admin.classify(dry_run=True)] == ["decision"]
        assert category(memory, fact.id) == "other"

    def test_twenty_are_asked_about_at_once(self, open_memory: OpenMemory, server: Loopback) -> None:
        server.answer = answering(*["decision"] * 20)
        memory = with_model(open_memory, server, capture_limits={"turn": 100})
        for number in range(45):
            memory.store(f"{OPAQUE} {number} {'abcdefghij'[number % 10] * 9}", category="other")
        assert len(memory.admin.classify()) == 45
        assert [len(asked(request)) for request in server.requests] == [20, 20, 5]
        assert len(memory.undo().facts) == 5

    def test_it_sees_no_secret_and_no_more_than_it_needs(
        self, open_memory: OpenMemory, server: Loopback, home: Path
    ) -> None:
        memory = with_model(open_memory, server)
        secret = "sk-proj-9fK2mQx7Lr4TnB8vWc3Yz6Hd"
        fact = memory.store(OPAQUE, category="other")
        with memory._engine.store.database.write() as connection:
            # As a store of before a pattern was known holds it, at the place where a long text is cut.
            long = f"{'The heron sleeps. ' * 16} {secret} {'It wakes. ' * 40}"
            run(connection, "UPDATE facts SET text = ? WHERE id = ?", (long, fact.id))
        memory.admin.classify()
        [request] = server.requests
        [item] = asked(request)
        assert len(item["text"]) <= 301
        assert secret[:10] not in str(request.body)
        assert str(home) not in str(request.body)

    def test_nobodys_memories_stand_beside_those_of_others(self, open_memory: OpenMemory, server: Loopback) -> None:
        memory = with_model(open_memory, server)
        for agent in ("ann", "bob"):
            Memory(memory._engine, TurnContext(agent_id=agent)).store(f"{OPAQUE} of {agent}", category="other")
        assert memory.admin.run_job("classify").endswith("got a category")
        assert sorted(asked(request)[0]["text"] for request in server.requests) == [
            f"{OPAQUE} of ann",
            f"{OPAQUE} of bob",
        ]
        assert {len(asked(request)) for request in server.requests} == {1}

    def test_own_categories_are_offered(self, open_memory: OpenMemory, server: Loopback) -> None:
        server.answer = answering("music")
        memory = with_model(open_memory, server, categories={"music": "violin sonata"})
        memory.store(OPAQUE, category="other")
        assert [each.category for each in memory.admin.classify()] == ["music"]
        assert "music" in server.requests[0].body["messages"][0]["content"]


def test_own_categories_are_found_by_their_patterns(open_memory: OpenMemory) -> None:
    with open_memory(embedder="none") as memory:
        memory.store(OPAQUE, category="other")
    memory = open_memory(embedder="none", categories={"music": "violin|trumpet"})
    assert [(each.category, each.by) for each in memory.admin.classify()] == [("music", "rules")]
