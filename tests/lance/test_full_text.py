"""LanceDB's full-text index on the texts: there wherever there is a table, and done without where it is not."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import lancedb
import pytest
from click.testing import CliRunner

from perdure.api.memory import Memory
from perdure.cli.main import cli
from perdure.clock import ManualClock
from perdure.embed.deterministic import HashEmbedder
from perdure.hooks.types import TurnContext
from perdure.index.feeding import Mode
from perdure.lance.indexer import Indexer
from perdure.lance.table import LanceIndex
from perdure.lance.tiered import TieredIndex
from perdure.recall.receipt import Receipt
from perdure.store import outbox
from perdure.store.fact import Fact
from perdure.store.lifecycle import forget
from perdure.store.outbox import IndexState
from perdure.store.scope import Audience
from perdure.store.search import Lexical, View, lexical
from perdure.store.spaces import VectorSpace
from perdure.store.store import Store
from perdure.store.transaction import StoredVector
from tests.kit import AUTHOR
from tests.waiting import until

EMBEDDER = HashEmbedder(64)
SPACE = VectorSpace(EMBEDDER.identity.id, 64, {"model": "hash"})
PLACES = ("mill", "harbour", "quarry", "orchard", "chapel", "viaduct", "ferry", "lighthouse", "granary", "toll house")
BIRDS = ("heron", "kestrel", "wagtail", "plover", "dunnock", "siskin", "avocet", "bittern")


class Worded:
    """A store whose table has an index of words, and what answers from it."""

    def __init__(self, store: Store, *texts: str, mode: Mode = "lance") -> None:
        self.store = store
        store.adopt_space(SPACE)
        self.ids = self.add(*texts) if texts else []
        self.work()
        self.index = TieredIndex(store, SPACE, mode=mode, patience=30.0)
        self.index.search(EMBEDDER.embed(["heron"])[0], self.view(), 1)
        self.index.wait(60)

    def add(self, *texts: str, **more: Any) -> list[str]:
        vectors = StoredVector.rows(EMBEDDER.embed(list(texts)), SPACE.id)
        with self.store.write(AUTHOR) as tx:
            return [tx.add(Fact(text, **more), vector).id for text, vector in zip(texts, vectors, strict=True)]

    def work(self) -> None:
        indexer = Indexer(self.store, lambda: None, 50)
        while indexer.step():
            pass
        indexer.close()

    def view(self, **more: Any) -> View:
        return View(more.pop("audience", Audience.of()), self.store.clock.now(), **more)

    def asked(self, query: str, limit: int = 10, view: View | None = None, *, by_lance: bool = True) -> Lexical:
        with self.store.database.read() as connection:
            return lexical(connection, query, view or self.view(), limit, self.index if by_lance else None)

    def table(self) -> Any:
        [name] = lancedb.connect(self.store.lance_folder).list_tables().tables
        return lancedb.connect(self.store.lance_folder).open_table(name)

    def unindex(self) -> None:
        """Leave the table as an earlier version made it."""
        self.index.close()
        known = IndexState(version=self.table().version)
        self.table().drop_index("text_idx")
        self.store.database.apply(outbox.put_index_state, SPACE.id, known)


def ids(found: Lexical) -> list[str]:
    return [hit.fact.id for hit in found.hits]


def many() -> Sequence[str]:
    return [
        f"The {bird} by the {place} was ringed {number}" for number in range(3) for bird in BIRDS for place in PLACES
    ]


@pytest.fixture
def worded(store: Store) -> Iterator[Worded]:
    made = Worded(store, *many())
    yield made
    made.index.close()


class TestTheTable:
    def test_it_has_a_full_text_index_on_its_text(self, worded: Worded) -> None:
        [index] = [each for each in worded.table().list_indices() if each.index_type == "FTS"]
        assert index.columns == ["text"]
        assert worded.table().index_stats(index.name).num_indexed_rows == len(worded.ids)
        found = worded.table().search("kestrels at the viaducts", query_type="fts").limit(3).to_arrow().to_pylist()
        assert {row["text"][:29] for row in found} == {"The kestrel by the viaduct wa"}

    def test_the_worker_keeps_it_up_to_date(self, worded: Worded) -> None:
        [new] = worded.add("The hoopoe came to the quarry")
        with worded.store.write(AUTHOR) as tx:
            tx.supersede(worded.ids[0], new)
        worded.work()
        assert ids(worded.asked("hoopoe")) == [new]
        [stats] = [worded.table().index_stats(each.name) for each in worded.table().list_indices()]
        assert (stats.num_indexed_rows, stats.num_unindexed_rows) == (len(worded.ids), 0)

    def test_a_table_of_an_earlier_version_gets_one(self, store: Store) -> None:
        store.adopt_space(SPACE)
        Worded(store, "The heron fishes").unindex()
        again = Worded(store)
        assert [each.index_type for each in again.table().list_indices()] == ["FTS"]
        assert again.asked("heron").by == "lance"
        again.index.close()


class TestWhatItFinds:
    @pytest.mark.parametrize("query", ["Where are kestrels?", "heron lighthouse", "toll houses", "ferries"])
    def test_the_same_as_fts5_on_the_same_scale(self, worded: Worded, query: str) -> None:
        own, other = worded.asked(query, 300), worded.asked(query, 300, by_lance=False)
        assert (own.by, own.why, other.by) == ("lance", "as set", "fts5")
        assert set(ids(own)) == set(ids(other))
        scores = {hit.fact.id: hit.score for hit in other.hits}
        assert [hit.score for hit in own.hits] == pytest.approx([scores[hit.fact.id] for hit in own.hits], rel=0.1)
        assert {hit.fact.id: (hit.coverage, hit.rare) for hit in own.hits} == {
            hit.fact.id: (hit.coverage, hit.rare) for hit in other.hits
        }

    def test_a_misspelt_word_counts_as_the_one_it_means(self, worded: Worded) -> None:
        assert ids(worded.asked("kestrrel", 100)) == ids(worded.asked("kestrel", 100)) != []

    def test_what_nobody_may_see_is_not_found(self, worded: Worded, clock: ManualClock) -> None:
        clock.advance(60)
        mine = worded.add("hoopoe mine", scope="agent", scope_target="me")
        worded.add("hoopoe other", scope="agent", scope_target="other")
        gone, past, pending = worded.add("hoopoe gone", "hoopoe past", "hoopoe pending")
        worded.add("hoopoe brief", decay_class="ephemeral")
        worded.work()
        worded.add("hoopoe unapproved", review_state="pending")
        worded.work()
        with worded.store.write(AUTHOR) as tx:
            tx.supersede(past, pending)
            forget(tx, gone)
        worded.work()
        clock.advance(5 * 3600)
        reader = worded.view(audience=Audience.of(agent="me"), approved_only=True)
        found = worded.asked("hoopoe", view=reader)
        assert found.by == "lance"
        assert set(ids(found)) == {*mine, pending}

    def test_what_is_gone_since_the_table_was_read_is_checked_again(self, worded: Worded) -> None:
        found = worded.index.words(["kestrel"], worded.view(), 100)
        gone = found[0][0]

        class Late:
            name = "lance"

            def words(self, terms: Sequence[str], view: View, limit: int) -> Sequence[tuple[str, float]]:
                return found

        with worded.store.write(AUTHOR) as tx:
            forget(tx, gone)
        with worded.store.database.read() as connection:
            seen = lexical(connection, "kestrel", worded.view(), 100, Late())
        assert seen.by == "lance"
        assert set(ids(seen)) == {fact_id for fact_id, _ in found} - {gone}


class TestWithout:
    def told(self, worded: Worded, query: str = "kestrel", view: View | None = None) -> str:
        found = worded.asked(query, 300, view)
        assert set(ids(found)) == set(ids(worded.asked(query, 300, view, by_lance=False)))
        assert found.by == "fts5"
        return found.why

    def test_an_index_that_cannot_be_built(self, store: Store) -> None:
        first = Worded(store, "The heron fishes", "The kestrel hovers")
        first.unindex()
        [indices] = store.lance_folder.glob("*.lance/_indices")
        shutil.rmtree(indices)
        indices.write_text("no folder")
        again = Worded(store)
        assert self.told(again) == "LanceDB has no full-text index yet"
        query = EMBEDDER.embed(["The heron fishes"])[0]
        assert again.index.search(query, again.view(), 1)[0].id == first.ids[0]
        assert again.index.answered_by == "lance"
        assert store.outbox_state().problem is None
        again.index.close()

    def test_a_table_that_is_behind(self, worded: Worded) -> None:
        worded.add("The kestrel hovers")
        assert self.told(worded) == "LanceDB is behind"

    def test_a_deleted_table(self, worded: Worded) -> None:
        shutil.rmtree(worded.store.lance_folder)
        assert self.told(worded).startswith("the LanceDB table cannot be searched")
        assert "paused after a failure" in self.told(worded)

    def test_one_that_hangs(self, worded: Worded) -> None:
        gate = threading.Event()

        class Hanging(LanceIndex):
            def words(self, terms: Sequence[str], view: View, limit: int, **more: Any) -> list[tuple[str, float]]:
                if view.now:  # what warms it up, at no time, still goes through
                    gate.wait()
                return super().words(terms, view, limit, **more)

        worded.index.close()
        worded.index = TieredIndex(
            worded.store, SPACE, mode="lance", patience=0.05,
            open_lance=lambda known: Hanging(worded.store.lance_folder, SPACE.id, SPACE.dims, create=False),
        )  # fmt: skip
        assert "is opening" in self.told(worded)
        assert worded.index.wait(60)
        assert "has not answered within 0.05 seconds" in self.told(worded)
        assert "paused after a failure" in self.told(worded)
        gate.set()

    def test_a_small_store(self, store: Store) -> None:
        small = Worded(store, "The kestrel hovers", mode="auto")
        assert self.told(small) == "the store is not large enough for LanceDB"
        small.index.close()

    def test_other_times(self, worded: Worded) -> None:
        for view in (worded.view(as_of=worded.store.clock.now()), worded.view(include_superseded=True)):
            assert self.told(worded, view=view) == "it covers current memories only"

    def test_a_script_without_spaces(self, worded: Worded) -> None:
        worded.add("東京タワーが見える")
        worded.work()
        assert "without spaces" in self.told(worded, "東京タワー")

    def test_a_reader_who_may_see_few_of_many(self, worded: Worded) -> None:
        worded.add(*(f"hoopoe {number}" for number in range(200)), review_state="pending")
        worded.add("hoopoe seen")
        worded.work()
        found = worded.asked("hoopoe", 3, worded.view(approved_only=True))
        assert (found.by, [hit.fact.text for hit in found.hits]) == ("fts5", ["hoopoe seen"])
        assert found.why == "too few of its hits are visible to the caller"


class TestTheReceipt:
    def answered(self, memory: Memory, **asked: Any) -> tuple[str, str]:
        kept: list[Receipt] = []
        found = memory.recall("Where does the kestrel hover?", receipt_to=kept.append, **asked)
        assert found is not None
        assert [item.text for item in found.items] == ["The kestrel hovers over the quarry"]
        leg = memory.why(kept[0]).legs["sqlite"]
        return leg["index"], leg["why"]

    def test_it_tells_which_index_answered_and_why(self, home: Path) -> None:
        given: dict[str, Any] = {"embedder": "hash", "vector_index": "lance"}
        with Memory.open(home, index={"lexical": "lance"}, **given) as memory:
            assert memory.ready()
            memory.store("The kestrel hovers over the quarry", tags=["birds"])
            assert memory.admin.sync_index()
            assert until(lambda: self.answered(memory) == ("lance", "as set"))
            assert self.answered(memory, tag="birds") == ("fts5", "there is no vector retriever")
            memory.store("The ferry leaves at nine")
            assert self.answered(memory) == ("fts5", "LanceDB is behind")
            assert memory.turns.before("Where does the kestrel hover?", TurnContext(session_id="s"))
        told = CliRunner().invoke(cli, ["why", "--home", str(home)], catch_exceptions=False).output
        assert "sqlite ok, by fts5: LanceDB is behind (" in told
        with Memory.open(home, **given) as memory:
            assert memory.ready()
            assert self.answered(memory) == ("fts5", "as set")
