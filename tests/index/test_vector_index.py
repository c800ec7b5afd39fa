"""What every vector index does, whether it compares with everything or asks LanceDB."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import pytest

from perdure.api.memory import Memory
from perdure.clock import ManualClock
from perdure.embed.deterministic import HashEmbedder
from perdure.errors import StoreUnavailableError
from perdure.hooks.types import Channel
from perdure.index.vector_index import ExactIndex, VectorHit, VectorIndex, cosines, surveyed
from perdure.lance.indexer import Indexer
from perdure.lance.table import LanceIndex, rows_of
from perdure.store.fact import Fact
from perdure.store.scope import Audience
from perdure.store.search import View
from perdure.store.spaces import VectorSpace
from perdure.store.store import Store
from perdure.store.transaction import Author

AUTHOR = Author(Channel.LIBRARY)
EMBEDDER = HashEmbedder()
SPACE = VectorSpace(EMBEDDER.identity.id, EMBEDDER.identity.dims, asdict(EMBEDDER.identity))


class Desk:
    """A store, an index of it, and the job that feeds both."""

    def __init__(self, store: Store, kind: str) -> None:
        self.store = store
        store.adopt_space(SPACE)
        self._indexer = Indexer(store, lambda: EMBEDDER, 50)
        self.index: VectorIndex = (
            ExactIndex(store.database, SPACE.id, SPACE.dims)
            if kind == "exact"
            else LanceIndex(store.lance_folder, SPACE.id, SPACE.dims)
        )

    def add(self, *facts: Fact) -> list[str]:
        with self.store.write(AUTHOR) as tx:
            added = [tx.add(fact).id for fact in facts]
        self.sync()
        return added

    def supersede(self, old_id: str, new_id: str) -> None:
        with self.store.write(AUTHOR) as tx:
            tx.supersede(old_id, new_id)
        self.sync()

    def sync(self) -> None:
        while self._indexer.step():
            pass

    def view(self, audience: Audience | None = None) -> View:
        return View(audience or Audience.of(), self.store.clock.now())

    def search(self, query: str, limit: int = 10, view: View | None = None) -> list[VectorHit]:
        return self.index.search(EMBEDDER.embed([query], query=True)[0], view or self.view(), limit)

    def found(self, query: str, limit: int = 10, view: View | None = None) -> list[str]:
        return [hit.id for hit in self.search(query, limit, view)]

    def close(self) -> None:
        self.index.close()
        self._indexer.close()


@pytest.fixture(params=["exact", "lance"])
def desk(request: pytest.FixtureRequest, store: Store) -> Iterator[Desk]:
    desk = Desk(store, request.param)
    yield desk
    desk.close()


class TestEveryIndex:
    def test_an_empty_one_finds_nothing(self, desk: Desk) -> None:
        assert desk.search("heron") == []

    def test_nearest_first_with_true_cosines(self, desk: Desk) -> None:
        texts = ["heron database staging", "heron database", "kettle broken", "heron nest in spring"]
        ids = desk.add(*(Fact(text) for text in texts))
        hits = desk.search("heron database staging")
        rows = EMBEDDER.embed(["heron database staging", *texts])
        expected = dict(zip(ids, (rows[1:] @ rows[0]).tolist(), strict=True))
        assert [hit.id for hit in hits] == sorted(expected, key=lambda fact_id: -expected[fact_id])
        assert [hit.cosine for hit in hits] == pytest.approx([expected[hit.id] for hit in hits], abs=1e-4)

    def test_not_more_than_asked_for(self, desk: Desk) -> None:
        ids = desk.add(*(Fact(f"heron number {number}") for number in range(9)))
        assert len(desk.found("heron", 4)) == 4
        assert set(desk.found("heron", 50)) == set(ids)

    @pytest.mark.parametrize("agent", ["a", "o'neil", "x' OR 'x'='x", 'quote"d', "a:b", "日本", "%"])
    def test_only_the_scopes_of_the_caller(self, desk: Desk, agent: str) -> None:
        everybodys, mine, _ = desk.add(
            Fact("heron"),
            Fact("heron", scope="agent", scope_target=agent),
            Fact("heron", scope="agent", scope_target="other"),
        )
        assert set(desk.found("heron", view=desk.view(Audience.of(agent=agent)))) == {everybodys, mine}
        assert desk.found("heron", view=desk.view(Audience.of(agent=""))) == [everybodys]

    def test_facts_of_others_do_not_take_the_places(self, desk: Desk) -> None:
        desk.add(*(Fact("heron", scope="agent", scope_target="other") for _ in range(30)))
        [mine] = desk.add(Fact("heron far away in the north", scope="agent", scope_target="me"))
        assert desk.found("heron", 1, desk.view(Audience.of(agent="me"))) == [mine]

    def test_what_is_new_is_found_by_an_open_index(self, desk: Desk) -> None:
        [first] = desk.add(Fact("heron nest"))
        assert desk.found("heron") == [first]
        [second] = desk.add(Fact("heron"))
        assert desk.found("heron") == [second, first]

    def test_what_was_superseded_is_not(self, desk: Desk) -> None:
        old, new = desk.add(Fact("heron in Brno"), Fact("heron in Oslo"))
        assert set(desk.found("heron")) == {old, new}
        desk.supersede(old, new)
        assert desk.found("heron") == [new]

    def test_what_was_superseded_before_it_was_ever_indexed_is_not(self, desk: Desk) -> None:
        with desk.store.write(AUTHOR) as tx:
            old, new = tx.add(Fact("heron in Brno")), tx.add(Fact("heron in Oslo"))
            tx.supersede(old.id, new.id)
        desk.sync()
        assert desk.found("heron") == [new.id]

    def test_what_was_forgotten_is_not(self, desk: Desk) -> None:
        kept, _ = desk.add(Fact("heron"), Fact("heron", forgotten_at=desk.store.clock.now()))
        assert desk.found("heron") == [kept]

    def test_the_outbox_is_empty_afterwards(self, desk: Desk) -> None:
        desk.add(*(Fact(f"heron {number}") for number in range(60)))
        state = desk.store.outbox_state()
        assert (state.waiting, state.parked, state.oldest) == (0, 0, None)


class TestExpiry:
    @pytest.mark.parametrize(
        "kind",
        [
            "exact",
            pytest.param(
                "lance",
            ),
        ],
    )  # fmt: skip
    def test_an_expired_fact_takes_no_place(self, store: Store, clock: ManualClock, kind: str) -> None:
        desk = Desk(store, kind)
        desk.add(*(Fact("heron", decay_class="ephemeral") for _ in range(3)))
        [lasting] = desk.add(Fact("heron far away in the north"))
        clock.advance(5 * 3600)
        desk.sync()
        assert desk.found("heron", 1) == [lasting]
        desk.close()


class TestExactIndex:
    def test_former_versions_on_demand(self, store: Store) -> None:
        desk = Desk(store, "exact")
        old, new = desk.add(Fact("heron in Brno"), Fact("heron in Oslo"))
        desk.supersede(old, new)
        assert set(desk.found("heron", view=replace(desk.view(), include_superseded=True))) == {old, new}
        assert set(desk.found("heron", view=replace(desk.view(), as_of=store.clock.now() - 1))) == {old, new}

    def test_conversations_that_store_nothing_of_their_own_take_no_memory(self, store: Store) -> None:
        desk = Desk(store, "exact")
        desk.add(Fact("The heron flies."))

        def asked(numbers: range) -> int:
            for number in numbers:
                assert desk.found("heron", view=desk.view(Audience.of(session=f"session {number}")))
            return len(vars(desk.index)["_codes"])

        assert asked(range(1)) == asked(range(100))
        desk.close()

    def test_grows_past_its_first_size_and_sees_other_processes(self, store: Store) -> None:
        desk = Desk(store, "exact")
        assert desk.search("heron") == []
        blob = EMBEDDER.embed(["kettle"])[0].astype("<f4").tobytes()
        other = Store(store.folder, clock=store.clock)
        with other.database.write() as connection:
            for number in range(1_100):
                values = (f"{number}", "kettle", store.clock.now(), "h")
                connection.execute(
                    "INSERT INTO facts (id, text, created_at, normalized_hash) VALUES (?, ?, ?, ?)", values
                )
                connection.execute("INSERT INTO vectors VALUES (?, ?, ?)", (f"{number}", SPACE.id, blob))
                connection.execute(
                    "INSERT INTO journal (at, action, fact_id, channel, host, batch)"
                    " VALUES (0, 'add', ?, 'user', '', '')",
                    (f"{number}",),
                )
        other.close()
        assert len(desk.found("kettle", 2_000)) == 1_100

    def test_an_expiry_that_moved_is_followed(self, store: Store, clock: ManualClock) -> None:
        desk = Desk(store, "exact")
        [fact] = desk.add(Fact("heron", decay_class="ephemeral"))
        clock.advance(3 * 3600)
        with store.write(AUTHOR) as tx:
            tx.reinforce(fact)
        clock.advance(3 * 3600)
        assert desk.found("heron") == [fact]
        clock.advance(3 * 3600)
        assert desk.found("heron") == []


class TestSurvey:
    QUERIES = ("heron in Brno", "kettle for tea")

    @pytest.mark.parametrize("kind", ["exact", "lance"])
    def test_the_nearest_to_any_query_and_how_far_all_are(self, store: Store, kind: str) -> None:
        desk = Desk(store, kind)
        texts = [f"{thing} number {number}" for thing in ("heron", "kettle", "saddle") for number in range(12)]
        ids = dict(zip(desk.add(*(Fact(text) for text in texts)), texts, strict=True))
        hidden = Fact("heron in Brno", scope="agent", scope_target="other")
        desk.add(hidden)
        queries = EMBEDDER.embed(self.QUERIES, query=True)
        index = desk.index
        found = (
            index.survey(queries, desk.view(), 5)
            if isinstance(index, ExactIndex)
            else surveyed(store.database, SPACE.id, index, queries, desk.view(), 5)
        )
        every = queries @ EMBEDDER.embed(texts).T
        nearest = sorted(ids, key=lambda fact_id: -every[:, texts.index(ids[fact_id])].max())
        assert [every[:, texts.index(ids[each])].max() for each in found.ids] == pytest.approx(
            [every[:, texts.index(ids[each])].max() for each in nearest[:5]], abs=1e-5
        )
        expected = np.stack([every[:, texts.index(ids[each])] for each in found.ids], axis=1)
        np.testing.assert_allclose(found.cosines, expected, atol=1e-5)
        assert found.texts == found.count == len(texts)
        np.testing.assert_allclose(found.totals, every.sum(1), atol=0.1)
        np.testing.assert_allclose(found.squares, (every**2).sum(1), atol=0.1)
        desk.close()

    def test_of_an_empty_store_nothing_is_told(self, store: Store) -> None:
        desk = Desk(store, "exact")
        queries = EMBEDDER.embed(self.QUERIES, query=True)
        for found in (
            ExactIndex(store.database, SPACE.id, SPACE.dims).survey(queries, desk.view(), 5),
            surveyed(store.database, SPACE.id, desk.index, queries, desk.view(), 5),
        ):
            assert (list(found.ids), found.cosines.shape, found.count, found.texts) == ([], (2, 0), 0, 0)
        desk.close()


class TestLanceIndex:
    def test_repeating_a_batch_changes_nothing(self, store: Store) -> None:
        desk = Desk(store, "lance")
        first, second = desk.add(Fact("heron"), Fact("heron nest"))
        rows = rows_of(store.database, [first, second], SPACE.id, store.clock.now())
        index = LanceIndex(store.lance_folder, SPACE.id, SPACE.dims)
        for _ in range(3):
            index.apply(rows, ["nowhere"])
        assert {row["id"] for row in rows} == index.ids() == {first, second}
        assert desk.found("heron") == [first, second]
        desk.close()

    def test_a_folder_that_is_a_file_is_named(self, tmp_path: Path) -> None:
        (tmp_path / "lancedb").write_text("not a folder")
        with pytest.raises(StoreUnavailableError, match="lancedb"):
            LanceIndex(tmp_path / "lancedb", SPACE.id, SPACE.dims)

    def test_recall_goes_on_with_the_exact_index(self, tmp_path: Path) -> None:
        (tmp_path / "lancedb").write_text("not a folder")
        with Memory.open(tmp_path, embedder="hash", vector_index="lance") as memory:
            assert memory.ready()


def test_cosines_of_named_facts(store: Store) -> None:
    desk = Desk(store, "exact")
    first, second = desk.add(Fact("heron"), Fact("kettle"))
    query = EMBEDDER.embed(["heron"])[0]
    found = cosines(store.database, query, [first, second, "nowhere"], SPACE.id)
    assert found == {
        first: pytest.approx(1.0, abs=1e-5),
        second: pytest.approx(float(query @ EMBEDDER.embed(["kettle"])[0]), abs=1e-5),
    }
    assert cosines(store.database, query, [], SPACE.id) == {}
    assert cosines(store.database, query, [first], "another space") == {}
    assert np.isfinite(list(found.values())).all()


def test_a_large_batch_of_deletes_does_not_crash_the_process(tmp_path: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from perdure.lance.table import LanceIndex\n"
        "LanceIndex(Path(sys.argv[1]), 'space', 2).apply([], [str(number) for number in range(2_000)])"
    )
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path)], capture_output=True, timeout=60, check=False)
    assert done.returncode == 0
