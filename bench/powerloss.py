"""Cuts the power of a simulated disk at many moments and checks what is left on it.

python -m bench powerloss --points 300 --json

SQLite runs on a VFS that remembers which writes were synced. At a cut, what was not synced is gone, or a random
part of it is, sector by sector and in any order. The inbox file is cut in the same way, within the entry that was
being written.
"""

from __future__ import annotations

import random
import shutil
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import apsw
import click

from bench.crash import Actor
from bench.kills import Story, Verdict
from bench.program import program
from perdure.engine.settings import Settings
from perdure.store.inbox import Inbox
from perdure.store.inbox_lines import damaged_turns
from perdure.store.rollback_guard import FILE
from perdure.store.sql import run
from perdure.store.store import Store

SECTOR = 512
SYSTEM_VFS = apsw.vfs_names()[0]
WRITES = 12_000
"""So many writes and syncs there are, roughly, while the power is cut."""
CHECKPOINTS = 3
"""The log must have been written back into the database so often at least: that is where a store is most at risk."""


@dataclass
class Platter:
    """A file on the disk: what is surely there, and what was written since the last sync.

    A pending write is (offset, content); (size, None) cuts the file off.
    """

    name: str
    durable: bytearray = field(default_factory=bytearray)
    pending: list[tuple[int, bytes | None]] = field(default_factory=list)

    def sync(self) -> None:
        """Make everything written durable."""
        for write in self.pending:
            _apply(self.durable, *write)
        self.pending.clear()

    def after_cut(self, survives: Callable[[], bool]) -> bytes:
        """Return what is there after the power was cut; each sector of a pending write survives or not."""
        left = bytearray(self.durable)
        for offset, content in self.pending:
            if content is None:
                if survives():
                    _apply(left, offset, None)
                continue
            for start in range(0, len(content), SECTOR):
                if survives():
                    _apply(left, offset + start, content[start : start + SECTOR])
        return bytes(left)


class Disk(apsw.VFS):
    """The files below one folder, as SQLite writes and syncs them. All other files are left to the system."""

    def __init__(self, home: Path, on_event: Callable[[str, str], None]) -> None:
        self._home = str(home)
        self.on_event = on_event
        self.platters: dict[str, Platter] = {}
        self.lock = threading.RLock()
        self.syncs = 0
        self.checkpoints = 0
        super().__init__("perdure-disk", SYSTEM_VFS, makedefault=True)

    def xOpen(self, name: str | apsw.URIFilename | None, flags: list[int]) -> apsw.VFSFile:
        """Open a file; one of ours is recorded."""
        path = name.filename() if isinstance(name, apsw.URIFilename) else name
        if path is None or not path.startswith(self._home):
            return apsw.VFSFile(SYSTEM_VFS, name, flags)
        with self.lock:
            platter = self.platters.setdefault(Path(path).name, Platter(Path(path).name))
        return RecordedFile(self, platter, name, flags)

    def xDelete(self, filename: str, syncdir: bool) -> None:
        """Delete a file."""
        super().xDelete(filename, syncdir)
        if filename.startswith(self._home):
            with self.lock:
                self.platters.pop(Path(filename).name, None)

    def write(self, platter: Platter, offset: int, content: bytes | None) -> None:
        """Note a write, or a cut of the file's length if there is no content."""
        with self.lock:
            platter.pending.append((offset, content))
            self.on_event("write", platter.name)

    def sync(self, platter: Platter) -> None:
        """Note a sync."""
        with self.lock:
            self.on_event("sync", platter.name)
            self.checkpoints += bool(platter.pending) and platter.name.endswith(".db")
            platter.sync()
            self.syncs += 1

    def cut(self, folder: Path, survives: Callable[[], bool]) -> None:
        """Write what a power cut would leave into another folder.

        What the folder remembers of its store is taken to be on the disk at once: it must never be ahead.
        """
        folder.mkdir(mode=0o700, parents=True)
        if (Path(self._home) / FILE).exists():
            shutil.copy(Path(self._home) / FILE, folder / FILE)
        with self.lock:
            for name, platter in self.platters.items():
                if not name.endswith("-shm"):
                    (folder / name).write_bytes(platter.after_cut(survives))


class RecordedFile(apsw.VFSFile):
    """A file whose writes and syncs are noted."""

    def __init__(self, disk: Disk, platter: Platter, name: str | apsw.URIFilename | None, flags: list[int]) -> None:
        super().__init__(SYSTEM_VFS, name, flags)
        self._disk = disk
        self._platter = platter

    def xWrite(self, data: Any, offset: int) -> None:
        """Write."""
        super().xWrite(data, offset)
        self._disk.write(self._platter, offset, bytes(data))

    def xTruncate(self, newsize: int) -> None:
        """Cut off."""
        super().xTruncate(newsize)
        self._disk.write(self._platter, newsize, None)

    def xSync(self, flags: int) -> None:
        """Sync."""
        super().xSync(flags)
        self._disk.sync(self._platter)


@contextmanager
def recorded(home: Path) -> Iterator[Disk]:
    """Let SQLite use the recorded disk for the block."""
    disk = Disk(home, lambda event, name: None)
    try:
        yield disk
    finally:
        disk.unregister()


def cut_database(folder: Path, points: int, seed: int) -> tuple[Verdict, dict[str, int]]:
    """Work on a recorded disk and cut its power at about `points` moments; return what was wrong, and counts."""
    chance = random.Random(seed)
    home = folder / "home"
    home.mkdir()
    verdict, done, cuts, syncs = Verdict(), 0, list[Story](), list[int]()
    story = Story(home)
    with recorded(home) as disk:
        began = [0]

        def tell(line: str) -> None:
            with disk.lock:
                if story.hear(line):
                    syncs.append(disk.syncs - began[0])
                else:
                    began[0] = disk.syncs

        def on_event(event: str, name: str) -> None:
            # A moment before a sync, or while the log is written back, is worth more than others.
            if chance.random() < points / WRITES * (4 if event == "sync" else 1) * (4 if name.endswith(".db") else 1):
                target = folder / f"cut{done + len(cuts)}"
                share = chance.choice((0.0, 0.5, chance.random()))
                disk.cut(target, lambda: chance.random() < share)
                cuts.append(Story(target, dict(story.states), dict(story.pending)))

        # Without timers: the canary's fact has no marker.
        after = {"vectors": 10_000, "seconds": 86_400}
        own = {"embedder": "hash", "index": after, "timers": False}
        settings = Settings.load(own, environ={})
        actor = Actor(home, settings, chance, "d15c", tell)
        disk.on_event = on_event
        actor.open()
        while done < points or disk.checkpoints < CHECKPOINTS:
            actor.step(turns=False)
            for cut in cuts:
                verdict.add(inspect(cut))
            done += len(cuts)
            cuts.clear()
        disk.on_event = lambda event, name: None
        actor.close()
    return verdict, {
        "crash_points": done,
        "acknowledged": len(syncs),
        "syncs": disk.syncs,
        "fewest_syncs_per_acknowledgement": min(syncs),
        "checkpoints": disk.checkpoints,
    }


def inspect(cut: Story) -> Verdict:
    """Open what a cut left, and compare it with what had been told."""
    store = Store(cut.home)
    with store.database.read() as connection:
        answers = [row[0] for row in run(connection, "PRAGMA integrity_check")]
    store.close()
    verdict = cut.compare()
    verdict.diverged += answers if answers != ["ok"] else []
    shutil.rmtree(cut.home)
    return verdict.told_of(cut.home.name)


def cut_inbox(folder: Path, points: int, seed: int) -> Verdict:
    """Cut the power while an entry is appended: those before must be there, whatever is left of the new one.

    What is left of it is no damage, either: it was never acknowledged.
    """
    chance = random.Random(seed)
    verdict = Verdict()
    inbox = Inbox(folder / "inbox")
    acknowledged: list[str] = []
    for number in range(points):
        before = _content(folder / "inbox")
        entry = inbox.append({"text": "x" * chance.randint(1, 6_000), "number": number})
        after = _content(folder / "inbox")
        # The file grows, and is synced, before the entry comes into it.
        before = before.ljust(len(after), b"\0")
        platter = Platter("inbox", bytearray(before), _differing(before, after))
        other = folder / f"cut{number}" / "inbox"
        other.mkdir(parents=True, mode=0o700)
        (other / "gone.jsonl").write_bytes(platter.after_cut(lambda: chance.random() < 0.5))
        adopted = [each["id"] for entries in Inbox(other).adopt() for each in entries]
        verdict.lost += [f"inbox cut {number}: {each}" for each in acknowledged if adopted.count(each) != 1]
        verdict.diverged += [f"inbox cut {number}: {each.text[:20]}" for each in damaged_turns(other)]
        acknowledged.append(str(entry["id"]))
    inbox.close()
    return verdict


def _content(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in folder.glob("*.jsonl"))


def _differing(before: bytes, after: bytes) -> list[tuple[int, bytes | None]]:
    """Return the sectors that differ, as writes of their own: each may reach the disk or not."""
    return [
        (start, after[start : start + SECTOR])
        for start in range(0, len(after), SECTOR)
        if before[start : start + SECTOR] != after[start : start + SECTOR]
    ]


def _apply(content: bytearray, offset: int, data: bytes | None) -> None:
    if data is None:
        del content[offset:]
        return
    if len(content) < offset:
        content.extend(bytes(offset - len(content)))
    content[offset : offset + len(data)] = data


@click.option("--points", default=300)
@click.option("--seed", default=1)
def bench(points: int, seed: int) -> dict[str, Any]:
    """Cut the power of both; return the sums."""
    of_inbox = max(20, points // 5)
    with tempfile.TemporaryDirectory() as folder:
        verdict, counts = cut_database(Path(folder), points, seed)
        (Path(folder) / "second").mkdir()
        verdict.add(cut_inbox(Path(folder) / "second", of_inbox, seed))
    counts["crash_points"] += of_inbox
    wrong = len(verdict.diverged) + len(verdict.duplicated)
    return {**counts, "lost": len(verdict.lost), "corrupt": wrong, "problems": verdict.problems[:20]}


main = program(
    bench, failed=lambda found: found["lost"] or found["corrupt"] or not found["fewest_syncs_per_acknowledgement"]
)
