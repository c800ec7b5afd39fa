"""A change writes the fact, its words, its journal row and its outbox row together, or nothing."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, NoReturn

import pytest

from perdure.api.memory import Memory
from perdure.clock import ManualClock
from perdure.errors import InputError, NotFoundError, PerdureError, StoreError
from perdure.hooks.types import Channel
from perdure.ranking.decay import DAY, LIFETIMES
from perdure.store.fact import Fact
from perdure.store.scope import Audience
from perdure.store.search import View, by_ids, lexical
from perdure.store.spaces import VectorSpace
from perdure.store.sql import run
from perdure.store.store import OWN_KEPT, Store
from perdure.store.transaction import MAX_TEXT, Author, StoredVector, Transaction
from tests.store.feeding import feed

AUTHOR = Author(Channel.LIBRARY, "test", "session-1")
SECRET = "sk-proj-aB3dE5fG7hJ9kL1mN2pQ4rS6tU8vW0xYz"
PART = SECRET[8:].lower().encode()
"""What the full-text index would hold of it: one folded word."""
TABLES = ("facts", "facts_fts", "facts_terms", "vectors", "journal", "outbox", "inbox_done", "cursors")


def view(store: Store, as_of: float | None = None, *, include_superseded: bool = False) -> View:
    return View(Audience.of(), store.clock.now(), as_of=as_of, include_superseded=include_superseded)


def add(store: Store, fact: Fact) -> Fact:
    with store.write(AUTHOR) as tx:
        return tx.add(fact)


def stored(store: Store, fact_id: str) -> Fact:
    with store.database.read() as connection:
        return by_ids(connection, [fact_id], view(store, include_superseded=True))[fact_id]


def seen(store: Store, ids: list[str], view: View) -> set[str]:
    with store.database.read() as connection:
        return set(by_ids(connection, ids, view))


def rows(store: Store) -> dict[str, int]:
    with store.database.read() as connection:
        return {table: run(connection, f"SELECT count(*) FROM {table}")[0][0] for table in TABLES}


def bytes_of(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file())


class TestAdd:
    def test_fills_in_id_times_and_hash(self, store: Store) -> None:
        fact = add(store, Fact("  The heron database is staging.  "))
        assert fact.text == "The heron database is staging."
        assert len(fact.id) == 36
        assert fact.created_at == fact.last_confirmed_at == store.clock.now()
        assert (fact.decay_class, fact.expires_at) == ("permanent", None)
        assert len(fact.normalized_hash) == 64
        assert stored(store, fact.id) == fact

    def test_keeps_what_was_given(self, store: Store) -> None:
        given = Fact("a", id="f" * 32, created_at=5.0, expires_at=9e9, decay_class="short", summary="mine")
        fact = add(store, given)
        assert (fact.id, fact.created_at, fact.expires_at, fact.summary) == ("f" * 32, 5.0, 9e9, "mine")

    def test_is_found_by_its_words_in_the_same_transaction(self, store: Store) -> None:
        with store.write(AUTHOR) as tx:
            fact = tx.add(Fact("The heron database is staging."))
            assert [hit.fact for hit in lexical(tx.connection, "herons", view(store), 5).hits] == [fact]

    def test_writes_a_journal_row_and_an_outbox_row(self, store: Store) -> None:
        feed(store)
        fact = add(store, Fact("a"))
        with store.database.read() as connection:
            journal = run(connection, "SELECT seq, at, action, fact_id, channel, host, session FROM journal")
            queued = run(connection, "SELECT fact_id, queued_at FROM outbox")
        now = store.clock.now()
        assert journal == [(fact.change_seq, now, "add", fact.id, "library", "test", "session-1")]
        assert queued == [(fact.id, now)]

    def test_changes_of_one_transaction_share_a_batch(self, store: Store) -> None:
        with store.write(AUTHOR) as tx:
            tx.add(Fact("a"))
            tx.add(Fact("b"))
        add(store, Fact("c"))
        with store.database.read() as connection:
            first, second, third = (row[0] for row in run(connection, "SELECT batch FROM journal ORDER BY seq"))
        assert first == second != third

    @pytest.mark.parametrize("text", ["", "   ", "\n\t"])
    def test_refuses_an_empty_text(self, store: Store, text: str) -> None:
        with pytest.raises(InputError, match="empty"):
            add(store, Fact(text))
        assert rows(store)["facts"] == 0

    def test_refuses_a_text_that_is_too_long_without_repeating_it(self, store: Store) -> None:
        assert add(store, Fact("w" * MAX_TEXT)).id
        with pytest.raises(InputError, match=str(MAX_TEXT)) as caught:
            add(store, Fact("w" * (MAX_TEXT + 1)))
        assert "www" not in str(caught.value)

    @pytest.mark.parametrize(("length", "summary"), [(300, None), (301, "x" * 80 + "…")])
    def test_a_long_text_gets_a_summary(self, store: Store, length: int, summary: str | None) -> None:
        assert add(store, Fact("x" * length)).summary == summary

    def test_a_second_fact_with_the_same_id_is_refused_whole(self, store: Store) -> None:
        add(store, Fact("a", id="1"))
        before = rows(store)
        with pytest.raises(StoreError):
            add(store, Fact("b", id="1"))
        assert rows(store) == before


class TestRedaction:
    @pytest.mark.parametrize("column", ["text", "why", "value", "summary"])
    @pytest.mark.sqlite
    def test_no_byte_of_a_secret_reaches_the_disk(self, store: Store, column: str) -> None:
        fields: dict[str, Any] = {column: f"the key is {SECRET}"}
        add(store, replace(Fact("The deployment is done by Anna."), **fields))
        content = bytes_of(store.folder)
        assert PART not in content.lower()
        assert b"[redacted" in content

    @pytest.mark.parametrize(
        "fields",
        [{"entity": SECRET}, {"key": SECRET}, {"tags": (SECRET,)}, {"metadata": {"note": f"key {SECRET}"}}],
        ids=lambda fields: next(iter(fields)),
    )
    def test_nor_through_any_other_column(self, store: Store, fields: dict[str, Any]) -> None:
        add(store, replace(Fact("The deployment is done by Anna."), **fields))
        assert PART not in bytes_of(store.folder).lower()

    def test_a_password_in_a_sentence_is_not_kept_as_the_value_of_a_slot(self, tmp_path: Path) -> None:
        with Memory.open(tmp_path, embedder="none") as memory:
            fact = memory.store("My password is hunter2secret99")
            assert "hunter2secret99" not in f"{fact}"
            assert b"hunter2secret99" not in bytes_of(tmp_path)

    def test_the_same_sentence_with_a_secret_is_stored_once(self, tmp_path: Path) -> None:
        with Memory.open(tmp_path, embedder="none") as memory:
            first = memory.store(f"The deploy token is {SECRET}")
            assert memory.store(f"The deploy token is {SECRET}").id == first.id


class TestSupersede:
    def test_hides_the_old_fact_but_keeps_it(self, store: Store, clock: ManualClock) -> None:
        old = add(store, Fact("Anna lives in Brno"))
        before = clock.now()
        clock.advance(DAY)
        with store.write(AUTHOR) as tx:
            new = tx.add(Fact("Anna lives in Oslo"))
            tx.supersede(old.id, new.id, "moved")
        after = clock.now()
        clock.advance(DAY)
        ids = [old.id, new.id]
        assert seen(store, ids, view(store)) == {new.id}
        assert seen(store, ids, view(store, include_superseded=True)) == set(ids)
        assert seen(store, ids, view(store, as_of=before)) == {old.id}
        assert seen(store, ids, view(store, as_of=after)) == {new.id}

    def test_links_both_and_journals_why(self, store: Store) -> None:
        old, new = add(store, Fact("a")), add(store, Fact("b"))
        with store.write(AUTHOR) as tx:
            tx.supersede(old.id, new.id, "moved")
        now = store.clock.now()
        old, new = stored(store, old.id), stored(store, new.id)
        assert (old.superseded_by, old.superseded_at, old.valid_until) == (new.id, now, now)
        assert (new.supersedes_id, new.valid_from, new.superseded_at) == (old.id, now, None)
        with store.database.read() as connection:
            rows = run(
                connection,
                "SELECT seq, action, fact_id, other_id, json_extract(detail, '$.reason') FROM journal"
                " WHERE action <> 'add'",
            )
        assert rows == [
            (old.change_seq, "supersede", old.id, new.id, "moved"),
            (new.change_seq, "succeed", new.id, old.id, None),
        ]

    def test_old_words_no_longer_find_it(self, store: Store) -> None:
        old, new = add(store, Fact("Anna lives in Brno")), add(store, Fact("Anna lives in Oslo"))
        with store.write(AUTHOR) as tx:
            tx.supersede(old.id, new.id)
        with store.database.read() as connection:
            assert not lexical(connection, "Brno", view(store), 5).hits
            [hit] = lexical(connection, "Brno", view(store, include_superseded=True), 5).hits
        assert hit.fact.id == old.id

    def test_twice_is_refused_and_changes_nothing(self, store: Store) -> None:
        old, new, third = (add(store, Fact(text)) for text in "abc")
        with store.write(AUTHOR) as tx:
            tx.supersede(old.id, new.id)
        before, kept = rows(store), stored(store, old.id)
        with pytest.raises(NotFoundError, match=old.id), store.write(AUTHOR) as tx:
            tx.supersede(old.id, third.id)
        assert rows(store) == before
        assert stored(store, old.id) == kept

    def test_an_unknown_fact_is_refused(self, store: Store) -> None:
        new = add(store, Fact("b"))
        with pytest.raises(NotFoundError), store.write(AUTHOR) as tx:
            tx.supersede("nowhere", new.id)

    def test_a_successor_that_is_not_there_is_refused(self, store: Store) -> None:
        old = add(store, Fact("a"))
        with pytest.raises(NotFoundError), store.write(AUTHOR) as tx:
            tx.supersede(old.id, "nowhere")

    def test_a_fact_cannot_take_its_own_place(self, store: Store) -> None:
        fact = add(store, Fact("a"))
        with pytest.raises(PerdureError), store.write(AUTHOR) as tx:
            tx.supersede(fact.id, fact.id)


class TestReinforce:
    @pytest.mark.parametrize("decay_class", sorted(LIFETIMES))
    def test_starts_the_lifetime_anew(self, store: Store, clock: ManualClock, decay_class: str) -> None:
        fact = add(store, Fact("a", decay_class=decay_class))
        clock.advance(3600)
        with store.write(AUTHOR) as tx:
            tx.reinforce(fact.id)
        now = stored(store, fact.id)
        lifetime = LIFETIMES[decay_class]
        assert now.expires_at == (None if lifetime is None else clock.now() + lifetime)
        assert (now.reinforced_count, now.last_confirmed_at) == (1, clock.now())
        assert now.change_seq > fact.change_seq

    def test_an_unknown_fact_is_refused(self, store: Store) -> None:
        with pytest.raises(NotFoundError, match="nowhere"), store.write(AUTHOR) as tx:
            tx.reinforce("nowhere")
        assert rows(store)["journal"] == 0

    def test_storing_a_text_again_returns_the_confirmed_fact(self, tmp_path: Path) -> None:
        clock = ManualClock()
        with Memory.open(tmp_path, embedder="none", clock=clock) as memory:
            memory.store("The sky over Oslo is grey")
            clock.advance(60)
            again = memory.store("The sky over Oslo is grey")
            assert again == memory.get(again.id)


class TestVectors:
    SPACE = VectorSpace("space", 2, {"model": "two"})

    def test_a_vector_needs_the_space_of_the_store(self, store: Store) -> None:
        with pytest.raises(StoreError), store.write(AUTHOR) as tx:
            tx.add(Fact("a"), StoredVector("unknown", b"\0" * 8))
        assert rows(store)["facts"] == 0

    def test_a_late_vector_queues_the_fact_again(self, store: Store) -> None:
        assert store.adopt_space(self.SPACE)
        feed(store)
        fact = add(store, Fact("a"))
        with store.write(AUTHOR) as tx:
            tx.put_vector(fact.id, StoredVector("space", b"\0" * 8))
        assert stored(store, fact.id).embedding_model == "space"
        assert store.outbox_state().waiting == 2

    def test_the_fact_is_returned_as_stored(self, store: Store) -> None:
        store.adopt_space(self.SPACE)
        with store.write(AUTHOR) as tx:
            fact = tx.add(Fact("a"), StoredVector("space", b"\0" * 8))
        assert stored(store, fact.id) == fact

    def test_a_store_has_one_space(self, store: Store) -> None:
        assert store.space() is None
        assert store.adopt_space(self.SPACE)
        assert store.adopt_space(self.SPACE)
        assert not store.adopt_space(VectorSpace("other", 3, {}))
        assert store.space() == self.SPACE


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, SystemExit])
def test_a_block_that_raises_keeps_nothing(store: Store, error: type[BaseException]) -> None:
    store.adopt_space(TestVectors.SPACE)
    old = add(store, Fact("Anna lives in Brno"))
    before, kept = rows(store), stored(store, old.id)

    def fail(tx: Transaction) -> NoReturn:
        new = tx.add(Fact("Anna lives in Oslo"), StoredVector("space", b"\0" * 8))
        tx.supersede(old.id, new.id)
        tx.reinforce(new.id)
        tx.move_cursor("s", "tail")
        tx.finish_entry("entry:1")
        raise error

    with pytest.raises(error), store.write(AUTHOR) as tx:
        fail(tx)
    assert rows(store) == before
    assert stored(store, old.id) == kept
    with store.database.read() as connection:
        assert not lexical(connection, "Oslo", view(store), 5).hits
    assert add(store, Fact("still writable")).change_seq == old.change_seq + 1


def test_a_finished_entry_and_a_cursor_are_remembered(store: Store, clock: ManualClock) -> None:
    entry = "-".join(filter(None, (store.machine, "a:1")))
    assert not store.is_finished(entry)
    assert store.cursor("s") == ""
    for tail in ("one", "two"):
        with store.write(AUTHOR) as tx:
            tx.finish_entry(entry)
            tx.move_cursor("s", tail)
    assert store.is_finished(entry)
    assert store.cursor("s") == "two"
    clock.advance(OWN_KEPT + 1)
    store.prune_finished()
    assert not store.is_finished(entry)  # no inbox file of that name is left


def test_the_journal_never_holds_the_text(store: Store) -> None:
    old, new = add(store, Fact("Anna lives in Brno")), add(store, Fact("Anna lives in Oslo"))
    with store.write(AUTHOR) as tx:
        tx.supersede(old.id, new.id, "new value of location")
        tx.reinforce(new.id)
    with store.database.read() as connection:
        journal = f"{run(connection, 'SELECT * FROM journal')}"
    assert journal.count("'supersede'") == 1
    assert "Brno" not in journal
    assert "Oslo" not in journal
