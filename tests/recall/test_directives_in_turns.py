"""Rules from the settings bring memories up in a host's turn, whatever a search finds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from perdure.api.memory import Memory
from perdure.hooks.types import TurnContext

RULES: dict[str, Any] = {
    "directives": {"entities": ["Zephyr"], "tasks": {"deploy": ["rollout"]}, "session_tags": ["welcome"]},
    "embedder": "none",
    "record_sessions": False,
}


def texts(memory: Memory, prompt: str, session: str = "s") -> list[str]:
    recall = memory.turns.before(prompt, TurnContext(session_id=session))
    return [item.text for item in recall.items] if recall else []


def test_rules_bring_up_what_no_search_finds(tmp_path: Path) -> None:
    with Memory.open(tmp_path, **RULES) as memory:
        memory.store("The cluster is drained before anything else.", entity="Zephyr", key="order")
        memory.store("Each rollout is announced in the harbour channel.")
        memory.store("Anna prefers to be called Captain.", tags=["welcome"])
        assert texts(memory, "Is there anything I ought to know today?") == ["Anna prefers to be called Captain."]
        assert texts(memory, "Is there anything I ought to know today?") == []
        assert texts(memory, "Please restart zephyr for me.") == ["The cluster is drained before anything else."]
        assert texts(memory, "We deploy this afternoon.") == ["Each rollout is announced in the harbour channel."]
        memory.settle()
        assert [each.verdict for each in memory.why().considered if "rollout" in each.text] == ["injected"]


def test_neither_a_greeting_nor_an_opening_nor_another_process_is_the_first_prompt_of_a_session(tmp_path: Path) -> None:
    asked, welcome = "Is there anything I ought to know today?", "Anna prefers to be called Captain."
    with Memory.open(tmp_path, **RULES) as memory:
        memory.store(welcome, tags=["welcome"])
        for session in ("s", "t"):
            assert texts(memory, "hello there", session) == []
        assert memory.turns.opening(TurnContext(session_id="s")) is not None
        assert memory.turns.before("forget my birthday", TurnContext(session_id="t")) is not None
        assert texts(memory, asked, "t") == [welcome]
        memory.settle()
    with Memory.open(tmp_path, **RULES) as memory:
        assert texts(memory, asked, "t") == []
        memory.turns.before_compaction([], TurnContext(session_id="t"))
        assert texts(memory, asked, "t") == [welcome], "what was said before is gone"


def test_without_rules_nothing_of_it_comes_up(tmp_path: Path) -> None:
    with Memory.open(tmp_path, embedder="none", record_sessions=False) as memory:
        memory.store("Anna prefers to be called Captain.", tags=["welcome"])
        assert texts(memory, "Is there anything I ought to know today?") == []
