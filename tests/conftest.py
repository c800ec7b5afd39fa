"""What holds for every test: nothing of the user's own configuration is read or written; and where many begin."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing
from itertools import chain
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest

from perdure.api.memory import Memory
from perdure.clock import ManualClock
from perdure.hooks.fake_host import FakeHost
from perdure.hooks.host import HookRunner
from perdure.plugin.plugin import hookimpls_for
from perdure.store.store import Store
from tests.kit import OpenHost, OpenMemory
from tests.on_postgres import kept, part_by_folder

# A shell that runs the tests in the background has SIGINT ignored; processes that a test interrupts would inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)
# Days are counted by the machine's zone; a test that is about another one names it.
os.environ["TZ"] = "UTC"
if hasattr(time, "tzset"):
    time.tzset()

SLOW = Path(__file__).with_name("slow.txt")
"""The tests that take most of the time, a line each, as `pytest --write-slow` found them."""
MOST_SLOW = 0.049
"""Of all tests."""


def pytest_configure() -> None:
    """Run over PostgreSQL, if that is asked for."""
    part_by_folder()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option that notes which tests are slow."""
    parser.addoption(
        "--write-slow", action="store_true", help=f"Write {SLOW.name}: the tests that take most of the time."
    )


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Note the slow ones, those of one function together, slowest first until there are enough."""
    if not terminalreporter.config.getoption("write_slow"):
        return
    seconds: dict[str, dict[str, float]] = {}
    for report in chain.from_iterable(terminalreporter.stats.values()):
        if isinstance(report, pytest.TestReport):
            each = seconds.setdefault(_function(report.nodeid), {})
            each[report.nodeid] = each.get(report.nodeid, 0.0) + report.duration
    left = MOST_SLOW * sum(map(len, seconds.values()))
    slow = []
    for name, each in sorted(seconds.items(), key=lambda item: -fmean(item[1].values())):
        left -= len(each)
        if left < 0:
            break
        slow.append(name)
    SLOW.write_text("".join(f"{name}\n" for name in sorted(slow)))


def _function(nodeid: str) -> str:
    return nodeid.partition("[")[0]


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the slow ones."""
    slow = set(SLOW.read_text().splitlines())
    for item in items:
        if _function(item.nodeid) in slow:
            item.add_marker(pytest.mark.slow)


@pytest.fixture(autouse=True)
def isolated_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Hide the user's settings, folders and installed extensions, also from child processes."""
    for name in [name for name in os.environ if name.startswith("PERDURE_")]:
        monkeypatch.delenv(name)
    for name, value in kept().items():
        monkeypatch.setenv(name, value)
    for name in ("HF_HOME", "HF_HUB_CACHE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PERDURE_LOAD_EXTENSIONS", "0")
    # A test that wants the timers says so: they would write beside what is tested.
    monkeypatch.setenv("PERDURE_TIMERS", "false")
    # Nor does a process stay behind, unless a test is about it.
    monkeypatch.setenv("PERDURE_HELPER", "0")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "xdg-config"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg-cache"))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "xdg-data"))
    for name in ("CLAUDE_CONFIG_DIR", "CODEX_HOME"):
        monkeypatch.setenv(name, str(tmp_path / "agents"))


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


@pytest.fixture
def open_host(open_memory: OpenMemory) -> OpenHost:
    """Start hosts with a memory."""

    def open_(memory: Memory | None = None, **arguments: Any) -> tuple[FakeHost, Memory]:
        memory = memory or open_memory()
        runner = HookRunner()
        runner.register(hookimpls_for(memory=memory))
        host = FakeHost(runner, **arguments)
        host.start()
        return host, memory

    return open_


@pytest.fixture
def settings_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The settings file of this test alone."""
    file = tmp_path / "config.toml"
    file.touch()
    monkeypatch.setenv("PERDURE_CONFIG", str(file))
    return file
