"""Tests of the store and of what is built on it, over PostgreSQL: what holds for files holds there."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.on_postgres import VARIABLE
from tests.postgres.server import Server

pytestmark = [pytest.mark.postgres, pytest.mark.timeout(400)]
TESTS = Path(__file__).parents[1]
PARTS = {
    "facts": (
        "life/test_undo.py", "life/test_links.py", "life/test_expiry.py", "life/test_changing.py",
        "life/test_duplicates.py", "recall/test_recall.py", "capture/test_decide.py", "store/test_transaction.py",
        "store/test_search.py", "store/test_purge.py", "plugin/test_purged.py", "scopes/test_assign.py",
    ),
    "states": ("life/test_state_machine.py", "scopes/test_canaries.py"),
    "scopes": ("scopes/test_matrix.py",),
}  # fmt: skip
"""A part of what `pytest -m "not sqlite"` runs, over a server that TEST_STORE_URL names."""


@pytest.mark.parametrize("part", PARTS.values(), ids=PARTS)
def test_what_holds_for_files_holds_for_a_server(server: Server, part: Sequence[str]) -> None:
    options = ("-q", "-p", "no:cacheprovider", "-m", "not sqlite and not slow")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *options, *(TESTS / each for each in part)],
        env=os.environ | {VARIABLE: server.url}, cwd=TESTS.parent, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-3000:]
