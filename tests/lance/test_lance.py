"""The LanceDB table on its own: rows it refuses, other processes that clean up, its approximate index."""

from __future__ import annotations

from pathlib import Path

import lancedb
import numpy as np
import pytest

from perdure.errors import InputError, StoreUnavailableError
from perdure.lance.table import METADATA_BYTES, LanceIndex, LanceRow, table_name
from perdure.store.scope import Audience
from perdure.store.search import View

DIMS = 8
CHANCE = np.random.default_rng(3)
VIEW = View(Audience.of(), 1_000.0)


def row(number: int, vector: bytes | None = None, **changes: object) -> LanceRow:
    blob = vector if vector is not None else CHANCE.standard_normal(DIMS).astype("<f4").tobytes()
    plain: LanceRow = {
        "id": f"{number}", "text": "heron", "vector": blob, "importance": 0.5, "category": "fact",
        "scope": "global", "created_at": 0.0, "expires_at": float("inf"),
    }  # fmt: skip
    return plain | changes


def query() -> np.ndarray[tuple[int], np.dtype[np.float32]]:
    vector = CHANCE.standard_normal(DIMS).astype(np.float32)
    return vector / np.linalg.norm(vector)


@pytest.mark.parametrize(
    "vector",
    [b"", b"\0" * 4 * (DIMS - 1), np.full(DIMS, np.inf, "<f4").tobytes(), np.full(DIMS, np.nan, "<f4").tobytes()],
)
def test_a_row_that_cannot_be_indexed_is_named_and_nothing_is_written(tmp_path: Path, vector: bytes) -> None:
    index = LanceIndex(tmp_path, "space", DIMS)
    with pytest.raises(InputError, match="memory 13"):
        index.apply([row(1), row(13, vector), row(2)], [])
    assert index.ids() == set()
    index.close()


def test_a_reader_survives_the_cleaning_up_of_another(tmp_path: Path) -> None:
    writer = LanceIndex(tmp_path, "space", DIMS)
    writer.apply([row(number) for number in range(50)], [])
    reader = LanceIndex(tmp_path, "space", DIMS, create=False)
    assert len(reader.search(query(), VIEW, 60)) == 50
    for number in range(50, 55):
        writer.apply([row(number)], [f"{number - 50}"])
    writer.optimize()
    found = reader.search(query(), VIEW, 60)
    assert {hit.id for hit in found} == {f"{number}" for number in range(5, 55)}
    for index in (reader, writer):
        index.close()


def test_versions_that_readers_may_hold_stay(tmp_path: Path) -> None:
    writer = LanceIndex(tmp_path, "space", DIMS)
    writer.apply([row(1)], [])
    held = lancedb.connect(tmp_path).open_table(table_name("space", 0))
    for _ in range(5):
        writer.apply([row(1)], [])
    writer.optimize()
    assert held.search().to_arrow().num_rows == 1
    writer.close()


def test_what_is_kept_at_hand_of_a_small_table_does_not_grow_with_its_changes(tmp_path: Path) -> None:
    index = LanceIndex(tmp_path, "space", DIMS)
    for number in range(80):
        index.apply([row(number % 10)], [])
        assert len(index.search(query(), VIEW, 3)) == min(number + 1, 3)
    assert index.cached < 1.5 * METADATA_BYTES
    index.close()


def test_a_version_that_the_table_has_not_reached(tmp_path: Path) -> None:
    index = LanceIndex(tmp_path, "space", DIMS)
    index.apply([row(1)], [])
    assert len(index.search(query(), VIEW, 3, at_least=index.version)) == 1
    with pytest.raises(StoreUnavailableError, match="searched"):
        index.search(query(), VIEW, 3, at_least=index.version + 1)
    index.close()


def test_the_approximate_index_finds_what_is_nearest(tmp_path: Path) -> None:
    index = LanceIndex(tmp_path, "space", DIMS)
    rows = [row(number) for number in range(2_000)]
    index.apply(rows[:1_500], [])
    index.train()
    index.apply(rows[1_500:], [])
    vectors = np.stack([np.frombuffer(each["vector"], "<f4") for each in rows])
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    hits = 0
    for _ in range(20):
        target = query()
        found = index.search(target, VIEW, 10)
        best = np.argsort(-(vectors @ target))[:10]
        hits += len({hit.id for hit in found} & {f"{number}" for number in best})
        true = [float(vectors[int(hit.id)] @ target) for hit in found]
        assert [hit.cosine for hit in found] == pytest.approx(true, abs=1e-4)
    assert hits >= 190
    index.close()


def test_a_table_that_cannot_be_read_mends_itself_and_nobody_is_told_to_delete_it(tmp_path: Path) -> None:
    with pytest.raises(StoreUnavailableError, match="a damaged table is rebuilt in the background") as error:
        LanceIndex(tmp_path, "space", DIMS, create=False)
    assert "elete" not in str(error.value)


def test_each_generation_has_its_own_table(tmp_path: Path) -> None:
    first = LanceIndex(tmp_path, "space", DIMS)
    first.apply([row(1)], [])
    second = LanceIndex(tmp_path, "space", DIMS, generation=1)
    assert (first.ids(), second.ids()) == ({"1"}, set())
    other = LanceIndex(tmp_path, "space2", DIMS)
    second.drop_others()
    assert set(lancedb.connect(tmp_path).list_tables().tables) == {"memories_space_1", "memories_space2"}
    for index in (first, second, other):
        index.close()


def test_an_error_tells_no_text(tmp_path: Path) -> None:
    index = LanceIndex(tmp_path, "space", DIMS)
    with pytest.raises(InputError) as caught:
        index.apply([row(1, text="the secret heron", created_at="the secret heron")], [])
    assert caught.value.__cause__ is None
    assert "secret" not in str(caught.value)
    index.close()
