"""What people have today beside what perdure would bring: three invented histories, and their own last prompts."""

from __future__ import annotations

import hashlib
import html
import json
import os
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import apsw
import pytest

from perdure.errors import InputError, PerdureError
from perdure.store.sql import run
from tests.cli.calling import call, call_json
from tests.kit import DAY, for_each

BEGAN = 1_767_225_600.0
"""1 January 2026."""
SECRET = "hunter2-heron-staging"


@pytest.fixture
def user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A person's home folder, with their coding agents' folders in it; commands run there."""
    home = tmp_path / "user"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("PERDURE_HOME", str(home / "perdure"))
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(home / ".claude"))
    monkeypatch.setenv("CODEX_HOME", str(home / ".codex"))
    monkeypatch.chdir(home)
    return home


def state(folder: Path) -> dict[str, str]:
    """Return what is in a folder: a hash of each file, nothing for each folder."""
    return {
        str(each.relative_to(folder)): hashlib.sha256(each.read_bytes()).hexdigest() if each.is_file() else ""
        for each in folder.rglob("*")
    }


def chatgpt(folder: Path, *said: tuple[float, str], rules: str = "") -> Path:
    """Write an export in which each text is a conversation, said so many days after it all began."""
    talks = []
    for number, (day, text) in enumerate(said):
        at = BEGAN + day * DAY
        told = {"author": {"role": "user"}, "create_time": at, "content": {"content_type": "text", "parts": [text]}}
        ruled = {
            "author": {"role": "user"},
            "content": {"content_type": "user_editable_context", "user_profile": rules},
        }
        mapping = {
            "a": {"parent": None, "message": ruled if rules else None}, "b": {"parent": "a", "message": told},
        }  # fmt: skip
        talks.append({"id": f"talk-{number}", "create_time": at, "current_node": "b", "mapping": mapping})
    path = folder / "conversations.json"
    path.write_text(json.dumps(talks[::-1]))
    return path


def claude_code(user: Path, project: Path, *said: tuple[float, str]) -> None:
    """Write a transcript for each text, which was typed in a project."""
    folder = user / ".claude" / "projects" / "-project"
    folder.mkdir(parents=True, exist_ok=True)
    for number, (day, text) in enumerate(said):
        at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(BEGAN + day * DAY))
        line = {
            "type": "user", "sessionId": f"s{number}", "uuid": f"u{number}", "cwd": str(project), "timestamp": at,
            "message": {"role": "user", "content": text},
        }  # fmt: skip
        (folder / f"s{number}.jsonl").write_text(json.dumps(line) + "\n")


def mem0(folder: Path, *said: tuple[float, str], user_ids: Sequence[str] = ("ada",)) -> Path:
    """Write memories, each with the day on which it was made."""
    path = folder / "mem0.json"
    path.write_text(json.dumps([
        {"id": f"m{number}-{name}", "memory": text, "user_id": name, "created_at": BEGAN + day * DAY}
        for number, (day, text) in enumerate(said) for name in user_ids
    ]))  # fmt: skip
    return path


def prompts(folder: Path, *asked: tuple[float, str]) -> Path:
    path = folder / "prompts.jsonl"
    lines = [json.dumps({"prompt": text, "timestamp": BEGAN + day * DAY}) for day, text in asked]
    path.write_text("\n".join(lines))
    return path


def brought(answered: Sequence[dict[str, Any]], prompt: str) -> list[str]:
    [found] = [each["perdure"] for each in answered if each["prompt"] == prompt]
    return list(found)


def test_a_chatgpt_export_answers_by_what_was_said_before(user: Path) -> None:
    export = chatgpt(
        user, (0, "I live in Porto."), (1, "Where do I live?"), (2, "I live in Lisbon now."),
        (3, "And where do I live?"), (1.5, "What is my name?"), rules="My name is Ada.",
    )  # fmt: skip
    before = state(user)
    told = call_json("try", "--from", "chatgpt", export)
    answered = told["answered"]
    assert [each["prompt"] for each in answered] == [
        "I live in Porto.", "Where do I live?", "What is my name?", "I live in Lisbon now.", "And where do I live?",
    ]  # fmt: skip
    assert brought(answered, "What is my name?") == ["My name is Ada."]
    assert brought(answered, "I live in Porto.") == []
    assert brought(answered, "Where do I live?") == ["I live in Porto."]
    assert brought(answered, "And where do I live?") == ["I live in Lisbon now."]
    assert told["standing"] == {"Custom instructions": "My name is Ada."}
    assert {tuple(each["today"]) for each in answered} == {("Custom instructions",)}
    assert told["totals"]["prompts"] == 5
    assert told["totals"]["today_silent"] == 0
    assert answered[1]["perdure_tokens"] > 0 < answered[1]["ms"]
    assert state(user) == before, "nothing is written"
    assert len(call_json("try", "--from", "chatgpt", export, "--prompts", "1")["answered"]) == 1


def test_claude_code_is_compared_with_the_files_that_it_shows(user: Path) -> None:
    project = user / "heron"
    (project / ".git").mkdir(parents=True)
    (project / "CLAUDE.md").write_text("Run the tests with make.")
    claude_code(
        user, project, (0, "The staging database is called kestrel."), (1, "What is the staging database called?")
    )
    (user / ".claude" / "CLAUDE.md").write_text(f"Always answer in English.\nThe password is {SECRET}.")
    before = state(user)
    told = call_json("try", "--from", "claude-code")
    [first, second] = told["answered"]
    assert set(told["standing"]) == {*second["today"]} == {"CLAUDE.md", "CLAUDE.md of heron"}
    assert first["perdure"] == []
    assert second["perdure"] == ["The staging database is called kestrel."]
    assert SECRET not in json.dumps(told)
    assert state(user) == before


def test_mem0_brings_its_nearest_and_perdure_what_fits(user: Path) -> None:
    fillers = [(0.0, f"Has a friend who collects stamps of country {number}.") for number in range(6)]
    path = mem0(user, (0, "My sister Anna lives in Graz."), (5, "My sister Anna lives in Oslo now."), *fillers)
    asked = prompts(user, (2, "Where does my sister live?"), (6, "Thanks!"), (7, "Where does my sister Anna live?"))
    before = state(user)
    told = call_json("try", "--from", "mem0", path, "--prompts-from", asked)
    [early, thanks, late] = told["answered"]
    assert len(early["today"]) == len(late["today"]) == 5
    assert early["today"][0] == "My sister Anna lives in Graz."
    assert not any("Oslo" in text for side in ("today", "perdure") for text in early[side])
    assert any("Oslo" in text for text in late["today"])
    assert any("Graz" in text for text in early["perdure"])
    assert thanks["perdure"] == []
    assert (told["totals"]["today_silent"], told["totals"]["perdure_silent"]) == (0, 1)
    assert "that tool's own search is not run" in told["shown"]
    assert state(user) == before


def test_prompts_are_those_of_coding_agents_in_the_same_project(user: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    project, other = user / "heron", user / "other"
    for folder in (project, other):
        (folder / ".git").mkdir(parents=True)
    (project / "MEMORY.md").write_text(
        "- The staging database is called kestrel.\n" + "- Filler.\n" * 300 + "- Last.\n"
    )
    claude_code(user, project, (0, "What is the staging database called?"))
    monkeypatch.chdir(project)
    told = call_json("try", "--from", "MEMORY.md")
    [answered] = told["answered"]
    assert answered["perdure"] == ["The staging database is called kestrel."]
    assert answered["today"] == ["MEMORY.md"]
    assert answered["opening_tokens"] == told["totals"]["perdure_opening_tokens"] > 0 < len(answered["opening"])
    assert "Last." not in told["standing"]["MEMORY.md"]
    path = mem0(user, (-1, "The staging database is called kestrel."))
    assert call_json("try", "--from", "mem0", path)["answered"][0]["perdure"] == answered["perdure"]
    monkeypatch.chdir(other)
    with pytest.raises(InputError, match="--prompts-from"):
        call("try", "--from", "mem0", path)


def test_claude_mem_and_claude_are_read_where_they_are(user: Path) -> None:
    folder = user / ".claude-mem"
    folder.mkdir()
    database = apsw.Connection(str(folder / "claude-mem.db"))
    run(database, "PRAGMA journal_mode = wal")
    for sql in (
        "CREATE TABLE observations (id, project, type, title, narrative, created_at_epoch)",
        "CREATE TABLE user_prompts (id, content_session_id, prompt_text, created_at_epoch)",
    ):
        run(database, sql)
    when = 1000 * BEGAN
    row = (1, "heron", "discovery", "Staging database", "The staging database is called kestrel.", when)
    run(database, "INSERT INTO observations VALUES (?, ?, ?, ?, ?, ?)", row)
    asked = "What is the staging database called?"
    for number, at in enumerate((when - 5_000, when + 5_000)):
        run(database, "INSERT INTO user_prompts VALUES (?, 's', ?, ?)", (number, asked, at))
    database.close()
    export = user / "claude"
    export.mkdir()
    talk = {
        "uuid": "t",
        "chat_messages": [{"uuid": "m", "sender": "human", "text": "Where do I live?", "created_at": when}],
    }
    (export / "conversations.json").write_text(json.dumps([talk]))
    (export / "memories.json").write_text(json.dumps([{"conversations_memory": "Ada lives in Ghent."}]))
    before = state(user)
    [early, late] = call_json("try", "--from", "claude-mem")["answered"]
    assert (early["today"], early["perdure"]) == ([], [])
    assert late["today"] == late["perdure"] == ["Staging database: The staging database is called kestrel."]
    told = call_json("try", "--from", "claude", export)
    assert told["standing"] == {"What Claude remembers": "Ada lives in Ghent."}
    assert state(user) == before
    assert call_json("import", folder)["notes"]["added"] == 1


def test_the_page_holds_all_of_it_and_nothing_that_runs(user: Path, tmp_path: Path) -> None:
    evil = "<script>alert('x')</script> & \"more\" \u202e"
    export = chatgpt(user, (0, f"My cat is called {evil}"), (1, f"My password is {SECRET}."), rules=f"{evil} $title")
    file = tmp_path / "compare.html"
    said = call("try", "--from", "chatgpt", export, "--page", file).stdout
    written = file.read_text()
    assert "<script" not in written.lower()
    assert html.escape("<script>alert('x')</script> & \"more\" \\u202e $title") in written
    assert SECRET not in said + written
    assert "redacted" in said
    assert "redacted" in written
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert "perdure import" in said
    for name in ("compare.md", "nowhere/compare.html"):
        with pytest.raises(InputError, match=r"compare\.html"):
            call("try", "--from", "chatgpt", export, "--page", tmp_path / name)


@for_each(("source", "content", "says"), [
    ("chatgpt", None, "Export data"), ("chatgpt", "not there", "does not exist"), ("claude-ai", "[]", "Claude.ai"),
    ("mem0", "{}", "get_all"), ("claude-mem", None, "claude-mem.db"), ("claude-mem", "no database", "claude-mem.db"),
    ("openclaw", None, "does not exist"), ("claude-code", None, "transcripts"), ("mem0", "several", "several users"),
])  # fmt: skip
def test_what_is_not_there_or_something_else_is_refused(
    source: str, content: str | None, says: str, user: Path
) -> None:
    path = user / "file.json"
    if content == "several":
        path = mem0(user, (0, "Likes tea."), user_ids=("ada", "bob"))
    elif content not in (None, "not there"):
        path.write_text(str(content))
    with pytest.raises(PerdureError, match=says):
        call("try", "--from", source, *([] if content is None else [path]))
    path.unlink(missing_ok=True)


@for_each("content", [b"", b'{"role": "user"}', b"\xff\xfe\xff", None])
def test_prompts_that_cannot_be_read_are_refused(content: bytes | None, user: Path) -> None:
    path = mem0(user, (0, "Likes tea."))
    if content is not None:
        (user / "asked").write_bytes(content)
    with pytest.raises(InputError, match=r"prompt"):
        call("try", "--from", "mem0", path, "--prompts-from", user / ("asked" if content is not None else "nowhere"))


def test_plain_lines_are_prompts_and_know_everything(user: Path) -> None:
    path = mem0(user, (0, "My sister Anna lives in Graz."))
    (user / "asked.txt").write_text("Where does my sister live?\n\n{curly\n")
    told = call_json("try", "--from", "mem0", path, "--prompts-from", user / "asked.txt")
    assert [each["prompt"] for each in told["answered"]] == ["Where does my sister live?", "{curly"]
    assert told["answered"][0]["perdure"] == ["My sister Anna lives in Graz."]


def test_what_is_stopped_leaves_nothing_behind(user: Path, tmp_path: Path) -> None:
    folder = tmp_path / "temporary"
    folder.mkdir()
    path = mem0(user, *((0, f"Has a friend who collects stamps of country {number}.") for number in range(4_000)))
    asked = prompts(user, (1, "Where does my sister live?"))
    command = [sys.executable, "-m", "perdure", "try", "--from", "mem0", str(path), "--prompts-from", str(asked)]
    with subprocess.Popen(command, env={**os.environ, "TMPDIR": str(folder)}, stderr=subprocess.DEVNULL) as running:
        while not list(folder.glob("perdure-*/facts.db")):
            assert running.poll() is None
            time.sleep(0.05)
        running.send_signal(signal.SIGINT)
        assert running.wait(60) == 130
    assert list(folder.iterdir()) == []
