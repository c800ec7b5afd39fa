"""`perdure index` and `perdure files`, as a person and as a program use them."""

from __future__ import annotations

import json
import os
from datetime import date
from pathlib import Path

import click
import pytest

from perdure.cli.files import files
from perdure.errors import InputError, ScopeError, UnsafePathError
from tests.cli.calling import call, call_json

COMMANDS = {"status", "search", "read", "add", "remove", "note", "transcript"}
TOKEN = "ghp_16C7e42F292c6912E7710c838347Ae178B4a"
CHAT = [
    {"role": "user", "name": "Ada", "content": "Where do the herons nest?", "timestamp": 1_700_000_000},
    {"role": "assistant", "content": [{"type": "text", "text": "In the alder trees by the lake."}]},
]


@pytest.fixture
def workspace(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A workspace with two memory files, not searched yet."""
    # Only the commands bring the index up to date here, so that each test knows what is in it.
    monkeypatch.setenv("PERDURE_WATCH", "false")
    folder = tmp_path / "work"
    (folder / "memory").mkdir(parents=True)
    (folder / "MEMORY.md").write_text("# Staging\n\nThe staging database is called heron.\n")
    (folder / "memory" / "plans.md").write_text("# Plans\n\nThe cache moves to Redis, see [/etc/redis] and [notes].\n")
    return folder


def told(*words: str | Path, code: int = 0) -> str:
    """Return what a person sees, whatever the width of the terminal."""
    return " ".join(call(*words, code=code).stdout.split())


def found_paths(*words: str | Path) -> list[str]:
    """Search; the exit code says whether anything was found."""
    done = call("files", "search", *words, "--json", code=None)
    found = [each["path"] for each in done.json["results"]]
    assert done.code == (0 if found else 1)
    return found


def test_a_folder_is_added_indexed_and_searched(workspace: Path) -> None:
    assert call_json("files", "add", workspace) == {"added": str(workspace), "kind": "workspace"}
    before = call_json("files", "status")
    assert (before["files"], before["dirty"]) == (0, 2)
    assert before["added"] == ["MEMORY.md", "memory/plans.md"]

    synced = call_json("index")
    assert (synced["added"], synced["chunks"], synced["skipped"], synced["without_vector"]) == (2, 2, {}, 0)
    after = call_json("files", "status")
    assert (after["files"], after["chunks"], after["dirty"], after["without_vector"]) == (2, 2, 0, 0)
    assert after["roots"] == [["workspace", str(workspace), "user:owner"]]

    answer = call_json("files", "search", "staging database")
    assert (answer["backend"], answer["results"][0]["citation"]) == ("hybrid", "MEMORY.md#L1-L3")


def test_index_tells_what_changed_and_what_is_skipped(workspace: Path) -> None:
    call("files", "add", workspace)
    call("index")
    (workspace / "MEMORY.md").write_text("# Staging\n\nThe staging database is called egret.\n")
    (workspace / "memory" / "plans.md").unlink()
    (workspace / "memory" / "new.md").write_bytes(b"\0\1\2")
    synced = call_json("index")
    assert (synced["added"], synced["changed"], synced["removed"]) == (1, 1, 1)
    assert synced["skipped"] == {"memory/new.md": "binary"}
    assert call_json("index", "--force")["rebuilt"]

    shown = told("index", "--force")
    assert "2 added, 0 changed, 0 removed" in shown
    assert "memory/new.md binary" in shown


def test_deep_status_sees_what_size_and_time_do_not_show(workspace: Path) -> None:
    memory_md = workspace / "MEMORY.md"
    os.utime(memory_md, (1_700_000_000, 1_700_000_000))
    call("files", "add", workspace)
    call("index")
    memory_md.write_text(memory_md.read_text().replace("heron", "egret"))
    os.utime(memory_md, (1_700_000_000, 1_700_000_000))
    assert call_json("files", "status")["dirty"] == 0
    assert call_json("files", "status", "--deep")["changed"] == ["MEMORY.md"]
    assert "file changed MEMORY.md" in told("files", "status", "--deep")


def test_people_see_score_citation_and_the_text_as_it_stands(workspace: Path) -> None:
    call("files", "add", workspace)
    shown = told("files", "search", "cache Redis")
    assert "memory/plans.md#L1-L3" in shown
    assert "see [/etc/redis] and [notes]" in shown
    assert "search:" not in shown
    assert told("files", "search", "unheard-of zygote", "--min-score", "0.9", code=1) == "Nothing found."


def test_a_search_without_a_model_says_so(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    call("files", "add", workspace)
    monkeypatch.setenv("PERDURE_EMBEDDER", "none")
    answer = call_json("files", "search", "staging database")
    assert answer["backend"] == "keyword"
    assert answer["results"]
    assert f"Search mode: keyword; {answer['reason']}" in told("files", "search", "staging database")
    assert "keywords only" in told("index")
    monkeypatch.setenv("PERDURE_SOURCES", "")
    assert "Search mode: disabled; no source is enabled" in told("files", "search", "staging database", code=1)


def test_search_options_reach_the_search(workspace: Path) -> None:
    call("files", "add", workspace)
    everything = ("database cache", "--min-score", "0")
    assert len(found_paths(*everything)) == 2
    assert len(found_paths(*everything, "--limit", "1")) == 1
    assert found_paths(*everything, "--source", "sessions") == []
    with pytest.raises(click.BadParameter, match="101"):
        call("files", "search", "heron", "--limit", "101")


def test_a_folder_that_is_not_there_is_refused(workspace: Path) -> None:
    with pytest.raises(InputError, match=r"no such folder: .*nowhere"):
        call("files", "add", workspace / "nowhere")


def test_files_are_read_by_lines_and_citations(workspace: Path) -> None:
    call("files", "add", workspace)
    line = "The staging database is called heron."
    assert call("files", "read", "MEMORY.md").stdout == f"# Staging\n\n{line}\n\n"
    assert call("files", "read", "MEMORY.md", "--from", "3", "--lines", "1").stdout == f"{line}\n"
    reading = call_json("files", "read", "MEMORY.md#L3-L3")
    assert (reading["text"], reading["start"], reading["end"]) == (line, 3, 3)
    missing = call("files", "read", "memory/none.md", code=1)
    assert (missing.stdout, "memory/none.md" in missing.stderr) == ("", True)
    assert call_json("files", "read", "memory/none.md", code=1)["missing"]
    with pytest.raises(UnsafePathError):
        call("files", "read", "memory/../../secret.md")


def test_a_long_file_says_where_to_go_on(workspace: Path) -> None:
    call("files", "add", workspace)
    (workspace / "MEMORY.md").write_text("0123456789\n" * 3_000)
    first = call("files", "read", "MEMORY.md")
    following = len(first.stdout.split()) + 1
    assert following < 3_000
    assert f"--from {following}" in first.stderr


def test_an_extra_folder_goes_by_its_pattern(workspace: Path, tmp_path: Path) -> None:
    notes = tmp_path / "notes"
    for name in ("work/a.md", "home/b.md"):
        (notes / name).parent.mkdir(parents=True)
        (notes / name).write_text(f"The grebe of {name} dives.\n")
    call("files", "add", notes, "--kind", "extra", "--pattern", "work/*.md")
    assert found_paths("grebe", "--min-score", "0") == ["notes/work/a.md"]
    with pytest.raises(InputError, match="--kind extra"):
        call("files", "add", workspace, "--pattern", "*.md")


def test_what_is_removed_is_found_no_longer_and_stays_on_disk(workspace: Path) -> None:
    call("files", "add", workspace)
    call("index")
    dry = call_json("files", "remove", workspace, "--dry-run")
    assert (dry["dry_run"], [root["path"] for root in dry["removed"]]) == (True, [str(workspace)])
    assert "would be removed" in told("files", "remove", workspace, "--dry-run")
    assert found_paths("staging database") == ["MEMORY.md"]

    assert "files were not touched" in told("files", "remove", workspace)
    assert call_json("files", "status")["files"] == 0
    assert found_paths("staging database", "--min-score", "0") == []
    assert (workspace / "MEMORY.md").is_file()
    with pytest.raises(InputError, match="is not searched"):
        call("files", "remove", workspace)


def test_a_note_goes_into_the_file_of_the_day(workspace: Path) -> None:
    with pytest.raises(InputError, match="no workspace"):
        call("files", "note", "The grebe dives.")
    call("files", "add", workspace)
    path = Path(call_json("files", "note", f"The grebe dives. {TOKEN}", "--title", "lake")["path"])
    assert path.parent == workspace / "memory"
    assert date.fromisoformat(path.stem)
    written = path.read_text()
    assert "lake\n\nThe grebe dives." in written
    assert TOKEN not in written
    assert found_paths("grebe dives")[0] == f"memory/{path.name}"


@pytest.mark.parametrize("form", ["list", "jsonl", "openclaw"])
def test_a_conversation_is_taken_in_once_and_found(workspace: Path, tmp_path: Path, form: str) -> None:
    lines = CHAT if form != "openclaw" else [{"type": "message", "message": message} for message in CHAT]
    file = tmp_path / "chat.json"
    file.write_text(json.dumps(lines) if form == "list" else "\n".join(map(json.dumps, lines)))
    assert call_json("files", "transcript", file) == {"session": "chat", "messages": 2, "added": 2}
    assert call_json("files", "transcript", file)["added"] == 0
    assert "Added 2 of 2 messages to session chat-1" in told("files", "transcript", file, "--session", "chat-1")

    answer = call_json("files", "search", "where herons nest", "--source", "sessions", "--min-score", "0")
    assert {result["session"] for result in answer["results"]} == {"chat", "chat-1"}
    asked = next(result for result in answer["results"] if result["role"] == "user")
    assert (asked["speaker"], asked["at"]) == ("Ada", 1_700_000_000)


def test_a_conversation_keeps_the_id_that_it_gives_itself(workspace: Path, tmp_path: Path) -> None:
    file = tmp_path / "file.jsonl"
    file.write_text("\n".join(map(json.dumps, [{"type": "session", "id": "monday"}, *CHAT])))
    assert call_json("files", "transcript", file)["session"] == "monday"


@pytest.mark.parametrize("text", [None, "", "no json", '{"messages": []}', '[{"role": "tool", "content": "x"}]'])
def test_what_is_no_conversation_is_refused(workspace: Path, tmp_path: Path, text: str | None) -> None:
    file = tmp_path / "chat.jsonl"
    if text is not None:
        file.write_text(text)
    with pytest.raises(InputError, match=r"chat\.jsonl.*JSONL"):
        call("files", "transcript", file)


def test_an_agent_searches_its_own_files(workspace: Path) -> None:
    call("files", "add", workspace, "--agent", "heron")
    assert found_paths("staging database", "--agent", "heron") == ["MEMORY.md"]
    assert found_paths("staging database", "--agent", "egret") == []
    assert found_paths("staging database", "--user", "eva") == []
    assert found_paths("staging database") == ["MEMORY.md"]
    with pytest.raises(ScopeError):
        call("files", "add", workspace, "--agent", "")


def test_each_command_of_the_group_has_help_with_an_example() -> None:
    assert set(files.commands) == COMMANDS
    for name in COMMANDS:
        assert f"Example: perdure files {name}" in call("files", name, "--help").stdout
