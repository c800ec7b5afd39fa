"""What is left of a session file: who said what, and nothing that nobody said."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from perdure.files.turns import (
    MAX_TEXT,
    Threshold,
    Turn,
    read_transcript,
    read_turns,
    session_of,
)
from perdure.speech.typed import typed
from perdure.text.fence import fence, strip_fenced

KEY = b"0123456789abcdef"
TOKEN = "ghp_" + "a1B2" * 9
CARD = "card 4111 1111 1111 1111"


def text_parts(*texts: str) -> list[dict[str, str]]:
    return [{"type": "text", "text": text} for text in texts]


def message(role: str, content: object, **fields: object) -> dict[str, Any]:
    return {"type": "message", "id": "m", "message": {"role": role, "content": content, **fields}}


def jsonl(*records: object) -> str:
    return "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records)


def said(*records: object) -> list[str]:
    return [turn.text for turn in read_turns(jsonl(*records))]


OPENCLAW = jsonl(
    {"type": "session", "version": 3, "id": "s-17", "timestamp": "2026-11-21T20:30:00.000Z"},
    message("user", "What is my favourite colour?", timestamp=1_795_293_231_000),
    {"type": "custom", "customType": "openclaw.runtime-context", "data": {"role": "user"}},
    message(
        "assistant",
        [
            {"type": "thinking", "thinking": "They said teal."},
            {"type": "toolCall", "name": "recall", "arguments": {"query": "colour"}},
            *text_parts("Teal."),
        ],
        timestamp=1_795_293_275_796,
    ),
    message("toolResult", text_parts("a tool's words")),
    {"type": "compaction", "summary": "They talked about colours.", "message": {"role": "user", "content": "Summary"}},
    message("custom", "host context"),
    message("system", "You are kind."),
    message("user", text_parts("And", "now?")),
)


class TestReading:
    def test_an_openclaw_session(self) -> None:
        assert read_turns(OPENCLAW) == [
            Turn(2, 2, "user", "User", 1_795_293_231.0, "What is my favourite colour?"),
            Turn(4, 4, "assistant", "Assistant", 1_795_293_275.796, "Teal."),
            Turn(9, 9, "user", "User", None, "And\nnow?"),
        ]

    def test_lines_of_messages_with_names_and_times(self) -> None:
        data = jsonl(
            {"role": "user", "content": "Hi!", "name": "Ann", "timestamp": "2023-05-08T13:56:00Z"},
            {"role": "assistant", "content": "Hello.", "speaker": "  Bo \n Li "},
            {
                "type": "message",
                "timestamp": 1_700_000_000,
                "message": {"role": "user", "content": "Yo", "senderName": ""},
            },
        )
        assert [(turn.speaker, turn.at, turn.text) for turn in read_turns(data)] == [
            ("Ann", 1_683_554_160.0, "Hi!"),
            ("Bo Li", None, "Hello."),
            ("User", 1_700_000_000.0, "Yo"),
        ]

    def test_a_list_of_messages_is_numbered_by_message(self) -> None:
        listed = [
            {"role": "user", "content": "One"},
            {"role": "tool", "content": "x"},
            {"role": "assistant", "content": "3"},
        ]
        turns = read_turns(json.dumps(listed, indent=2))
        assert [(turn.line_start, turn.line_end, turn.text) for turn in turns] == [(1, 1, "One"), (3, 3, "3")]

    def test_lines_are_those_of_the_file(self) -> None:
        data = (
            "\ufeff\n"
            + jsonl({"role": "user", "content": "a\u2028b\x85c"})
            + "not json\n\n"
            + '{"role": "user", "content": "d"}'
        )
        assert [(turn.line_start, turn.text) for turn in read_turns(data)] == [(2, "a\u2028b\x85c"), (5, "d")]

    def test_replay_reads_lines_of_the_file_too(self, tmp_path: Path) -> None:
        path = tmp_path / "talk.jsonl"
        path.write_text(jsonl({"role": "user", "content": "a\u2028b"}), encoding="utf-8")
        [dialogue] = read_transcript(path)
        assert [exchange.user for exchange in dialogue.exchanges] == ["a\u2028b"]

    @settings(max_examples=80)
    @given(st.integers(0, len(OPENCLAW)))
    def test_a_file_that_is_being_written_gives_its_whole_lines(self, length: int) -> None:
        whole = read_turns(OPENCLAW)
        partial = read_turns(OPENCLAW[:length])
        assert partial == whole[: len(partial)]
        assert len(partial) >= sum(turn.line_end <= OPENCLAW[:length].count("\n") for turn in whole)

    values = st.recursive(
        st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=8)
        | st.sampled_from(["user", "assistant", "text", "image", "message", "session"]),
        lambda inner: st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["type", "role", "content", "message", "text", "name", "timestamp", "caption", "id"]),
            inner, max_size=6),
        max_leaves=12,
    )  # fmt: skip

    @settings(max_examples=150)
    @given(st.lists(values, max_size=4))
    def test_whatever_the_lines_hold_it_is_read_or_passed_over(self, records: list[Any]) -> None:
        for data in ("".join(json.dumps(record) + "\n" for record in records), json.dumps(records)):
            assert all(turn.text and turn.role in ("user", "assistant") for turn in read_turns(data))
            assert session_of(data, "stem")

    @pytest.mark.parametrize("data", ["", "[", "[1, 2", "null", "[" * 100_000, "[]", "\0\0\n{}"])
    def test_what_is_no_session_has_no_turns(self, data: str) -> None:
        assert read_turns(data) == []


class TestLeavingOut:
    @pytest.mark.parametrize(
        ("role", "text"),
        [
            ("assistant", "NO_REPLY"),
            ("assistant", " **HEARTBEAT_OK**.\n"),
            ("user", "Read HEARTBEAT.md if it exists. Follow it strictly."),
            ("user", "[Sat 20:30] See HEARTBEAT.md. If nothing needs attention, reply HEARTBEAT_OK."),
            ("user", " \n "),
        ],
    )
    def test_what_nobody_said(self, role: str, text: str) -> None:
        assert said({"role": role, "content": text}, {"role": "user", "content": "Hello"}) == ["Hello"]

    def test_not_those_who_talk_about_it(self) -> None:
        talk = ["Why did you answer NO_REPLY?", "What does HEARTBEAT_OK mean?"]
        assert said(*({"role": "user", "content": text} for text in talk)) == talk

    def test_images_count_by_their_caption(self) -> None:
        photo = {"type": "image", "data": "aGVyb24=", "caption": "a heron\nin the  reeds"}
        assert said(
            message("user", [*text_parts("Look!"), photo, {"type": "image", "alt": "mud"}]),
            message("user", [{"type": "image", "data": "aGVyb24="}]),
            message("user", [photo]),
        ) == ["Look! [photo: a heron in the reeds] [photo: mud]", "[photo: a heron in the reeds]"]

    def test_our_own_block_and_those_of_others(self) -> None:
        ours = fence("likes teal", KEY, "s")
        foreign = '<relevant-memories kind="x">old</relevant-memories>\n<recalled-context>older</recalled-context>'
        data = jsonl(
            {"role": "user", "content": f"{ours}\n\n{foreign}\n<memory-context>y</memory-context>My cat is Tom."}
        )
        [turn] = read_turns(data, lambda text: strip_fenced(text, KEY, "s"))
        assert turn.text == "My cat is Tom."

    @pytest.mark.parametrize(
        "text",
        ["a <b>bold</b> word", "a </recalled-context>", "<memory-context", "<b> is a tag"],
    )
    def test_what_only_looks_like_a_block_stays(self, text: str) -> None:
        assert typed(text) == text

    def test_many_openings_without_an_end_take_no_longer_than_few(self) -> None:
        # Searched anew for every opening, this would take minutes.
        assert typed("x " + "<memory-contextual>" * 40_000 + "<memory-context>" * 40_000) == "x"

    def test_secrets_in_words_captions_and_names(self) -> None:
        data = jsonl(
            {"role": "user", "content": f"My token is {TOKEN}.", "name": f"Ann {TOKEN}"},
            message("user", [{"type": "image", "caption": f"a note: {TOKEN}"}]),
        )
        turns = read_turns(data)
        assert len(turns) == 2
        assert TOKEN not in str(turns)

    @settings(max_examples=40, deadline=None)
    @given(st.integers(MAX_TEXT - 60, MAX_TEXT + 10))
    def test_a_secret_across_the_cut_leaves_no_part(self, before: int) -> None:
        [turn] = read_turns(jsonl({"role": "user", "content": "x" * (before - 1) + " " + CARD + " end" * 9}))
        assert len(turn.text) <= MAX_TEXT
        assert "4111" not in turn.text

    def test_a_long_turn_is_cut(self) -> None:
        [text] = said({"role": "user", "content": "A heron stands. " * 5_000})
        assert MAX_TEXT * 0.9 < len(text) <= MAX_TEXT
        assert text.endswith("stands.")


class TestSession:
    def test_the_header_names_it_else_the_file(self) -> None:
        assert session_of(OPENCLAW, "file") == "s-17"
        assert session_of("\ufeff\n" + OPENCLAW, "file") == "s-17"
        assert session_of(jsonl({"type": "session", "id": ""}), "file") == "file"
        assert session_of(jsonl({"role": "user", "content": "x"}), "file") == "file"
        assert session_of("", "file") == "file"


class TestThreshold:
    @pytest.mark.parametrize(
        ("grown_bytes", "grown_messages", "idle", "due"),
        [
            (0, 0, 1e9, False),
            (99_999, 49, 599.9, False),
            (100_000, 1, 0.0, True),
            (1, 50, 0.0, True),
            (1, 1, 600.0, True),
            (-1, 0, 0.0, True),
        ],
    )
    def test_grown_far_enough_idle_or_rewritten(
        self, grown_bytes: int, grown_messages: int, idle: float, due: bool
    ) -> None:
        assert Threshold().due(grown_bytes, grown_messages, idle) is due

    def test_limits_are_those_given(self) -> None:
        assert Threshold(max_bytes=5).due(5, 1, 0.0)
        assert Threshold(max_messages=2).due(1, 2, 0.0)
        assert Threshold(idle_seconds=1.0).due(1, 1, 1.0)
