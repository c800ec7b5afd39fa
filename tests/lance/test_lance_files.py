"""Damage to LanceDB's files and rows, of which LanceDB itself mostly says nothing, is named."""

from __future__ import annotations

import json
from pathlib import Path

import lancedb
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from perdure.embed.deterministic import HashEmbedder
from perdure.hooks.types import Channel
from perdure.lance.drift import IndexDrift, check_files, compare, missing_files, record_files
from perdure.lance.indexer import Indexer
from perdure.lance.table import table_name
from perdure.store.fact import Fact
from perdure.store.folder import LANCE_SUMS as SUMS
from perdure.store.spaces import VectorSpace
from perdure.store.sql import run
from perdure.store.store import Store
from perdure.store.transaction import Author
from tests.kit import ids_of

AUTHOR = Author(Channel.LIBRARY)
EMBEDDER = HashEmbedder()
SPACE = VectorSpace(EMBEDDER.identity.id, EMBEDDER.identity.dims, {"model": "hash"})
NONE = IndexDrift(frozenset(), frozenset(), frozenset())


def add(store: Store, *texts: str, **more: str) -> list[str]:
    with store.write(AUTHOR) as tx:
        return [tx.add(Fact(text, **more)).id for text in texts]  # type: ignore[arg-type]


def work(store: Store) -> None:
    indexer = Indexer(store, lambda: EMBEDDER, 3)
    while indexer.step():
        pass
    indexer.close()


@pytest.fixture
def filled(store: Store) -> Store:
    store.adopt_space(SPACE)
    add(store, *(f"heron number {number}" for number in range(10)))
    work(store)
    return store


def files(store: Store) -> list[Path]:
    return sorted(
        store.folder / line.split("  ", 1)[1] for line in (store.folder / SUMS).read_text().split("\n") if line
    )


class TestFiles:
    def test_all_that_never_change_are_noted(self, filled: Store) -> None:
        assert check_files(filled) == missing_files(filled) == []
        present = {path for path in filled.lance_folder.rglob("*") if path.is_file()}
        assert {path.name for path in present - set(files(filled))} <= {"latest_version_hint.json"}
        assert set(files(filled)) <= present
        assert oct((filled.folder / SUMS).stat().st_mode & 0o777) == "0o600"

    def test_ordinary_work_raises_no_alarm(self, filled: Store) -> None:
        for number in range(4):
            add(filled, f"kettle number {number}")
            work(filled)
            assert check_files(filled) == []
        assert compare(filled) == NONE

    @settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
    @given(data=st.data())
    def test_every_flipped_bit_is_found(self, filled: Store, data: st.DataObject) -> None:
        path = data.draw(st.sampled_from([path for path in files(filled) if path.stat().st_size]))
        whole = path.read_bytes()
        place = data.draw(st.integers(0, len(whole) - 1))
        flipped = whole[place] ^ (1 << data.draw(st.integers(0, 7)))
        path.write_bytes(whole[:place] + bytes([flipped]) + whole[place + 1 :])
        try:
            name = path.relative_to(filled.folder).as_posix()
            assert check_files(filled) == [f"{name}: altered"]
        finally:
            path.write_bytes(whole)
        assert check_files(filled) == []

    def test_deleted_and_truncated_ones_are_named(self, filled: Store) -> None:
        gone, short = [path for path in files(filled) if path.parent.name == "data"][:2]
        gone.unlink()
        short.write_bytes(short.read_bytes()[:10])
        assert {line.rpartition(": ")[2] for line in check_files(filled)} == {"missing", "altered"}
        assert missing_files(filled) == [gone.relative_to(filled.folder).as_posix()]

    def test_a_line_that_a_kill_cut_off_costs_nothing(self, filled: Store) -> None:
        sums = filled.folder / SUMS
        sums.write_text(sums.read_text()[:-20])
        record_files(filled)
        assert check_files(filled) == []
        present = {path for path in filled.lance_folder.rglob("*") if path.is_file()}
        assert {path.name for path in present - set(files(filled)[1:])} <= {
            "latest_version_hint.json",
            files(filled)[0].name,
        }

    def test_without_a_table_there_is_nothing_to_say(self, store: Store) -> None:
        assert check_files(store) == []
        assert compare(store) == NONE


class TestCompare:
    def test_what_is_missing_orphaned_and_different(self, filled: Store) -> None:
        table = lancedb.connect(filled.lance_folder).open_table(table_name(SPACE.id, 0))
        first, second, third = table.search().select(["id"]).limit(3).to_arrow()["id"].to_pylist()
        table.delete(f"id = '{first}'")
        table.update(where=f"id = '{second}'", values={"text": "kettle"})
        with filled.database.write() as connection:
            run(connection, "UPDATE facts SET forgotten_at = 1 WHERE id = ?", (third,))
        assert compare(filled) == IndexDrift(frozenset({first}), frozenset({third}), frozenset({second}))

    @pytest.mark.parametrize("column", ["vector", "scope", "importance", "expires_at", "created_at", "category"])
    def test_every_column_counts(self, filled: Store, column: str) -> None:
        values = {"scope": "user:x", "category": "other thing", "vector": [1.0] + [0.0] * (SPACE.dims - 1)}
        table = lancedb.connect(filled.lance_folder).open_table(table_name(SPACE.id, 0))
        [fact_id] = table.search().select(["id"]).limit(1).to_arrow()["id"].to_pylist()
        table.update(where=f"id = '{fact_id}'", values={column: values.get(column, 0.25)})
        assert compare(filled).different == {fact_id}

    def test_what_waits_in_the_outbox_is_no_drift(self, filled: Store) -> None:
        old, _ = add(filled, "kettle", "teapot")
        with filled.write(AUTHOR) as tx:
            tx.supersede(ids_of(filled)[0], old)
        assert compare(filled) == NONE


def test_the_state_of_the_table_is_plain_json(filled: Store) -> None:
    known = json.loads(filled.meta(f"lance:{SPACE.id}") or "")
    assert known["version"] > 0
    assert (known["generation"], known["trained"], known["suspect"]) == (0, 0, False)
