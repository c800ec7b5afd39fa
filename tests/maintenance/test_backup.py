"""A backup is taken while others write, and what is restored is what it holds."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import threading
from pathlib import Path

import apsw
import pytest

from perdure.clock import ManualClock
from perdure.errors import InputError, StoreBusyError, StoreCorruptError, StoreTooNewError
from perdure.maintenance.backup import backup, backups, restore, vault_of
from perdure.maintenance.purge import purge
from perdure.store import migrations, snapshot
from perdure.store.sql import run
from perdure.store.store import Store
from perdure.vault.vault import Vault
from tests.kit import AUTHOR, add, kept
from tests.store.feeding import feed

DIES = """
import os, sys
from pathlib import Path
from perdure.maintenance import backup

copies = 0

def copy_pages(source, target):
    global copies
    copies += 1
    if where == "half" and copies == 2:
        backup.run(target, "PRAGMA cache_size = 5")  # so that half of the pages are in the file
        copy = target.backup("main", source, "main")
        copy.step(20)
        os._exit(9)
    plain(source, target)
    if where == ("kept", "replaced")[copies - 1]:
        os._exit(9)

folder, file, where = sys.argv[1:]
plain, backup.copy_pages = backup.copy_pages, copy_pages
backup.restore(Path(folder), Path(file))
"""
"""Restores, and dies after the present store was kept, in the middle of its replacement, or right after it."""


def facts_in(path: Path) -> int:
    connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
    try:
        assert run(connection, "PRAGMA integrity_check") == [("ok",)]
        return int(run(connection, "SELECT count(*) FROM facts")[0][0])
    finally:
        connection.close()


def flip(path: Path) -> None:
    """Change one letter of one row: every page can be read, but a row and an index no longer agree."""
    content = bytearray(path.read_bytes())
    row = content.index(b"fact number 7 about herons")
    content[content.index(b"permanent", row)] = ord("P")
    path.write_bytes(content)


class TestBackup:
    def test_holds_everything_in_one_private_file(self, store: Store) -> None:
        add(store, "The heron database is staging.", "Lunch is at noon.")
        path = backup(store)

        assert path.name == "facts-20270115T080000Z.db"
        assert facts_in(path) == 2
        assert [entry.name for entry in path.parent.iterdir()] == [path.name]
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700

    def test_two_in_one_second_have_two_names(self, store: Store) -> None:
        assert backup(store) != backup(store)

    def test_never_overwrites(self, store: Store, tmp_path: Path) -> None:
        target = tmp_path / "precious.db"
        target.write_text("mine")
        with pytest.raises(InputError, match="already exists"):
            backup(store, target)
        assert target.read_text() == "mine"

    def test_is_of_one_moment_while_a_writer_goes_on(
        self, store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(snapshot, "PAGES", 1)  # in many small steps, for the writer to come between
        stop = threading.Event()
        written: list[int] = []

        def write() -> None:
            # Two facts to a transaction: a backup that is not of one moment would hold an odd number.
            while not stop.is_set():
                add(store, f"pair {len(written)} one", f"pair {len(written)} two")
                written.append(2)

        writer = threading.Thread(target=write)
        writer.start()
        try:
            counts = []
            for number in range(5):
                before = sum(written)
                counts.append(facts_in(backup(store, tmp_path / f"{number}.db")))
                assert counts[-1] >= before
        finally:
            stop.set()
            writer.join()
        assert all(count % 2 == 0 for count in counts)
        assert sum(written) > 0

    def test_a_damaged_store_gives_no_backup(self, store: Store, tmp_path: Path) -> None:
        add(store, *(f"fact number {number} about herons" for number in range(200)))
        store.close()
        flip(store.folder / "facts.db")
        broken = Store(store.folder)
        try:
            with pytest.raises(StoreCorruptError):
                backup(broken, tmp_path / "copy.db")
        finally:
            broken.close()
        assert not list(tmp_path.glob("copy.db*"))

    def test_is_listed_newest_first(self, store: Store) -> None:
        first, second = backup(store), backup(store)
        os.utime(first, (1, 1))
        (first.parent / "notes.txt").write_text("not ours")
        assert [(file.path, file.kind) for file in backups(store.folder)] == [(second, "backup"), (first, "backup")]


class TestRestore:
    def test_leaves_no_page_of_the_former_store_beside_the_new_one(self, store: Store) -> None:
        copy = backup(store)
        add(store, "My neighbour Xylophilus owes me seven crowns.")
        store.close()
        restore(store.folder, copy)
        assert kept(store.folder) == []
        left = [path.name for path in store.folder.iterdir() if path.is_file() and b"Xylophilus" in path.read_bytes()]
        assert left == []

    def test_brings_back_what_the_backup_holds_and_keeps_the_present(self, store: Store, clock: ManualClock) -> None:
        add(store, "The heron database is staging.")
        path = backup(store)
        add(store, "Lunch is at noon.")
        store.close()

        done = restore(store.folder, path, clock=clock)

        assert done.facts == 1
        assert kept(store.folder) == ["The heron database is staging."]
        assert done.kept is not None
        assert facts_in(done.kept) == 2
        assert stat.S_IMODE(done.kept.stat().st_mode) == 0o600
        assert stat.S_IMODE((store.folder / "facts.db").stat().st_mode) == 0o600

    def test_moves_to_an_empty_folder(self, store: Store, tmp_path: Path) -> None:
        add(store, "The heron database is staging.")
        done = restore(tmp_path / "elsewhere", backup(store))
        assert (done.facts, done.kept) == (1, None)
        assert kept(tmp_path / "elsewhere") == kept(store.folder)

    def test_can_be_undone_by_restoring_what_was_kept(self, store: Store) -> None:
        path = backup(store)
        add(store, "Lunch is at noon.")
        store.close()
        former = restore(store.folder, path).kept
        assert kept(store.folder) == []
        assert former is not None
        restore(store.folder, former)
        assert kept(store.folder) == ["Lunch is at noon."]

    def test_a_dry_run_changes_nothing(self, store: Store) -> None:
        path = backup(store)
        add(store, "Lunch is at noon.")
        store.close()
        before = sorted(entry.name for entry in store.folder.rglob("*"))
        assert restore(store.folder, path, dry_run=True).facts == 0
        assert sorted(entry.name for entry in store.folder.rglob("*")) == before
        assert kept(store.folder) == ["Lunch is at noon."]

    def test_refuses_while_this_process_has_the_store_open(self, store: Store) -> None:
        path = backup(store)
        add(store, "Lunch is at noon.")
        with pytest.raises(StoreBusyError, match="in use"):
            restore(store.folder, path)
        add(store, "Dinner is at eight.")
        store.close()
        assert kept(store.folder) == ["Lunch is at noon.", "Dinner is at eight."]

    def test_refuses_while_another_process_has_the_store_open(self, store: Store) -> None:
        path = backup(store)
        store.close()
        code = (
            "import sys; from pathlib import Path; from perdure.store.store import Store\n"
            "store = Store(Path(sys.argv[1])); print('open', flush=True); sys.stdin.read(); store.close()"
        )
        root = str(Path(__file__).parents[2])
        child = subprocess.Popen(
            [sys.executable, "-c", code, str(store.folder)],
            env=os.environ | {"PYTHONPATH": root}, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        )  # fmt: skip
        with child:
            assert child.stdout is not None
            assert child.stdout.readline() == b"open\n"
            with pytest.raises(StoreBusyError, match="close every program"):
                restore(store.folder, path)
            child.communicate()
        assert restore(store.folder, path).facts == 0

    @pytest.mark.parametrize("dry_run", [False, True])
    @pytest.mark.parametrize("damage", ["flipped", "torn", "no database", "other program", "newer"])
    def test_a_bad_backup_changes_nothing(self, store: Store, tmp_path: Path, damage: str, dry_run: bool) -> None:
        add(store, *(f"fact number {number} about herons" for number in range(200)))
        path = backup(store, tmp_path / "backup.db")
        before = kept(store.folder)
        store.close()
        error: type[Exception] = StoreCorruptError
        if damage == "flipped":
            flip(path)
        elif damage == "torn":
            path.write_bytes(path.read_bytes()[:-40_960])
        elif damage == "no database":
            path.write_bytes(b"no database at all, but a text" * 100)
        else:
            connection = apsw.Connection(str(path))
            pragma = "application_id = 1" if damage == "other program" else "user_version = 999"
            run(connection, f"PRAGMA {pragma}")
            connection.close()
            error = StoreTooNewError if damage == "newer" else error
        with pytest.raises(error):
            restore(store.folder, path, dry_run=dry_run)
        assert kept(store.folder) == before

    @pytest.mark.parametrize(("where", "expected"), [("kept", 301), ("half", 301), ("replaced", 300)])
    def test_killed_the_store_is_the_former_or_the_restored_one(
        self, store: Store, tmp_path: Path, where: str, expected: int
    ) -> None:
        add(store, *(f"fact number {number} about herons" for number in range(300)))
        path = backup(store, tmp_path / "backup.db")
        add(store, "Lunch is at noon.")
        store.close()
        words = [sys.executable, "-c", DIES, str(store.folder), str(path), where]
        environment = os.environ | {"PYTHONPATH": str(Path(__file__).parents[2])}
        assert subprocess.run(words, env=environment, check=False).returncode == 9
        # Half of the pages are new: the journal that takes them back is valid. Else it is empty or struck out.
        journal = (store.folder / "facts.db-journal").read_bytes()[:8]
        assert (journal not in (b"", bytes(8))) == (where == "half")

        assert len(kept(store.folder)) == expected
        restore(store.folder, path)
        assert len(kept(store.folder)) == 300
        assert not (store.folder / "restoring").exists()

    @pytest.mark.parametrize("where", [0, 20_480])
    def test_a_damaged_store_is_kept_aside_and_replaced(self, store: Store, tmp_path: Path, where: int) -> None:
        add(store, *(f"fact number {number} about herons" for number in range(200)))
        path = backup(store, tmp_path / "backup.db")
        store.close()
        broken = store.folder / "facts.db"
        content = bytearray(broken.read_bytes())
        content[where : where + 4096] = b"\xff" * 4096
        broken.write_bytes(content)

        done = restore(store.folder, path)

        assert len(kept(store.folder)) == 200
        assert done.kept is not None
        assert b"\xff" * 4096 in done.kept.read_bytes()

    def test_what_was_purged_since_stays_gone(self, store: Store) -> None:
        secret, _ = add(store, "The door code is the year of the comet.", "Lunch is at noon.")
        path = backup(store)
        purge(store, [secret.id], AUTHOR)
        store.close()

        assert restore(store.folder, path).purged == 1

        assert kept(store.folder) == ["Lunch is at noon."]
        # ... and when the same backup is restored once more.
        assert restore(store.folder, path).purged == 1

    def test_the_derived_table_is_dropped_and_waits_for_each_restored_fact(self, store: Store) -> None:
        feed(store)
        [kept] = add(store, "The heron database is staging.")
        with store.database.write() as connection:
            run(connection, "DELETE FROM outbox")
        path = backup(store)
        add(store, "Lunch is at noon.")
        store.close()
        store.lance_folder.mkdir()
        (store.lance_folder / "memories.lance").write_text("vectors of the facts before")

        restore(store.folder, path)

        assert not store.lance_folder.exists()
        restored = Store(store.folder)
        try:
            with restored.database.read() as connection:
                assert run(connection, "SELECT fact_id FROM outbox") == [(kept.id,)]
        finally:
            restored.close()


class TestBeforeAMigration:
    @pytest.fixture
    def newer(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def step(connection: apsw.Connection) -> None:
            run(connection, "CREATE TABLE later (id TEXT)")

        monkeypatch.setattr(migrations, "STEPS", (*migrations.STEPS, step, step_that_does_nothing))

    def test_a_copy_of_the_facts_is_kept_once(self, store: Store, request: pytest.FixtureRequest) -> None:
        add(store, "Lunch is at noon.")
        store.close()
        request.getfixturevalue("newer")
        assert kept(store.folder) == ["Lunch is at noon."]
        assert kept(store.folder) == ["Lunch is at noon."]
        [copy] = backups(store.folder)
        assert (copy.kind, facts_in(copy.path)) == ("before a migration", 1)
        assert stat.S_IMODE(copy.path.stat().st_mode) == 0o600

    def test_an_empty_store_needs_none(self, store: Store, request: pytest.FixtureRequest) -> None:
        store.close()
        request.getfixturevalue("newer")
        assert kept(store.folder) == []
        assert backups(store.folder) == []

    def test_an_older_backup_is_migrated_by_restoring_it(self, store: Store, request: pytest.FixtureRequest) -> None:
        add(store, "Lunch is at noon.")
        path = backup(store)
        store.close()
        request.getfixturevalue("newer")
        restore(store.folder, path)
        connection = apsw.Connection(str(store.folder / "facts.db"))
        assert run(connection, "PRAGMA user_version") == [(len(migrations.STEPS),)]
        connection.close()


def step_that_does_nothing(connection: apsw.Connection) -> None:
    """Stand for a second step, before which nothing more is kept."""


def test_the_vault_is_in_a_backup_and_comes_back_to_a_folder_that_lost_it(tmp_path: Path) -> None:
    store = Store(tmp_path / "home")
    with Vault(store.folder, passphrase="correct horse battery staple") as vault:
        record = vault.store("GitHub", "an-invented-secret")
    path = backup(store)
    store.close()
    assert [file.kind for file in backups(store.folder) if file.path == vault_of(path)] == ["vault"]
    assert not restore(store.folder, path).vault  # one that is there is never replaced
    assert restore(tmp_path / "new", path, dry_run=True).vault
    assert restore(tmp_path / "new", path).vault
    with Vault(tmp_path / "new", passphrase="correct horse battery staple") as vault:
        assert vault.get(record.id).value == "an-invented-secret"
