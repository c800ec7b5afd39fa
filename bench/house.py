"""How large the house is, and how much of it a turn loads, executes and asks of the store.

python -m bench house --json

Lines of code hold neither docstrings nor blanks nor comments; the core is what stands in the first table of
docs/architecture.md; the members of `Memory` are its public attributes; the words are those of README and docs. The
turn goes through the hooks of a host, with the shipped model: two statements are said and kept, then something is
asked. `tests/house.json` holds what none of the figures may exceed; `--lower` writes the present ones there where they
are lower.
"""

from __future__ import annotations

import ast
import inspect
import io
import json
import re
import subprocess
import sys
import tempfile
import tokenize
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from types import FrameType
from typing import Any

import click

from bench.program import program

PATIENCE = 60.0
ROOT = Path(__file__).parents[1]
LIMITS = ROOT / "tests" / "house.json"
FIGURES = (
    "lines", "code", "core_code", "modules", "loaded", "executed", "read_transactions", "settings", "unexported_types",
    "test_items", "memory_members", "doc_words",
)  # fmt: skip
_IGNORED = {
    tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER
}  # fmt: skip


def code_lines(source: str) -> int:
    """Return how many lines of a module hold code."""
    told: set[int] = set()
    for node in ast.walk(ast.parse(source)):
        for child in ast.iter_child_nodes(node):
            # A string that is a statement is a docstring, of whatever stands before or around it.
            if (
                isinstance(child, ast.Expr)
                and isinstance(child.value, ast.Constant)
                and isinstance(child.value.value, str)
            ):
                told.update(range(child.lineno, (child.end_lineno or child.lineno) + 1))
    code: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type not in _IGNORED:
            code.update(range(token.start[0], token.end[0] + 1))
    return len(code - told)


def modules() -> Iterator[tuple[str, str]]:
    """Yield the folder of each module, or its own name where it is in none, with its source."""
    for path in sorted((ROOT / "perdure").rglob("*.py")):
        yield path.relative_to(ROOT / "perdure").with_suffix("").parts[0], path.read_text(encoding="utf-8")


def shell() -> set[str]:
    """Return the folders of the shell, as docs/architecture.md names them."""
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    rows = page.partition("\n| Shell | ")[2].partition("\n\n")[0]
    return set(re.findall(r"^\| `(\w+)/` \|", rows, re.MULTILINE))


def doc_words() -> int:
    """Return the words of the README and the pages of the docs, counted as `wc -w` does."""
    pages = [ROOT / "README.md", *(ROOT / "docs").glob("*.md")]
    return sum(len(page.read_text(encoding="utf-8").split()) for page in pages)


def public_names() -> dict[str, int]:
    """Return how many functions, classes and constants each folder has that its other modules may use."""
    found: Counter[str] = Counter()
    for folder, source in modules():
        for node in ast.parse(source).body:
            match node:
                case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                    found[folder] += not name.startswith("_")
                case ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name)):
                    found[folder] += not name.startswith("_")
    return dict(sorted(found.items()))


def sizes() -> dict[str, dict[str, int]]:
    """Return modules, lines and lines of code of each folder."""
    found: dict[str, Counter[str]] = {}
    for folder, source in modules():
        code = code_lines(source)
        found.setdefault(folder, Counter()).update(modules=1, lines=source.count("\n"), code=code)
    return {folder: dict(found[folder]) for folder in sorted(found)}


def unexported_types() -> list[str]:
    """Return the classes of ours that signatures of the public API name and `perdure` does not give."""
    import perdure

    exported, seen, missing = set(dir(perdure)), set[type](), set[str]()
    waiting: list[type] = [value for name in exported if inspect.isclass(value := getattr(perdure, name))]
    while waiting:
        each = waiting.pop()
        if each in seen:
            continue
        seen.add(each)
        scope = imported(each.__module__)
        for name, member in inspect.getmembers_static(each):
            function = member.fget if isinstance(member, property) else getattr(member, "__func__", member)
            if name.startswith("_") or not inspect.isfunction(function):
                continue
            for annotation in function.__annotations__.values():
                named = [scope[word] for word in re.findall(r"[A-Z]\w+", str(annotation)) if word in scope]
                # A property leads on to what it returns: `Memory.admin` is as public as `Memory`.
                waiting += named if isinstance(member, property) else []
                missing.update(found.__name__ for found in named if found.__name__ not in exported)
    return sorted(missing)


def imported(module: str) -> dict[str, type]:
    """Return the classes of ours that a module imports or has, those for type checkers alone with them."""
    found: dict[str, type] = {}
    for node in ast.walk(ast.parse(inspect.getsource(sys.modules[module]))):
        match node:
            case ast.ImportFrom(module=str(origin)) if origin.startswith("perdure"):
                names = {alias.asname or alias.name: getattr(import_module(origin), alias.name, None)
                         for alias in node.names}  # fmt: skip
            case ast.ClassDef(name=name):
                names = {name: getattr(sys.modules[module], name, None)}
            case _:
                continue
        found |= {name: value for name, value in names.items() if inspect.isclass(value)}
    return found


def test_items() -> int:
    """Return how many tests pytest collects."""
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "--no-header"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    return sum(int(line.rpartition(": ")[2]) for line in done.stdout.splitlines() if line.startswith("tests/"))


def turn() -> dict[str, int]:
    """Let a host take turns in a process of its own; return modules loaded and executed, and reads of one recall."""
    done = subprocess.run(
        [sys.executable, "-c", "from bench.house import _turn; _turn()"],
        cwd=ROOT, capture_output=True, text=True, check=True,
    )  # fmt: skip
    counted: dict[str, int] = json.loads(done.stdout.splitlines()[-1])
    return counted


def _turn() -> None:
    import threading

    from perdure import Memory, TurnContext, hookimpls_for
    from perdure.hooks.fake_host import FakeHost
    from perdure.hooks.host import HookRunner
    from perdure.store.database import Database

    executed, reads, recording = set[str](), [0], threading.Event()
    read, reading, inside = Database.read, Database.reading, threading.local()

    def note(frame: FrameType, event: str, argument: object) -> None:
        if event == "call" and recording.is_set() and frame.f_code.co_name != "<module>":
            executed.add(frame.f_code.co_filename)

    def counting(self: Database, *given: Any, **named: Any) -> Any:
        reads[0] += not getattr(inside, "one", False)
        return read(self, *given, **named)

    @contextmanager
    def once(self: Database, *given: Any, **named: Any) -> Iterator[None]:
        reads[0] += 1
        with reading(self, *given, **named):
            inside.one = True
            try:
                yield
            finally:
                inside.one = False

    threading.setprofile(note)
    with tempfile.TemporaryDirectory() as folder, Memory.open(folder, timers=False) as memory:
        memory.ready()
        runner = HookRunner()
        runner.register(hookimpls_for(memory=memory))
        host = FakeHost(runner)
        host.start()
        recording.set()
        sys.setprofile(note)
        for said in ("My sister lives in Ghent. The staging database is called heron.", "Where does my sister live?"):
            host.turn(said, "Noted.")
            memory.settle(PATIENCE)
        sys.setprofile(None)
        recording.clear()
        loaded = sum(name.partition(".")[0] == "perdure" for name in sys.modules)
        Database.read = counting  # type: ignore[method-assign]
        Database.reading = once  # type: ignore[method-assign]
        found = memory.turns.before("What is the staging database called?", TurnContext(session_id="another"))
        asked = reads[0]
        if found is None or "heron" not in found.block:
            raise SystemExit("the turn did not bring up what was said")
    ran = sum(path.startswith(str(ROOT / "perdure")) for path in executed)
    print(json.dumps({"loaded": loaded, "executed": ran, "read_transactions": asked}))


def measure(*, items: int | None = None) -> dict[str, Any]:
    """Return the figures, and the public names of each folder; `items` saves collecting the tests."""
    import perdure.engine.settings
    from perdure import Memory

    by_folder, around = sizes(), shell()
    sums = {key: sum(each[key] for each in by_folder.values()) for key in ("lines", "code", "modules")}
    core = sum(each["code"] for folder, each in by_folder.items() if folder not in around)
    return sums | turn() | {
        "core_code": core,
        "settings": len(perdure.engine.settings.Settings.model_fields),
        "unexported_types": len(unexported_types()),
        "test_items": test_items() if items is None else items,
        "memory_members": sum(not name.startswith("_") for name in dir(Memory)),
        "doc_words": doc_words(),
        "public_names": public_names(),
    }  # fmt: skip


def above(found: dict[str, Any], limits: dict[str, Any]) -> list[str]:
    """Return which figures exceed their limits, a line each."""
    pairs = [(name, found[name], limits[name]) for name in FIGURES]
    pairs += [
        (f"public names of {folder}", count, limits["public_names"].get(folder, 0))
        for folder, count in found["public_names"].items()
    ]
    return [f"{name}: {figure}, at most {limit}" for name, figure, limit in pairs if figure > limit]


def lowered(found: dict[str, Any], limits: dict[str, Any]) -> dict[str, Any]:
    """Return the limits, each no higher than what was found; a folder that is new has what was found."""
    known = limits["public_names"]
    names = {folder: min(count, known.get(folder, count)) for folder, count in found["public_names"].items()}
    return {name: min(found[name], limits[name]) for name in FIGURES} | {"public_names": names}


@click.option("--lower", is_flag=True, help="Write the figures that are lower than their limits into the limits.")
def bench(lower: bool) -> dict[str, Any]:
    """Measure the house. Exit code 1: a figure is above its limit, which stderr tells."""
    found, limits = measure(), json.loads(LIMITS.read_text())
    if lower:
        LIMITS.write_text(json.dumps(lowered(found, limits), indent=2) + "\n")
    problems = above(found, limits)
    for problem in problems:
        click.echo(problem, err=True)
    return found | {"folders": sizes(), "above": problems}


main = program(bench, failed=lambda figures: figures["above"])
