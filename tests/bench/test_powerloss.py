"""The power loss bench in short, and that its disk forgets what was not synced."""

from __future__ import annotations

from pathlib import Path

import apsw
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.powerloss import Platter, bench, recorded
from perdure.store.sql import run

writes = st.lists(st.tuples(st.integers(0, 3_000), st.none() | st.binary(min_size=1, max_size=2_000)), max_size=12)


def test_nothing_acknowledged_is_lost() -> None:
    result = bench(40, 1)
    assert result["problems"] == []
    assert result["crash_points"] >= 60
    assert result["checkpoints"] >= 3
    assert result["fewest_syncs_per_acknowledgement"] >= 1


@pytest.mark.parametrize(("synchronous", "kept"), [("FULL", 2), ("NORMAL", 1), ("OFF", 0)])
def test_a_commit_that_did_not_wait_for_the_disk_is_seen_to_be_lost(
    tmp_path: Path, synchronous: str, kept: int
) -> None:
    home = tmp_path / "home"
    home.mkdir()
    with recorded(home) as disk:
        connection = apsw.Connection(str(home / "facts.db"))
        run(connection, "PRAGMA journal_mode = WAL")
        run(connection, f"PRAGMA synchronous = {synchronous}")
        run(connection, "CREATE TABLE said (word TEXT)")
        run(connection, "INSERT INTO said VALUES ('first')")
        if synchronous != "OFF":
            run(connection, "PRAGMA wal_checkpoint")
        run(connection, "INSERT INTO said VALUES ('second')")
        disk.cut(tmp_path / "left", lambda: False)
        connection.close()
    left = apsw.Connection(str(tmp_path / "left" / "facts.db"))
    there = run(left, "SELECT 1 FROM sqlite_schema")
    assert (run(left, "SELECT count(*) FROM said")[0][0] if there else 0) == kept
    left.close()


@given(writes, st.booleans())
def test_what_was_synced_survives_whatever_happens(done: list[tuple[int, bytes | None]], survives: bool) -> None:
    platter = Platter("file", pending=list(done))
    platter.sync()
    assert platter.after_cut(lambda: survives) == bytes(platter.durable)


@given(writes)
def test_if_every_sector_survives_the_file_is_as_it_was_written(done: list[tuple[int, bytes | None]]) -> None:
    whole = Platter("file", pending=list(done))
    left = whole.after_cut(lambda: True)
    whole.sync()
    assert left == bytes(whole.durable)


@given(writes, writes)
def test_if_no_sector_survives_the_file_is_as_it_was_synced(
    before: list[tuple[int, bytes | None]], after: list[tuple[int, bytes | None]]
) -> None:
    platter = Platter("file", pending=list(before))
    platter.sync()
    synced = bytes(platter.durable)
    platter.pending += after
    assert platter.after_cut(lambda: False) == synced
