"""Every fact is listed, with the word why it is in no answer; page by page, nothing is skipped or repeated."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from perdure.clock import ManualClock
from perdure.errors import InputError, NotFoundError
from perdure.hooks.types import Channel
from perdure.maintenance.purge import purge
from perdure.store.fact import Fact
from perdure.store.lifecycle import forget, retract
from perdure.store.listing import Filter, Page, State, inventory, state_of, why_hidden
from perdure.store.scope import ALL_SCOPES, Audience, Scope
from perdure.store.search import View, ids
from perdure.store.store import Store
from perdure.store.transaction import Author
from perdure.store.trust import AUTO_RECALLED

AUTHOR = Author(Channel.LIBRARY)
OWN = {"scope": "user", "scope_target": "owner"}


def put(store: Store, *facts: Fact) -> list[Fact]:
    with store.write(AUTHOR) as tx:
        return [tx.add(replace(fact, scope=fact.scope if fact.scope_target else "user",
                               scope_target=fact.scope_target or "owner")) for fact in facts]  # fmt: skip


def page(store: Store, audience: Audience = Audience.of(), **asked: object) -> Page:  # noqa: B008 - frozen
    view = View(audience, store.clock.now(), everything=True)
    with store.database.read() as connection:
        return inventory(connection, view, **asked)  # type: ignore[arg-type]


def texts(found: Page) -> list[str]:
    return [each.fact.text for each in found.facts]


def test_a_fact_in_each_state_is_listed_with_the_word_why(store: Store, clock: ManualClock) -> None:
    names = ("present", "waits", "refused", "imported", "gone", "old", "new", "over", "withdrawn")
    facts = dict(zip(names, put(
        store, Fact("I am here.", channel=Channel.USER),
        Fact("I wait.", channel=Channel.USER, review_state="pending", metadata={"review": "over the limit of 3 facts"}),
        Fact("I was refused.", channel=Channel.USER, review_state="rejected"),
        Fact("I was brought.", channel=Channel.IMPORT), Fact("I am forgotten.", channel=Channel.USER),
        Fact("I am old.", channel=Channel.USER), Fact("I am new.", channel=Channel.USER),
        Fact("I am over.", channel=Channel.USER, decay_class="ephemeral"),
        Fact("I was withdrawn.", channel=Channel.USER),
    ), strict=True))  # fmt: skip
    with store.write(AUTHOR) as tx:
        forget(tx, facts["gone"].id)
        tx.supersede(facts["old"].id, facts["new"].id)
        retract(tx, facts["withdrawn"].id)
    today = dt.datetime.fromtimestamp(clock.now()).astimezone().date()
    over = dt.datetime.fromtimestamp(facts["over"].expires_at or 0.0).astimezone().date()
    clock.advance(86_400.0)
    found = page(store)
    assert found.total == len(facts)
    assert {each.fact.id: (each.state, each.hidden) for each in found.facts} == {
        facts["present"].id: ("present", None),
        facts["new"].id: ("present", None),
        facts["waits"].id: ("pending", "pending: over the limit of 3 facts"),
        facts["refused"].id: ("rejected", "rejected in review"),
        facts["imported"].id: ("search-only", "search-only: came from import"),
        facts["gone"].id: ("forgotten", f"forgotten on {today}"),
        facts["old"].id: ("former", f"former: replaced by {facts['new'].id[:8]}"),
        facts["withdrawn"].id: ("former", f"former: withdrawn on {today}"),
        facts["over"].id: ("expired", f"expired on {over}"),
    }
    assert found.states == {
        "present": 2, "pending": 1, "rejected": 1, "search-only": 1, "former": 2, "forgotten": 1, "expired": 1,
    }  # fmt: skip


TIMES = st.none() | st.floats(1.7e9, 1.9e9)
FACTS = st.builds(
    Fact, st.integers(0, 9).map("fact number {}".format), channel=st.sampled_from(list(Channel)),
    review_state=st.sampled_from(["approved", "pending", "rejected"]), forgotten_at=TIMES, superseded_at=TIMES,
    superseded_by=st.none() | st.uuids().map(str), expires_at=TIMES, source_date=TIMES,
    category=st.sampled_from(["fact", "other"]), scope=st.just("user"),
    scope_target=st.sampled_from(["owner", "alice"]),
)  # fmt: skip


@settings(max_examples=30, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(FACTS, max_size=12), st.sets(st.sampled_from(list(State))), st.integers(1, 5))
def test_sql_and_words_agree_and_pages_are_the_whole(facts: list[Fact], states: set[State], limit: int) -> None:
    with TemporaryDirectory() as folder:
        store = Store(Path(folder), clock=ManualClock())
        now = store.clock.now()
        kept = put(store, *facts)
        mine = [fact for fact in kept if fact.scope_target == "owner"]
        whole = page(store, limit=100, states=states)
        assert {each.fact.id for each in whole.facts} == {
            fact.id for fact in mine if not states or state_of(fact, now) in states
        }
        for each in whole.facts:
            assert each.state is state_of(each.fact, now)
            assert each.hidden == why_hidden(each.fact, now)
            assert (each.hidden is None) is (each.state is State.PRESENT)
        assert sum(whole.states.values()) == whole.total == len(whole.facts)
        assert [each.fact for page_ in walked(store, limit, states) for each in page_.facts] == [
            each.fact for each in whole.facts
        ]
        with store.database.read() as connection:
            seen = ids(connection, View(Audience.of(), now, channels=AUTO_RECALLED, approved_only=True))
        assert seen == {each.fact.id for each in page(store, limit=100, states={State.PRESENT}).facts}
        store.close()


def walked(store: Store, limit: int, states: set[State] | None = None) -> Iterator[Page]:
    found = page(store, limit=limit, states=states or ())
    yield found
    while found.behind is not None:
        found = page(store, limit=limit, states=states or (), behind=found.behind)
        yield found


@pytest.mark.parametrize("limit", [1, 2, 3, 7])
@pytest.mark.parametrize("dates", ["each its own", "all the same"])
def test_while_facts_are_added_and_changed_nothing_is_skipped_or_repeated(
    store: Store, clock: ManualClock, limit: int, dates: str
) -> None:
    before = put(store, *(Fact(f"fact number {number}", channel=Channel.USER) for number in range(10)))
    seen: list[str] = []
    for number, found in enumerate(walked(store, limit)):
        seen += [each.fact.id for each in found.facts]
        if dates == "each its own":
            clock.advance(60.0)
        put(store, Fact(f"new fact {number}", channel=Channel.USER))
        put(store, Fact(f"older fact {number}", channel=Channel.USER, source_date=before[0].created_at - 1e6))
        if found.behind is not None and number == 1:
            with store.write(AUTHOR) as tx:
                forget(tx, found.behind)
        if number > 40:
            break
    assert len(seen) == len(set(seen))
    assert {fact.id for fact in before} <= set(seen)


def test_what_was_purged_is_not_listed_and_no_page_goes_on_behind_it(store: Store) -> None:
    facts = put(store, *(Fact(f"fact number {number}", channel=Channel.USER) for number in range(3)))
    first = page(store, limit=1)
    purge(store, [first.behind or ""], AUTHOR)
    assert page(store).total == 2
    with pytest.raises(NotFoundError, match="start again"):
        page(store, limit=1, behind=first.behind)
    assert page(store, behind=facts[1].id[:8]).facts


def test_filters_hold_for_facts_counts_and_pages(store: Store) -> None:
    put(store, Fact("I like tea.", category="preference", channel=Channel.USER, tags=("drinks",)),
        Fact("I like milk.", category="preference", channel=Channel.IMPORT),
        Fact("A heron.", category="entity", entity="Heron", channel=Channel.USER))  # fmt: skip
    assert texts(page(store, chosen=Filter(category="preference"))) == ["I like milk.", "I like tea."]
    found = page(store, chosen=Filter(category="preference"), states={State.SEARCH_ONLY})
    assert (texts(found), found.total, found.states) == (["I like milk."], 1, {"search-only": 1})
    assert texts(page(store, chosen=Filter(entity="heron"))) == ["A heron."]
    assert texts(page(store, offset=2)) == ["I like tea."]


def test_a_filter_by_marks_tells_values_from_what_only_looks_like_them(store: Store) -> None:
    given: list[Any] = ["r1", "r12", ["r0", "r1"], 1, 12, 1.5, True, None, 'a"b', "a}", {"run": "r1x"}, ["r2", "run"]]
    put(store, *(Fact(f"{number}", metadata={"run": value, "z": 0}) for number, value in enumerate(given)), Fact("No."))
    for value, found in (
        ("r1", {"0", "2"}), ("r0", {"2"}), (1, {"3"}), (12, {"4"}), (1.5, {"5"}), (True, {"6"}), (None, {"7"}),
        ('a"b', {"8"}), ("a}", {"9"}), ("a", set()), ("r", set()), ("run", {"11"}), ("r2", {"11"}),
    ):  # fmt: skip
        assert set(texts(page(store, chosen=Filter(marks=(("run", value),))))) == found, value
    assert texts(page(store, chosen=Filter(marks=(("run", "r0"), ("z", 0))))) == ["2"]
    assert texts(page(store, chosen=Filter(marks=(("run", "r0"), ("z", 1))))) == []


def test_a_filter_by_an_entity_and_what_is_below_it(store: Store) -> None:
    names = ("a", "a.b", "a.b.c", "a.bc", "A.b", "b.a.b")
    put(store, *(Fact(f"Of {name}.", entity=name) for name in names), Fact("No."))
    assert texts(page(store, chosen=Filter(within="a.b"))) == ["Of a.b.c.", "Of a.b."]
    assert texts(page(store, chosen=Filter(within="c"))) == []


def test_nobody_sees_or_counts_what_is_anothers_but_the_owner_who_asks_for_all(store: Store) -> None:
    put(store, Fact("Mine.", channel=Channel.USER), Fact("Alice's.", scope="user", scope_target="alice"),
        Fact("An agent's.", scope="agent", scope_target="main"))  # fmt: skip
    mine = page(store)
    assert (texts(mine), mine.total) == (["Mine."], 1)
    assert texts(page(store, Audience.of(user="alice"))) == ["Alice's."]
    assert len(page(store, ALL_SCOPES).facts) == page(store, ALL_SCOPES).total == 3
    [agents] = page(store, ALL_SCOPES, chosen=Filter(scope=Scope("agent", "main"))).facts
    with pytest.raises(NotFoundError):
        page(store, behind=agents.fact.id)


@pytest.mark.parametrize("asked", [{"limit": 0}, {"limit": 10_001}, {"offset": -1}])
def test_what_is_out_of_range_is_refused(store: Store, asked: dict[str, Any]) -> None:
    with pytest.raises(InputError, match="must be"):
        page(store, **asked)


def test_as_of_a_time_only_what_was_true_then_is_listed(store: Store, clock: ManualClock) -> None:
    old, new = put(store, Fact("Old.", channel=Channel.USER), Fact("New.", channel=Channel.USER))
    then = clock.now() + 1.0
    clock.advance(60.0)
    with store.write(AUTHOR) as tx:
        tx.supersede(old.id, new.id)
    with store.database.read() as connection:
        found = inventory(connection, View(Audience.of(), clock.now(), as_of=then))
    assert [(each.fact.id, each.state) for each in found.facts] == [(old.id, "former")]
