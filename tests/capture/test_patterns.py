"""Signals that the user supplies."""

from __future__ import annotations

from pathlib import Path

import pytest

from perdure.api.memory import Memory
from perdure.capture.rules import pattern_rules
from perdure.capture.statements import Statement, statements
from perdure.errors import SettingsError
from perdure.hooks.types import TurnContext


def test_a_pattern_keeps_what_no_rule_would() -> None:
    rules = pattern_rules({"ticket": r"\bPERD-\d+"})
    assert statements("See perd-17 for that. Nothing else.", rules) == [Statement("See perd-17 for that.", "ticket")]
    assert statements("Nothing else here.", rules) == []


@pytest.mark.parametrize("patterns", [{"ticket": "(PERD"}, {"": "PERD"}, {"ticket": ""}, {"ticket": ".*"}])
def test_what_is_no_useful_pattern_is_refused_by_name(patterns: dict[str, str]) -> None:
    with pytest.raises(SettingsError, match="capture_patterns"):
        pattern_rules(patterns)


def test_patterns_are_checked_when_the_memory_opens(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="'ticket'"):
        Memory.open(tmp_path, capture_patterns={"ticket": "(PERD"})


def test_patterns_are_read_from_the_environment_and_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PERDURE_CAPTURE_PATTERNS", r'{"ticket": "\\bPERD-\\d+"}')
    with Memory.open(tmp_path, embedder="none") as memory:
        memory.turns.after([{"role": "user", "content": "See PERD-17 for that."}], True, TurnContext(session_id="s"))
        memory.settle(60)
        [fact] = memory.admin.list()
    assert (fact.text, fact.extraction_method) == ("See PERD-17 for that.", "rule:ticket")
