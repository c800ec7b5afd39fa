"""Replaying transcripts, whole and killed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from bench import kill_replay
from perdure.cli.replay import load_script
from perdure.errors import InputError
from perdure.files.turns import Dialogue, Exchange, read_transcript
from tests.cli.calling import call_json


def messages() -> list[dict[str, Any]]:
    """The demo's conversations as a list of messages."""
    found: list[dict[str, Any]] = []
    for session in load_script().sessions:
        for turn in session.turns:
            found.append({"role": "user", "content": [{"type": "text", "text": turn.user}]})
            found.append({"role": "assistant", "content": turn.agent})
    return found


def write(path: Path, value: object) -> Path:
    """Write JSON."""
    path.write_text(json.dumps(value))
    return path


def test_replay_prints_its_figures(tmp_path: Path) -> None:
    file = write(tmp_path / "talk.json", messages())

    figures = call_json("replay", file)

    assert figures["turns"] == len(messages()) // 2
    assert figures["captured"] == sum(figures["by_category"].values()) >= 8
    assert len(figures["memories"]) == figures["captured"]
    assert figures["recall_to_embed_ratio"] > 1
    assert {"p50", "p95"} == set(figures["agent_end_ms"]) == set(figures["before_agent_start_ms"])


def test_openclaw_sessions_and_lists_of_messages_are_read_alike(tmp_path: Path) -> None:
    listed = read_transcript(write(tmp_path / "talk.json", messages()))
    lines = [{"type": "session", "id": "s1"}, *({"type": "message", "message": message} for message in messages())]
    session = tmp_path / "talk.jsonl"
    session.write_text("\n".join(json.dumps(line) for line in lines))

    assert read_transcript(session) == read_transcript(session, "openclaw") == listed
    assert listed[0].exchanges[1].user.startswith("A little about me")
    assert listed[0].exchanges[1].reply == "Nice to meet you."


def test_locomo_counts_both_speakers_as_users(tmp_path: Path) -> None:
    turns = [{"speaker": "Ann", "dia_id": "D1:1", "text": "Hi Bo!"}, {"speaker": "Bo", "dia_id": "D1:2", "text": "Hi!"}]
    conversation = {"session_1": turns, "session_1_date_time": "1:56 pm on 8 May, 2023", "session_2": turns[:1],
                    "session_2_date_time": "2:00 pm on 9 May, 2023"}  # fmt: skip
    file = write(tmp_path / "locomo.json", [{"sample_id": "conv-0", "conversation": conversation}])

    dialogues = read_transcript(file, "locomo", "conv-0")

    assert [len(dialogue.exchanges) for dialogue in dialogues] == [2, 1]
    assert dialogues[0].exchanges[1] == Exchange("Hi!", "", 1683554160.0)
    with pytest.raises(InputError, match="conv-0"):
        read_transcript(file, "locomo", "conv-9")


@pytest.mark.parametrize("content", ["", "{", '{"a": 1}\nnot json', "[1, 2]", "\udcff"])
def test_what_is_no_transcript_is_refused(content: str, tmp_path: Path) -> None:
    file = tmp_path / "talk"
    file.write_bytes(content.encode("utf-8", "surrogateescape"))
    if content == "":
        assert read_transcript(file) == [Dialogue("talk", ())]
        return
    with pytest.raises(InputError, match="talk"):
        read_transcript(file)


def test_a_killed_replay_loses_nothing_acknowledged(tmp_path: Path) -> None:
    statements = [{"role": "user", "content": f"My {word} number {n} is kept in the {word} shed."}
                  for n in range(60) for word in ("bicycle", "ladder", "kettle", "drill")]  # fmt: skip
    file = write(tmp_path / "talk.json", statements)

    result = kill_replay.bench(file, "messages", embedder="hash", rounds=3, seed=7)

    assert result["every_round_acknowledged"]
    assert result["expected"] > 0
    assert (result["lost"], result["missing"], result["orphaned"]) == (0, 0, 0), result
