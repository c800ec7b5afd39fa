"""The nine decay classes, from storing to expiry, and days to come that hold expiry off."""

from __future__ import annotations

import datetime as dt
from pathlib import Path

import pytest

from perdure.api.memory import Memory
from perdure.clock import ManualClock
from perdure.hooks.types import Channel
from perdure.ranking.decay import LIFETIMES, confidence_at
from perdure.store import lifecycle
from perdure.store.fact import Fact
from perdure.store.store import Store
from perdure.store.transaction import Author
from tests.kit import DAY, START, say

HOUR = 3600.0
TEXT = "The staging database is called heron."
CLASSES: dict[str, tuple[float | None, bool]] = {
    "permanent": (None, False),
    "durable": (90 * DAY, True),
    "stable": (90 * DAY, True),
    "normal": (14 * DAY, True),
    "active": (14 * DAY, True),
    "short": (2 * DAY, False),
    "session": (24 * HOUR, False),
    "ephemeral": (4 * HOUR, False),
    "checkpoint": (4 * HOUR, False),
}
"""Lifetime in seconds, and whether use starts it anew."""
CHOSEN: dict[str, str | None] = {
    "permanent": "The staging database is called heron.",  # nothing in it says that it ends
    "durable": "The staging database is heron for now.",  # it will change, and nobody knows when
    "stable": None,  # another name of durable
    "normal": None,  # another name of active
    "active": "My sister is ill this week.",  # over when the week is; a fortnight for what follows
    "short": "My sister is ill today.",  # over tomorrow; or until the day that it names
    "session": "The staging database is heron this session.",  # over with the session
    "ephemeral": None,  # four hours are for who asks for them
    "checkpoint": None,  # so are these: `perdure checkpoint`
}
"""Of which class is what nobody names a class for, if its words are these; None: of nothing."""
MORTAL = [name for name, (lifetime, _) in CLASSES.items() if lifetime is not None]


def used(home: Path, fact_id: str, now: float) -> Fact:
    """Use a fact, as the agent does on purpose."""
    store = Store(home, clock=ManualClock(now))
    with store.write(Author(Channel.TOOL_ASKED)) as tx:
        fact = lifecycle.use(tx, fact_id)
    store.close()
    return fact


def test_there_are_nine_classes() -> None:
    assert {name: lifetime for name, (lifetime, _) in CLASSES.items()} == LIFETIMES


@pytest.mark.parametrize("name", CLASSES)
def test_a_fact_lives_as_long_as_its_class_says(memory: Memory, clock: ManualClock, name: str) -> None:
    fact = memory.store(TEXT, decay_class=name)
    lifetime, _ = CLASSES[name]
    assert fact.decay_class == name
    assert fact.expires_at == (None if lifetime is None else START + lifetime)
    clock.set(START + (1000 * DAY if lifetime is None else lifetime - 1))
    assert memory.admin.live_ids() == {fact.id}
    clock.advance(1)
    assert memory.admin.live_ids() == ({fact.id} if lifetime is None else set())


def test_the_table_has_all_classes() -> None:
    assert list(CHOSEN) == list(CLASSES) == list(LIFETIMES)


@pytest.mark.parametrize("name", CLASSES)
def test_nobody_names_a_class_and_only_its_own_words_end_a_memory(
    memory: Memory, clock: ManualClock, name: str
) -> None:
    text = CHOSEN[name]
    if text is None:
        named = memory.store(TEXT, decay_class=name)
        assert (named.decay_class, memory.store("The heron nests early.").decay_class) == (name, "permanent")
        return
    fact = memory.store(text)
    assert fact.decay_class == name
    clock.advance(400 * DAY)
    assert memory.admin.live_ids() == ({fact.id} if name == "permanent" else set())


def test_captured_and_stored_alike(memory: Memory) -> None:
    say(memory, "My sister Ida is allergic to bees.", "My cat is ill this week.")
    assert {fact.text: fact.decay_class for fact in memory.admin.list()} == {
        "My sister Ida is allergic to bees.": "permanent",
        "My cat is ill this week (2027-01-11 to 2027-01-17).": "active",
    }


def test_new_words_decide_anew_unless_a_class_was_named(memory: Memory) -> None:
    brief = memory.store("The staging database is heron for now.")
    lasting = memory.update(brief.id, text="The staging database is heron.")
    assert (lasting.decay_class, lasting.expires_at) == ("permanent", None)
    named = memory.store("The kettle is broken.", decay_class="durable")
    again = memory.update(named.id, text="The kettle is mended.")
    assert (again.decay_class, again.expires_at) == ("durable", START + 90 * DAY)


@pytest.mark.parametrize(("alias", "name"), [("stable", "durable"), ("active", "normal"), ("checkpoint", "ephemeral")])
def test_an_alias_is_the_same_class(memory: Memory, home: Path, alias: str, name: str) -> None:
    one, other = (memory.store(f"Of class {each}.", decay_class=each) for each in (alias, name))
    assert one.expires_at == other.expires_at
    assert used(home, one.id, START + HOUR).expires_at == used(home, other.id, START + HOUR).expires_at


@pytest.mark.parametrize("name", CLASSES)
def test_use_gives_some_classes_a_new_life(memory: Memory, home: Path, name: str) -> None:
    fact = memory.store(TEXT, decay_class=name)
    lifetime, refreshed = CLASSES[name]
    after = used(home, fact.id, START + HOUR)
    assert (after.access_count, after.last_accessed) == (1, START + HOUR)
    if lifetime is None:
        assert after.expires_at is None
    else:
        assert after.expires_at == START + lifetime + (HOUR if refreshed else 0)
    assert memory.get(fact.id) == after


@pytest.mark.parametrize("name", MORTAL)
def test_saying_it_again_gives_every_class_a_new_life(memory: Memory, clock: ManualClock, name: str) -> None:
    fact = memory.store(TEXT, decay_class=name)
    clock.advance(HOUR)
    assert memory.store(TEXT).id == fact.id
    assert memory.get(fact.id).expires_at == START + HOUR + (CLASSES[name][0] or 0.0)


def test_use_never_shortens_a_life(memory: Memory, home: Path) -> None:
    fact = memory.store("The fair opens on 1 December 2027.", decay_class="normal")
    assert used(home, fact.id, START + DAY).expires_at == fact.expires_at


@pytest.mark.parametrize("name", MORTAL)
def test_past_three_quarters_a_fact_counts_half(name: str) -> None:
    lifetime = CLASSES[name][0]
    assert lifetime is not None
    expires = START + lifetime
    assert confidence_at(0.8, START, expires, START) == 0.8
    assert confidence_at(0.8, START, expires, START + 0.75 * lifetime) == 0.8
    assert confidence_at(0.8, START, expires, START + 0.75 * lifetime + 1) == 0.4
    assert confidence_at(0.8, START, expires, expires) == 0.4


def test_what_never_expires_never_counts_less() -> None:
    assert confidence_at(0.8, START, None, START + 10_000 * DAY) == 0.8


def midnight_after(year: int, month: int, day: int) -> float:
    return dt.datetime(year, month, day, tzinfo=dt.UTC).timestamp() + DAY


@pytest.mark.parametrize(
    ("text", "until"),
    [
        ("The fair opens on 2027-06-14.", midnight_after(2027, 6, 14)),
        ("The fair opens on June 14th.", midnight_after(2027, 6, 14)),
        ("The fair opens on 14 June 2027.", midnight_after(2027, 6, 14)),
        ("The fair opens on Jun. 14, 2027.", midnight_after(2027, 6, 14)),
        ("The fair opens on the 14th of June.", midnight_after(2027, 6, 14)),
        ("The fair is open from 2027-06-14 to 2027-06-20.", midnight_after(2027, 6, 20)),
        ("The fair opens on January 14th.", midnight_after(2028, 1, 14)),  # yesterday's day, next year
        ("The fair opens on 2027-01-16.", midnight_after(2027, 1, 16)),
        ("The fair opens on 2028-01-15.", midnight_after(2028, 1, 15)),  # 365 days
        ("The fair opens on 2028-01-16.", None),  # 366 days
        ("The fair opens on 14 June 2030.", None),
        ("The fair opened on 2027-01-14.", None),
        ("The fair opened on 14 June 2026.", None),
        ("The fair is open on 2027-01-15.", None),  # today
        ("The fair opens on 2027-02-30.", None),
        ("The fair opens on 2027-13-01.", None),
        ("The fair opens some day.", None),
    ],
)
def test_a_fact_outlives_the_day_it_speaks_of(
    memory: Memory, clock: ManualClock, text: str, until: float | None
) -> None:
    fact = memory.store(text, decay_class="ephemeral")
    assert fact.decay_freeze_until == until
    assert fact.expires_at == (until or START + 4 * HOUR)
    clock.set(fact.expires_at - 1)
    assert memory.admin.live_ids() == {fact.id}
    clock.advance(1)
    assert memory.admin.live_ids() == set()


def test_a_captured_fact_is_kept_until_its_day_too(memory: Memory) -> None:
    say(memory, "My meeting with the harbour master is on June 14th.")
    [fact] = memory.admin.list()
    assert fact.decay_freeze_until == midnight_after(2027, 6, 14)


def test_a_day_to_come_does_not_shorten_a_long_life(memory: Memory) -> None:
    fact = memory.store("The fair opens on 2027-01-20.", decay_class="durable")
    assert fact.expires_at == START + 90 * DAY


def test_a_new_version_speaks_of_its_own_day(memory: Memory) -> None:
    old = memory.store("The fair opens on 2027-06-14.", decay_class="short")
    new = memory.update(old.id, text="The fair opens on 2027-06-20.")
    assert new.expires_at == midnight_after(2027, 6, 20)
