"""Tests of the store and of what is built on it, over PostgreSQL: what holds for files holds there."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.on_postgres import VARIABLE
from tests.postgres.server import Server

pytestmark = [pytest.mark.postgres, pytest.mark.timeout(400)]
TESTS = Path(__file__).parents[1]
SHORT = (
    "life/test_undo.py", "life/test_links.py", "life/test_expiry.py", "life/test_changing.py", "recall/test_recall.py",
    "capture/test_decide.py", "store/test_transaction.py", "store/test_search.py",
)  # fmt: skip
"""A part of what `pytest -m "not sqlite"` runs, over a server that TEST_STORE_URL names."""


def test_what_holds_for_files_holds_for_a_server(server: Server) -> None:
    options = ("-q", "-p", "no:cacheprovider", "-m", "not sqlite and not slow")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *options, *(TESTS / each for each in SHORT)],
        env=os.environ | {VARIABLE: server.url}, cwd=TESTS.parent, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-3000:]
