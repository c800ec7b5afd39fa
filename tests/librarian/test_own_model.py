"""A program's own language model as its librarian."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from perdure import AsyncMemory, LanguageModel
from perdure.api.memory import Memory
from perdure.errors import InputError, SettingsError
from perdure.hooks.types import TurnContext
from perdure.store.listing import Filter
from tests.kit import OpenMemory

SAID = "The stall needs two people on Sundays."
ANSWER = json.dumps({"operations": [{"op": "remember", "quote": SAID, "note": SAID}]})
DONE = "known 1"
"""What came of it: capture has kept the same."""


class Model:
    """Answers as it is told, and keeps what it was asked."""

    def __init__(self, answer: str = ANSWER) -> None:
        self.answer = answer
        self.asked: list[tuple[str, str, Mapping[str, Any]]] = []

    def __call__(self, system: str, prompt: str, schema: Mapping[str, Any]) -> str:
        self.asked.append((system, prompt, schema))
        return self.answer


@pytest.fixture
def opened(open_memory: OpenMemory) -> Callable[..., Memory]:
    """Return what opens a memory whose librarian is on, and reads when it is told to."""
    return lambda **given: open_memory(
        **{"embedder": "none", "watch": False, "timers": False, "librarian": True} | given
    )


def say(memory: Memory, text: str = SAID, host: str = "library") -> None:
    memory.turns.after([{"role": "user", "content": text}], True, TurnContext(session_id="s", host=host))
    assert memory.settle()


def live(memory: Memory) -> list[str]:
    return [fact.text for fact in memory.admin.list(Filter())]


def test_it_reads_what_is_said_through_the_program(opened: Callable[..., Memory]) -> None:
    model: LanguageModel = Model(f"Here you are:\n```json\n{ANSWER}\n```")
    memory = opened(llm=model)
    say(memory, f"{SAID} The key is sk-ant-api03-abcdefghijklmnopqrstuvwxyz0123456789.")
    assert memory.admin.librarian(run=True)["did"] == DONE
    assert SAID in live(memory)
    assert isinstance(model, Model)
    [(system, prompt, schema)] = model.asked
    assert SAID in prompt
    assert "sk-ant" not in prompt
    assert system
    assert set(schema["properties"]) == {"operations"}


def test_giving_it_is_no_consent(opened: Callable[..., Memory]) -> None:
    model = Model()
    memory = opened(llm=model, librarian=False)
    say(memory)
    with pytest.raises(SettingsError):
        memory.admin.librarian(run=True)
    assert memory.admin.librarian()["waiting"] == 0
    assert model.asked == []


def test_it_sees_nothing_that_was_said_elsewhere_and_no_other_model_sees_what_it_may(
    opened: Callable[..., Memory],
) -> None:
    address = {"llm_endpoint": "http://127.0.0.1:9/v1", "llm_model": "small"}
    with opened(**address) as other:
        say(other, "The stall of codex needs two people.", "codex")
        assert other.admin.librarian()["waiting"] == 1
    model = Model()
    with opened(llm=model) as memory:
        say(memory)
        memory.admin.librarian(run=True)
        assert memory.admin.librarian()["waiting"] == 1
        say(memory, "The stall of the program needs three people.")
    assert not any('"said": "The stall of codex' in prompt for _, prompt, _ in model.asked)
    with opened() as another:
        assert another.admin.librarian(run=True)["did"] != DONE
        assert another.admin.librarian()["waiting"] == 2
        assert "failing" not in another.admin.librarian()


def test_a_model_that_fails_is_a_model_that_failed(opened: Callable[..., Memory]) -> None:
    def broken(system: str, prompt: str, schema: Mapping[str, Any]) -> str:
        raise RuntimeError("away")

    memory = opened(llm=broken)
    say(memory)
    assert memory.admin.librarian(run=True)["did"] == "failed: ModelError"
    assert memory.admin.librarian()["waiting"] == 1


def test_a_chat_model_of_langchain_serves_as_it_is(opened: Callable[..., Memory]) -> None:
    models = pytest.importorskip("langchain_core.language_models.fake_chat_models")
    memory = opened(llm=models.FakeListChatModel(responses=[ANSWER]))
    say(memory)
    assert memory.admin.librarian(run=True)["did"] == DONE


def test_what_is_no_model_is_refused(home: Path) -> None:
    with pytest.raises(InputError, match="llm"):
        Memory.open(home, llm="gpt-5")  # type: ignore[arg-type]


def test_what_answers_otherwise_than_with_a_text_has_failed(opened: Callable[..., Memory]) -> None:
    memory = opened(llm=lambda system, prompt, schema: {"operations": []})
    say(memory)
    assert memory.admin.librarian(run=True)["did"] == "failed: ModelError"
    found = memory.admin.librarian()
    assert found["waiting"] == 1
    assert "returned dict, not a string" in str(found["failing"])


def test_what_is_awaited_is_refused(home: Path) -> None:
    async def model(system: str, prompt: str, schema: Mapping[str, Any]) -> str:
        return ANSWER

    with pytest.raises(InputError, match="async"):
        Memory.open(home, llm=model, embedder="none")  # type: ignore[arg-type]


def test_what_is_said_in_a_program_goes_to_no_other_programs_model(opened: Callable[..., Memory]) -> None:
    one, other = Model(), type("Other", (Model,), {})()
    say(opened(llm=one))
    elsewhere = opened(llm=other)
    assert "1 turn waiting for their host" in elsewhere.admin.librarian(run=True)["did"]
    assert other.asked == []
    assert opened(llm=one).admin.librarian(run=True)["did"] == DONE


def test_the_async_twin_takes_it_too(home: Path) -> None:
    async def session() -> str:
        given: dict[str, Any] = {"librarian": True, "embedder": "none", "timers": False}
        async with await AsyncMemory.open(home, llm=Model(), **given) as memory:
            context = TurnContext(session_id="s", host="library")
            await memory.turns.after([{"role": "user", "content": SAID}], True, context)
            assert await memory.settle()
            return str((await memory.admin.librarian(run=True))["did"])

    assert asyncio.run(session()) == DONE
