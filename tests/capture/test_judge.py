"""A language model is asked about what the rules are unsure of, and may say nothing of use."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from perdure.api.memory import Memory
from perdure.capture.decide import Action, Levels
from perdure.capture.writing import LanguageJudge, Writer, WritingOptions, Written
from perdure.clock import ManualClock
from perdure.errors import ModelError
from perdure.hooks.types import Channel, TurnContext
from perdure.store.fact import Fact
from perdure.store.store import Store
from perdure.store.transaction import Author
from tests.loopback import Loopback, chat, loopback

KNOWN = Fact(text="The spare key is under the blue pot.", channel=Channel.USER, scope="user", scope_target="owner")
DOUBTED = replace(KNOWN, text="The spare key never leaves the kitchen drawer.")


class Answering:
    """Gives one answer, and keeps what it was asked."""

    def __init__(self, answer: object | None) -> None:
        self.answer = answer
        self.asked: list[str] = []

    def ask_json(self, prompt: str, **given: Any) -> object | None:
        self.asked.append(prompt)
        return self.answer


class Failing:
    """Is never there."""

    def ask_json(self, prompt: str, **given: Any) -> object | None:
        raise ModelError("the endpoint does not answer; check its address")


@pytest.fixture
def store(store: Store) -> Store:
    with store.write(Author(Channel.USER)) as tx:
        tx.add(KNOWN)
    return store


def written(store: Store, model: Answering | Failing, fact: Fact = DOUBTED) -> Written:
    writer = Writer(lambda: None, WritingOptions(), LanguageJudge(store, model, Levels()))
    [prepared] = writer.judged(writer.prepare([fact], store.clock.now()), store.clock.now())
    with store.write(Author(fact.channel)) as tx:
        return writer.write(tx, prepared)


@pytest.mark.parametrize("action", ["UPDATE", "DELETE", "NOOP"])
def test_its_verdict_counts_where_the_rules_are_unsure(store: Store, action: str) -> None:
    model = Answering([{"item": 0, "action": action, "target": 0}])
    done = written(store, model)
    assert done.decision.action.value == action.lower()
    assert len(model.asked) == 1
    assert KNOWN.text in model.asked[0]


@pytest.mark.parametrize(
    "answer",
    [
        None,
        "UPDATE",
        {},
        [],
        [1, None, "x"],
        [{"item": 7, "action": "UPDATE", "target": 0}],
        [{"item": True, "action": "DELETE", "target": 0}],
        [{"item": 0, "action": "UPDATE", "target": 9}],
        [{"item": 0, "action": "DELETE", "target": "0"}],
        [{"item": 0, "action": "DESTROY", "target": 0}],
        [{"item": 0}],
    ],
)
def test_an_answer_that_does_not_fit_loses_nothing(store: Store, answer: object) -> None:
    assert written(store, Answering(answer)).decision.action is Action.ADD


def test_without_an_answer_the_rules_decide(store: Store) -> None:
    assert written(store, Failing()).decision.action is Action.ADD


def test_it_is_not_asked_where_the_rules_are_sure(store: Store) -> None:
    model = Answering([{"item": 0, "action": "DELETE", "target": 0}])
    same = written(store, model, replace(DOUBTED, text=KNOWN.text))
    assert same.decision.action is Action.NOOP
    assert model.asked == []


def test_it_may_not_replace_what_the_channel_may_not(store: Store) -> None:
    model = Answering([{"item": 0, "action": "DELETE", "target": 0}])
    done = written(store, model, replace(DOUBTED, channel=Channel.TOOL_UNASKED))
    assert done.decision.action is Action.ADD
    assert done.decision.against


def test_what_it_takes_for_the_same_gives_way_to_a_stronger_word(tmp_path: Path) -> None:
    store = Store(tmp_path / "noted", clock=ManualClock())
    with store.write(Author(Channel.TOOL_UNASKED)) as tx:
        note = tx.add(replace(KNOWN, channel=Channel.TOOL_UNASKED))
    done = written(store, Answering([{"item": 0, "action": "NOOP", "target": 0}]))
    assert (done.decision.action, done.decision.target) == (Action.UPDATE, note.id)
    assert (done.fact.text, done.fact.channel) == (DOUBTED.text, Channel.USER)
    store.close()


TOLD = ("My spare key is under the blue pot.", "My garden ladder is behind the red door.")
DOUBTS = ("My spare key never leaves the kitchen drawer.", "My garden ladder never leaves the north cellar.")


def taught(home: Path, server: Loopback) -> list[str]:
    given: dict[str, Any] = {"llm_endpoint": f"{server.url}/v1", "llm_model": "m", "embedder": "none"}
    with Memory.open(home, **given) as memory:
        for known in TOLD:
            memory.store(known)
        assert server.requests == []
        said = [{"role": "user", "content": " ".join(DOUBTS)}]
        memory.turns.after(said, True, TurnContext(session_id="s", host="test"))
        memory.settle(60)
        return [fact.text for fact in memory.admin.list()]


def test_the_configured_model_is_asked_once_for_all_statements_of_a_turn(tmp_path: Path) -> None:
    answer = json.dumps([{"item": 0, "action": "UPDATE", "target": 0}])
    with loopback(lambda request: chat(answer)) as server:
        texts = taught(tmp_path, server)
        assert len(server.requests) == 1
        prompt = server.requests[0].body["messages"][-1]["content"]
    assert all(doubt in prompt for doubt in DOUBTS)
    assert len(texts) == 3
    assert DOUBTS[0] in texts


@pytest.mark.parametrize(
    "answer", ["no JSON at all", '[{"item": 0, "action": "DELETE", "target": "no-such-id"}]', "[[", '{"item": 0}']
)
def test_a_useless_answer_of_the_configured_model_loses_nothing(tmp_path: Path, answer: str) -> None:
    with loopback(lambda request: chat(answer)) as server:
        texts = taught(tmp_path, server)
        assert len(server.requests) == 1
    assert sorted(texts) == sorted((*TOLD, *DOUBTS))
