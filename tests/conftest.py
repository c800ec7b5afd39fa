"""What holds for every test: nothing of the user's own configuration is read or written; and where many begin."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import pytest

from perdure.api.memory import Memory
from perdure.clock import ManualClock
from perdure.store.store import Store

OpenMemory = Callable[..., Memory]
"""Takes a folder, if not `home`, and settings."""

# A shell that runs the tests in the background has SIGINT ignored; processes that a test interrupts would inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)

SLOW = (
    "tests/background/test_upkeep.py::test_every_job_runs_or_says_why_it_has_nothing_to_do",
    "tests/background/test_reembed.py::test_a_switch_of_some_hundred_facts_with_kills_and_recalls_beside_it",
    "tests/background/test_worker.py",
    "tests/bench/",
    "tests/capture/test_intake.py::test_ten_thousand_odd_messages_are_taken_in_and_read",
    "tests/cli/test_model.py",
    "tests/cli/test_replay.py",
    "tests/cli/test_streams.py",
    "tests/embed/test_sentence_transformers.py",
    "tests/hosts/test_mcp.py",
    "tests/hosts/test_page.py",
    "tests/life/test_state_machine.py",
    "tests/plugin/test_echoes.py::test_a_thousand_turns_of_echoes_leave_only_what_is_new",
    "tests/plugin/test_secrets_kept_out.py",
    "tests/plugin/test_tools.py::test_answers_are_bounded_and_inert",
    "tests/recall/test_deadline.py",
    "tests/scopes/test_canaries.py",
    "tests/scopes/test_fuzz.py",
    "tests/store/test_verify.py::TestFlippedBits",
    "tests/test_no_network.py",
    "tests/test_packaging.py",
)
"""Folders, files and tests that take most of the time: `pytest -m "not slow"` leaves them out."""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the slow ones."""
    for item in items:
        if item.nodeid.startswith(SLOW):
            item.add_marker(pytest.mark.slow)


@pytest.fixture(autouse=True)
def isolated_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Hide the user's settings, folders and installed extensions, also from child processes."""
    for name in [name for name in os.environ if name.startswith("PERDURE_")]:
        monkeypatch.delenv(name)
    for name in ("HF_HOME", "HF_HUB_CACHE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PERDURE_LOAD_EXTENSIONS", "0")
    # A test that wants the timers says so: they would write beside what is tested.
    monkeypatch.setenv("PERDURE_TIMERS", "false")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "xdg-config"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg-cache"))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "xdg-data"))


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A data folder that nothing has made yet."""
    return tmp_path / "home"


@pytest.fixture
def clock() -> ManualClock:
    """A clock that the test moves."""
    return ManualClock()


@pytest.fixture
def store(home: Path, clock: ManualClock) -> Iterator[Store]:
    """An empty store in that folder, by that clock."""
    with closing(Store(home, clock=clock)) as opened:
        yield opened


@pytest.fixture
def open_memory(home: Path, clock: ManualClock) -> Iterator[OpenMemory]:
    """Open memories on that folder, by that clock, with the deterministic embedder."""
    with ExitStack() as opened:

        def open_(folder: Path = home, **settings: Any) -> Memory:
            memory = opened.enter_context(Memory.open(folder, **{"embedder": "hash", "clock": clock, **settings}))
            memory.ready()
            return memory

        yield open_
