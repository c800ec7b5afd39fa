"""Imports go down only, and what is pure does no I/O."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Collection, Iterator, Mapping
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


def levels(page: str) -> dict[str, int]:
    """Return the level of each folder and module, from the table of the page on the architecture: 0 is the lowest."""
    house = page.partition("\n## The house\n")[2].partition("\n## ")[0]
    rows = [re.findall(r"`(\w+)(?:/|\.py)`", row) for row in re.findall(r"^\| (`.*?) \|", house, re.MULTILINE)]
    return {name: level for level, names in enumerate(reversed(rows)) for name in names}


LEVELS = levels((ROOT / "docs" / "architecture.md").read_text(encoding="utf-8"))
"""A module may import from below and from its own package."""

SHARED = "perdure.hooks.types"
"""Every module may import it; it imports nothing of perdure."""

PURE = {"text", "ranking", "secrets"}
IO_MODULES = {
    "apsw",
    "io",
    "lancedb",
    "os",
    "pathlib",
    "shutil",
    "socket",
    "sqlite3",
    "subprocess",
    "tempfile",
    "urllib",
}

SQLITE = {
    "perdure/store/access.py": "opens SQLite's files, and puts its errors in words",
    "perdure/store/database.py": "the backend itself",
    "perdure/store/single_node.py": "what that backend answers of other machines; SQLite's version",
    "perdure/store/snapshot.py": "copies such a file page by page",
    "perdure/store/stems.py": "FTS5's tokenizer, by which words are found in both backends",
    "perdure/maintenance/backup.py": "copies facts.db, and puts a copy in its place",
    "perdure/maintenance/certificate.py": "asks SQLite for the bytes of its files, past its locks",
    "perdure/maintenance/checks.py": "a fresh schema to compare facts.db with",
    "perdure/importers/hybrid.py": "reads the facts.db of another system",
    "perdure/maintenance/recovery_sources.py": "reads what is left of a damaged facts.db",
    "perdure/maintenance/teardown.py": "asks a facts.db beside a shared store whose it is",
}
"""The modules that know SQLite's driver, and why each does: what works on the store must run over a server, too."""

LOCAL = """
import sys
from perdure import Memory
with Memory.open(sys.argv[1], embedder="hash", timers=False) as memory:
    memory.store("The staging database is called heron.")
    assert memory.recall("What is the staging database called?")
print([name for name in sys.modules if name.startswith("psycopg")])
"""


def violations(path: str, source: str) -> list[str]:
    """Return what is wrong with the imports of one module, a line each.

    Args:
        path: of the module, from the root, such as "perdure/text/fold.py".
        source: its text.
    """
    package = Path(path).with_suffix("").parts[1]
    if package not in LEVELS:
        return [f"{path}: {package} has no level; give it one"]
    found = []
    for node in ast.walk(ast.parse(source)):
        for name in imported(node):
            problem = judge(path, package, name)
            if problem:
                found.append(f"{path}:{getattr(node, 'lineno', 0)}: {problem}")
        if package in PURE and called(node) == "open":
            found.append(f"{path}:{getattr(node, 'lineno', 0)}: {package} calls open()")
    return found


def judge(path: str, package: str, name: str) -> str | None:
    top, _, rest = name.partition(".")
    if top == "":
        return "relative import"
    if package in PURE and top in IO_MODULES:
        return f"{package} imports {top}"
    if top != "perdure":
        return None
    if path == f"{SHARED.replace('.', '/')}.py":
        return f"{SHARED} imports {name}"
    target = rest.partition(".")[0]
    # `from perdure import Memory` means perdure/__init__.py.
    target = target if target in LEVELS else "__init__"
    shared = f"{name}.".startswith(f"{SHARED}.")
    if target == package or shared or LEVELS[target] < LEVELS[package]:
        return None
    return f"{package} (level {LEVELS[package]}) imports {name} (level {LEVELS[target]})"


def imported(node: ast.AST) -> Iterator[str]:
    """Yield the dotted names that a node imports; a relative one begins with a dot."""
    match node:
        case ast.Import():
            yield from (alias.name for alias in node.names)
        case ast.ImportFrom(level=0, module=str(module)):
            yield from (f"{module}.{alias.name}" for alias in node.names)
        case ast.ImportFrom():
            yield "." * node.level
        case ast.Call(args=[ast.Constant(value=str(module)), *_]) if called(node) in {
            "import_module",
            "__import__",
        }:
            yield module


def called(node: ast.AST) -> str | None:
    """Return the last name of what a node calls."""
    match node:
        case ast.Call(func=ast.Name(id=name)) | ast.Call(func=ast.Attribute(attr=name)):
            return name
    return None


def test_the_table_names_what_is_there_and_nothing_else() -> None:
    assert set(LEVELS) == {path.stem for path in (ROOT / "perdure").iterdir() if path.suffix == ".py" or
                           (path / "__init__.py").exists()}  # fmt: skip


@pytest.mark.parametrize(
    "path", [path.relative_to(ROOT).as_posix() for path in sorted((ROOT / "perdure").rglob("*.py"))]
)
def test_the_module_imports_downwards_only(path: str) -> None:
    assert violations(path, (ROOT / path).read_text()) == []


def circles(imports: Mapping[str, Collection[str]]) -> list[list[str]]:
    """Return the groups of modules that import each other, directly or by way of others.

    Args:
        imports: what each module imports.
    """
    sorter = TopologicalSorter({name: {each for each in found if each in imports} for name, found in imports.items()})
    try:
        sorter.prepare()
    except CycleError as error:
        return [error.args[1]]
    return []


def test_no_modules_import_each_other_in_a_circle() -> None:
    """Not for types, not within a function and not within a package."""
    paths = {path.relative_to(ROOT).with_suffix("").as_posix().replace("/", ".").removesuffix(".__init__"): path
             for path in (ROOT / "perdure").rglob("*.py")}  # fmt: skip
    assert len(paths) > 300
    imports = {}
    for name, path in paths.items():
        found = {each for node in ast.walk(ast.parse(path.read_text())) for each in imported(node)}
        # A name that is no module is something in one.
        imports[name] = {each if each in paths else each.rpartition(".")[0] for each in found} - {name}
    assert circles(imports) == []


def test_a_circle_is_found() -> None:
    assert circles({"a": {"b"}, "b": {"c"}, "c": {"a"}, "d": {"a"}})
    assert not circles({"a": {"b", "elsewhere"}, "b": set(), "c": {"a", "b"}})


def test_no_other_module_knows_sqlites_driver() -> None:
    found = set()
    for path in (ROOT / "perdure").rglob("*.py"):
        nodes = ast.walk(ast.parse(path.read_text()))
        if any(name.partition(".")[0] in {"apsw", "sqlite3"} for node in nodes for name in imported(node)):
            found.add(path.relative_to(ROOT).as_posix())
    assert found == set(SQLITE)


def test_only_the_backend_on_a_server_knows_its_driver() -> None:
    for path in (ROOT / "perdure").rglob("*.py"):
        if path.is_relative_to(ROOT / "perdure" / "store" / "postgres"):
            continue
        names = {name for node in ast.walk(ast.parse(path.read_text())) for name in imported(node)}
        assert not {name for name in names if name.startswith("psycopg")}, path


@pytest.mark.sqlite
def test_a_store_in_a_folder_imports_nothing_that_talks_to_a_server(home: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", LOCAL, str(home)], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert (done.stdout.strip(), done.returncode) == ("[]", 0), done.stderr


@pytest.mark.parametrize(
    ("path", "source"),
    [
        ("perdure/store/a.py", "from perdure.text.fold import fold"),
        ("perdure/store/a.py", "from perdure.store import b\nimport perdure.store.b as b"),
        ("perdure/ranking/a.py", "from perdure.hooks.types import Channel"),
        ("perdure/ranking/a.py", "from perdure.hooks import types\nimport perdure.hooks.types"),
        ("perdure/ranking/a.py", "import math, re, unicodedata\nfrom perdure import errors"),
        ("perdure/capture/a.py", "def run():\n    from perdure.store.database import Database"),
        ("perdure/hosts/openclaw/a.py", "from perdure.api.memory import Memory"),
        ("perdure/__main__.py", "from perdure.cli.main import main"),
        ("perdure/__init__.py", "from perdure.api.memory import Memory"),
        ("perdure/store/a.py", "import os\nopen('x')"),
        ("perdure/clock.py", "import perdure_extension"),
    ],
)
def test_downwards_is_allowed(path: str, source: str) -> None:
    assert violations(path, source) == []


@pytest.mark.parametrize(
    ("path", "source", "message"),
    [
        (
            "perdure/store/a.py",
            "from perdure.recall.fuse import fuse",
            "store (level 5) imports perdure.recall",
        ),
        ("perdure/store/a.py", "from perdure import recall", "store (level 5) imports perdure.recall"),
        ("perdure/store/a.py", "import perdure.embed.load", "store (level 5) imports perdure.embed"),
        ("perdure/store/a.py", "import re, perdure.plugin", "store (level 5) imports perdure.plugin"),
        ("perdure/net/a.py", "import perdure.models.llm", "net (level 4) imports perdure.llm"),
        ("perdure/embed/a.py", "import perdure.models.llm", "embed (level 5) imports perdure.llm"),
        ("perdure/llm/a.py", "import perdure.store.store", "llm (level 5) imports perdure.store"),
        ("perdure/capture/a.py", "import perdure.files.chunk", "capture (level 7) imports perdure.files"),
        ("perdure/text/a.py", "from perdure.ranking.fuse import f", "text (level 2) imports perdure.ranking"),
        (
            "perdure/text/a.py",
            "from perdure.hooks.spec import s",
            "text (level 2) imports perdure.hooks.spec",
        ),
        ("perdure/text/a.py", "from perdure.hooks import types_x", "text (level 2) imports perdure.hooks"),
        ("perdure/hosts/a.py", "from perdure.cli import output", "hosts (level 13) imports perdure.cli"),
        ("perdure/plugin/a.py", "from perdure import Memory", "plugin (level 12) imports perdure.Memory"),
        ("perdure/plugin/a.py", "import perdure", "plugin (level 12) imports perdure (level 16)"),
        ("perdure/errors.py", "from perdure.text.fold import fold", "errors (level 0) imports perdure.text"),
        ("perdure/store/a.py", "def f():\n    import perdure.plugin.x", "a.py:2: store"),
        (
            "perdure/store/a.py",
            "if TYPE_CHECKING:\n    from perdure.plugin.x import y",
            "a.py:2: store",
        ),
        ("perdure/store/a.py", "importlib.import_module('perdure.plugin.x')", "imports perdure.plugin.x"),
        ("perdure/hooks/types.py", "from perdure.errors import PerdureError", "imports perdure.errors"),
        ("perdure/hooks/types.py", "from perdure.hooks.spec import x", "imports perdure.hooks.spec"),
        ("perdure/store/a.py", "from . import b", "relative import"),
        ("perdure/store/a.py", "from ..text import b", "relative import"),
        ("perdure/misc/a.py", "", "misc has no level"),
        ("perdure/text/a.py", "from pathlib import Path", "text imports pathlib"),
        ("perdure/ranking/a.py", "def f():\n    import os.path", "ranking imports os"),
        ("perdure/text/a.py", "open('x')", "text calls open()"),
    ],
)
def test_the_checker_names_what_is_wrong(path: str, source: str, message: str) -> None:
    [found] = violations(path, source)
    assert message in found
