"""Tests of the store and of what is built on it, over PostgreSQL: what holds for files holds there."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree

import psycopg
import pytest

from tests.on_postgres import VARIABLE
from tests.postgres.server import REQUIRED, Server, missing

pytestmark = pytest.mark.postgres
TESTS = Path(__file__).parents[1]


def cases(test: str, *names: str) -> tuple[str, ...]:
    """Return the ids of some cases of a test."""
    return tuple(f"scopes/{test}[{name}]" for name in names)


class Part(NamedTuple):
    """A part of what `pytest -m "not sqlite"` runs, over a server that TEST_STORE_URL names.

    Attributes:
        passes: the files, and how many tests of each pass at the least.
        tenants: stores that these open at the least, each a tenant.
        left_out: the slowest cases of tests whose other cases run, or that ask what others do.
    """

    passes: Mapping[str, int]
    tenants: int
    left_out: tuple[str, ...] = ()


PARTS = {
    "facts": Part(
        {
            "store/test_undo.py": 24, "store/test_links.py": 35, "store/test_expiry.py": 10,
            "store/test_changing.py": 45,
            "store/test_duplicates.py": 17, "recall/test_recall.py": 90, "capture/test_decide.py": 48,
            "store/test_transaction.py": 40, "store/test_search.py": 45, "store/test_triggers.py": 6,
        },
        tenants=200,
    ),
    "purges": Part({"maintenance/test_purge.py": 18, "plugin/test_purged.py": 2}, tenants=10),
    # Each example of the machine opens a store of its own: 10 with purges, 30 with undo.
    "states": Part({"store/test_state_machine.py": 2}, tenants=40),
    "canaries": Part(
        {"scopes/test_canaries.py": 140},
        tenants=30,
        left_out=(
            *cases("test_canaries.py::test_reading_tells_nothing_of_what_is_hidden",
                   "Admin.evaluate", "Turns.replay", "Turns.one", "Turns.past"),
            *cases("test_canaries.py::test_what_is_hidden_is_answered_like_what_is_not_there", "Admin.evaluate"),
            *cases("test_canaries.py::test_writing_tells_and_changes_nothing_of_what_is_hidden",
                   "owner", "ann", "a stranger", "max in a session", "bob for max"),
        ),
    ),
    "matrix": Part(
        {"scopes/test_matrix.py": 80},
        tenants=4,
        left_out=(
            *cases("test_matrix.py::test_no_caller_reads_what_is_another_callers", "Admin.evaluate", "Turns.replay"),
            *cases("test_matrix.py::test_nor_is_another_callers_found_by_its_meaning", "Memory.recall, text",
                   "Memory.why", "Memory.why_not", "Files.search", "Files.search, all", "Files.search, sessions"),
            *cases("test_matrix.py::test_no_caller_changes_what_is_another_callers", "None", "bob"),
        ),
    ),
    "rows": Part({"test_seed_rows.py": 35}, tenants=30),
    "librarian": Part(
        {"librarian/test_apply.py": 6, "librarian/test_desk.py": 26, "librarian/test_killed.py": 1,
         "librarian/test_request.py": 10},
        tenants=50,
    ),
    "users": Part({"scopes/test_users.py": 24, "scopes/test_assign.py": 36, "scopes/test_fuzz.py": 8}, tenants=40),
}  # fmt: skip


@pytest.mark.timeout(900)
@pytest.mark.parametrize("name", PARTS)
def test_what_holds_for_files_holds_for_a_server(name: str, server: Server, tmp_path: Path) -> None:
    part = PARTS[name]
    url, report, folders = server.database(f"contract_{name}"), tmp_path / "report.xml", tmp_path / "folders"
    out = [word for each in part.left_out for word in ("--deselect", f"tests/{each}")]
    done = subprocess.run(
        [
            sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-m", "not sqlite", f"--junitxml={report}",
            f"--basetemp={folders}", "--timeout=400", *out, *(f"tests/{each}" for each in part.passes),
        ],
        env=os.environ | {VARIABLE: url}, cwd=TESTS.parent, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-3000:]
    passed, skipped = results(report)
    assert not skipped
    assert {each: passed[each] for each in part.passes if passed[each] < part.passes[each]} == {}
    with psycopg.connect(server.as_("postgres", f"contract_{name}")) as connection:
        [(tenants,)] = connection.execute("SELECT count(DISTINCT tenant) FROM meta").fetchall()
    assert tenants >= part.tenants
    assert list(folders.rglob("facts.db")) == []


def results(report: Path) -> tuple[Counter[str], list[str]]:
    """Return how many tests of each file passed, and which did not run."""
    passed, skipped = Counter[str](), []
    for case in ElementTree.parse(report).iter("testcase"):
        # Dotted, as `tests.store.test_undo.TestSession`.
        names = case.attrib["classname"].split(".")
        file = next(at for at, name in enumerate(names) if name.startswith("test_"))
        if len(case):
            skipped.append(f"{case.attrib['classname']}.{case.attrib['name']}")
        else:
            passed["/".join(names[1 : file + 1]) + ".py"] += 1
    return passed, skipped


@pytest.mark.parametrize(("required", "ends"), [(True, pytest.fail.Exception), (False, pytest.skip.Exception)])
def test_a_server_that_has_to_be_there_is_missed(
    required: bool, ends: type[BaseException], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(REQUIRED, raising=False)
    if required:
        monkeypatch.setenv(REQUIRED, "1")
    with pytest.raises(ends, match="no server"):
        missing("no server")
