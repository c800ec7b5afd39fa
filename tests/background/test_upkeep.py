"""The worker's jobs: backups that rotate, stores that are brought to agree, a file that gives back free room."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from perdure.api.memory import Memory
from perdure.background.scheduler import Stopping
from perdure.background.upkeep import export_day, reconcile, rotate
from perdure.clock import ManualClock
from perdure.hooks.types import Channel
from perdure.maintenance.backup import backups
from perdure.store.fact import Fact
from perdure.store.sql import run
from perdure.store.store import Store
from perdure.store.transaction import Author

AUTHOR = Author(Channel.LIBRARY)


def nothing() -> None:
    """Never pause."""


@pytest.fixture
def store(store: Store) -> Store:
    with store.write(AUTHOR) as tx:
        tx.add(Fact("The heron nests at the lake."))
    return store


def test_backups_rotate_and_others_are_left_alone(store: Store) -> None:
    by_hand = store.folder / "backups" / "facts-before-schema-2.db"
    rotate(store, 3)
    by_hand.write_bytes(b"kept")
    for _ in range(4):
        store.clock.advance(60)  # type: ignore[attr-defined]
        assert rotate(store, 3).startswith("facts-")
    names = sorted(file.path.name for file in backups(store.folder) if file.kind == "backup")
    assert len(names) == 3
    assert names[-1] == "facts-20270115T080400Z.db"
    assert by_hand.exists()


def test_what_a_killed_process_did_not_finish_goes_once_it_is_old(store: Store) -> None:
    folder = store.folder / "backups"
    folder.mkdir()
    old, present = folder / "facts-1.db.7.part", folder / "facts-2.db.8.part"
    for path, age in ((old, 90_000), (present, 80_000)):
        path.touch()
        os.utime(path, (store.clock.now() - age,) * 2)
    rotate(store, 3)
    assert not old.exists()
    assert present.exists()


def test_a_day_is_exported_once_unless_something_changes(store: Store, clock: ManualClock) -> None:
    assert export_day(store, 7, nothing) == "facts-2027-01-15.jsonl"
    clock.advance(86_400)
    assert export_day(store, 7, nothing) == "no changes since facts-2027-01-15.jsonl"
    with store.write(AUTHOR) as tx:
        tx.add(Fact("The lake is frozen."))
    old = store.folder / "exports" / "facts-2027-01-01.jsonl.7.part"
    old.touch()
    os.utime(old, (clock.now() - 90_000,) * 2)
    assert export_day(store, 7, nothing) == "facts-2027-01-16.jsonl"
    assert not old.exists()


def test_a_worker_that_is_stopped_leaves_no_half_an_export(store: Store) -> None:
    def stop() -> None:
        raise Stopping("the host is exiting")

    with pytest.raises(Stopping):
        export_day(store, 7, stop)
    assert list((store.folder / "exports").iterdir()) == []


def test_stores_that_agree_are_left_alone(store: Store) -> None:
    assert reconcile(store, nothing) == "all agree"


def test_words_that_were_lost_are_made_anew(store: Store) -> None:
    with store.database.write() as connection:
        run(connection, "DELETE FROM facts_fts")
    assert reconcile(store, nothing).endswith("repaired")
    with store.database.read() as connection:
        assert run(connection, "SELECT count(*) FROM facts_fts WHERE facts_fts MATCH 'heron'") == [(1,)]
    assert reconcile(store, nothing) == "all agree"


def test_a_fact_that_was_changed_behind_our_back_is_named_and_left(store: Store) -> None:
    with store.database.write() as connection:
        run(connection, "UPDATE facts SET importance = 0.9")
    assert reconcile(store, nothing) == "all agree, 1 left: fact has changed since it was written; see perdure verify"
    with store.database.read() as connection:
        assert run(connection, "SELECT importance FROM facts") == [(0.9,)]


def test_free_room_is_given_back_once_there_is_much(store: Store) -> None:
    assert store.database.tidy(nothing).endswith("nothing to reclaim")
    with store.write(AUTHOR) as tx:
        facts = [tx.add(Fact(f"{number} " + "heron " * 16_000)) for number in range(120)]
    with store.database.write() as connection:
        connection.executemany("DELETE FROM facts WHERE id = ?", [(fact.id,) for fact in facts])
    assert store.database.tidy(nothing).endswith("pages reclaimed")
    with store.database.read() as connection:
        assert run(connection, "PRAGMA freelist_count") == [(0,)]


def test_every_job_runs_or_says_why_it_has_nothing_to_do(tmp_path: Path) -> None:
    with Memory.open(tmp_path / "home", embedder="none") as memory:
        assert set(memory.admin.jobs().values()) == {None}
        said = {name: memory.admin.run_job(name, 60) for name in memory.admin.jobs()}
        assert memory.status().failing == ()
        assert memory.status().exported == said["export"]
    assert said.pop("backup").startswith("facts-")
    assert said.pop("export").startswith("facts-")
    assert said.pop("tidy").endswith("nothing to reclaim")
    assert said == {
        "prune": "nothing is due",
        "canary": "captured, recalled and removed",
        "files": "no files or conversations",
        "classify": "nothing to classify",
        "calibrate": "there is no model",
        "optimise": "there is no LanceDB table yet",
        "reconcile": "all agree",
    }
