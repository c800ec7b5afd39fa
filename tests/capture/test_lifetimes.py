"""How long a memory lives where nobody names a class: for good, unless its own words tell when it ends."""

from __future__ import annotations

import datetime as dt

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from perdure.capture.lifetimes import Lifetime, dated, lifetime
from perdure.ranking.decay import LIFETIMES
from tests.kit import for_each

SAID = dt.datetime(2026, 11, 20, 12, tzinfo=dt.UTC).timestamp()

LASTING = {
    "I'm coeliac.": "health",
    "My blood type is O negative.": "health",
    "I need to take insulin twice a day.": "what has to be done is no task by its words",
    "My sister's name is Ida.": "family",
    "I live in Ghent.": "place",
    "My birthday is 3 May.": "identity",
    "I prefer tea to coffee.": "preference",
    "Always answer in French.": "standing instruction",
    "We decided to use FastAPI.": "decision",
    "The staging database is called heron.": "infrastructure",
    "We're working on the parser.": "project",
    "My checkpoint is green.": "the word names nothing short; a checkpoint is kept by the command",
    "These days I drink oat milk.": "a habit",
    "My dentist appointment is on June 14th.": "when it was is asked for as well",
    "Today I was diagnosed with coeliac disease.": "what happened today is true tomorrow",
    "Just today I learned that Ann is allergic to nuts.": "so is what was learned",
    "Today is our anniversary.": "so is what today is",
    "I'm 41 today.": "so is an age",
    "We're moving to Ghent this week.": "what begins goes on",
    "I'm getting married this week.": "what begins goes on",
    "I started at Siemens this week.": "what began goes on",
    "I lived in Leuven until 2013.": "it is over already, and stays true",
    "I worked for the council until May 2027.": "so does what was",
    "The pass is closed from October until May.": "it comes again",
    "Soil at the allotment is heavy clay that lies wet until April.": "it comes again",
    "The flat is let for 900 a month, the lease runs until March.": "the rest goes on",
    "I live on the couch right now, my own flat in Bloomfield is let.": "the rest goes on",
    "I'm ill today because I'm allergic to bees.": "the rest goes on",
    "We're open from Monday until Friday.": "days of the week",
    "The kids are up until they fall asleep.": "no day is named",
    "I'm off sugar until 3 March 2021.": "the day is past",
    "Never run alembic against staging, Dana got burned by that last month (2026-10-01 to 2026-10-31)": "so is it",
    "We must not deploy on Fridays, as we are told since last week (2026-11-09 to 2026-11-15)": "so is it",
}
"""What is kept for good, and why."""

SHORT = {
    "We use pnpm for now.": ("durable", "for now"),
    "Nothing over 35 kilos for the time being.": ("durable", "for the time being"),
    "At the moment we use pnpm.": ("durable", "At the moment"),
    "Right now, we use pnpm.": ("durable", "Right now"),
    "My mood is bad right now.": ("durable", "right now"),
    "My team is working on the parser this week.": ("active", "this week"),
    "I have to wear the brace this week (2026-11-16 to 2026-11-22).": ("active", "this week"),
    "I'm working from home today.": ("short", "today"),
    "Today I'm ill.": ("short", "Today"),
    "She's away just today.": ("short", "just today"),
    "Use tabs this session.": ("session", "this session"),
}


WORDS = ("I'm", "is", "until", "till", "the end of", "December", "May", "31", "2027", "today", "this week", "for now")


@for_each("text", LASTING)
def test_what_has_no_end_in_its_words_is_kept_for_good(text: str) -> None:
    found = lifetime(text, SAID)
    assert (found.decay_class, found.words) == ("permanent", None)


def test_what_is_past_puts_no_end_off() -> None:
    said = "Never run alembic upgrade against the staging url, Dana got burned by that last month"
    assert dated(said, SAID) == f"{said} (2026-10-01 to 2026-10-31)"
    assert lifetime(said, SAID) == lifetime(dated(said, SAID), SAID) == Lifetime("permanent", None)


@pytest.mark.parametrize("text", SHORT)
def test_words_that_tell_how_long_it_lasts_choose_a_class(text: str) -> None:
    found = lifetime(text, SAID)
    assert (found.decay_class, found.words) == SHORT[text]


@pytest.mark.parametrize(
    ("text", "day"),
    [
        ("I'm in Lisbon until December.", (2026, 12, 1)),
        ("I'm in Lisbon until October.", (2027, 10, 1)),
        ("I'm in Lisbon till the end of December.", (2027, 1, 1)),
        ("I'm in Lisbon until the middle of January.", (2027, 1, 16)),
        ("I'm not allowed to drive until 4 March.", (2027, 3, 5)),
        ("The lens is at the repair shop until the 4th of March 2028.", (2028, 3, 5)),
        ("My licence is good until February 2028.", (2028, 2, 1)),
        ("The booth is closed until 2027-01-08.", (2027, 1, 9)),
        ("The booth is closed until next week (2026-11-23 to 2026-11-29).", (2026, 11, 23)),
        ("I'm out of office until tomorrow (2026-11-21).", (2026, 11, 22)),
    ],
)
def test_an_end_that_is_said_is_kept_to(text: str, day: tuple[int, int, int]) -> None:
    found = lifetime(text, SAID)
    assert found.decay_class == "short"
    assert found.freeze_until == dt.datetime(*day, tzinfo=dt.UTC).timestamp()
    assert found.words is not None
    assert found.words.split()[0] in ("until", "till")


@pytest.mark.parametrize("key", ["birthday", "allergy", "Phone number", "first language"])
def test_what_names_a_person_or_keeps_them_alive_is_nothing_for_now(key: str) -> None:
    assert lifetime("It is bees for now.", SAID, key).decay_class == "permanent"


@settings(max_examples=200)
@given(
    st.text(max_size=200) | st.lists(st.sampled_from(WORDS)).map(" ".join),
    st.floats(0, 4e9),
)
def test_any_text_has_a_lifetime(text: str, said_at: float) -> None:
    found = lifetime(text, said_at)
    assert found.decay_class in LIFETIMES
    assert found == Lifetime("permanent", found.freeze_until) or found.words
