"""The bench of past conversations: what it indexes, and how it counts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from bench import locomo
from bench.locomo import Tally, ask, by_words, index, main, questions, turns
from perdure.api.memory import Memory

ITEM: dict[str, Any] = {
    "sample_id": "conv-1",
    "conversation": {
        "speaker_a": "Ann",
        "speaker_b": "Bob",
        "session_1_date_time": "1:56 pm on 8 May, 2023",
        "session_1": [
            {"speaker": "Ann", "dia_id": "D1:1", "text": "I adopted a greyhound named Comet."},
            {"speaker": "Bob", "dia_id": "D1:2", "text": "Lovely!", "blip_caption": "a dog on a sofa"},
        ],
        "session_2_date_time": "9:00 am on 2 June, 2023",
        "session_2": [{"speaker": "Bob", "dia_id": "D2:1", "text": "My marathon is in Valencia."}],
    },
    "qa": [
        {"question": "Which zeppelin did Ann adopt?", "answer": "quokka", "evidence": ["D1:01"], "category": 4},
        {"question": "Where is the marathon?", "answer": "wombat", "evidence": ["D2:1; D1:2"], "category": 1},
        {"question": "Who has no evidence?", "answer": "nobody", "evidence": [], "category": 5},
    ],
}  # fmt: skip


def test_questions_and_answers_never_touch_the_index(tmp_path: Path) -> None:
    said = turns(ITEM["conversation"])
    with Memory.open(tmp_path, embedder="hash") as memory:
        memory.ready()
        index(memory, said)
        found = ask(memory, said, "Where is the marathon?", 5)
        assert found[0].id == "D2:1"
    stored = b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
    assert b"greyhound" in stored
    for word in (b"zeppelin", b"quokka", b"wombat", b"D1:1"):
        assert word not in stored


def test_evidence_is_read_in_all_its_spellings() -> None:
    said = turns(ITEM["conversation"])
    asked = questions(ITEM["qa"], (turn.id for turn in said))
    assert [question.evidence for question in asked] == [{"D1:1"}, {"D1:2", "D2:1"}]


def test_the_baseline_knows_speaker_and_turn_alone() -> None:
    words = by_words(turns(ITEM["conversation"]))
    assert set(words.best("What did Bob say?", 5)) == {1, 2}
    assert words.best("sofa", 5) == []
    assert words.best("May 2023", 5) == []


def test_what_is_counted() -> None:
    said = turns(ITEM["conversation"])
    one, two, three = said
    sessions = {turn.id: turn.session for turn in said}
    [_, both] = questions(ITEM["qa"], sessions)
    tally = Tally()
    tally.count(both, [two, one], [one, two, three], sessions)
    figures = tally.figures()
    assert figures["turn_recall_at_5"] == 50.0
    assert figures["turn_any_at_5"] == 100.0
    assert figures["session_any_at_5"] == 100.0
    assert figures["mrr"] == 100.0
    assert set(figures["by_category"]) == {"1"}


def test_all_ways_are_printed_and_a_missing_file_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(locomo.VARIABLE, raising=False)
    skipped = CliRunner().invoke(main, [])
    assert skipped.exit_code == 0
    assert "skipped" in skipped.output
    (tmp_path / "data.json").write_text(json.dumps([ITEM]))
    done = CliRunner().invoke(main, [str(tmp_path / "data.json"), "--json", "--embedder", "hash"])
    printed = json.loads(done.stdout)
    assert printed["questions"] == 2
    assert {"lexical", "vector", "fused", "fts5_baseline", "injected"} <= printed.keys()
    assert printed["fused"]["turn_any_at_5"] == 100.0
