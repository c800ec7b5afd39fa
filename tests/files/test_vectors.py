"""The nearest chunks: by rounded numbers first, in full then, and only those that are there and may be seen."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import numpy as np
import pytest

from perdure.embed.base import EmbedderIdentity
from perdure.files import rows
from perdure.files.index import Generation
from perdure.files.retrievers import ChunkVectors, cosines
from perdure.files.roots import Found, Kind, Root, root_of
from perdure.files.rows import Entry
from perdure.store.scope import Audience, Scope
from perdure.store.sql import run
from tests.files.workshop import MINE, Workshop

if TYPE_CHECKING:
    from perdure.embed.base import Vectors

OWNER = Audience.of()
BOTH = ("memory", "sessions")


class Shelf:
    """A generation that texts and vectors are put into directly."""

    def __init__(self, workshop: Workshop, dims: int) -> None:
        self.identity = EmbedderIdentity("random", "1", dims, 256)
        self.generations = workshop.index.generations
        self.folder = workshop.folder
        workshop.index.sync([])
        self.files = 0

    @property
    def generation(self) -> Generation:
        """The live one."""
        live = self.generations.live()
        assert live is not None
        return live

    def put(self, *vectors: Vectors, scope: Scope = MINE, kind: Kind = "workspace") -> list[int]:
        """Put a file of one chunk for each vector, or for each array of vectors of its parts; return their ids."""
        self.files += 1
        entries = [self.entry(self.files, place) for place in range(len(vectors))]
        root = root_of(scope, self.folder / kind, kind)
        return self.write(root, f"{self.files}.md", entries, vectors)

    def write(self, root: Root, name: str, entries: list[Entry], vectors: tuple[Vectors, ...]) -> list[int]:
        with self.generation.database.write(durable=False) as connection:
            rows.put_file(connection, root, Found(name), rows.Content(name, entries), (0, 0, 0))
            for entry, vector in zip(entries, vectors, strict=True):
                rows.put_vectors(connection, self.identity, entry.hash, np.atleast_2d(vector))
            sql = "SELECT c.id FROM chunks c JOIN files f ON f.id = c.file_id WHERE f.relative = ? ORDER BY c.place"
            return [row[0] for row in run(connection, sql, (name,))]

    def drop(self, *chunks: int) -> None:
        """Drop the files of chunks."""
        with self.generation.database.write(durable=False) as connection:
            for chunk in chunks:
                for (file_id,) in run(connection, "SELECT file_id FROM chunks WHERE id = ?", (chunk,)):
                    rows.drop_file(connection, file_id)

    @staticmethod
    def entry(file: int, place: int) -> Entry:
        """Return a text that no other place has."""
        text = f"text {place} of file {file}"
        return Entry(place + 1, place + 1, "", text, text, "")


def unit(*shape: int, seed: int) -> Vectors:
    """Return random vectors of length one."""
    vectors = np.random.default_rng(seed).normal(size=shape).astype(np.float32)
    scaled: Vectors = vectors / np.linalg.norm(vectors, axis=-1, keepdims=True)
    return scaled


def towards(query: Vectors, *cosine: float) -> list[Vectors]:
    """Return vectors that have these cosines with a query."""
    beside = unit(query.size, seed=99)
    beside = beside - (beside @ query) * query
    beside /= np.linalg.norm(beside)
    return [(share * query + np.sqrt(1 - share**2) * beside).astype(np.float32) for share in cosine]


@pytest.fixture
def shelf(workshop: Workshop) -> Shelf:
    return Shelf(workshop, 384)


QUERY = unit(384, seed=1)


def nearest(
    vectors: ChunkVectors,
    shelf: Shelf,
    query: Vectors = QUERY,
    *,
    audience: Audience = OWNER,
    sources: tuple[str, ...] = BOTH,
    limit: int = 10,
) -> dict[int, float]:
    return vectors.nearest(shelf.generation, shelf.identity.id, query, audience, sources, limit)


class TestNearest:
    def test_rounding_loses_nothing(self, shelf: Shelf) -> None:
        stored = unit(2_000, 384, seed=2)
        ids = np.array(shelf.put(*stored))
        vectors = ChunkVectors()
        found = shared = 0
        for query in unit(40, 384, seed=3):
            exact = ids[np.argsort(-(stored @ query))[:10]]
            got = nearest(vectors, shelf, query)
            found += len(set(exact.tolist()) & got.keys())
            shared += len(got)
        assert shared == 400
        assert found >= 0.998 * 400

    def test_come_in_order_with_their_cosines(self, shelf: Shelf) -> None:
        wanted = [0.3, 0.9, -0.5, 0.6]
        ids = shelf.put(*towards(QUERY, *wanted))
        found = nearest(ChunkVectors(), shelf, limit=3)
        assert list(found) == [ids[1], ids[3], ids[0]]
        assert list(found.values()) == pytest.approx([0.9, 0.6, 0.3], abs=1e-5)

    def test_a_text_of_many_parts_counts_by_its_best(self, shelf: Shelf) -> None:
        parts = np.stack(towards(QUERY, -0.2, 0.95, 0.1))
        whole, other = shelf.put(parts, towards(QUERY, 0.5)[0])
        found = nearest(ChunkVectors(), shelf)
        assert list(found) == [whole, other]
        assert found[whole] == pytest.approx(0.95, abs=1e-5)
        assert len(nearest(ChunkVectors(), shelf, limit=1)) == 1

    @pytest.mark.parametrize("dims", [1, 8, 63, 64, 65, 100])
    def test_any_number_of_dimensions(self, workshop: Workshop, dims: int) -> None:
        shelf = Shelf(workshop, dims)
        stored = unit(20, dims, seed=4)
        ids = shelf.put(*stored)
        found = nearest(ChunkVectors(), shelf, stored[7], limit=20)
        assert found[ids[7]] == pytest.approx(1.0, abs=1e-5)
        assert found == pytest.approx(dict(zip(ids, (stored @ stored[7]).tolist(), strict=True)), abs=1e-5)

    @pytest.mark.parametrize("dims", [63, 64, 65, 100])
    def test_and_any_number_of_texts(self, workshop: Workshop, dims: int) -> None:
        shelf = Shelf(workshop, dims)
        stored = unit(2_000, dims, seed=4)
        ids = shelf.put(*stored)
        vectors = ChunkVectors()
        for at in range(0, len(ids), 100):
            [(nearest_one, cosine)] = nearest(vectors, shelf, stored[at], limit=1).items()
            assert nearest_one == ids[at]
            assert cosine == pytest.approx(1.0, abs=1e-5)

    def test_nothing_in_nothing(self, shelf: Shelf) -> None:
        vectors = ChunkVectors()
        assert nearest(vectors, shelf) == {}
        ids = shelf.put(*towards(QUERY, 0.9))
        assert list(nearest(vectors, shelf)) == ids

    def test_a_text_without_a_vector_is_not_found_until_it_has_one(self, shelf: Shelf) -> None:
        vectors = ChunkVectors()
        [there] = shelf.put(*towards(QUERY, 0.4))
        entry = shelf.entry(7, 7)
        root = root_of(MINE, shelf.folder, "workspace")
        with shelf.generation.database.write() as connection:
            rows.put_file(connection, root, Found("later.md"), rows.Content("later", [entry]), (0, 0, 0))
        assert list(nearest(vectors, shelf)) == [there]
        with shelf.generation.database.write() as connection:
            rows.put_vectors(connection, shelf.identity, entry.hash, np.stack(towards(QUERY, 0.8)))
            [(later,)] = run(connection, "SELECT max(id) FROM chunks")
        assert list(nearest(vectors, shelf)) == [later, there]

    def test_what_another_embedder_made_is_not_compared(self, shelf: Shelf) -> None:
        other = EmbedderIdentity("another", "1", 384, 256)
        shorter = EmbedderIdentity("shorter", "1", 96, 256)
        ids = shelf.put(*towards(QUERY, 0.2, 0.3))
        with shelf.generation.database.write() as connection:
            rows.put_vectors(connection, other, shelf.entry(1, 0).hash, QUERY[None, :])
            rows.put_vectors(connection, shorter, shelf.entry(1, 1).hash, unit(1, 96, seed=5))
        vectors = ChunkVectors()
        assert nearest(vectors, shelf) == pytest.approx({ids[1]: 0.3, ids[0]: 0.2}, abs=1e-5)
        theirs = vectors.nearest(shelf.generation, other.id, QUERY, OWNER, BOTH, 10)
        assert theirs == pytest.approx({ids[0]: 1.0}, abs=1e-5)
        assert list(vectors.nearest(shelf.generation, shorter.id, unit(96, seed=5), OWNER, BOTH, 10)) == [ids[1]]
        assert nearest(vectors, shelf) == pytest.approx({ids[1]: 0.3, ids[0]: 0.2}, abs=1e-5)
        assert cosines(shelf.generation, "unknown", QUERY, ids) == {}

    def test_a_damaged_vector_is_found_by_nothing(self, shelf: Shelf) -> None:
        damaged = QUERY.copy()
        damaged[3] = np.nan
        ids = shelf.put(*towards(QUERY, 0.3), damaged, *towards(QUERY, 0.2))
        vectors = ChunkVectors()
        assert list(nearest(vectors, shelf)) == [ids[0], ids[2]]
        more = shelf.put(*unit(100, 384, seed=8) * 0.1 + 0.001 * QUERY)
        assert set(nearest(vectors, shelf, limit=200)) == {ids[0], ids[2], *more}


class TestWhoMaySee:
    def test_only_what_is_of_the_readers_scopes(self, shelf: Shelf) -> None:
        mine = shelf.put(*towards(QUERY, 0.1))
        agents = shelf.put(*towards(QUERY, 0.9), scope=Scope("agent", "main"))
        # More of others than are ever compared: they must not take the place of one's own.
        shelf.put(*unit(2_000, 384, seed=6) * 0.1 + QUERY, scope=Scope("agent", "else"))
        vectors = ChunkVectors()
        assert list(nearest(vectors, shelf)) == mine
        assert list(nearest(vectors, shelf, audience=Audience.of(agent="main"))) == agents + mine
        assert nearest(vectors, shelf, audience=Audience.of(agent="")) == {}

    def test_only_of_the_sources_that_are_asked_for(self, shelf: Shelf) -> None:
        files = shelf.put(*towards(QUERY, 0.1))
        notes = shelf.put(*towards(QUERY, 0.2), kind="extra")
        talks = shelf.put(*towards(QUERY, 0.9), kind="sessions")
        vectors = ChunkVectors()
        assert list(nearest(vectors, shelf, sources=("memory",))) == notes + files
        assert list(nearest(vectors, shelf, sources=("sessions",))) == talks
        assert nearest(vectors, shelf, sources=()) == {}


class TestChanges:
    def test_what_is_deleted_vanishes_at_once(self, shelf: Shelf) -> None:
        [gone] = shelf.put(*towards(QUERY, 0.9))
        stays = shelf.put(*towards(QUERY, 0.3, 0.2))
        vectors = ChunkVectors()
        assert list(nearest(vectors, shelf)) == [gone, *stays]
        shelf.drop(gone)
        assert list(nearest(vectors, shelf)) == stays

    def test_and_takes_the_place_of_nothing_that_is_there(self, shelf: Shelf) -> None:
        """A note that is edited over and over leaves its former versions behind, all of them nearer."""
        [stays] = shelf.put(*towards(QUERY, 0.1))
        gone = shelf.put(*unit(2_000, 384, seed=7) * 0.1 + QUERY)
        vectors = ChunkVectors()
        assert stays not in nearest(vectors, shelf)
        shelf.drop(gone[0])
        assert list(nearest(vectors, shelf)) == [stays]

    def test_what_is_added_is_found_at_once_also_after_the_newest_was_deleted(self, shelf: Shelf) -> None:
        vectors = ChunkVectors()
        [first] = shelf.put(*towards(QUERY, 0.1))
        for cosine in (0.2, 0.3, 0.4):
            [newest] = shelf.put(*towards(QUERY, cosine))
            assert list(nearest(vectors, shelf)) == [newest, first]
            shelf.drop(newest)
            assert list(nearest(vectors, shelf)) == [first]

    def test_a_new_generation_is_read_anew(self, workshop: Workshop, shelf: Shelf) -> None:
        shelf.put(*towards(QUERY, 0.9, 0.8))
        vectors = ChunkVectors()
        assert len(nearest(vectors, shelf)) == 2
        workshop.index.sync([], force=True)
        assert nearest(vectors, shelf) == {}
        ids = shelf.put(*towards(QUERY, 0.5))
        assert list(nearest(vectors, shelf)) == ids

    def test_after_closing_all_is_read_anew(self, shelf: Shelf) -> None:
        ids = shelf.put(*towards(QUERY, 0.9, 0.8))
        vectors = ChunkVectors()
        assert list(nearest(vectors, shelf)) == ids
        vectors.close()
        assert list(nearest(vectors, shelf)) == ids

    def test_several_threads_ask_while_texts_come_and_go(self, shelf: Shelf) -> None:
        stays = shelf.put(*towards(QUERY, 0.9, 0.8))
        vectors = ChunkVectors()
        done = threading.Event()
        wrong: list[list[int]] = []

        def ask() -> None:
            while not done.is_set():
                found = list(nearest(vectors, shelf, limit=2))
                if found != stays:
                    wrong.append(found)

        threads = [threading.Thread(target=ask) for _ in range(3)]
        for thread in threads:
            thread.start()
        for number in range(40):
            shelf.drop(*shelf.put(*unit(5, 384, seed=100 + number)))
        done.set()
        for thread in threads:
            thread.join()
        assert wrong == []
