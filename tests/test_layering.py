"""Imports go down only, the core imports nothing of the shell, and what is pure does no I/O."""

from __future__ import annotations

import ast
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Collection, Iterator, Mapping
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


PAGE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")


def table(page: str, head: str) -> list[list[str]]:
    """Return the folders and modules that each row names, of the table with this head."""
    rows = page.partition(f"\n| {head} | ")[2].partition("\n\n")[0]
    return [re.findall(r"`(\w+)(?:/|\.py)`", row) for row in re.findall(r"^\| (`.*?) \|", rows, re.MULTILINE)]


CORE = {name: level for level, names in enumerate(reversed(table(PAGE, "Core"))) for name in names}
"""The level of each folder and module of the core, 0 the lowest: it may import from below and from itself."""
SHELL = {name for names in table(PAGE, "Shell") for name in names}
"""What the core imports nothing of: each may import the core, and nothing of the others."""
TYPES_OF = {("perdure/api/admin.py", "perdure.vault.vault.Vault")}
"""A public signature names it; it is imported for type checkers alone."""

SHARED = "perdure.hooks.types"
"""Every module may import it; it imports nothing of perdure."""

OPTIONAL = {"lancedb": "lance", "pyarrow": "lance"}
"""What an installation need not have, and the one folder that imports it."""
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
    "perdure/store/snapshot.py": "copies such a file page by page",
    "perdure/store/vocabulary.py": "FTS5's tokenizer, by which words are found in both backends",
    "perdure/maintenance/backup.py": "copies facts.db, and puts a copy in its place",
    "perdure/maintenance/certificate.py": "asks SQLite for the bytes of its files, past its locks",
    "perdure/maintenance/checks.py": "a fresh schema to compare facts.db with",
    "perdure/importers/systems.py": "reads the facts.db of another system",
    "perdure/maintenance/recovery.py": "reads what is left of a damaged facts.db",
    "perdure/maintenance/teardown.py": "asks a facts.db beside a shared store whose it is",
}
"""The modules that know SQLite's driver, and why each does: what works on the store must run over a server, too."""

TURN = """
import sys
import perdure
from perdure import Memory, TurnContext
with Memory.open(sys.argv[1], timers=False) as memory:
    memory.ready()
    said = [{"role": "user", "content": "The staging database is called heron."}]
    assert memory.turns.after(said, True, TurnContext(session_id="s")) == 1
    assert memory.settle()
    assert "heron" in memory.turns.before("What is the staging database called?", TurnContext(session_id="t")).block
print(perdure.__file__)
"""

LOCAL = """
import sys
from perdure import Memory
with Memory.open(sys.argv[1], embedder="hash", timers=False) as memory:
    memory.store("The staging database is called heron.")
    assert memory.recall("What is the staging database called?")
print([name for name in sys.modules if name.startswith("psycopg")])
"""


def violations(path: str, source: str) -> list[str]:
    """Return what is wrong with the imports of one module, a line each; the path is one from the root."""
    package = Path(path).with_suffix("").parts[1]
    if package not in CORE and package not in SHELL:
        return [f"{path}: {package} has no level; give it one"]
    found = []
    for node in ast.walk(ast.parse(source)):
        for name in imported(node):
            problem = None if (path, name) in TYPES_OF else judge(path, package, name)
            if problem:
                found.append(f"{path}:{getattr(node, 'lineno', 0)}: {problem}")
        if package in PURE and called(node) == "open":
            found.append(f"{path}:{getattr(node, 'lineno', 0)}: {package} calls open()")
        if called(node) == "part" and not is_of_shell(node):
            found.append(f"{path}:{getattr(node, 'lineno', 0)}: part() names no module of the shell")
    return found


def is_of_shell(node: ast.AST) -> bool:
    """Return whether a call of `part` names a module that is there, in a folder of the shell."""
    match node:
        case ast.Call(args=[ast.Constant(value=str(name))]):
            there = (ROOT / "perdure" / name.replace(".", "/")).with_suffix(".py").is_file()
            return there and name.partition(".")[0] in SHELL
    return False


def judge(path: str, package: str, name: str) -> str | None:
    top, _, rest = name.partition(".")
    if top == "":
        return "relative import"
    if package in PURE and top in IO_MODULES:
        return f"{package} imports {top}"
    if top in OPTIONAL and package != OPTIONAL[top]:
        return f"{package} imports {top}, which is for {OPTIONAL[top]}"
    if top != "perdure":
        return None
    if path == f"{SHARED.replace('.', '/')}.py":
        return f"{SHARED} imports {name}"
    target = rest.partition(".")[0]
    if target in SHELL:
        return None if target == package else f"{package} imports {name} of the shell"
    # `from perdure import Memory` means perdure/__init__.py.
    target = target if target in CORE else "__init__"
    if package in SHELL:
        return f"{package} imports {name}" if target in {"__init__", "__main__"} else None
    shared = f"{name}.".startswith(f"{SHARED}.")
    if target == package or shared or CORE[target] < CORE[package]:
        return None
    return f"{package} imports {name}, which is not below it"


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


def modules() -> Iterator[tuple[str, str]]:
    """Yield the path of each module from the root, with its source."""
    for path in sorted((ROOT / "perdure").rglob("*.py")):
        yield path.relative_to(ROOT).as_posix(), path.read_text(encoding="utf-8")


def test_the_tables_name_what_is_there_and_nothing_else() -> None:
    assert {*CORE, *SHELL} == {path.stem for path in (ROOT / "perdure").iterdir() if path.suffix == ".py" or
                               (path / "__init__.py").exists()}  # fmt: skip


def test_modules_import_downwards_only_and_the_core_nothing_of_the_shell() -> None:
    assert [found for path, source in modules() for found in violations(path, source)] == []


def test_a_turn_works_without_the_files_of_the_shell(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "perdure", tmp_path / "perdure", ignore=shutil.ignore_patterns("__pycache__", *SHELL))
    done = subprocess.run(
        [sys.executable, "-c", TURN, str(tmp_path / "home")],
        env={**os.environ, "PYTHONPATH": str(tmp_path)}, cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (done.stdout.strip(), done.returncode) == (str(tmp_path / "perdure" / "__init__.py"), 0), done.stderr


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
        if path.is_relative_to(ROOT / "perdure" / "postgres"):
            continue
        names = {name for node in ast.walk(ast.parse(path.read_text())) for name in imported(node)}
        assert not {name for name in names if name.startswith("psycopg")}, path


@pytest.mark.sqlite
def test_a_store_in_a_folder_imports_nothing_that_talks_to_a_server(home: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", LOCAL, str(home)], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert (done.stdout.strip(), done.returncode) == ("[]", 0), done.stderr


ALLOWED = [
    ("perdure/store/a.py", "from perdure.text.fold import fold"),
    ("perdure/store/a.py", "from perdure.store import b\nimport perdure.store.b as b"),
    ("perdure/ranking/a.py", "from perdure.hooks.types import Channel"),
    ("perdure/ranking/a.py", "from perdure.hooks import types\nimport perdure.hooks.types"),
    ("perdure/ranking/a.py", "import math, re, unicodedata\nfrom perdure import errors"),
    ("perdure/capture/a.py", "def run():\n    from perdure.store.database import Database"),
    ("perdure/hosts/openclaw/a.py", "from perdure.api.memory import Memory\nfrom perdure.hosts.carrier import b"),
    ("perdure/vault/a.py", "from perdure.cli.output import Output"),
    ("perdure/store/a.py", 'part("postgres.database").PostgresDatabase()'),
    ("perdure/__main__.py", "from perdure.cli.main import main"),
    ("perdure/__init__.py", "from perdure.api.memory import Memory"),
    ("perdure/store/a.py", "import os\nopen('x')"),
    ("perdure/clock.py", "import perdure_extension"),
]
REFUSED = [
    ("perdure/store/a.py", "from perdure.recall.fuse import fuse", "store imports perdure.recall"),
    ("perdure/store/a.py", "from perdure import recall", "store imports perdure.recall"),
    ("perdure/store/a.py", "import perdure.embed.load", "store imports perdure.embed"),
    ("perdure/store/a.py", "import re, perdure.plugin", "store imports perdure.plugin"),
    ("perdure/embed/a.py", "import perdure.models.llm", "embed imports perdure.models.llm of the shell"),
    ("perdure/llm.py", "import perdure.store.store", "llm imports perdure.store"),
    ("perdure/capture/a.py", "import perdure.files.chunk", "capture imports perdure.files"),
    ("perdure/text/a.py", "from perdure.ranking.fuse import f", "text imports perdure.ranking"),
    ("perdure/text/a.py", "from perdure.hooks.spec import s", "text imports perdure.hooks.spec"),
    ("perdure/text/a.py", "from perdure.hooks import types_x", "text imports perdure.hooks"),
    ("perdure/cli/a.py", "from perdure.hosts.connect import survey", "cli imports perdure.hosts.connect.survey of the"),
    ("perdure/store/a.py", "if TYPE_CHECKING:\n    from perdure.vault.vault import Vault", "a.py:2: store imports"),
    ("perdure/hosts/a.py", "from perdure.ui import door", "hosts imports perdure.ui.door of the shell"),
    ("perdure/hosts/a.py", "from perdure import Memory", "hosts imports perdure.Memory"),
    ("perdure/store/a.py", 'part("postgres.nothing")', "part() names no module of the shell"),
    ("perdure/store/a.py", 'part("recall.pipeline")', "part() names no module of the shell"),
    ("perdure/store/a.py", "part(name)", "part() names no module of the shell"),
    ("perdure/plugin/a.py", "from perdure import Memory", "plugin imports perdure.Memory"),
    ("perdure/plugin/a.py", "import perdure", "plugin imports perdure"),
    ("perdure/errors.py", "from perdure.text.fold import fold", "errors imports perdure.text"),
    ("perdure/store/a.py", "def f():\n    import perdure.plugin.x", "a.py:2: store"),
    ("perdure/store/a.py", "if TYPE_CHECKING:\n    from perdure.plugin.x import y", "a.py:2: store"),
    ("perdure/store/a.py", "importlib.import_module('perdure.plugin.x')", "imports perdure.plugin.x"),
    ("perdure/hooks/types.py", "from perdure.errors import PerdureError", "imports perdure.errors"),
    ("perdure/hooks/types.py", "from perdure.hooks.spec import x", "imports perdure.hooks.spec"),
    ("perdure/store/a.py", "from . import b", "relative import"),
    ("perdure/store/a.py", "from ..text import b", "relative import"),
    ("perdure/importers/a.py", "def f():\n    import lancedb", "importers imports lancedb, which is for lance"),
    ("perdure/misc/a.py", "", "misc has no level"),
    ("perdure/text/a.py", "from pathlib import Path", "text imports pathlib"),
    ("perdure/ranking/a.py", "def f():\n    import os.path", "ranking imports os"),
    ("perdure/text/a.py", "open('x')", "text calls open()"),
]


def test_the_checker_lets_through_what_is_allowed() -> None:
    assert [found for path, source in ALLOWED for found in violations(path, source)] == []


def test_the_checker_names_what_is_wrong() -> None:
    found = [(path, source, message, violations(path, source)) for path, source, message in REFUSED]
    assert [each for each in found if len(each[3]) != 1 or each[2] not in each[3][0]] == []
