"""The index is fresh before each search, whatever the watcher saw, and nobody waits for a long synchronisation."""

from __future__ import annotations

import logging
import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from perdure.background.file_sync import BY_HAND, FEW, FileSync
from perdure.background.keeper import Keeper, TurnGate
from perdure.clock import ManualClock
from perdure.embed.base import Embedder
from perdure.files import registry
from perdure.files.index import FileIndex
from perdure.files.options import FilesOptions
from perdure.files.search import Ask, FileSearch
from perdure.files.transcript_log import TranscriptLog
from perdure.store.scope import Audience, Scope
from perdure.store.sql import run
from perdure.store.store import Store
from tests.faulty import CountingEmbedder, FailingEmbedder
from tests.files.workshop import LONG_AGO
from tests.waiting import until

MINE = Scope("user", "owner")
DEADLINE = 60.0
WATCHING = """
import sys
from pathlib import Path
from tests.background.test_file_sync import Host

host = Host(Path(sys.argv[1]), watch=True)
host.sync.start()
print("watching", flush=True)
sys.stdin.readline()
host.close()
"""


class Host:
    """What a host's process has of file memory: the index, and what keeps it fresh."""

    def __init__(self, folder: Path, *, watch: bool = False, embedder: Embedder | None = None) -> None:
        self.folder = folder
        self.written = 0
        self.workspace = folder / "workspace"
        (self.workspace / "memory").mkdir(parents=True, exist_ok=True)
        self.clock = ManualClock()
        self.store = Store(folder / "home", clock=self.clock)
        self.index = FileIndex(self.store, FilesOptions())
        self.workers: list[int] = []
        self.keeper = Keeper(TurnGate(), lambda: None)
        self.sync = FileSync(
            self.store, self.index, TranscriptLog(self.store.folder), self.keeper, TurnGate(), self.clock,
            embedder=lambda: embedder, start_worker=lambda: self.workers.append(1), debounce=0.02, watch=watch,
        )  # fmt: skip
        self.search = FileSearch(self.index, lambda: None, self.clock)
        registry.add_root(self.store, MINE, self.workspace, "workspace")
        self.keeper.start()

    def write(self, name: str, text: str) -> Path:
        """Write a memory file, as if long ago, so that nothing is looked at twice; each at a time of its own."""
        self.written += 1
        path = self.workspace / "memory" / f"{name}.md"
        path.write_text(text, encoding="utf-8")
        os.utime(path, (LONG_AGO, LONG_AGO + self.written))
        return path

    def found(self, query: str) -> list[str]:
        """Return what a search brings that looks at the disk before."""
        answer = self.search.search(Ask(query, max_results=100), Audience.of(), list, self.sync.fresh)
        return sorted(result.snippet for result in answer.results)

    def texts(self) -> list[str]:
        """Return the texts of all chunks of the index as it is."""
        live = self.index.generations.live()
        if live is None:
            return []
        with live.database.read() as connection:
            return sorted(text for (text,) in run(connection, "SELECT text FROM chunks"))

    def settle(self) -> None:
        """Wait for the background."""
        assert self.keeper.settle(DEADLINE)

    def close(self) -> None:
        """End as a host ends."""
        self.sync.close()
        self.keeper.close()
        self.index.close()
        self.store.close()


Open = Callable[..., Host]


@pytest.fixture
def open_host(tmp_path: Path) -> Iterator[Open]:
    opened: list[Host] = []

    def make(*, watch: bool = False, embedder: Embedder | None = None) -> Host:
        opened.append(Host(tmp_path, watch=watch, embedder=embedder))
        return opened[-1]

    yield make
    for host in opened:
        host.close()


@pytest.fixture
def host(open_host: Open) -> Host:
    return open_host()


class TestFresh:
    def test_what_was_edited_while_nobody_watched_is_found(self, host: Host) -> None:
        for number in range(80):
            host.write(str(number), f"heron {number}")
        assert len(host.found("heron")) == 80
        assert host.sync.watcher.mode == "stopped"
        for number in range(50):
            host.write(str(number), f"a crane {number}")
        assert host.sync.difference().dirty == 50
        assert host.found("crane") == sorted(f"a crane {number}" for number in range(50))
        assert len(host.found("heron")) == 30
        assert host.sync.difference().dirty == 0

    def test_every_edit_is_found_by_the_next_search(self, host: Host) -> None:
        for number in range(20):
            host.write("a", f"heron{number}")
            assert host.found(f"heron{number}") == [f"heron{number}"]

    def test_a_root_that_goes_and_comes_back_is_noticed(self, host: Host) -> None:
        host.write("a", "heron")
        assert host.found("heron") == ["heron"]
        shutil.rmtree(host.workspace)
        assert host.sync.difference().removed == ("memory/a.md",)
        assert host.found("heron") == []
        assert host.texts() == []
        (host.workspace / "memory").mkdir(parents=True)
        host.write("b", "heron again")
        assert host.found("heron") == ["heron again"]

    def test_a_root_that_is_dropped_is_noticed(self, host: Host) -> None:
        host.write("a", "heron")
        assert host.found("heron") == ["heron"]
        [root] = host.sync.roots()
        registry.drop_root(host.store, root)
        host.sync.sync()
        assert (host.sync.roots(), host.texts()) == ([], [])

    def test_much_is_left_to_the_background(self, host: Host) -> None:
        for number in range(BY_HAND + 1):
            host.write(str(number), f"heron {number}")
        release = threading.Event()

        def hold() -> None:
            assert release.wait(DEADLINE)

        host.keeper.submit("hold", hold)
        assert host.sync.fresh() == BY_HAND + 1
        assert host.index.generations.live() is None
        release.set()
        host.settle()
        assert host.sync.fresh() == 0
        assert len(host.texts()) == BY_HAND + 1

    def test_a_burst_is_all_there_after_one_look(self, host: Host) -> None:
        host.write("first", "heron")
        assert host.sync.fresh() == 0
        for number in range(3_000):
            host.write(str(number), f"crane {number}")
        shutil.rmtree(host.workspace / "memory")
        (host.workspace / "memory").mkdir()
        for number in range(3_000):
            host.write(str(number), f"egret {number}")
        assert host.sync.sync().added == 3_000
        assert host.texts() == sorted(f"egret {number}" for number in range(3_000))
        assert host.sync.difference().dirty == 0

    def test_does_not_wait_for_a_long_synchronisation(self, host: Host) -> None:
        host.write("a", "heron")
        assert host.sync.fresh() == 0
        for number in range(60):
            host.write(str(number), f"crane {number}")
        reached, release = threading.Event(), threading.Event()

        def hold(done: int, total: int) -> None:
            if (done, total) == (50, 60):
                reached.set()
                assert release.wait(DEADLINE)

        thread = threading.Thread(target=host.sync.sync, kwargs={"progress": hold})
        thread.start()
        assert reached.wait(DEADLINE)
        assert host.sync.fresh() == 10
        # A background look ends too: what comes after it is not held up.
        host.sync.ended("any")
        host.settle()
        release.set()
        thread.join()
        assert host.sync.fresh() == 0
        assert len(host.texts()) == 61

    def test_another_process_that_writes_leaves_it_for_later(self, host: Host, open_host: Open) -> None:
        host.write("a", "heron")
        assert host.sync.fresh() == 0
        host.write("b", "crane")
        with open_host().index.generations.writing() as free:
            assert free
            assert host.sync.fresh() == 1
            assert host.texts() == ["heron"]
        assert host.sync.fresh() == 0
        assert host.texts() == ["crane", "heron"]

    def test_tells_when_it_was_last_done(self, host: Host) -> None:
        assert host.sync.last_synced is None
        host.write("a", "heron")
        host.sync.fresh()
        assert host.sync.last_synced == host.clock.now()
        host.clock.advance(100.0)
        host.sync.sync()
        assert host.sync.last_synced == host.clock.now()


class TestWatching:
    def test_what_changes_is_indexed_without_a_search(self, open_host: Open) -> None:
        host = open_host(watch=True)
        host.write("a", "heron")
        host.sync.start()
        until(lambda: host.texts() == ["heron"])
        host.write("b", "crane")
        until(lambda: host.texts() == ["crane", "heron"])
        assert host.found("crane") == ["crane"]
        host.sync.close()
        assert host.sync.watcher.mode == "stopped"
        host.write("c", "egret")
        assert host.found("egret") == ["egret"]

    def test_without_roots_nothing_is_watched(self, open_host: Open) -> None:
        host = open_host(watch=True)
        [root] = host.sync.roots()
        registry.drop_root(host.store, root)
        host.sync.start()
        assert host.sync.watcher.mode == "stopped"

    @pytest.mark.skipif(os.name != "posix", reason="stops a process by a signal")
    def test_a_burst_while_the_process_stands_still(self, host: Host) -> None:
        host.write("first", "heron")
        with subprocess.Popen(
            [sys.executable, "-c", WATCHING, str(host.folder)],
            cwd=Path(__file__).parents[2], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        ) as process:  # fmt: skip
            assert process.stdout is not None
            assert process.stdout.readline() == "watching\n"
            until(lambda: host.texts() == ["heron"])
            process.send_signal(signal.SIGSTOP)
            for number in range(3_000):
                host.write(str(number), f"crane {number}")
            (host.workspace / "memory" / "first.md").unlink()
            assert host.sync.difference().dirty == 3_001
            process.send_signal(signal.SIGCONT)
            until(lambda: host.sync.difference().dirty == 0)
            process.communicate("end\n")
        assert host.texts() == sorted(f"crane {number}" for number in range(3_000))


class TestConversations:
    def talk(self, *texts: str) -> list[dict[str, str]]:
        return [{"role": ("user", "assistant")[number % 2], "content": text} for number, text in enumerate(texts)]

    def test_are_recorded_and_indexed_when_they_end(self, host: Host) -> None:
        host.sync.sync()
        host.sync.note(MINE, "the talk", self.talk("Where is the heron?", "By the lake."), host.clock.now())
        assert len(host.sync.roots()) == 2
        assert host.sync.fresh() == 0
        assert host.texts() == []
        host.sync.ended("the talk")
        host.settle()
        assert host.sync.running == frozenset()
        assert host.texts() == ["By the lake.", "Where is the heron?"]

    def test_are_indexed_when_much_was_said(self, host: Host) -> None:
        host.sync.note(MINE, "the talk", self.talk(*(f"heron {number}" for number in range(60))), host.clock.now())
        assert len(host.found("heron")) == 60

    def test_of_a_host_that_keeps_them_wait_while_they_go_on(self, host: Host) -> None:
        host.sync.sync()
        folder = host.folder / "sessions"
        folder.mkdir()
        registry.add_root(host.store, MINE, folder, "sessions")
        (folder / "s1.jsonl").write_text('{"role": "user", "content": "Where is the heron?"}\n')
        host.sync.begun("s1")
        assert host.found("heron") == []
        host.write("a", "a heron in a file")
        assert host.found("heron") == ["a heron in a file"]
        host.sync.ended("s1")
        host.settle()
        assert host.found("heron") == ["Where is the heron?", "a heron in a file"]


class TestEmbedding:
    def test_a_few_are_embedded_here_and_the_rest_by_the_worker(self, open_host: Open) -> None:
        embedder = CountingEmbedder()
        host = open_host(embedder=embedder)
        for number in range(FEW - 1):
            host.write(str(number), f"heron {number}")
        host.sync.fresh()
        host.settle()
        assert (len(embedder.given), host.workers) == (FEW - 1, [])
        for number in range(FEW + 10):
            host.write(f"more{number}", f"crane {number}")
        host.sync.fresh()
        host.settle()
        assert (len(embedder.given), host.workers) == (2 * FEW - 1, [1])
        assert host.index.pending(embedder.identity.id) == 10

    def test_a_model_that_fails_is_logged_by_its_type(self, open_host: Open, caplog: pytest.LogCaptureFixture) -> None:
        host = open_host(embedder=FailingEmbedder())
        host.write("a", "heron")
        with caplog.at_level(logging.WARNING, "perdure.background"):
            assert host.found("heron") == ["heron"]
            host.settle()
        assert "ModelError" in caplog.text
        assert "heron" not in caplog.text
        assert host.workers == []
