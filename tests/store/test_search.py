"""Reading facts by id, slot, hash and words."""

from __future__ import annotations

import contextlib
import random
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from perdure.api.memory import Memory
from perdure.clock import ManualClock
from perdure.errors import AmbiguousIdError, InputError, NotFoundError, PerdureError
from perdure.hooks.types import Channel
from perdure.store.fact import Fact
from perdure.store.scope import Audience
from perdure.store.search import LexicalHit, View, by_hash, by_ids, by_prefix, lexical, lookup
from perdure.store.store import Store
from perdure.store.transaction import Author
from perdure.text.normalise import fingerprint
from tests.kit import add

AUTHOR = Author(Channel.LIBRARY)

SAID = [
    ("我们的测试数据库叫白鹭。", "数据库叫什么？", "chinese"),
    ("東京の会議は火曜日です。", "会議はいつ？", "japanese"),
    ("ミーティングはオンラインで行います。", "オンライン", "katakana"),
    ("우리 서버는 서울에 있습니다.", "서버가 어디에 있어?", "korean"),
    ("เซิร์ฟเวอร์ของเราอยู่ที่เชียงใหม่", "เซิร์ฟเวอร์อยู่ที่ไหน", "thai"),
    ("Příští schůzka je v Českých Budějovicích.", "pristi schuzka", "czech"),
    ("Der Straßenname ist Große Allee.", "grosse allee", "german"),
    ("The staging database is called heron.", "which databases are staging?", "english"),
]


def view(store: Store) -> View:
    return View(Audience.of(), store.clock.now())


def words(store: Store, query: str, limit: int = 10) -> list[LexicalHit]:
    with store.database.read() as connection:
        return list(lexical(connection, query, view(store), limit).hits)


def found(store: Store, query: str) -> list[str]:
    return [hit.fact.text for hit in words(store, query)]


def slot(store: Store, entity: str, key: str | None = None, tag: str | None = None) -> list[str]:
    with store.database.read() as connection:
        return [fact.text for fact in lookup(connection, entity, key, replace(view(store), tag=tag))]


class TestLexical:
    @pytest.mark.parametrize(("text", "query", "script"), SAID, ids=[case[2] for case in SAID])
    def test_finds_what_was_stored_in_any_script(self, tmp_path: Path, text: str, query: str, script: str) -> None:
        clock = ManualClock()
        with Memory.open(tmp_path, embedder="none", clock=clock) as memory:
            for other, _, _ in SAID:
                memory.store(other)
            reader = Store(tmp_path, clock=clock)
            hits = found(reader, query)
            reader.close()
        assert hits[0] == text

    def test_a_word_of_no_fact_finds_nothing(self, store: Store) -> None:
        add(store, *(Fact(text) for text, _, _ in SAID))
        assert found(store, "zeppelin") == []
        assert found(store, "鯨") == []
        assert found(store, "") == []
        assert found(store, "the of and") == []

    @pytest.mark.parametrize("query", ["kuberntes", "kubernetees", "Kubirnetes!"])
    def test_a_misspelt_word_counts_as_the_one_it_means(self, store: Store, query: str) -> None:
        add(store, Fact("Kubernetes runs in Frankfurt."), *(Fact(text) for text, _, _ in SAID))
        assert found(store, query) == ["Kubernetes runs in Frankfurt."]
        with store.database.read() as connection:
            brought = lexical(connection, query, view(store), 5)
        [(unknown, known)] = brought.meant.items()
        assert brought.counts == {known: 1}
        assert unknown in query.casefold()

    @pytest.mark.parametrize("query", ["bear", "tab", "13", "kuberntes"])
    def test_a_short_word_or_one_that_nobody_may_see_is_no_misspelling(self, store: Store, query: str) -> None:
        add(store, Fact("The beer is in the tub, number 14."))
        add(store, Fact("Kubernetes runs in Frankfurt.", scope="agent", scope_target="other"))
        assert found(store, query) == []

    def test_the_slot_and_the_category_are_searched_too(self, store: Store) -> None:
        add(store, Fact("noted", entity="Anna", key="hometown", value="Brno", category="decision"))
        for query in ("anna", "hometown", "brno", "decisions"):
            assert found(store, query) == ["noted"]

    def test_best_first_and_not_more_than_asked_for(self, store: Store) -> None:
        add(store, Fact("heron heron database"), *(Fact(f"database number {n} of the long list") for n in range(9)))
        hits = words(store, "heron database", 5)
        assert len(hits) == 5
        assert hits[0].fact.text == "heron heron database"
        assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)

    def test_coverage_is_the_share_of_the_question_that_is_answered(self, store: Store) -> None:
        add(store, Fact("The heron database is staging"), Fact("The kettle is broken"))
        [whole] = words(store, "heron database")
        [half] = words(store, "heron zeppelin")
        [little] = words(store, "heron zeppelin harbour mountain")
        assert whole.coverage == pytest.approx(1.0)
        assert 0 < little.coverage < half.coverage < 1

    def test_a_rare_word_weighs_more_than_a_common_one(self, store: Store) -> None:
        add(store, Fact("heron"), *(Fact(f"database {n}") for n in range(12)))
        coverage = {hit.fact.text: hit.coverage for hit in words(store, "heron database", 20)}
        assert coverage["heron"] > coverage["database 0"]

    @pytest.mark.parametrize(("copies", "rare"), [(1, True), (3, True), (4, False)])
    def test_a_word_in_up_to_three_facts_is_rare(self, store: Store, copies: int, rare: bool) -> None:
        add(store, *(Fact(f"heron {n}") for n in range(copies)), Fact("something else"))
        assert {hit.rare for hit in words(store, "heron")} == {rare}

    def test_no_query_is_an_error(self, store: Store) -> None:
        """2,000 queries made of what means something to FTS5, SQL or Unicode, from a fixed seed."""
        kept = {fact.id for fact in add(store, *(Fact(text) for text, _, _ in SAID))}
        pieces = (
            *('"', "'", "*", "^", "(", ")", "{", "}", "-", "--", ";", ":", "\\", "%", "+", "/*", "?1", "\0", "\n"),
            *("AND", "OR", "NOT", "NEAR(", "text:", "rowid", "NULL", "facts_fts", "DROP TABLE facts", "''", '""'),
            *("heron", "staging", "数据库", "のは", "서버", "เซิร์ฟ", "ß", "İ", "e\u0301", "\u200b", "\u202e", "\ufeff"),
            *("\ud800", "\udfff", "\U0001f9e0", "\U0010ffff", "\ue000", "x" * 300, " ", "   ", "don't", "it's"),
        )
        dice = random.Random(7)
        hits = 0
        for _ in range(2_000):
            glue = dice.choice(("", " "))
            ids = {hit.fact.id for hit in words(store, glue.join(dice.choices(pieces, k=dice.randint(1, 12))))}
            assert ids <= kept
            hits += len(ids)
        assert hits
        assert found(store, "herons") == ["The staging database is called heron."]


class TestLookup:
    def test_ignores_case_and_orders_by_confidence_then_age(self, store: Store) -> None:
        add(
            store,
            Fact("old", entity="Anna", key="City", created_at=10.0, expires_at=9e9),
            Fact("new", entity="ANNA", key="city", created_at=20.0, expires_at=9e9),
            Fact("said early", entity="anna", key="city", created_at=30.0, source_date=5.0, expires_at=9e9),
            Fact("doubtful", entity="anna", key="city", confidence=0.5),
            Fact("other key", entity="anna", key="boss"),
            Fact("other entity", entity="anna b", key="city"),
        )
        assert slot(store, "aNNa", "CITY") == ["new", "old", "said early", "doubtful"]
        assert len(slot(store, "anna")) == 5

    @pytest.mark.parametrize(("stored", "asked"), [("Éva", "éva"), ("ÖBB", "öbb"), ("Анна", "анна")])
    def test_ignores_case_in_every_alphabet(self, store: Store, stored: str, asked: str) -> None:
        add(store, Fact("noted", entity=stored, key="city"))
        assert slot(store, asked, "city") == ["noted"]

    def test_wildcards_and_quotes_are_ordinary_characters(self, store: Store) -> None:
        add(store, Fact("noted", entity="anna", key="city"), Fact("quoted", entity="o'neil %", key="_"))
        assert slot(store, "%") == slot(store, "a___") == slot(store, "' OR 1=1 --") == []
        assert slot(store, "O'Neil %", "_") == ["quoted"]

    @pytest.mark.parametrize(
        "action",
        [
            lambda store: slot(store, "\ud800"),
            lambda store: add(store, Fact("half an emoji \ud83d in a text")),
            lambda store: add(store, Fact("a", entity="\ud83d", key="\ud83d")),
        ],
        ids=["lookup", "text", "entity"],
    )
    def test_a_lone_surrogate_is_no_crash(self, store: Store, action: Callable[[Store], object]) -> None:
        # Taken or refused, both will do.
        with contextlib.suppress(PerdureError):
            assert action(store) is not None


class TestTags:
    def test_a_tag_matches_whole_and_in_any_case(self, store: Store) -> None:
        add(
            store,
            Fact("one", entity="e", tags=("api", "db")),
            Fact("two", entity="e", tags=("apis",)),
            Fact("three", entity="e", tags=("rapid", "my api")),
            Fact("four", entity="e"),
        )
        assert slot(store, "e", tag="api") == ["one"]
        assert slot(store, "e", tag=" DB ") == ["one"]
        assert slot(store, "e", tag="my api") == ["three"]
        assert slot(store, "e", tag="ap") == slot(store, "e", tag="%") == []

    def test_a_tag_is_asked_for_as_it_was_given(self, store: Store) -> None:
        add(store, Fact("one", entity="e", tags=("a,b",)), Fact("two", entity="e", tags=("a", "b")))
        assert slot(store, "e", tag="a,b") == ["one"]


class TestByPrefix:
    FIRST, SECOND = "0a1b2c3d-0000-4000-8000-000000000001", "0a1b2c3d-0000-4000-8000-000000000002"

    def ask(self, store: Store, prefix: str) -> str:
        with store.database.read() as connection:
            return by_prefix(connection, prefix, view(store)).id

    def test_finds_the_whole_id_and_a_part_that_is_unique(self, store: Store) -> None:
        add(store, Fact("a", id=self.FIRST))
        for prefix in (self.FIRST, self.FIRST[:8], f" {self.FIRST[:12].upper()} "):
            assert self.ask(store, prefix) == self.FIRST

    def test_several_are_ambiguous(self, store: Store) -> None:
        add(store, Fact("a", id=self.FIRST), Fact("b", id=self.SECOND))
        with pytest.raises(AmbiguousIdError, match="0a1b2c3d"):
            self.ask(store, "0a1b2c3d")
        assert self.ask(store, self.SECOND) == self.SECOND

    def test_none_is_not_found(self, store: Store) -> None:
        add(store, Fact("a", id=self.FIRST))
        with pytest.raises(NotFoundError, match="0a1b2c3e"):
            self.ask(store, "0a1b2c3e")

    @pytest.mark.parametrize("prefix", ["", "0a1b2c3", "0a1b2c3%", "0a1b2c3_", "zzzzzzz1", "0a1b2c3'", "\ud800" * 8])
    def test_what_is_no_prefix_is_refused(self, store: Store, prefix: str) -> None:
        with pytest.raises(InputError):
            self.ask(store, prefix)

    def test_a_fact_of_others_is_as_absent(self, store: Store) -> None:
        add(store, Fact("a", id=self.FIRST, scope="agent", scope_target="other"))
        with pytest.raises(NotFoundError):
            self.ask(store, self.FIRST)


class TestView:
    def everywhere(self, store: Store, fact: Fact, view: View) -> set[int]:
        """Return how many facts each way of reading brings."""
        with store.database.read() as connection:
            return {
                len(by_ids(connection, [fact.id], view)),
                len(lookup(connection, "anna", "city", view)),
                len(by_hash(connection, fingerprint(fact.text), view)),
                len(lexical(connection, "heron", view, 5).hits),
            }

    def test_an_expired_fact_is_in_no_answer(self, store: Store, clock: ManualClock) -> None:
        [fact] = add(store, Fact("heron", entity="anna", key="city", decay_class="ephemeral"))
        clock.advance(4 * 3600 - 1)
        assert self.everywhere(store, fact, view(store)) == {1}
        clock.advance(1)
        assert self.everywhere(store, fact, view(store)) == {0}
        assert self.everywhere(store, fact, replace(view(store), include_superseded=True)) == {0}
        with store.database.read() as connection, pytest.raises(NotFoundError):
            by_prefix(connection, fact.id, view(store))

    def test_a_forgotten_fact_is_in_no_answer(self, store: Store) -> None:
        [fact] = add(store, Fact("heron", entity="anna", key="city", forgotten_at=1.0))
        for seen in (
            view(store),
            replace(view(store), include_superseded=True),
            replace(view(store), as_of=store.clock.now()),
        ):
            assert self.everywhere(store, fact, seen) == {0}

    def test_only_the_asked_channels(self, store: Store) -> None:
        [fact] = add(store, Fact("heron", entity="anna", key="city", channel=Channel.IMPORT))
        ask = view(store)
        assert self.everywhere(store, fact, replace(ask, channels=[Channel.USER, Channel.IMPORT])) == {1}
        assert self.everywhere(store, fact, replace(ask, channels=[Channel.USER])) == {0}
        assert self.everywhere(store, fact, replace(ask, channels=[])) == {0}

    @pytest.mark.parametrize(("state", "count"), [("approved", 1), ("pending", 0), ("rejected", 0)])
    def test_only_what_was_approved(self, store: Store, state: str, count: int) -> None:
        [fact] = add(store, Fact("heron", entity="anna", key="city", review_state=state))
        assert self.everywhere(store, fact, view(store)) == {1}
        assert self.everywhere(store, fact, replace(view(store), approved_only=True)) == {count}
