"""What an agent learns in one client's repository stays out of another's."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from perdure.engine.repository import project_of
from perdure.store.scope import Scope
from tests.hosts.machine import git


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    folder = tmp_path / "client a"
    git(tmp_path, "init", "-q", str(folder))
    return folder


def test_every_folder_of_a_repository_is_one_project(repository: Path) -> None:
    (repository / "src" / "deep").mkdir(parents=True)
    assert project_of(repository / "src" / "deep") == project_of(repository)
    assert Scope.parse(str(project_of(repository))).kind == "project"
    assert str(project_of(repository)).startswith("project:client_a-")


def test_two_repositories_of_one_name_are_two_projects(repository: Path, tmp_path: Path) -> None:
    other = tmp_path / "elsewhere" / "client a"
    git(tmp_path, "init", "-q", str(other))
    assert project_of(other) != project_of(repository)


def test_a_worktree_is_the_project_of_its_repository(repository: Path, tmp_path: Path) -> None:
    git(repository, "commit", "-q", "--allow-empty", "-m", "First")
    git(repository, "worktree", "add", "-q", str(tmp_path / "branch"))
    assert project_of(tmp_path / "branch") == project_of(repository)


def test_only_a_worktree_that_its_repository_knows_is_of_it(repository: Path, tmp_path: Path) -> None:
    git(repository, "commit", "-q", "--allow-empty", "-m", "First")
    git(repository, "worktree", "add", "-q", str(tmp_path / "branch"))
    (tmp_path / "unpacked").mkdir()
    (tmp_path / "unpacked" / ".git").write_bytes((tmp_path / "branch" / ".git").read_bytes())
    assert project_of(tmp_path / "unpacked") != project_of(repository)
    assert str(project_of(tmp_path / "unpacked")).startswith("project:unpacked-")


def test_a_submodule_is_a_project_of_its_own(repository: Path, tmp_path: Path) -> None:
    inner = tmp_path / "part"
    git(tmp_path, "init", "-q", str(inner))
    git(inner, "commit", "-q", "--allow-empty", "-m", "First")
    git(repository, "-c", "protocol.file.allow=always", "submodule", "add", "-q", str(inner), "part")
    assert str(project_of(repository / "part")).startswith("project:part-")


@pytest.mark.parametrize("kind", ["pipe", "device", "huge"])
def test_what_is_no_small_file_is_not_read(tmp_path: Path, kind: str) -> None:
    folder = tmp_path / "odd"
    folder.mkdir()
    if kind == "pipe":
        os.mkfifo(folder / ".git")
    elif kind == "device":
        (folder / ".git").symlink_to("/dev/zero")
    else:
        (folder / ".git").write_text("gitdir: " + "x" * 10**6)
    assert str(project_of(folder)).startswith("project:odd-")


def test_a_folder_without_a_repository_is_a_project_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    assert project_of(tmp_path / "a") != project_of(tmp_path / "b")


def test_a_link_to_a_folder_is_that_folder(repository: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(repository)
    assert project_of(tmp_path / "link") == project_of(repository)


def test_the_home_folder_is_no_project(tmp_path: Path) -> None:
    assert project_of(tmp_path, home=tmp_path) is None
    assert project_of(tmp_path, home=tmp_path / "me") is None
    assert project_of(tmp_path / "work", home=tmp_path) is not None


@pytest.mark.parametrize("folder", [None, "", "relative/folder"])
def test_nowhere_is_no_project(folder: str | None) -> None:
    assert project_of(folder) is None


def test_a_broken_link_of_a_worktree_leaves_the_folder(tmp_path: Path) -> None:
    (tmp_path / "torn").mkdir()
    (tmp_path / "torn" / ".git").write_bytes(b"\xff\xfe")
    assert str(project_of(tmp_path / "torn")).startswith("project:torn-")


def test_a_name_of_control_characters_is_still_a_scope(tmp_path: Path) -> None:
    folder = tmp_path / ("x\n" * 90)
    folder.mkdir()
    assert Scope.parse(str(project_of(folder)))
