"""The language model: what it is asked, what is made of its answers, and what they may cost."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perdure.clock import ManualClock
from perdure.errors import EndpointError, ModelError, TokenBudgetError
from perdure.llm import Purpose, Tier
from perdure.models.endpoint import Address, Endpoint, Key
from perdure.models.llm import Llm, find_json
from perdure.store.llm import TokenMeter
from perdure.store.store import Store
from tests.loopback import Loopback, Reply, chat, loopback

MODELS: dict[Tier, str] = {"nano": "small", "default": "medium"}
DAY = 86_400.0
ANY = Purpose("any", "default")


@pytest.fixture
def server() -> Iterator[Loopback]:
    with loopback(lambda request: chat("hello", 40)) as running:
        yield running


def make(server: Loopback, store: Store, budget: int = 10_000, timeout: float = 30.0) -> tuple[Llm, TokenMeter]:
    meter = TokenMeter(store.database, store.clock, budget)
    return Llm(Endpoint(Address(f"{server.url}/v1"), timeout), MODELS, meter), meter


def test_each_tier_has_its_model_and_its_count(server: Loopback, store: Store) -> None:
    llm, meter = make(server, store)
    assert llm.ask("Hi", purpose=ANY) == "hello"
    assert llm.ask("Hi", purpose=Purpose("small", "nano"), system="Be kind.") == "hello"
    assert llm.ask("Hi", purpose=Purpose("usual", "default", 7)) == "hello"
    assert [request.body["model"] for request in server.requests] == ["medium", "small", "medium"]
    assert {request.path for request in server.requests} == {"/v1/chat/completions"}
    assert server.requests[1].body["messages"] == [
        {"role": "system", "content": "Be kind."},
        {"role": "user", "content": "Hi"},
    ]
    assert server.requests[2].body["max_tokens"] == 7
    assert meter.used() == {"default": 80, "nano": 40}


def test_secrets_are_not_sent(server: Loopback, store: Store) -> None:
    secret = "sk-proj-abcdefghijklmnopqrstuvwx1234"
    make(server, store)[0].ask(f"My key is {secret}", purpose=ANY, system=f"Key: {secret}")
    assert secret not in str(server.requests[0].body)


def test_a_question_that_lacks_its_key_costs_nothing(server: Loopback, store: Store) -> None:
    meter = TokenMeter(store.database, store.clock, 10_000)
    address = Address(f"{server.url}/v1", Key("PERDURE_TEST_KEY_THAT_IS_NOT_SET"))
    with pytest.raises(ModelError, match="PERDURE_TEST_KEY_THAT_IS_NOT_SET is not set"):
        Llm(Endpoint(address), MODELS, meter).ask("Hi", purpose=ANY)
    assert server.requests == []
    assert meter.used() == {"default": 0}


def test_without_a_count_of_the_server_the_tokens_are_estimated(server: Loopback, store: Store) -> None:
    server.answer = lambda request: chat("x" * 400)
    llm, meter = make(server, store)
    llm.ask("y" * 400, purpose=ANY)
    assert 200 <= meter.used()["default"] <= 250


def test_the_budget_holds_and_is_kept_over_a_restart(
    server: Loopback, store: Store, clock: ManualClock, tmp_path: Path
) -> None:
    make(server, store, budget=700)[0].ask("Hi", purpose=ANY)
    store.close()
    again = Store(tmp_path / "home", clock=clock)
    llm, meter = make(server, again, budget=560)
    llm.ask("Hi", purpose=ANY)
    with pytest.raises(TokenBudgetError, match=r"llm\.daily_tokens"):
        llm.ask("Hi", purpose=ANY)
    assert len(server.requests) == 2
    assert meter.used() == {"default": 80}
    clock.advance(DAY)
    assert llm.ask("Hi", purpose=ANY) == "hello"
    assert meter.used() == {"default": 40}
    again.close()


def test_old_days_are_forgotten(store: Store, clock: ManualClock) -> None:
    meter = TokenMeter(store.database, clock, 100)
    first = meter.reserve("nano", 1)
    for _ in range(40):
        clock.advance(DAY)
        last = meter.reserve("nano", 1)
    assert meter.used(first) == {}
    assert meter.used(last) == {"nano": 1}


@pytest.mark.parametrize(
    ("reply", "charged"),
    [
        (Reply({"error": "bad key"}, 401), False),
        (Reply(None, 500, {"Retry-After": "0"}), False),
        (Reply({"choices": []}), True),
        (Reply([1]), True),
    ],
)
def test_a_question_that_fails_costs_what_it_can_have_cost(
    server: Loopback, store: Store, reply: Reply, charged: bool
) -> None:
    server.answer = lambda request: reply
    llm, meter = make(server, store)
    with pytest.raises(ModelError):
        llm.ask("Hi", purpose=ANY)
    assert (0 < meter.used()["default"] < 50) is charged


def test_a_hanging_model_is_left_and_may_have_cost_the_question(server: Loopback, store: Store) -> None:
    server.hang = True
    llm, meter = make(server, store)
    with pytest.raises(EndpointError, match="in time"):
        llm.ask("Hi", purpose=ANY, timeout=0.2)
    assert 0 < meter.used()["default"] < 50


def test_an_empty_budget_sends_nothing(server: Loopback, store: Store) -> None:
    with pytest.raises(TokenBudgetError):
        make(server, store, budget=0)[0].ask("Hi", purpose=ANY)
    assert server.connections == 0


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('{"a": 1}', {"a": 1}),
        ('Sure! ```json\n{"a": [1]}\n``` Anything else?', {"a": [1]}),
        ('<think>{"no": 1}</think>[1, 2]', [1, 2]),
        ("{broken} then [3]", [3]),
        ("no json", None),
        ("", None),
        ('"text"', None),
        ("[" * 50_000, None),
    ],
)
def test_json_is_found_in_an_answer(server: Loopback, store: Store, text: str, value: Any) -> None:
    server.answer = lambda request: chat(text, 5)
    assert make(server, store)[0].ask_json("Hi", purpose=ANY) == value


@given(st.dictionaries(st.text(), st.integers() | st.text()), st.text(alphabet="abc .,\n"))
def test_any_object_is_found_between_words(value: dict[str, Any], around: str) -> None:
    import json

    assert find_json(f"{around}{json.dumps(value)}{around}") == value


def test_two_meters_of_one_store_share_the_budget(store: Store, clock: ManualClock) -> None:
    one, other = (TokenMeter(store.database, clock, 100) for _ in range(2))
    one.reserve("nano", 60)
    with pytest.raises(TokenBudgetError):
        other.reserve("default", 60)
    assert other.used() == {"nano": 60}
