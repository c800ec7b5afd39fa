"""A folder remembers its store outside facts.db: a lost, an older or a foreign truth never passes for a healthy one."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

import apsw
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from perdure.background.upkeep import reconcile
from perdure.clock import ManualClock
from perdure.embed.deterministic import HashEmbedder
from perdure.errors import StoreLostError
from perdure.failpoints import EXIT_CODE, VARIABLE
from perdure.hooks.types import Channel
from perdure.lance.drift import compare
from perdure.lance.indexer import Indexer
from perdure.maintenance.backup import backup, restore
from perdure.maintenance.purge import certify, purge
from perdure.maintenance.teardown import contents, remove
from perdure.maintenance.verify import fix, verify
from perdure.store.fact import Fact
from perdure.store.rollback_guard import FILE, Place, Remembered, Truth, judge
from perdure.store.seals import is_purged
from perdure.store.spaces import VectorSpace
from perdure.store.sql import run
from perdure.store.store import Store
from perdure.store.transaction import Author, StoredVector
from tests.kit import deleted, kept

AUTHOR = Author(Channel.LIBRARY, "test")
EMBEDDER = HashEmbedder()
SPACE = VectorSpace(EMBEDDER.identity.id, EMBEDDER.identity.dims, asdict(EMBEDDER.identity))
ROOT = Path(__file__).parents[2]
Damage = Callable[[Path], None]


def add(store: Store, *texts: str) -> list[str]:
    vectors = [row.astype("<f4").tobytes() for row in EMBEDDER.embed(list(texts))]
    with store.write(AUTHOR) as tx:
        return [tx.add(Fact(text), StoredVector(SPACE.id, v)).id for text, v in zip(texts, vectors, strict=True)]


def index(store: Store) -> None:
    indexer = Indexer(store, lambda: EMBEDDER, 50)
    while indexer.step():
        pass
    indexer.close()


def made(folder: Path, *texts: str, clock: ManualClock | None = None) -> Path:
    """Make a store with a LanceDB table, and close it."""
    store = Store(folder, clock=clock)
    store.adopt_space(SPACE)
    add(store, *texts)
    index(store)
    store.close()
    return folder


def content(folder: Path) -> dict[str, str]:
    """Return the digest of every file that holds something; SQLite's own side files come and go."""
    return {
        path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and not path.name.endswith((".lock", "-shm", "-wal"))
    }


def python(code: str, *arguments: object, fail_point: str = "") -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"PYTHONPATH": str(ROOT), VARIABLE: fail_point}
    command = [sys.executable, "-c", code, *map(str, arguments)]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    before = os.umask(0o077)
    folder = made(tmp_path_factory.mktemp("sound") / "home", *(f"Heron {number} nests here." for number in range(12)))
    os.umask(before)
    return folder


@pytest.fixture
def home(sound: Path, tmp_path: Path) -> Path:
    """A closed store of twelve memories, all of them in LanceDB too."""
    return Path(shutil.copytree(sound, tmp_path / "home"))


def truncated(home: Path) -> None:
    (home / "facts.db").write_bytes(b"")


def emptied(home: Path) -> None:
    """Put a database in its place that is none of ours yet: valid, and empty."""
    deleted(home)
    connection = apsw.Connection(str(home / "facts.db"))
    run(connection, "PRAGMA journal_mode = WAL")
    connection.close()


def older(home: Path) -> None:
    """Put the truth back as it was before the last memory, as a copy of the file alone does."""
    copy = (home / "facts.db").read_bytes()
    store = Store(home)
    add(store, "The newest heron nests here.")
    store.close()
    for path in home.glob("facts.db*"):
        path.unlink()
    (home / "facts.db").write_bytes(copy)


def gone_on(home: Path) -> None:
    """As `older`, and then written on by a perdure that did not look, past the remembered change."""
    older(home)
    aside = (home / FILE).read_bytes()
    (home / FILE).unlink()
    store = Store(home)
    add(store, *(f"Another {number}." for number in range(5)))
    store.close()
    (home / FILE).write_bytes(aside)


def foreign(home: Path) -> None:
    other = made(home.parent / "other", *(f"Somebody else's note {number}." for number in range(30)))
    deleted(home)
    shutil.copy(other / "facts.db", home / "facts.db")


DAMAGES = [
    pytest.param(truncated, Truth.MISSING, id="truncated"),
    pytest.param(deleted, Truth.MISSING, id="deleted"),
    pytest.param(emptied, Truth.MISSING, id="emptied"),
    pytest.param(older, Truth.OLDER, id="older"),
    pytest.param(gone_on, Truth.OLDER, id="gone on"),
    pytest.param(foreign, Truth.FOREIGN, id="foreign"),
]


class TestALostTruth:
    @pytest.mark.parametrize(("damage", "truth"), DAMAGES)
    def test_is_named_and_nothing_is_changed(self, home: Path, damage: Damage, truth: Truth) -> None:
        damage(home)
        before = content(home)
        with pytest.raises(StoreLostError, match="perdure recover") as raised:
            Store(home)
        assert raised.value.truth == judge(home).truth == truth
        assert judge(home).lost
        assert content(home) == before

    @pytest.mark.parametrize(("damage", "truth"), DAMAGES[:2])
    def test_is_named_also_where_only_the_table_is_left(self, home: Path, damage: Damage, truth: Truth) -> None:
        damage(home)
        (home / FILE).unlink()
        with pytest.raises(StoreLostError) as raised:
            Store(home)
        assert raised.value.truth == truth

    def test_a_folder_that_never_was_a_store_is_new(self, tmp_path: Path) -> None:
        assert judge(tmp_path / "none").truth == Truth.NEW
        (tmp_path / "notes.txt").write_text("mine")
        assert judge(tmp_path).truth == Truth.NEW
        Store(tmp_path).close()
        assert judge(tmp_path).truth == Truth.SOUND

    def test_a_file_that_is_no_database_is_damaged(self, home: Path) -> None:
        (home / "facts.db").write_bytes(b"no database at all" * 1000)
        assert judge(home).truth == Truth.DAMAGED

    def test_half_a_file_is_never_sound(self, home: Path) -> None:
        path = home / "facts.db"
        path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
        assert judge(home, thorough=True).truth == Truth.DAMAGED

    def test_a_changed_key_makes_no_other_store(self, home: Path) -> None:
        connection = apsw.Connection(str(home / "facts.db"))
        run(connection, "UPDATE meta SET value = hex(randomblob(32)) WHERE key = 'store_key'")
        connection.close()
        assert judge(home).truth == Truth.REKEYED


class TestUnderAnOpenStore:
    """On POSIX an open file can be removed: what is written to it then is on no disk any more."""

    pytestmark = pytest.mark.skipif(os.name != "posix", reason="Windows keeps a file that is open")

    def test_nothing_is_written_to_a_file_that_is_gone(self, home: Path) -> None:
        store = Store(home)
        try:
            deleted(home)
            with pytest.raises(StoreLostError):
                add(store, "Where would this go?")
            assert not (home / "facts.db").exists()
            assert judge(home).truth == Truth.MISSING
        finally:
            store.close()
        assert not (home / "facts.db").exists()

    @pytest.mark.parametrize("damage", [deleted, foreign])
    def test_no_reader_opens_what_was_put_in_its_place(self, home: Path, damage: Damage) -> None:
        store = Store(home)
        damage(home)
        before = content(home)
        try:
            with store.database.read(), store.database.read():
                pass
        except StoreLostError:
            pass
        else:
            raise AssertionError("a second connection was opened on another file")
        finally:
            store.close()
        assert content(home) == before

    @pytest.mark.parametrize("damage", [deleted, truncated, foreign])
    def test_verify_names_it_and_mends_nothing(self, home: Path, damage: Damage) -> None:
        store = Store(home)
        try:
            damage(home)
            before = content(home / "lancedb")
            found = verify(store)
            assert any("facts.db" in finding.what for finding in found)
            assert fix(store, found)
            assert content(home / "lancedb") == before
        finally:
            store.close()


class TestASoundTruth:
    def test_is_sound_after_all_that_may_happen_to_it(self, home: Path, tmp_path: Path) -> None:
        store = Store(home)
        ids = add(store, "A memory of my old flat in Tram Street 7.", "Another one.")
        saved = backup(store)
        purge(store, ids[:1], AUTHOR)
        certify(store)
        store.close()
        restore(home, saved)
        assert judge(home).truth == Truth.SOUND
        assert kept(home)[-1] == "Another one."
        moved = home.rename(tmp_path / "elsewhere")
        assert judge(moved).truth == Truth.SOUND
        twin = Path(shutil.copytree(moved, tmp_path / "twin"))
        assert kept(twin) == kept(moved)

    def test_going_back_on_purpose_raises_no_alarm(self, home: Path) -> None:
        store = Store(home)
        saved = backup(store)
        add(store, *(f"Note {number}" for number in range(9)))
        store.close()
        restore(home, saved)
        assert len(kept(home)) == 12

    def test_a_backup_of_another_store_may_be_restored(self, home: Path, tmp_path: Path) -> None:
        other = Store(made(tmp_path / "other", "I moved here."))
        saved = backup(other)
        other.close()
        restore(home, saved)
        assert kept(home) == ["I moved here."]
        assert judge(home).truth == Truth.SOUND

    @pytest.mark.parametrize("where", ["kept", "half", "replaced"])
    def test_a_restore_that_was_killed_leaves_one_of_both(self, home: Path, where: str) -> None:
        from tests.maintenance.test_backup import DIES

        store = Store(home)
        saved = backup(store)
        add(store, "After the backup.")
        store.close()
        died = python(DIES, home, saved, where)
        assert died.returncode == 9, died.stderr
        assert len(kept(home)) in (12, 13)
        assert judge(home).truth == Truth.SOUND

    def test_a_restore_over_a_lost_truth_ends_the_alarm(self, home: Path) -> None:
        store = Store(home)
        saved = backup(store)
        store.close()
        deleted(home)
        restore(home, saved)
        assert len(kept(home)) == 12

    def test_what_was_purged_stays_gone_after_a_restore_over_a_lost_truth(self, home: Path) -> None:
        store = Store(home)
        saved = backup(store)
        with store.database.read() as connection:
            [(fact_id, text)] = run(connection, "SELECT id, text FROM facts LIMIT 1")
        purge(store, [fact_id], AUTHOR)
        store.close()
        deleted(home)
        assert restore(home, saved).purged == 1
        assert text not in kept(home)

    def test_an_uninstalled_folder_remembers_nothing(self, home: Path) -> None:
        remove(home)
        assert not home.exists()

    def test_a_lost_store_can_be_uninstalled(self, home: Path) -> None:
        deleted(home)
        assert contents(home).made
        remove(home)
        assert not home.exists()

    def test_a_store_of_before_is_remembered_from_its_next_start(self, home: Path) -> None:
        (home / FILE).unlink()
        assert len(kept(home)) == 12
        remembered = Remembered.read(home)
        assert remembered is not None
        assert remembered.facts == 12
        older(home)
        assert judge(home).truth == Truth.OLDER

    @pytest.mark.parametrize("damage", [b"", b"{", b'{"format": 1}', b"\xff\xfe" * 50])
    def test_a_damaged_note_is_written_anew_beside_a_sound_truth(self, home: Path, damage: bytes) -> None:
        (home / FILE).write_bytes(damage)
        assert judge(home).truth == Truth.SOUND
        assert len(kept(home)) == 12
        assert Remembered.read(home) is not None

    @pytest.mark.parametrize("damage", [truncated, deleted])
    def test_a_damaged_note_still_tells_that_there_was_a_store(self, home: Path, damage: Damage) -> None:
        damage(home)
        shutil.rmtree(home / "lancedb")
        (home / FILE).write_bytes(b"{")
        assert judge(home).truth == Truth.MISSING

    @pytest.mark.skipif(os.name != "posix", reason="POSIX modes")
    def test_the_note_is_the_owners_alone_and_holds_no_text(self, home: Path) -> None:
        assert (home / FILE).stat().st_mode & 0o777 == 0o600
        assert b"Heron" not in (home / FILE).read_bytes()


WRITES = """
import sys
from pathlib import Path
from perdure.hooks.types import Channel
from perdure.store.fact import Fact
from perdure.store.store import Store
from perdure.store.transaction import Author

store = Store(Path(sys.argv[1]))
for number in range(int(sys.argv[3])):
    with store.write(Author(Channel.LIBRARY, "test")) as tx:
        tx.add(Fact(f"{sys.argv[2]} {number}"))
    store.remember(at_once=True)
store.close()
"""


places = st.builds(Place, st.text("0123456789abcdef", min_size=16, max_size=16), st.integers(0, 2**40), st.text())


class TestTheNote:
    @settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
    @given(st.binary(max_size=300) | st.text(max_size=300).map(str.encode))
    def test_may_hold_anything(self, tmp_path: Path, found: bytes) -> None:
        (tmp_path / FILE).write_bytes(found)
        assert Remembered.read(tmp_path) == Remembered()

    def test_may_be_nested_without_end(self, tmp_path: Path) -> None:
        (tmp_path / FILE).write_bytes(b"[" * 200_000)
        assert Remembered.read(tmp_path) == Remembered()

    @settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=30)
    @given(
        st.builds(
            Remembered, st.binary(min_size=32, max_size=32), st.lists(places, min_size=1, max_size=2).map(tuple),
            st.integers(0, 2**40), st.frozensets(st.text(max_size=64)), st.floats(0, 1e11),
        )
    )  # fmt: skip
    def test_is_read_as_it_was_written(self, tmp_path: Path, remembered: Remembered) -> None:
        remembered.write(tmp_path, durable=False)
        assert Remembered.read(tmp_path) == remembered


class TestTombstones:
    def test_that_were_taken_out_of_the_database_are_put_back(self, home: Path) -> None:
        text = "My neighbour Xylophilus owes me seven crowns."
        store = Store(home)
        purge(store, add(store, text), AUTHOR)
        certify(store)
        store.close()
        connection = apsw.Connection(str(home / "facts.db"))
        run(connection, "DELETE FROM tombstones")
        connection.close()
        store = Store(home)
        try:
            assert [finding.repair for finding in verify(store)] == ["tombstones"]
            assert fix(store, verify(store)) == []
            with store.database.read() as lent:
                assert is_purged(lent, store.key, text)
        finally:
            store.close()


class TestTheHead:
    @pytest.mark.parametrize("point", ["commit.after", "remembered.written", "remembered.replaced"])
    @pytest.mark.parametrize("time", [1, 4, 9])
    def test_lags_after_a_kill_and_never_leads(self, home: Path, point: str, time: int) -> None:
        killed = python(WRITES, home, "killed", 20, fail_point=f"{point}:{time}")
        assert killed.returncode == EXIT_CODE, killed.stderr
        assert judge(home).truth == Truth.SOUND
        assert len(kept(home)) > 12 - 1
        assert sorted(path.name for path in home.glob("remembered*.part")) == []

    def test_of_two_processes_is_never_the_older_one(self, home: Path) -> None:
        environment = os.environ | {"PYTHONPATH": str(ROOT)}
        command = [sys.executable, "-c", WRITES, str(home)]
        both = [subprocess.Popen([*command, name, "60"], env=environment) for name in ("one", "two")]
        highest = 0
        while any(process.poll() is None for process in both):
            remembered = Remembered.read(home)
            assert remembered is not None
            assert remembered.places
            assert remembered.places[0].seq >= highest
            highest = remembered.places[0].seq
            assert judge(home).truth == Truth.SOUND
        assert [process.returncode for process in both] == [0, 0]
        last = Remembered.read(home)
        assert last is not None
        store = Store(home)
        with store.database.read() as connection:
            [(newest,)] = run(connection, "SELECT max(seq) FROM journal")
        store.close()
        assert (last.places[0].seq, last.facts) == (newest, 12 + 120)

    def test_costs_no_write_while_nothing_changes_or_too_little_time_has_passed(self, home: Path) -> None:
        store = Store(home)
        try:
            add(store, "One.")
            store.remember()
            first = (home / FILE).stat().st_mtime_ns
            add(store, "Two.")
            store.remember()
            assert (home / FILE).stat().st_mtime_ns == first
            store.remember(at_once=True)
            second = (home / FILE).stat().st_mtime_ns
            assert second > first
            store.remember(at_once=True)
            assert (home / FILE).stat().st_mtime_ns == second
        finally:
            store.close()

    def test_purged_texts_are_known_outside_the_database_at_once(self, home: Path) -> None:
        store = Store(home)
        try:
            [fact_id] = add(store, "My neighbour Xylophilus owes me seven crowns.")
            purge(store, [fact_id], AUTHOR)
            remembered = Remembered.read(home)
            assert remembered is not None
            assert len(remembered.tombstones) == 1
            with store.database.read() as connection:
                assert is_purged(connection, remembered.key, "My neighbour Xylophilus owes me seven crowns.")
        finally:
            store.close()


class TestEvidence:
    """What LanceDB alone still holds is not tidied away by what runs unasked."""

    def test_rows_of_lost_memories_outlive_the_daily_comparison(self, home: Path) -> None:
        store = Store(home)
        try:
            connection = apsw.Connection(str(home / "facts.db"))
            run(connection, "DELETE FROM facts WHERE seq = 3")
            connection.close()
            reconcile(store, lambda: None)
            index(store)
            assert len(compare(store).orphaned) == 1
            assert fix(store, verify(store)) == []
        finally:
            store.close()
        assert len(kept(home)) == 12

    def test_nothing_that_is_derived_from_a_damaged_file_is_touched(self, home: Path) -> None:
        store = Store(home)
        with store.write(AUTHOR) as tx:
            for number in range(200):
                tx.add(Fact(f"Note {number}: {'words ' * 30}"))
        store.close()
        pages = bytearray((home / "facts.db").read_bytes())
        page = pages.index(b"Note 100: ") // 8192 * 8192
        pages[page : page + 8192] = bytes(8192)
        (home / "facts.db").write_bytes(pages)
        before = content(home / "lancedb")
        store = Store(home)
        try:
            assert judge(home, thorough=True).truth is Truth.DAMAGED
            assert "left" in reconcile(store, lambda: None)
            found = verify(store)
            assert any("recover" in finding.hint for finding in found)
            fix(store, found)
            assert content(home / "lancedb") == before
        finally:
            store.close()

    def test_rows_that_the_journal_never_knew_are_named_and_stay(self, home: Path) -> None:
        (home / "lancedb").rename(home.parent / "before")
        store = Store(home)
        add(store, "Only LanceDB will know this.")
        store.close()
        grown = home.parent / "before"
        shutil.rmtree(home / "lancedb", ignore_errors=True)
        grown.rename(home / "lancedb")
        store = Store(home)
        index(store)
        store.close()
        # The database alone goes back, and the folder has forgotten what it was.
        connection = apsw.Connection(str(home / "facts.db"))
        run(connection, "DELETE FROM journal WHERE fact_id = (SELECT id FROM facts ORDER BY seq DESC LIMIT 1)")
        run(connection, "DELETE FROM seals WHERE id >= (SELECT id FROM facts ORDER BY seq DESC LIMIT 1)"
                        " AND id < (SELECT id || 'z' FROM facts ORDER BY seq DESC LIMIT 1)")  # fmt: skip
        run(connection, "DELETE FROM facts WHERE seq = (SELECT max(seq) FROM facts)")
        connection.close()
        (home / FILE).unlink()
        store = Store(home)
        try:
            reconcile(store, lambda: None)
            index(store)
            left = fix(store, verify(store))
            assert any("recover" in finding.hint for finding in left)
            index(store)
            assert len(compare(store).orphaned) == 1
        finally:
            store.close()
