"""To be shown is counted and changes nothing; to be used makes a memory live longer."""

from __future__ import annotations

from dataclasses import replace

import pytest

from perdure.clock import ManualClock
from perdure.hooks.types import Channel
from perdure.maintenance.checks import content, words
from perdure.ranking.decay import DAY, LIFETIMES, REFRESHED_BY_USE
from perdure.store import lifecycle
from perdure.store.fact import Fact
from perdure.store.lifecycle import note_recalled, used
from perdure.store.scope import Audience
from perdure.store.search import View, by_ids, lexical
from perdure.store.sql import newest, run
from perdure.store.store import Store
from perdure.store.transaction import Author

AUTHOR = Author(Channel.USER)
REMEMBERED = ("The heron database is staging.", "The heron nests by the river.", "Never feed the heron.")


def add(store: Store, *facts: Fact) -> list[str]:
    with store.write(AUTHOR) as tx:
        return [tx.add(fact).id for fact in facts]


def get(store: Store, fact_id: str) -> Fact:
    view = View(Audience.of(), store.clock.now(), everything=True)
    with store.database.read() as connection:
        return by_ids(connection, [fact_id], view)[fact_id]


def show(store: Store, *ids: str) -> None:
    with store.database.write(durable=False) as connection:
        note_recalled(connection, ids, injected=True)


def use(store: Store, *ids: str) -> list[str]:
    with store.write(AUTHOR) as tx:
        return [fact.id for fact in used(tx, ids)]


def answers(store: Store) -> list[tuple[str, float]]:
    with store.database.read() as connection:
        hits = lexical(connection, "heron database", View(Audience.of(), store.clock.now()), 10).hits
    return [(hit.fact.id, hit.score) for hit in hits]


class TestInjected:
    def test_counts_each_fact_once_and_changes_nothing_else(self, store: Store, clock: ManualClock) -> None:
        first, second, third = add(store, *(Fact(text) for text in REMEMBERED))
        before = {fact_id: get(store, fact_id) for fact_id in (first, second, third)}
        clock.advance(DAY)
        show(store, first, second, first)
        show(store, second)
        assert get(store, first) == replace(before[first], recall_count=1, injected_count=1)
        assert get(store, second) == replace(before[second], recall_count=2, injected_count=2)
        assert get(store, third) == before[third]

    def test_what_a_tool_handed_out_was_recalled_and_not_put_into_a_prompt(self, store: Store) -> None:
        [fact_id] = add(store, Fact(REMEMBERED[0]))
        before = get(store, fact_id)
        with store.database.write(durable=False) as connection:
            note_recalled(connection, [fact_id])
        assert get(store, fact_id) == replace(before, recall_count=1)

    def test_neither_journal_nor_index_hears_of_it(self, store: Store) -> None:
        [fact_id] = add(store, Fact(REMEMBERED[0]))
        with store.database.read() as connection:
            before = newest(connection), store.outbox_state()
        show(store, fact_id)
        with store.database.read() as connection:
            assert (newest(connection), store.outbox_state()) == before

    def test_seals_hold(self, store: Store) -> None:
        ids = add(store, *(Fact(text) for text in REMEMBERED))
        show(store, *ids)
        assert [*content(store), *words(store)] == []
        with store.database.write() as connection:
            run(connection, "UPDATE facts SET importance = 1.0 WHERE id = ?", (ids[0],))
        assert [finding.where for finding in content(store)] == [ids[0]]

    def test_changes_no_rank(self, store: Store) -> None:
        ids = add(store, *(Fact(text) for text in REMEMBERED))
        before = answers(store)
        for _ in range(20):
            show(store, ids[-1])
        assert answers(store) == before

    def test_what_is_no_fact_is_passed_over(self, store: Store) -> None:
        [fact_id] = add(store, Fact(REMEMBERED[0]))
        show(store, "memory/2026-01-02.md#L1-L9", fact_id, "'; DROP TABLE facts; --")
        show(store)
        assert get(store, fact_id).injected_count == 1


class TestUsed:
    @pytest.mark.parametrize("decay_class", LIFETIMES)
    def test_counts_and_lets_the_lifetime_of_some_classes_start_anew(
        self, store: Store, clock: ManualClock, decay_class: str
    ) -> None:
        [fact_id] = add(store, Fact(REMEMBERED[0], decay_class=decay_class))
        before = get(store, fact_id)
        clock.advance(3600.0)
        assert use(store, fact_id) == [fact_id]
        after = get(store, fact_id)
        assert (after.access_count, after.last_accessed) == (1, clock.now())
        lifetime = LIFETIMES[decay_class]
        if decay_class in REFRESHED_BY_USE:
            assert lifetime is not None
            assert after.expires_at == clock.now() + lifetime
        else:
            assert after.expires_at == before.expires_at

    def test_never_shortens_a_life(self, store: Store, clock: ManualClock) -> None:
        late = clock.now() + 400 * DAY
        [fact_id] = add(store, Fact(REMEMBERED[0], decay_class="durable", decay_freeze_until=late))
        use(store, fact_id)
        assert get(store, fact_id).expires_at == late

    def test_each_fact_counts_once(self, store: Store) -> None:
        [fact_id] = add(store, Fact(REMEMBERED[0]))
        use(store, fact_id, fact_id)
        assert get(store, fact_id).access_count == 1

    def test_what_is_gone_is_passed_over(self, store: Store) -> None:
        kept, forgotten, old, new = add(store, *(Fact(text) for text in (*REMEMBERED, "It nests by the sea.")))
        with store.write(AUTHOR) as tx:
            lifecycle.forget(tx, forgotten)
            tx.supersede(old, new)
        assert use(store, forgotten, "never there", old, kept) == [kept]
        assert get(store, forgotten).access_count == get(store, old).access_count == 0

    def test_is_in_the_journal_and_under_the_seals(self, store: Store) -> None:
        [fact_id] = add(store, Fact(REMEMBERED[0]))
        use(store, fact_id)
        with store.database.read() as connection:
            actions = [row[0] for row in run(connection, "SELECT action FROM journal ORDER BY seq")]
        assert actions == ["add", "use"]
        assert list(content(store)) == []
