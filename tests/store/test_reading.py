"""Finding a fact again: by id, in lists, in slots, in counts, as of a time."""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations
from pathlib import Path

import pytest

from perdure.api.memory import Memory
from perdure.clock import ManualClock
from perdure.errors import AmbiguousIdError, InputError, NotFoundError, ScopeError
from perdure.store.fact import Fact
from perdure.store.listing import Filter
from perdure.store.scope import GLOBAL, Scope
from tests.kit import DAY, START, OpenMemory, nobody, put, recalled

TEXT = "The staging database is called heron."
TWINS = ("abcdef01-0000-4000-8000-000000000001", "abcdef01-0000-4000-8000-000000000002")


def texts(memory: Memory, chosen: Filter = Filter(), limit: int = 20, offset: int = 0) -> list[str]:  # noqa: B008
    return [fact.text for fact in memory.admin.list(chosen, limit=limit, offset=offset)]


def notes(count: int) -> list[str]:
    return [f"Note number {number}." for number in range(count)]


@pytest.mark.parametrize("length", [8, 9, 13, 35, 36])
def test_a_fact_is_got_by_its_id_or_the_beginning_of_it(memory: Memory, length: int) -> None:
    fact = memory.store(TEXT)
    assert memory.get(fact.id[:length]) == fact
    assert memory.get(f" {fact.id[:length].upper()} ") == fact
    assert memory.admin.has(fact.id[:length])


def test_a_beginning_that_several_ids_share_names_none_of_them(memory: Memory, home: Path) -> None:
    put(home, *(Fact(f"One of two, {fact_id[-1]}.", id=fact_id) for fact_id in TWINS))
    for change in (memory.get, memory.forget, memory.pin, memory.related):
        with pytest.raises(AmbiguousIdError, match=r"abcdef01.*more digits"):
            change("abcdef01")
    assert not memory.admin.has("abcdef01")
    assert [memory.get(fact_id).text for fact_id in TWINS] == ["One of two, 1.", "One of two, 2."]


def test_of_two_ids_with_one_beginning_the_live_one_is_meant(memory: Memory, home: Path) -> None:
    put(home, *(Fact(f"One of two, {fact_id[-1]}.", id=fact_id) for fact_id in TWINS))
    memory.forget(TWINS[0])
    assert memory.get("abcdef01").id == TWINS[1]


@pytest.mark.parametrize("fact_id", ["", "abcdef0", "abcdefg1", "%%%%%%%%", "________"])
def test_what_is_no_id_is_refused(memory: Memory, fact_id: str) -> None:
    memory.store(TEXT)
    for use in (memory.get, memory.admin.has, memory.forget, memory.unforget, memory.related):
        with pytest.raises(InputError, match="8 hex digits"):
            use(fact_id)


def test_an_id_that_no_fact_has_is_not_found(memory: Memory) -> None:
    fact = memory.store(TEXT)
    unknown = "f" * 8 if fact.id[0] != "f" else "e" * 8
    assert not memory.admin.has(unknown)
    uses: list[Callable[[str], object]] = [
        memory.get, memory.forget, memory.unforget, memory.pin, memory.related,
        lambda fact_id: memory.update(fact_id, importance=0.1),
        lambda fact_id: memory.link(fact.id, fact_id),
        lambda fact_id: memory.store("Another one.", supersedes=fact_id),
    ]  # fmt: skip
    for use in uses:
        with pytest.raises(NotFoundError):
            use(unknown)
    assert texts(memory) == [TEXT]


def test_a_list_is_twenty_long_and_newest_first(memory: Memory, clock: ManualClock) -> None:
    for note in notes(23):
        memory.store(note)
        clock.advance(1.0)
    newest_first = notes(23)[::-1]
    assert texts(memory) == newest_first[:20]
    assert texts(memory, offset=20) == newest_first[20:]
    assert texts(memory, limit=5, offset=3) == newest_first[3:8]
    assert texts(memory, offset=23) == []


def test_of_equally_old_facts_the_one_stored_last_comes_first(memory: Memory) -> None:
    for note in notes(5):
        memory.store(note)
    assert texts(memory) == notes(5)[::-1]
    assert texts(memory, limit=2, offset=2) == ["Note number 2.", "Note number 1."]


def test_when_it_was_said_counts_before_when_it_was_stored(memory: Memory, home: Path) -> None:
    memory.store("Said and stored now.")
    put(home, Fact("Said long ago.", source_date=START - DAY), Fact("Said just after.", source_date=START + 1))
    assert texts(memory) == ["Said just after.", "Said and stored now.", "Said long ago."]


@pytest.mark.parametrize(("limit", "offset"), [(0, 0), (-1, 0), (10_001, 0), (1, -1)])
def test_a_list_has_limits(memory: Memory, limit: int, offset: int) -> None:
    with pytest.raises(InputError, match="must be"):
        memory.admin.list(limit=limit, offset=offset)


def shelf(memory: Memory, home: Path) -> None:
    """Fill a memory with facts that differ in one thing each."""
    memory.store("A choice.", category="decision")
    memory.store("Of Ann.", entity="Ann", key="note", value="x")
    memory.store("For all.", scope="global")
    memory.pin(memory.store("Kept.").id)
    put(home, Fact("In doubt.", review_state="pending"), Fact("Old.", source_date=START - DAY))


@pytest.mark.parametrize(
    ("chosen", "wanted"),
    [
        (Filter(category="decision"), {"A choice."}),
        (Filter(entity="ann"), {"Of Ann."}),
        (Filter(entity="ANN"), {"Of Ann."}),
        (Filter(scope=GLOBAL), {"For all."}),
        (Filter(scope=Scope("user", "owner")), {"A choice.", "Of Ann.", "Kept.", "In doubt.", "Old."}),
        (Filter(scope=Scope("user", "somebody")), set()),
        (Filter(pinned=True), {"Kept."}),
        (Filter(pinned=False), {"A choice.", "Of Ann.", "For all.", "In doubt.", "Old."}),
        (Filter(review_state="pending"), {"In doubt."}),
        (Filter(review_state="rejected"), set()),
        (Filter(before=START), {"Old."}),
        (Filter(after=START), {"A choice.", "Of Ann.", "For all.", "Kept.", "In doubt."}),
        (Filter(after=START - DAY, before=START - DAY + 1), {"Old."}),
        (Filter(after=START + 1), set()),
    ],
)
def test_a_list_can_be_filtered(memory: Memory, home: Path, chosen: Filter, wanted: set[str]) -> None:
    shelf(memory, home)
    assert set(texts(memory, chosen)) == wanted


def test_a_filter_knows_an_entity_in_every_normal_form(memory: Memory) -> None:
    fact = memory.store("Renée sings.", entity="Renée", key="hobby", value="song")
    decomposed = "Rene\u0301e"
    assert [found.id for found in memory.lookup(decomposed)] == [fact.id]
    assert [found.id for found in memory.admin.list(Filter(entity=decomposed))] == [fact.id]


FILTERS = {"category": "other", "entity": "ann", "after": START, "pinned": False, "scope": Scope("user", "owner")}


@pytest.mark.parametrize("names", list(combinations(FILTERS, 2)), ids="+".join)
def test_filters_narrow_each_other(memory: Memory, home: Path, names: tuple[str, str]) -> None:
    shelf(memory, home)
    first, second = (set(texts(memory, Filter(**{name: FILTERS[name]}))) for name in names)  # type: ignore[arg-type]
    both = Filter(**{name: FILTERS[name] for name in names})  # type: ignore[arg-type]
    assert set(texts(memory, both)) == first & second


def test_stats_count_what_lists_show(memory: Memory, home: Path) -> None:
    shelf(memory, home)
    memory.forget(memory.store("Gone.", category="decision").id)
    memory.update(memory.store("First wording.", category="preference").id, text="Second wording.")
    stats = memory.admin.stats()
    assert stats.total == len(texts(memory)) == 7
    assert dict(stats.by_scope) == {"global": 1, "user:owner": 6}
    assert stats.by_category["decision"] == 1
    assert stats.by_category["preference"] == 1
    assert sum(stats.by_category.values()) == 7


def test_a_lookup_puts_the_certain_first_then_the_newest(memory: Memory, home: Path) -> None:
    def hobby(value: str, confidence: float, said: float) -> Fact:
        return Fact(f"Likes {value}.", entity="ann", key="hobby", value=value, confidence=confidence, source_date=said)

    put(home, hobby("chess", 0.6, START), hobby("golf", 0.9, START - DAY), hobby("yoga", 0.9, START - DAY / 2))
    assert [fact.value for fact in memory.lookup("Ann", "HOBBY")] == ["yoga", "golf", "chess"]


def test_past_three_quarters_of_its_life_a_fact_counts_half(open_memory: OpenMemory, clock: ManualClock) -> None:
    # Whether one hobby takes the place of another is not asked here: both stay, and their order is looked at.
    memory = open_memory(compare={"classify": False})
    memory.store("Ann likes golf.", entity="ann", key="hobby", value="golf", decay_class="normal")
    clock.advance(60.0)
    memory.store("Ann likes chess.", entity="ann", key="hobby", value="chess", decay_class="permanent")
    memory.update(memory.lookup("ann", "hobby")[0].id, confidence=0.6)

    def order() -> list[str | None]:
        return [fact.value for fact in memory.lookup("ann", "hobby")]

    clock.set(START + 0.75 * 14 * DAY)
    assert order() == ["golf", "chess"]
    clock.set(START + 0.75 * 14 * DAY + 1)
    assert order() == ["chess", "golf"]


def test_every_way_of_reading_answers_as_of_a_time(memory: Memory, clock: ManualClock) -> None:
    hub = memory.store("The hub of the house.", entity="hub", key="place", value="hall")
    old = memory.store("The router of the house is in the attic.", entity="router", key="place", value="attic")
    memory.link(hub.id, old.id)
    clock.advance(DAY)
    new = memory.update(old.id, text="The router of the house is in the cellar.", value="cellar")
    memory.link(hub.id, new.id)
    clock.advance(DAY)

    def seen(**asked: float | bool) -> list[set[str]]:
        as_of = asked.get("as_of")
        answers = [
            {item.id for item in getattr(memory.recall("Where is the router of the house?", **asked), "items", ())},  # type: ignore[arg-type]
            {fact.id for fact in memory.lookup("router", **asked)},  # type: ignore[arg-type]
            {fact.id for fact in memory.admin.list(**asked)},  # type: ignore[arg-type]
        ]
        if not asked.get("include_superseded"):
            answers.append({related.fact.id for related in memory.related(hub.id, as_of=as_of)})
        return [answer - {hub.id} for answer in answers]

    assert seen() == [{new.id}] * 4
    assert seen(as_of=START) == [{old.id}] * 4
    assert seen(as_of=START + DAY - 1) == [{old.id}] * 4
    assert seen(as_of=START + DAY) == [{new.id}] * 4
    assert seen(as_of=START - 1) == [set()] * 4
    # A block never holds two contradicting values of one slot, so recall is asked for the old one alone.
    assert seen(include_superseded=True)[1:] == [{old.id, new.id}] * 2


def test_what_has_expired_is_still_true_of_its_time(memory: Memory, clock: ManualClock) -> None:
    fact = memory.store("The meeting room is the blue one.", decay_class="short")
    clock.advance(3 * DAY)
    assert memory.admin.list() == []
    assert recalled(memory, "Which meeting room is it?") == []
    assert [found.id for found in memory.admin.list(as_of=START + DAY)] == [fact.id]
    assert recalled(memory, "Which meeting room is it?", as_of=START + DAY) == [fact.text]


def test_what_is_forgotten_is_in_no_answer_whatever_is_asked(memory: Memory) -> None:
    fact = memory.store("The meeting room is the blue one.", entity="room", key="colour", value="blue")
    memory.forget(fact.id)
    for asked in ({}, {"as_of": START}, {"include_superseded": True}):
        assert memory.lookup("room", **asked) == []
        assert memory.admin.list(**asked) == []
        assert recalled(memory, "Which meeting room is it?", **asked) == []
    assert not memory.admin.has(fact.id)


@pytest.mark.parametrize("chosen", [Filter(), Filter(category="other"), Filter(entity="ann"), Filter(pinned=False)])
def test_forgetting_many_needs_a_scope_or_a_date(memory: Memory, chosen: Filter) -> None:
    memory.store(TEXT)
    with pytest.raises(InputError, match="scope or a date"):
        memory.admin.forget_many(chosen)
    assert texts(memory) == [TEXT]


def test_forgetting_many_can_be_tried_and_taken_back(memory: Memory, clock: ManualClock) -> None:
    for note in notes(4):
        memory.store(note)
        clock.advance(DAY)
    chosen = Filter(before=START + 2.5 * DAY)
    assert memory.admin.forget_many(chosen, dry_run=True) == 3
    assert len(texts(memory)) == 4
    assert memory.admin.forget_many(chosen) == 3
    assert texts(memory) == ["Note number 3."]
    assert len(memory.undo().facts) == 3
    assert texts(memory) == notes(4)[::-1]


def test_forgetting_many_of_a_scope_leaves_the_others(memory: Memory) -> None:
    memory.store("Mine.")
    memory.store("For all.", scope="global")
    assert memory.admin.forget_many(Filter(scope=GLOBAL)) == 1
    assert texts(memory) == ["Mine."]
    assert memory.admin.forget_many(Filter(scope=Scope("user", "somebody"))) == 0


def test_a_dry_run_is_no_change(memory: Memory) -> None:
    memory.store(TEXT)
    before = memory.admin.changes()
    memory.admin.forget_many(Filter(after=0.0), dry_run=True)
    assert memory.admin.changes() == before


def test_who_may_write_nothing_can_forget_nothing(memory: Memory) -> None:
    memory.store("For all.", scope="global")
    with pytest.raises(ScopeError):
        nobody(memory).admin.forget_many(Filter(scope=GLOBAL))
    assert texts(memory) == ["For all."]
