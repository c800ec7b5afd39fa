"""Every call that leaves the machine stands in docs/providers.md, and there is no other way out."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from perdure import llm as purposes
from perdure.llm import PURPOSES

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "providers.md").read_text(encoding="utf-8")
WAYS_OUT = {
    "perdure/models/download.py": {"models"},
    "perdure/models/providers.py": {"embeddings"},
    "perdure/models/llm.py": {purpose.name for purpose in PURPOSES},
}
"""Who makes a connection possible, with the rows of the page that tell what for."""
CLIENTS = ("perdure/models/endpoint.py", "perdure/models/download.py")
"""The only modules that speak to a server."""
ON_THIS_MACHINE = ("perdure/service/client.py", "perdure/service/helper.py")
"""Between these goes a Unix socket."""
PAGE_SERVER = "perdure/ui/server.py"
"""Serves the local page, on the loopback address alone."""
SPEAKING = re.compile(r"(?:_?socket|ssl|http|urllib\.request|ftplib|smtplib|xmlrpc|requests|httpx|aiohttp)(?:\.|$)")

STREAMS = ("open_connection", "create_connection", "create_datagram_endpoint", "start_server", "create_server")


def rows(heading: str) -> dict[str, list[str]]:
    """Return the cells of the first table below a heading, by the name in its first column."""
    table = PAGE.partition(f"## {heading}\n")[2].partition("\n| --- ")[2].partition("\n\n")[0]
    cells = [line.strip("| ").split(" | ") for line in table.split("\n")[1:]]
    return {re.findall(r"`(\w+)`", row[0])[0]: row for row in cells}


def sources() -> Iterator[tuple[str, ast.Module]]:
    for path in sorted((ROOT / "perdure").rglob("*.py")):
        yield path.relative_to(ROOT).as_posix(), ast.parse(path.read_text(encoding="utf-8"))


def imports(tree: ast.Module) -> Iterator[tuple[str, str]]:
    """Yield each imported module with each name that is imported of it."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((alias.name, "") for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield from ((node.module, alias.name) for alias in node.names)


def called(tree: ast.Module, name: str) -> list[ast.Call]:
    calls = (node for node in ast.walk(tree) if isinstance(node, ast.Call))
    return [call for call in calls if (getattr(call.func, "attr", None) or getattr(call.func, "id", None)) == name]


def test_the_page_names_every_call() -> None:
    told = rows("What leaves the machine")
    assert set(told) == set().union(*WAYS_OUT.values())
    assert all(len(row) == 4 and all(cell.strip() for cell in row) for row in told.values())


def test_the_page_tells_the_model_and_the_answer_of_each_purpose() -> None:
    told = rows("A language model")
    assert {name: (row[1], row[2]) for name, row in told.items()} == {
        purpose.name: (purpose.tier, str(purpose.answer_tokens)) for purpose in PURPOSES
    }


def test_a_connection_is_made_in_three_places() -> None:
    found = {path for path, tree in sources() if called(tree, "Endpoint") or called(tree, "download")}
    assert found == set(WAYS_OUT)


def test_nothing_else_speaks_to_a_network() -> None:
    for path, tree in sources():
        if path in CLIENTS:
            continue
        found = {f"{module}.{name}" if module == "urllib" else module for module, name in imports(tree)}
        if path in ON_THIS_MACHINE:
            # A socket of another family would reach beyond it.
            assert set(re.findall(r"AF_\w+", (ROOT / path).read_text())) == {"AF_UNIX"}, path
            found -= {"socket", "_socket"}
        if path == PAGE_SERVER:
            assert re.findall(r"\.bind\((.*)\)", (ROOT / path).read_text()) == ['("127.0.0.1", port)']
            found -= {"socket"}
        assert not [module for module in found if SPEAKING.match(module)], path
        # asyncio itself is at home here: for threads, and for the pipes that a host holds.
        assert not [name for name in STREAMS if called(tree, name)], path


def test_every_question_names_its_purpose() -> None:
    asked: dict[str, str] = {}
    for path, tree in sources():
        if path == "perdure/models/llm.py":
            continue  # hands on what it is given
        for call in called(tree, "ask_json"):
            [purpose] = [each.value for each in call.keywords if each.arg == "purpose"]
            assert isinstance(purpose, ast.Name), f"{path}: a purpose stands under its name in perdure.llm"
            asked[purpose.id] = path
        assert not called(tree, "Purpose") or path == "perdure/llm.py"
    assert {getattr(purposes, name) for name in asked} == set(PURPOSES)
    assert len({purpose.name for purpose in PURPOSES}) == len(PURPOSES)
