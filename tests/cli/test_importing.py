"""Imports from other systems on the command line."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from perdure.errors import InputError
from tests.cli.calling import call, call_json
from tests.kit import for_each

FORMATS = Path(__file__).parents[1] / "importers" / "formats"


def found(query: str) -> list[str]:
    """Return what has a word of the query: a search also shows what is merely near."""
    hits = call_json("search", query, code=None)["results"]
    return [hit["fact"]["text"] for hit in hits if hit["coverage"]]


def test_a_preview_an_import_and_the_way_back(home: Path) -> None:
    preview = call_json("import", FORMATS / "codex", "--dry-run")
    assert (preview["messages"], preview["statements"], preview["added"]) == (2, 2, None)
    done = call("import", FORMATS / "codex")
    assert "--mine" in done.output
    batch = done.output.rpartition("--batch ")[2].split()[0]
    assert found("Brightline") == ["I work at Brightline."]
    call("undo", "--batch", batch)
    assert found("Brightline") == []
    assert call_json("import", FORMATS / "codex")["added"] == 0


def test_a_backup_of_lancedb_pro_is_looked_at_taken_in_and_taken_back(home: Path) -> None:
    backups = FORMATS / "lancedb-pro" / "backups"
    assert call_json("import", backups, "--dry-run")["added"] == 6
    done = call_json("import", backups)
    assert (done["added"], call_json("import", backups)["added"]) == (6, 0)
    assert call_json("show", "7c40e1d8")["text"].startswith("Wants answers in German")
    assert found("Helsinki") == ["The staging database moved from Frankfurt to Helsinki."]
    call("undo", "--batch", done["batch"])
    assert found("Helsinki") == []


def test_undo_takes_back_what_went_to_a_project_or_another_user_too(home: Path, tmp_path: Path) -> None:
    values = [{"id": name, "memory": f"{name} likes tea", "user_id": name} for name in ("ada", "bob")]
    (tmp_path / "mem0.json").write_text(json.dumps(values))
    line = json.loads((FORMATS / "claude-code/-home-ada-site/0c2d.jsonl").read_text().splitlines()[0])
    line["message"]["content"] = "The staging database is called heron."
    (tmp_path / "talks").mkdir()
    (tmp_path / "talks" / "s.jsonl").write_text(json.dumps(line))
    for path, count in ((tmp_path / "mem0.json", 2), (tmp_path / "talks", 1)):
        batch = call_json("import", path)["batch"]
        assert len(call_json("list", "--all", "--state", "search-only")["facts"]) == count
        assert len(call_json("undo", "--batch", batch[:8])["facts"]) == count
        assert call_json("list", "--all", "--state", "search-only")["facts"] == []


def test_memories_beside_conversations_are_part_of_one_change(home: Path) -> None:
    done = call_json("import", FORMATS / "claude-ai")
    assert (done["added"], done["notes"]["added"]) == (3, 4)
    assert done["batch"] == done["notes"]["batch"]
    assert len(call_json("undo", "--batch", done["batch"])["facts"]) == 7


def test_what_claude_remembered_can_be_vouched_for_apart(home: Path) -> None:
    call("import", FORMATS / "claude-ai", "--trust")
    channels = {fact["text"]: fact["channel"] for fact in call_json("list")["facts"]}
    assert (channels["Ada restores violins in Ghent."], channels["I live in Ghent."]) == ("cli", "import")


def test_what_is_mine_comes_up_unasked_and_the_rest_does_not(home: Path) -> None:
    call("import", FORMATS / "claude-code")
    assert call_json("recall", "When is my birthday?")["items"] == []
    call("import", FORMATS / "claude-code", "--mine")
    assert [item["text"] for item in call_json("recall", "When is my birthday?")["items"]] == [
        "My birthday is on 3 May."
    ]


@pytest.mark.parametrize(("answer", "channel"), [("y", "transcript_user"), ("n", "import")])
def test_on_a_terminal_the_preview_asks_whose_words_they_are(
    home: Path, answer: str, channel: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("click.testing._NamedTextIOWrapper.isatty", lambda self: True, raising=False)
    done = call("import", FORMATS / "codex", stdin=f"{answer}\n")
    preview = done.output.partition("Would import from codex")[2]
    assert preview.index("I work at Brightline.") < preview.index("recall what you said"), "nobody is asked blind"
    monkeypatch.undo()
    monkeypatch.setenv("PERDURE_HOME", str(home))
    monkeypatch.setenv("PERDURE_EMBEDDER", "hash")
    assert {fact["channel"] for fact in call_json("list")["facts"]} == {channel}


@pytest.mark.parametrize(("name", "option"), [("codex", "--trust"), ("mem0.json", "--mine")])
def test_options_that_mean_something_else_there(home: Path, name: str, option: str) -> None:
    with pytest.raises(InputError, match="--mine"):
        call("import", FORMATS / name, option)


@pytest.mark.parametrize(("name", "options"), [("codex", ["--mine", "--trust"]), ("mem0.json", ["--mine", "--trust"])])
def test_options_that_are_said_in_full_are_no_mistake(home: Path, name: str, options: list[str]) -> None:
    assert call_json("import", FORMATS / name, *options, code=None)["added"] == 2


@for_each(("name", "content", "kind"), [
    ("notes.json", '{"title": "no conversation"}', "chatgpt"), ("notes.json", "[1, 2]", "chatgpt"),
    ("notes.json", "[]", "claude-ai"), ("notes.json", "{", "chatgpt"), ("a.jsonl", "{}", "codex"),
    ("a.jsonl", "", "claude-code"), ("a.md", "", "obsidian"), ("a.json", "[]", "mem0"), ("a.zip", "PK", "chatgpt"),
])  # fmt: skip
def test_imported_is_said_only_where_something_was(
    home: Path, name: str, content: str, kind: str, tmp_path: Path
) -> None:
    folder = tmp_path / f"{kind} {len(content)}"
    folder.mkdir()
    (folder / name).write_text(content)
    for path in (folder / name, folder):
        told = call("import", path, "--from", kind, code=1).output
        assert "Imported" not in told
        assert "Nothing to import" in told


def test_a_preview_shows_some_texts_and_how_many_more(home: Path, tmp_path: Path) -> None:
    (tmp_path / "Leah.md").write_text("".join(f"- Likes tea number {number}.\n" for number in range(12)))
    told = call("import", tmp_path, "--from", "obsidian", "--dry-run").output
    assert "Leah: Likes tea number 9." in told
    assert "number 10" not in told
    assert "and 2 more" in told
    assert call_json("import", tmp_path, "--from", "obsidian", "--dry-run")["sample"][0] == "Leah: Likes tea number 0."


def test_what_came_in_has_vectors_when_the_command_ends(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "found by keywords only" not in call("import", FORMATS / "codex").output
    assert call_json("status")["unembedded"] == 0
    monkeypatch.setenv("PERDURE_EMBEDDER", "none")
    assert "found by keywords only" in call("import", FORMATS / "openclaw").output
    assert call_json("status")["unembedded"] == 3


def test_secrets_that_were_left_out_are_counted_in_json_too(home: Path) -> None:
    assert call_json("import", FORMATS / "chatgpt", code=1)["secrets"] == {"password": 1}


def test_what_cannot_be_read_is_told_with_what_can(home: Path, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("notes")
    with pytest.raises(InputError, match="ChatGPT"):
        call("import", tmp_path / "notes.txt")


def test_doctor_looks_through_what_is_foreign(home: Path, tmp_path: Path) -> None:
    found = call_json("doctor", "--foreign", FORMATS / "chatgpt", code=1)
    assert (found["counts"]["secret"], found["counts"]["contradiction"], found["unreadable"]) == (1, 1, 1)
    assert "contradiction" in call("doctor", "--foreign", FORMATS / "chatgpt", code=1).output
    assert "no problems" in call("doctor", "--foreign", FORMATS / "obsidian").output
    assert not home.exists(), "nothing is made for it"
    shutil.copy(FORMATS / "openclaw" / "MEMORY.md", tmp_path)
    assert call_json("doctor", "--foreign", tmp_path)["texts"] == 2
