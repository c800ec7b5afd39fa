"""Changes are noticed by events, and without them all the same."""

from __future__ import annotations

import errno
import logging
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from watchdog.events import FileClosedNoWriteEvent, FileModifiedEvent, FileMovedEvent, FileOpenedEvent, FileSystemEvent

from perdure.background.file_watcher import Debounce, FileWatcher
from perdure.errors import StoreBusyError
from tests.waiting import until

LONG = 20.0
"""Seconds after which a test gives up; nothing here takes as long."""
NEVER = 100_000.0
EVENTS = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the order of events is that of inotify")

Make = Callable[..., FileWatcher]


class Seen:
    """Remembers at each call what is in a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.contents: list[dict[str, str]] = []

    def __call__(self) -> None:
        found = {}
        for path in sorted(self.folder.rglob("*.md")):
            found[path.relative_to(self.folder).as_posix()] = path.read_text()
        self.contents.append(found)

    @property
    def last(self) -> dict[str, str] | None:
        return self.contents[-1] if self.contents else None


class ScriptedObserver:
    """An observer whose events the test makes."""

    def __init__(self, refused: int | None = None) -> None:
        self.refused = refused
        self.handlers: list[Any] = []
        self.stopped = False

    def start(self) -> None:
        return

    def stop(self) -> None:
        self.stopped = True

    def join(self, timeout: float | None = None) -> None:
        return

    def schedule(self, handler: Any, path: str, /, *, recursive: bool) -> str:
        if self.refused is not None:
            raise OSError(self.refused, os.strerror(self.refused))
        self.handlers.append(handler)
        return path

    def unschedule(self, watch: Any, /) -> None:
        self.handlers.pop()

    def happen(self, event: FileSystemEvent) -> None:
        for handler in self.handlers:
            handler.dispatch(event)


@pytest.fixture
def make() -> Iterator[Make]:
    watchers: list[FileWatcher] = []

    def made(on_change: Callable[[], None], debounce: float = 0.02, poll: float = NEVER, **more: Any) -> FileWatcher:
        watchers.append(FileWatcher(on_change, debounce, poll, **more))
        return watchers[-1]

    yield made
    for watcher in watchers:
        watcher.stop()


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "memory").mkdir()
    return tmp_path / "memory"


def watching(make: Make, root: Path, **more: Any) -> tuple[FileWatcher, Seen]:
    """Return a watcher that has made the first call, so that the events that come are new ones."""
    seen = Seen(root)
    watcher = make(seen, **more)
    watcher.watch([root])
    watcher.start()
    until(lambda: seen.contents)
    return watcher, seen


class TestDebounce:
    def test_a_call_is_due_after_some_quiet(self) -> None:
        debounce = Debounce(quiet=1.5, patience=15.0)
        assert debounce.due_at is None
        assert not debounce.take(100.0)
        debounce.note(100.0)
        debounce.note(101.0)
        assert debounce.due_at == 102.5
        assert not debounce.take(102.4)
        assert debounce.take(102.5)
        assert not debounce.take(200.0)

    def test_a_stream_does_not_put_it_off_for_ever(self) -> None:
        debounce = Debounce(quiet=1.5, patience=15.0)
        taken = []
        for tick in range(400):
            debounce.note(tick / 10)
            if debounce.take(tick / 10):
                taken.append(tick / 10)
        assert taken == [15.0, 30.1]

    @given(st.lists(st.floats(0, 5), min_size=1, max_size=50))
    def test_no_event_waits_longer_than_the_patience(self, gaps: list[float]) -> None:
        debounce, now, waiting = Debounce(1.0, 4.0), 0.0, list[float]()
        for gap in gaps:
            due_at = debounce.due_at
            if due_at is not None and due_at <= now + gap:
                assert debounce.take(due_at)
                assert all(due_at - at <= 4.0 + 1e-9 for at in waiting)
                waiting.clear()
            now += gap
            debounce.note(now)
            waiting.append(now)
        assert debounce.take(now + 1.0)


@EVENTS
class TestEvents:
    def test_an_atomic_save(self, make: Make, root: Path) -> None:
        (root / "a.md").write_text("old")
        watcher, seen = watching(make, root)
        (root / "a.tmp").write_text("new")
        (root / "a.tmp").replace(root / "a.md")
        until(lambda: seen.last == {"a.md": "new"})
        assert watcher.state.mode == "events"
        assert watcher.state.last_event is not None

    def test_the_dance_of_an_editor(self, make: Make, root: Path) -> None:
        (root / "a.md").write_text("old")
        _, seen = watching(make, root)
        for text in ("new", "newer"):
            (root / "a.md").rename(root / "a.md~")
            (root / "a.md").write_text(text)
            (root / "a.md~").unlink()
            until(lambda text=text: seen.last == {"a.md": text})  # type: ignore[misc]

    def test_a_folder_moved_in_and_out(self, make: Make, root: Path, tmp_path: Path) -> None:
        (tmp_path / "else").mkdir()
        (tmp_path / "else" / "a.md").write_text("a")
        _, seen = watching(make, root)
        (tmp_path / "else").rename(root / "new")
        until(lambda: seen.last == {"new/a.md": "a"})
        (root / "new" / "a.md").write_text("b")
        until(lambda: seen.last == {"new/a.md": "b"})
        (root / "new").rename(tmp_path / "else")
        until(lambda: seen.last == {})

    def test_a_burst_gives_few_calls(self, make: Make, root: Path) -> None:
        _, seen = watching(make, root, debounce=0.1)
        for number in range(500):
            (root / f"{number}.md").write_text("x")
        until(lambda: seen.last is not None and len(seen.last) == 500)
        assert len(seen.contents) < 50

    def test_one_file_and_not_what_is_beside_it(self, make: Make, tmp_path: Path) -> None:
        (tmp_path / "MEMORY.md").write_text("old")
        watcher, seen = watching(make, tmp_path / "MEMORY.md")
        seen.folder = tmp_path
        (tmp_path / "beside.txt").write_text("x")
        (tmp_path / "MEMORY.md.tmp").write_text("new")
        (tmp_path / "MEMORY.md.tmp").replace(tmp_path / "MEMORY.md")
        until(lambda: seen.last == {"MEMORY.md": "new"})
        assert watcher.state.roots == 1

    def test_a_link_to_a_folder(self, make: Make, root: Path, tmp_path: Path) -> None:
        (tmp_path / "link").symlink_to(root)
        _, seen = watching(make, tmp_path / "link")
        (root / "a.md").write_text("a")
        until(lambda: seen.last == {"a.md": "a"})

    def test_a_root_that_appears(self, make: Make, tmp_path: Path) -> None:
        _, seen = watching(make, tmp_path / "late")
        (tmp_path / "late").mkdir()
        until(lambda: len(seen.contents) > 1)
        (tmp_path / "late" / "a.md").write_text("a")
        until(lambda: seen.last == {"a.md": "a"})

    def test_a_root_that_is_removed_and_made_again(self, make: Make, root: Path) -> None:
        (root / "a.md").write_text("a")
        _, seen = watching(make, root)
        shutil.rmtree(root)
        until(lambda: seen.last == {})
        root.mkdir()
        calls = len(seen.contents)
        until(lambda: len(seen.contents) > calls)
        (root / "b.md").write_text("b")
        until(lambda: seen.last == {"b.md": "b"})


class TestPolling:
    def test_what_no_event_tells_is_seen_at_the_next_poll(self, make: Make, root: Path) -> None:
        watcher, seen = watching(make, root, poll=0.05, observer=ScriptedObserver)
        (root / "a.md").write_text("a")
        until(lambda: seen.last == {"a.md": "a"})
        assert watcher.state.last_event is None

    @EVENTS
    def test_events_come_again_after_a_root_was_replaced_unnoticed(self, make: Make, root: Path) -> None:
        watcher, seen = watching(make, root, poll=0.05)
        for number in range(5):
            # At once, so that nothing is there to be noticed between the two.
            shutil.rmtree(root)
            root.mkdir()
            calls = len(seen.contents)
            # The second of two polls begins after this point, and what it watches is the new folder.
            until(lambda calls=calls: len(seen.contents) > calls + 2)  # type: ignore[misc]
            before = watcher.state.last_event
            (root / "a.md").write_text(str(number))
            until(lambda before=before: watcher.state.last_event != before)  # type: ignore[misc]

    @pytest.mark.parametrize("number", [errno.EMFILE, errno.ENOSPC])
    def test_a_system_that_gives_no_observer(self, make: Make, root: Path, number: int) -> None:
        def exhausted() -> ScriptedObserver:
            raise OSError(number, os.strerror(number))

        watcher, seen = watching(make, root, poll=0.05, observer=exhausted)
        (root / "a.md").write_text("a")
        until(lambda: seen.last == {"a.md": "a"})
        state = watcher.state
        assert (state.mode, state.roots) == ("polling", 1)
        assert state.reason is not None
        assert os.strerror(number) in state.reason
        assert "fs.inotify" in state.reason

    def test_an_observer_that_takes_no_more_folders_until_it_does(self, make: Make, root: Path) -> None:
        observer = ScriptedObserver(errno.ENOSPC)
        watcher, seen = watching(make, root, poll=0.05, observer=lambda: observer)
        (root / "a.md").write_text("a")
        until(lambda: seen.last == {"a.md": "a"})
        assert watcher.state.mode == "polling"
        observer.refused = None
        until(lambda: watcher.state.mode == "events")
        assert watcher.state.reason is None


class TestHints:
    def test_reading_is_no_change(self, make: Make, root: Path) -> None:
        observer = ScriptedObserver()
        watcher, _ = watching(make, root, observer=lambda: observer)
        path = str(root / "a.md")
        observer.happen(FileOpenedEvent(path))
        observer.happen(FileClosedNoWriteEvent(path))
        assert watcher.state.last_event is None
        observer.happen(FileModifiedEvent(path))
        assert watcher.state.last_event is not None

    def test_what_is_elsewhere_is_no_change(self, make: Make, root: Path) -> None:
        observer = ScriptedObserver()
        watcher, _ = watching(make, root, observer=lambda: observer)
        observer.happen(FileModifiedEvent(f"{root}-else/a.md"))
        observer.happen(FileModifiedEvent(str(root.parent)))
        assert watcher.state.last_event is None
        observer.happen(FileMovedEvent("/else/a.md", str(root / "a.md")))
        assert watcher.state.last_event is not None

    def test_the_same_roots_again_change_nothing(self, make: Make, root: Path, tmp_path: Path) -> None:
        observer = ScriptedObserver()
        watcher, seen = watching(make, root, observer=lambda: observer)
        watcher.watch([root, tmp_path / "memory" / ".." / "memory"])
        watcher.watch([root, tmp_path / "other"])
        until(lambda: len(seen.contents) == 2)
        assert watcher.state.roots == 2


class TestLife:
    def test_nothing_starts_by_itself_and_all_ends(self, make: Make, root: Path) -> None:
        before = set(threading.enumerate())
        watcher = make(lambda: None)
        watcher.watch([root])
        assert watcher.state.mode == "stopped"
        assert set(threading.enumerate()) == before
        watcher.start()
        watcher.start()
        until(lambda: watcher.state.mode == "events")
        started = set(threading.enumerate()) - before
        assert [thread.name for thread in started].count("perdure-files") == 1
        assert all(thread.daemon for thread in started)
        watcher.stop()
        watcher.stop()
        assert watcher.state.mode == "stopped"
        until(lambda: set(threading.enumerate()) <= before)

    def test_stop_without_start(self, make: Make) -> None:
        watcher = make(lambda: None)
        watcher.stop()
        assert watcher.state.mode == "stopped"

    def test_stop_from_within_a_call(self, make: Make, root: Path) -> None:
        watchers = list[FileWatcher]()
        watcher = make(lambda: watchers[0].stop())
        watchers.append(watcher)
        watcher.watch([root])
        watcher.start()
        until(lambda: watcher.state.mode == "stopped")

    @pytest.mark.parametrize("error", [StoreBusyError("the heron is secret"), PermissionError("the heron is secret")])
    def test_a_call_that_fails_is_logged_by_its_type_and_the_next_one_comes(
        self, make: Make, root: Path, caplog: pytest.LogCaptureFixture, error: Exception
    ) -> None:
        calls = list[int]()

        def fail() -> None:
            calls.append(1)
            raise error

        with caplog.at_level(logging.WARNING, "perdure.background"):
            watcher = make(fail, poll=0.02)
            watcher.watch([root])
            watcher.start()
            until(lambda: len(calls) > 2)
        assert type(error).__name__ in caplog.text
        assert "heron" not in caplog.text


def test_what_watchdog_warns_of_reaches_no_terminal() -> None:
    code = (
        "import logging; from pathlib import Path; from perdure.background.file_watcher import FileWatcher\n"
        "watcher = FileWatcher(lambda: None); watcher.watch([Path()]); watcher.start()\n"
        "while watcher.state.mode != 'events': pass\n"
        "logging.getLogger('watchdog.observers.inotify').error('InotifyEmitter'); watcher.stop()\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=LONG, check=True)
    assert done.stdout + done.stderr == ""
