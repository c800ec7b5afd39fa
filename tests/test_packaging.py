"""What is released is whole, asks for what it needs, and does at once what the first pages say.

The same from a fresh environment, with all that pip brings: python -m tests.e2e.clean --dir DIR
"""

from __future__ import annotations

import ast
import importlib.metadata
import re
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

import perdure
from tests.e2e.newcomer import Newcomer, Section, sections
from tests.e2e.package import ROOT, Built, build, in_sdist, in_wheel, sdist_problems, wheel_problems

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
MODULE_OF_EXTRA = {"mcp": "mcp", "langchain": "langchain"}
ELSEWHERE = ("Install", "A demonstration")
"""Parts of the pages that others run: tests/e2e/clean.py, tests/cli/test_demo.py."""
SHARED = {"google"}
"""Names that several distributions share."""


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Built:
    return build(tmp_path_factory.mktemp("dist"))


@pytest.fixture(scope="module")
def unpacked(built: Built, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel as it lies in an environment, and `perdure` and `python` in `bin`."""
    site = tmp_path_factory.mktemp("site")
    with zipfile.ZipFile(built.wheel) as archive:
        archive.extractall(site)
    (site / "bin").mkdir()
    for name, words in {"perdure": "-P -m perdure", "python": ""}.items():
        program = site / "bin" / name
        program.write_text(f'#!/bin/sh\nPYTHONPATH="{site}" exec "{sys.executable}" {words} "$@"\n')
        program.chmod(0o755)
    return site


def test_the_wheel_holds_the_package_and_nothing_else(built: Built) -> None:
    assert wheel_problems(in_wheel(built.wheel)) == []


def test_the_source_distribution_is_whole(built: Built) -> None:
    assert sdist_problems(in_sdist(built.sdist)) == []


def test_the_checker_names_what_is_wrong(built: Built) -> None:
    files = in_wheel(built.wheel)
    gone = {name: size for name, size in files.items() if not name.endswith("bridge.js")}
    assert "perdure/hosts/openclaw/bridge.js is missing" in wheel_problems(gone)
    for stray in ("tests/test_house.py", "perdure/capture/data/notes.json", "perdure/facts.db"):
        assert wheel_problems(files | {stray: 1}) == [f"{stray} does not belong there"]
    assert wheel_problems(files | {"perdure/clock.py": 70_000}) == ["perdure/clock.py has 70000 bytes"]
    sources = in_sdist(built.sdist)
    assert sdist_problems(sources | {"tests/__pycache__/a.pyc": 1}) == ["tests/__pycache__/a.pyc does not belong there"]


@pytest.mark.parametrize(
    "section", [each for each in sections() if each.title not in ELSEWHERE], ids=lambda each: each.title
)
def test_the_first_pages_hold_for_who_has_nothing_set(section: Section, unpacked: Path, tmp_path: Path) -> None:
    if section.extra:
        pytest.importorskip(MODULE_OF_EXTRA[section.extra], reason=f"the extra `{section.extra}` is not installed")
    user = Newcomer(tmp_path / "home", unpacked / "bin", unpacked)
    user.own_hosts(section)
    user.go_through(section, install=False)
    created = {path.name for path in user.home.iterdir()}
    known = {".local", ".cache", ".config", ".openclaw", ".claude", ".codex", "bin"}
    assert created <= known, "memories lie where data of users lies"


def test_the_first_pages_install_the_extras_that_their_hosts_need() -> None:
    assert {each.extra for each in sections() if each.extra} == set(MODULE_OF_EXTRA)


def test_what_the_code_imports_is_asked_for_and_the_other_way_round() -> None:
    asked = {_name(each) for each in PROJECT["dependencies"]}
    # What zoneinfo reads where the system has no zones.
    assert asked - {"tzdata"} <= _imported(), "a dependency that nothing imports"
    extras = {_name(each) for extra in PROJECT["optional-dependencies"].values() for each in extra}
    assert _imported() <= asked | extras, "an import that no dependency brings"


def _imported() -> set[str]:
    """Return the distributions that perdure imports from."""
    tops = {name.partition(".")[0] for path in (ROOT / "perdure").rglob("*.py") for name in _imports(path)}
    known = importlib.metadata.packages_distributions()
    foreign = tops - sys.stdlib_module_names - {"perdure"} - SHARED
    return {_normal(known[top][0]) if len(known[top]) == 1 else top for top in foreign if top in known}


def _imports(path: Path) -> list[str]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    plain = [alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names]
    return plain + [node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]


def _name(requirement: str) -> str:
    return _normal(re.split(r"[\[<>=~! ]", requirement)[0])


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def test_what_a_program_may_import_is_found_by_looking() -> None:
    assert {*perdure.__all__, "__version__"} <= {*dir(perdure)}
    assert perdure.__version__ == importlib.metadata.version("perdure")
    assert all(hasattr(perdure, name) for name in perdure.__all__)
