"""Nearest vectors, found by the server: exactly in a scope of usual size, by a graph in a larger one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from bench.ann import DIMS, SPACE, Synthetic, fill
from perdure import Memory
from perdure.index.feeding import GrowingIndex
from perdure.index.vector_index import ExactIndex, scan
from perdure.maintenance.teardown import purge_tenant
from perdure.postgres import vectors
from perdure.postgres.vectors import DatabaseIndex
from perdure.store.scope import Audience, Scope
from perdure.store.search import View
from perdure.store.sql import run
from perdure.store.store import Server as Shared
from perdure.store.store import Store
from tests.postgres.server import Server

pytestmark = pytest.mark.postgres
ROWS = 400
OWN, OTHER = Scope("user", "anna"), Scope("user", "bert")


@pytest.fixture
def store(server: Server, tenant: str, tmp_path: Path) -> Iterator[Store]:
    """A store of two users, with vectors that the server compares."""
    made = Store(tmp_path / "machine", server=Shared(server.url, tenant))
    fill(made, Synthetic(1, ROWS).draw(ROWS), scopes=[OWN, OTHER] * (ROWS // 2))
    made.database.tidy(lambda: None)
    yield made
    made.close()


@pytest.fixture
def queries() -> np.ndarray:
    return Synthetic(1, ROWS).draw(12)


def _view(user: str) -> View:
    return View(Audience.of(user=user), 1e10)


def test_a_scope_is_compared_as_a_whole(store: Store, queries: np.ndarray) -> None:
    index = DatabaseIndex(store.database, SPACE.id, DIMS)
    for query in queries:
        true = scan(store.database, SPACE.id, query, _view("anna"), 10)
        found = index.search(query, _view("anna"), 10)
        assert [hit.id for hit in found] == [hit.id for hit in true]
        assert [hit.cosine for hit in found] == pytest.approx([hit.cosine for hit in true])


def test_a_survey_tells_what_the_matrix_tells(store: Store, queries: np.ndarray) -> None:
    ours = DatabaseIndex(store.database, SPACE.id, DIMS).survey(queries[:3], _view("bert"), 10)
    matrix = ExactIndex(store.database, SPACE.id, DIMS).survey(queries[:3], _view("bert"), 10)
    assert ours.ids == matrix.ids
    assert (ours.count, ours.texts) == (matrix.count, matrix.texts) == (ROWS // 2, ROWS // 2)
    assert ours.cosines == pytest.approx(matrix.cosines, abs=1e-5)
    assert ours.totals == pytest.approx(matrix.totals, abs=0.5)
    assert ours.squares == pytest.approx(matrix.squares, abs=0.5)


def test_a_large_scope_is_walked_and_nothing_of_another_comes(
    store: Store, queries: np.ndarray, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vectors, "EXACT", 50)
    monkeypatch.setattr(vectors, "SPARSE", 20)
    assert "2 scopes have a graph" in store.database.tidy(lambda: None)
    index = DatabaseIndex(store.database, SPACE.id, DIMS)
    with store.database.read() as connection:
        assert list(index._graphs(connection, _view("anna").audience)) == [OWN]
        own = {row[0] for row in run(connection, "SELECT id FROM facts WHERE scope_target = 'anna'")}
    same = 0
    for query in queries:
        found = {hit.id for hit in index.search(query, _view("anna"), 10)}
        assert len(found) == 10
        assert found <= own
        same += len(found & {hit.id for hit in scan(store.database, SPACE.id, query, _view("anna"), 10)})
    assert same >= 0.95 * 10 * len(queries)


def test_a_vector_follows_its_memory_into_another_scope_and_small_scopes_lose_their_graph(
    store: Store, queries: np.ndarray, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vectors, "EXACT", 50)
    monkeypatch.setattr(vectors, "SPARSE", 20)
    store.database.tidy(lambda: None)
    with store.database.write() as connection:
        run(connection, "UPDATE facts SET scope_target = 'anna' WHERE seq > 10")
    assert "1 scopes have a graph" in store.database.tidy(lambda: None)
    found = DatabaseIndex(store.database, SPACE.id, DIMS).search(queries[0], _view("anna"), 200)
    true = scan(store.database, SPACE.id, queries[0], _view("anna"), 200)
    assert len({hit.id for hit in found} & {hit.id for hit in true}) >= 190
    purge_tenant(store)
    with store.database.read() as connection:
        assert vectors.graphs(connection) == {}


def test_what_was_written_without_pgvector_is_found_and_made_comparable(store: Store, queries: np.ndarray) -> None:
    with store.database.write() as connection:
        run(connection, "UPDATE vectors SET near = NULL WHERE rowid % 7 = 0")
    index = DatabaseIndex(store.database, SPACE.id, DIMS)
    true = scan(store.database, SPACE.id, queries[0], _view("anna"), 10)
    assert index.search(queries[0], _view("anna"), 10) == true
    with store.database.read() as connection:
        assert run(connection, "SELECT count(*) FROM vectors WHERE near IS NULL") == [(0,)]


def test_without_pgvector_a_process_holds_the_vectors(server: Server, tenant: str, tmp_path: Path) -> None:
    url = server.database(f"plain_{tenant}", compares=False)
    with Memory.open(tmp_path, store_url=url, store_tenant=tenant, embedder="hash", timers=False) as memory:
        memory.ready()
        kept = memory.store("The staging database is called heron.").id
        assert not memory._engine.store.database.compares
        leg = memory._engine.model.leg()
        assert leg is not None
        assert isinstance(leg.index, GrowingIndex)
        found = memory.recall("What is the staging database called?")
        assert found is not None
        assert [item.id for item in found.items] == [kept]
