"""A rebuild happens as a whole or not at all, whoever dies, reads or writes meanwhile."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import apsw
import pytest

from perdure.embed.deterministic import HashEmbedder
from perdure.errors import StoreError
from perdure.files.search import Ask, FileSearch
from perdure.store.scope import Audience
from perdure.store.sql import run
from tests.faulty import CountingEmbedder
from tests.files.workshop import Workshop

posix = pytest.mark.skipif(os.name != "posix", reason="POSIX modes and limits")
ROUNDS = 8
FILES = 120
OPENED = """
import sys
from pathlib import Path
from tests.files.workshop import Workshop

workshop = Workshop(Path(sys.argv[1]))
index = workshop.index
"""
REBUILDING = (
    OPENED
    + """
while True:
    index.sync(workshop.roots, force=True, progress=lambda done, total: print(done, flush=True))
"""
)
FOLLOWING = (
    OPENED
    + """
for line in sys.stdin:
    print(index.generations.live().number, *workshop.texts(), flush=True)
"""
)
HOLDING = (
    OPENED
    + """
def held(done, total):
    if not done:
        print("writing", flush=True)
        sys.stdin.readline()

print(index.sync(workshop.roots, force="--force" in sys.argv, progress=held).added, flush=True)
"""
)
FULL = (
    OPENED
    + """
import resource, signal
from perdure.errors import StoreError

signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (400_000, resource.getrlimit(resource.RLIMIT_FSIZE)[1]))
try:
    index.sync(workshop.roots, force=True)
except StoreError as error:
    print(type(error).__name__)
"""
)


@pytest.fixture
def other(workshop: Workshop, tmp_path: Path) -> Iterator[Workshop]:
    """Return the same store and index, opened once more."""
    opened = Workshop(tmp_path)
    yield opened
    opened.close()


def child(script: str, workshop: Workshop, *arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", script, str(workshop.folder), *arguments],
        cwd=Path(__file__).parents[2],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def number(workshop: Workshop) -> int:
    live = workshop.index.generations.live()
    return live.number if live else 0


@pytest.mark.sqlite
class TestRebuild:
    def test_is_one_file_more_and_one_row_changed(self, workshop: Workshop) -> None:
        workshop.note("a", "heron")
        workshop.index.sync(workshop.roots)
        assert (number(workshop), workshop.store.meta("index_generation")) == (1, "1")
        synced = workshop.index.sync(workshop.roots, force=True)
        assert (synced.added, synced.rebuilt) == (1, True)
        assert (number(workshop), workshop.store.meta("index_generation")) == (2, "2")
        assert workshop.texts() == ["heron"]
        assert workshop.files() == ["index-2.db", "index-2.db-shm", "index-2.db-wal"]

    @posix
    def test_is_readable_by_its_owner_only(self, workshop: Workshop) -> None:
        workshop.index.sync(workshop.roots)
        workshop.index.sync(workshop.roots, force=True)
        assert {(workshop.store.folder / name).stat().st_mode & 0o777 for name in workshop.files()} == {0o600}

    def test_holds_nothing_of_what_was_there_before(self, workshop: Workshop) -> None:
        path = workshop.note("a", "heron")
        workshop.index.sync(workshop.roots)
        path.unlink()
        workshop.index.sync(workshop.roots, force=True)
        held = b"".join((workshop.store.folder / name).read_bytes() for name in workshop.files())
        assert b"heron" not in held

    def test_that_fails_leaves_the_live_one(self, workshop: Workshop) -> None:
        workshop.note("a", "heron")
        workshop.index.sync(workshop.roots)

        def fail(done: int, total: int) -> None:
            raise InterruptedError

        for force in (True, False):
            workshop.note("b", f"crane {force}", old=False)
            with pytest.raises(InterruptedError):
                workshop.index.sync(workshop.roots, force=force, progress=fail)
            assert (number(workshop), workshop.texts()) == (1, ["heron"])
            assert workshop.files()[:1] == workshop.files()[-3:-2] == ["index-1.db"]
        assert workshop.index.sync(workshop.roots).added == 1
        assert workshop.texts() == ["crane False", "heron"]

    @pytest.mark.sqlite
    def test_that_fails_at_its_last_step_leaves_the_live_one(self, workshop: Workshop, other: Workshop) -> None:
        workshop.note("a", "heron")
        workshop.index.sync(workshop.roots)
        # Nothing can be written to the store itself: the row cannot be changed.
        blocked = apsw.Connection(str(workshop.store.database.path))
        run(blocked, "CREATE TRIGGER never BEFORE INSERT ON meta BEGIN SELECT raise(ABORT, 'never'); END")
        with pytest.raises(StoreError):
            workshop.index.sync(workshop.roots, force=True)
        run(blocked, "DROP TRIGGER never")
        blocked.close()
        assert (number(workshop), workshop.texts()) == (1, ["heron"])
        assert (number(other), other.texts()) == (1, ["heron"])
        assert workshop.index.sync(workshop.roots, force=True).rebuilt

    @posix
    def test_on_a_full_disk_leaves_the_live_one(self, workshop: Workshop) -> None:
        workshop.note("a", "heron")
        workshop.index.sync(workshop.roots)
        for name in range(40):
            workshop.note(f"more{name}", f"crane{name} " * 1_000)
        with child(FULL, workshop) as process:
            output, _ = process.communicate()
        assert output.strip() in ("StoreFullError", "StoreUnavailableError")
        assert (number(workshop), workshop.texts()) == (1, ["heron"])
        assert [name for name in workshop.files() if name.endswith(".db")] == ["index-1.db"]
        assert workshop.index.sync(workshop.roots).added == 40

    def test_by_a_process_that_is_killed_leaves_a_working_index(self, workshop: Workshop) -> None:
        texts = sorted(f"heron number {file}" for file in range(FILES))
        for file in range(FILES):
            workshop.note(str(file), f"heron number {file}")
        workshop.index.sync(workshop.roots)
        chance = random.Random(7)
        for _ in range(ROUNDS):
            with child(REBUILDING, workshop) as process:
                assert process.stdout is not None
                for _ in range(chance.randrange(1, 12)):
                    assert process.stdout.readline()
                process.kill()
            live = workshop.index.generations.live()
            assert live is not None
            assert workshop.texts() == texts
            assert workshop.select("PRAGMA integrity_check") == [("ok",)]
            assert workshop.select("SELECT count(*) FROM chunks_fts WHERE chunks_fts MATCH 'heron'") == [(FILES,)]
            assert workshop.index.sync(workshop.roots).added == 0
            assert {name.partition(".")[0] for name in workshop.files()} == {f"index-{live.number}"}
        assert number(workshop) > 1

    def test_what_a_kill_left_is_removed(self, workshop: Workshop) -> None:
        workshop.note("a", "heron")
        for name in ("index-7.db", "index-8.db-wal", "index-9.db-journal", "index-10.db-shm"):
            (workshop.store.folder / name).write_bytes(b"left over")
        (workshop.store.folder / "index-x.db").write_bytes(b"of somebody else")
        workshop.index.sync(workshop.roots)
        assert "index-x.db" in workshop.files()
        assert {name for name in workshop.files() if name != "index-x.db"} == {
            f"index-{number(workshop)}.db{suffix}" for suffix in ("", "-shm", "-wal")
        }
        assert workshop.texts() == ["heron"]


@pytest.mark.sqlite
class TestWhoReads:
    def test_follows_to_the_new_generation(self, workshop: Workshop) -> None:
        workshop.note("a", "heron")
        workshop.index.sync(workshop.roots)
        with child(FOLLOWING, workshop) as process:
            assert process.stdin is not None
            assert process.stdout is not None

            def ask() -> str:
                assert process.stdin is not None
                assert process.stdout is not None
                process.stdin.write("what is there?\n")
                process.stdin.flush()
                return process.stdout.readline().strip()

            assert ask() == "1 heron"
            for following in (2, 3):
                workshop.note("a", f"crane{following}", old=False)
                workshop.index.sync(workshop.roots, force=True)
                assert ask() == f"{following} crane{following}"
            workshop.note("a", "egret", old=False)
            workshop.index.sync(workshop.roots)
            assert ask() == "3 egret"

    def test_goes_on_reading_while_it_is_replaced(self, workshop: Workshop) -> None:
        workshop.note("a", "heron")
        workshop.index.sync(workshop.roots)
        former = workshop.index.generations.live()
        assert former is not None
        with former.database.read() as connection:
            workshop.note("a", "crane", old=False)
            workshop.index.sync(workshop.roots, force=True)
            assert run(connection, "SELECT text FROM chunks") == [("heron",)]
        # Also from one statement to the next.
        with former.database.read() as connection:
            assert run(connection, "SELECT text FROM chunks") == [("heron",)]
        assert workshop.texts() == ["crane"]

    def test_never_finds_nothing_while_others_rebuild(self, workshop: Workshop, other: Workshop) -> None:
        workshop.note("a", "the heron stands here")
        workshop.index.sync(workshop.roots)
        searches = [FileSearch(one.index, HashEmbedder, one.store.clock) for one in (workshop, other)]
        done = threading.Event()
        found: list[tuple[str, int]] = []

        def search(searched: FileSearch) -> None:
            while not done.is_set():
                answer = searched.search(Ask("where does the heron stand?"), Audience.of(), list)
                found.append((answer.backend, len(answer.results)))

        threads = [threading.Thread(target=search, args=(one,)) for one in searches]
        for thread in threads:
            thread.start()
        for _ in range(15):
            workshop.index.sync(workshop.roots, force=True)
        done.set()
        for thread in threads:
            thread.join()
        assert set(found) == {("hybrid", 1)}
        assert len(found) > 15

    def test_does_not_take_a_lost_file_for_an_empty_index(self, workshop: Workshop, other: Workshop) -> None:
        workshop.note("a", "heron")
        workshop.index.sync(workshop.roots)
        assert number(other) == 1
        for name in workshop.files():
            (workshop.store.folder / name).unlink()
        assert other.index.generations.live() is None
        assert workshop.index.generations.live() is None
        assert workshop.index.difference(workshop.roots).added == ("memory/a.md",)
        assert not workshop.files()
        assert other.index.sync(other.roots).rebuilt
        assert (number(workshop), workshop.texts()) == (2, ["heron"])

    @pytest.mark.parametrize(
        "change",
        [
            "PRAGMA user_version = 999",
            "PRAGMA application_id = 999",
            "UPDATE meta SET value = '999' WHERE key = 'normaliser'",
            "DELETE FROM meta",
            "DROP TABLE meta",
        ],
    )
    def test_does_not_use_a_file_of_another_version(self, workshop: Workshop, other: Workshop, change: str) -> None:
        workshop.note("a", "heron")
        workshop.index.sync(workshop.roots)
        workshop.index.close()
        connection = apsw.Connection(str(workshop.store.folder / "index-1.db"))
        run(connection, change)
        connection.close()
        assert other.index.generations.live() is None
        assert other.index.sync(other.roots).rebuilt
        assert (number(workshop), workshop.texts()) == (2, ["heron"])

    @pytest.mark.parametrize("content", [b"", b"no database at all " * 1_000])
    def test_does_not_use_what_is_no_index(self, workshop: Workshop, other: Workshop, content: bytes) -> None:
        workshop.note("a", "heron")
        workshop.index.sync(workshop.roots)
        workshop.index.close()
        (workshop.store.folder / "index-1.db").write_bytes(content)
        assert other.index.generations.live() is None
        assert other.index.sync(other.roots).rebuilt
        assert other.texts() == ["heron"]


@pytest.mark.sqlite
class TestWhoWrites:
    @pytest.mark.parametrize("arguments", [(), ("--force",)])
    def test_is_one_at_a_time(self, workshop: Workshop, arguments: tuple[str, ...]) -> None:
        workshop.note("a", "heron")
        workshop.index.sync(workshop.roots)
        workshop.note("b", "crane")
        with child(HOLDING, workshop, *arguments) as process:
            assert process.stdin is not None
            assert process.stdout is not None
            assert process.stdout.readline() == "writing\n"
            synced = workshop.index.sync(workshop.roots)
            assert (synced.busy, synced.added) == (True, 0)
            assert workshop.index.sync(workshop.roots, force=True).busy
            # Nor does it give the generation that is being replaced vectors that would be lost.
            embedder = CountingEmbedder()
            assert workshop.index.embed(embedder, 100) == 0
            assert workshop.texts() == ["heron"]
            process.stdin.write("\n")
            process.stdin.flush()
            assert process.stdout.readline() == f"{1 + len(arguments)}\n"
        assert workshop.texts() == ["crane", "heron"]
        assert workshop.index.embed(embedder, 100) == 2

    def test_waits_for_another_one_if_asked_to(self, workshop: Workshop, other: Workshop) -> None:
        workshop.note("a", "heron")
        begun, go_on = threading.Event(), threading.Event()

        def hold() -> None:
            with other.index.generations.writing() as free:
                assert free
                begun.set()
                assert go_on.wait(60)

        thread = threading.Thread(target=hold)
        thread.start()
        assert begun.wait(60)
        assert workshop.index.sync(workshop.roots).busy
        assert workshop.index.sync(workshop.roots, patience=0.05).busy
        go_on.set()
        assert workshop.index.sync(workshop.roots, patience=-1).added == 1
        thread.join()

    def test_an_error_under_the_lock_lets_go_of_it(self, workshop: Workshop) -> None:
        def fail() -> None:
            with workshop.index.generations.writing():
                raise InterruptedError

        with pytest.raises(InterruptedError):
            fail()
        with workshop.index.generations.writing() as free:
            assert free

    def test_does_not_embed_into_a_generation_that_was_replaced(self, workshop: Workshop, other: Workshop) -> None:
        for name in range(8):
            workshop.note(str(name), f"heron {name}")
        workshop.index.sync(workshop.roots)
        former = workshop.index.generations.live()
        assert former is not None
        embedder = CountingEmbedder()
        pauses: list[int] = []

        def replace_it() -> None:
            pauses.append(1)
            if len(pauses) == 2:
                other.index.sync(other.roots, force=True)

        # The first four were taken over; the next four would have gone to the former file.
        assert workshop.index.embed(embedder, 100, replace_it) == 4
        with former.database.read() as connection:
            assert run(connection, "SELECT count(*) FROM embedding_cache") == [(4,)]
        assert workshop.index.embed(embedder, 100) == 4
        assert workshop.index.pending(embedder.identity.id) == 0
