"""Which of its own memory files a host shows its model: read safely, and for nothing but to be compared."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from perdure.hosts.command.context_files import MAX_BYTES, in_context, users_files
from perdure.hosts.command.dialects import DIALECTS


@pytest.fixture
def repo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    home = tmp_path / "home"
    repo = home / "work" / "site"
    (repo / ".git").mkdir(parents=True)
    (repo / "app" / "web").mkdir(parents=True)
    monkeypatch.setenv("HOME", str(home))
    return repo


def put(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def shown(host: str, folder: Path) -> list[str]:
    return [text for _, text, _ in in_context(DIALECTS[host], str(folder))]


def test_claude_code_shows_the_users_file_its_notes_and_those_from_the_root_down(repo: Path) -> None:
    home = repo.parents[1]
    put(home / ".claude" / "CLAUDE.md", "mine @~/extra.md")
    put(home / "extra.md", "named")
    slug = "".join(sign if sign.isalnum() and sign.isascii() else "-" for sign in str(repo))
    put(home / ".claude" / "projects" / slug / "memory" / "MEMORY.md", "noted\n" * 300)
    put(repo.parent / "CLAUDE.md", "outside of the repository")
    put(repo / "CLAUDE.md", "root, see @docs/more.md and @nothing and me@example.com")
    put(repo / "docs" / "more.md", "imported @deeper.md")
    put(repo / "docs" / "deeper.md", "two levels down")
    put(repo / "app" / "CLAUDE.local.md", "local")
    put(repo / ".claude" / "rules" / "style.md", "style")
    put(repo / ".claude" / "rules" / "web.md", "---\npaths: web/**\n---\nof some files")
    put(repo / "app" / "web" / "AGENTS.md", "another host's")
    found = shown("claude-code", repo / "app" / "web")
    assert found[1].count("noted") == 200
    first = (home / ".claude" / "CLAUDE.md", repo / "CLAUDE.md")
    assert [found[0], *found[2:]] == [
        first[0].read_text(), first[1].read_text(), "style", "local", "named", "imported @deeper.md",
    ]  # fmt: skip


def test_each_host_has_files_of_its_own(repo: Path) -> None:
    put(repo.parents[1] / ".codex" / "AGENTS.md", "codex")
    put(repo.parents[1] / ".gemini" / "GEMINI.md", "gemini")
    put(repo / "AGENTS.md", "agents")
    put(repo / ".cursor" / "rules" / "a.mdc", "---\nalwaysApply: true\n---\nalways")
    put(repo / ".cursor" / "rules" / "b.mdc", "---\nglobs: *.ts\nalwaysApply: false\n---\nsometimes")
    put(repo / ".github" / "copilot-instructions.md", "copilot")
    assert shown("codex", repo) == ["codex", "agents"]
    assert shown("gemini", repo) == ["gemini"]
    assert [text.strip() for text in shown("cursor", repo)] == ["agents", "always"]
    assert shown("vscode", repo) == ["agents", "copilot"]
    assert users_files(DIALECTS["codex"]) == [repo.parents[1] / ".codex" / "AGENTS.md"]


def test_nothing_is_read_that_is_elsewhere_endless_or_no_file(repo: Path, tmp_path: Path) -> None:
    put(tmp_path / "secret", "of another")
    for name in ("CLAUDE.md", "CLAUDE.local.md"):
        (repo / name).unlink(missing_ok=True)
    (repo / "CLAUDE.md").symlink_to(tmp_path / "secret")
    os.mkfifo(repo / "CLAUDE.local.md")
    put(repo / "app" / "CLAUDE.md", "x" * (MAX_BYTES + 1))
    put(repo / "app" / "web" / "CLAUDE.md", "see @../../../../../secret and @/etc/hostname")
    (repo / "app" / "CLAUDE.local.md").mkdir()
    assert shown("claude-code", repo / "app" / "web") == ["see @../../../../../secret and @/etc/hostname"]
    assert in_context(DIALECTS["claude-code"], "relative") == ()


def test_a_link_within_the_repository_and_a_change_are_followed(repo: Path) -> None:
    put(repo / "AGENTS.md", "one")
    (repo / "CLAUDE.md").symlink_to("AGENTS.md")
    assert shown("claude-code", repo) == ["one"]
    put(repo / "AGENTS.md", "another")
    assert shown("claude-code", repo) == ["another"]


def test_what_is_commented_out_or_in_a_fence_is_not_said(repo: Path) -> None:
    put(
        repo / "CLAUDE.md",
        "one <!-- not\nthis -->\n- ```sh\nnor this\n  ```\ntwo\n~~~~\nno\n~~~\n~~~~\nthree <!-- open\nno",
    )
    put(repo / "CLAUDE.local.md", "four\n```\nan open fence")
    assert [text.split() for text in shown("claude-code", repo)] == [["one", "two", "three"], ["four"]]


def test_an_override_takes_the_place_of_the_file_beside_it(repo: Path) -> None:
    for folder in (repo.parents[1] / ".codex", repo, repo / "app"):
        put(folder / "AGENTS.md", f"of {folder.name}")
    for folder in (repo.parents[1] / ".codex", repo):
        put(folder / "AGENTS.override.md", f"over {folder.name}")
    assert shown("codex", repo / "app") == ["over .codex", "over site", "of app"]
    assert users_files(DIALECTS["codex"]) == [repo.parents[1] / ".codex" / "AGENTS.override.md"]


def test_a_file_that_was_read_for_its_own_project_is_not_shown_in_another(repo: Path) -> None:
    other = repo.parent / "other"
    (other / ".git").mkdir(parents=True)
    put(repo / "CLAUDE.md", "of one client")
    (other / "CLAUDE.md").symlink_to(repo / "CLAUDE.md")
    assert shown("claude-code", repo) == ["of one client"]
    assert shown("claude-code", other) == []


def test_a_file_of_a_project_imports_nothing_from_outside_and_is_not_the_users_own(repo: Path) -> None:
    home = repo.parents[1]
    put(home / ".claude" / "CLAUDE.md", "mine @~/private/habits.md")
    put(home / "private" / "habits.md", "habits")
    put(home / "private" / "diary.md", "diary")
    put(repo / "CLAUDE.md", f"@~/private/diary.md @../../private/diary.md @{home}/private/diary.md @docs/more.md")
    put(repo / "docs" / "more.md", "more")
    found = [(text, own) for _, text, own in in_context(DIALECTS["claude-code"], str(repo))]
    project = (repo / "CLAUDE.md").read_text()
    assert found == [("mine @~/private/habits.md", True), (project, False), ("habits", True), ("more", False)]
