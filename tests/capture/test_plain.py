"""Lines as people type them: what must pass by without a trace, and what must not be lost."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from perdure.capture.statements import statements
from tests.kit import for_each

LINES: dict[str, Any] = json.loads((Path(__file__).parents[2] / "bench/data/plain.json").read_text(encoding="utf-8"))
MIN_KEPT = 90


def test_there_are_a_hundred_of_each() -> None:
    assert (len(set(LINES["keep"])), len(set(LINES["drop"]))) == (100, 100)


@for_each("line", LINES["drop"])
def test_greetings_commands_anger_logs_heartbeats_and_code_leave_nothing(line: str) -> None:
    assert statements(line) == []


def test_lasting_statements_in_plain_chat_style_are_kept() -> None:
    missed = [line for line in LINES["keep"] if not statements(line)]
    assert len(missed) <= len(LINES["keep"]) - MIN_KEPT, missed


@pytest.mark.parametrize("line", LINES["keep"][::5])
def test_a_greeting_before_and_a_request_behind_cost_nothing_and_add_nothing(line: str) -> None:
    alone = statements(line)
    among = statements(f"Good morning!\n{line}\nCan you help me with the next chapter?\nThanks a lot.")
    assert among == alone
