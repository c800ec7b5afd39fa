"""The times that a question asks about."""

from __future__ import annotations

import unicodedata
from datetime import UTC, date, datetime, timedelta, timezone, tzinfo
from zoneinfo import ZoneInfo

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from perdure.text.lexicon import MONTHS
from perdure.text.when import Period, days_ahead, names_time, periods, planned, since, to_come
from tests.kit import for_each

TODAY = date(2024, 3, 13)  # a Wednesday


def days(text: str) -> Period:
    """Read "2024-03-13", or "2024-03-01 2024-03-31"."""
    first, _, last = text.partition(" ")
    return Period(date.fromisoformat(first), date.fromisoformat(last or first))


def check(text: str, expected: str, today: date = TODAY) -> None:
    assert periods(text, today) == ([days(expected)] if expected else []), text


@for_each(
    ("text", "expected"),
    [
        ("What happened on 2023-05-08?", "2023-05-08"),
        ("the log of 2023-05-08T10:15:00Z", "2023-05-08"),
        ("Where was I on 8 May 2023?", "2023-05-08"),
        ("May 8, 2023", "2023-05-08"),
        ("may 8th 2023.", "2023-05-08"),
        ("on the 8th of May", "2023-05-08"),
        ("on the 2nd of March", "2024-03-02"),
        ("on 13 March", "2024-03-13"),
        ("on March 14", "2023-03-14"),
        ("Sept. 5, 2021", "2021-09-05"),
        ("on 29 February", "2024-02-29"),
        ("8. Mai 2023", "2023-05-08"),
        ("am 8.5.2023", "2023-05-08"),
        ("el 8 de mayo de 2023", "2023-05-08"),
        ("31 February 2023", ""),
        ("on 31 April", ""),
        ("February 31, 2023", ""),
        ("2023-13-01", ""),
        ("2023-02-30", ""),
        ("12023-05-08", ""),
        ("build-2023-05-081", ""),
    ],
)
def test_days(text: str, expected: str) -> None:
    check(text, expected)


@for_each(
    ("text", "expected"),
    [
        ("in May 2023", "2023-05-01 2023-05-31"),
        ("May 2023", "2023-05-01 2023-05-31"),
        ("Feb 2024", "2024-02-01 2024-02-29"),
        ("in March", "2024-03-01 2024-03-31"),
        ("since april", "2023-04-01 2023-04-30"),
        ("last March", "2023-03-01 2023-03-31"),
        ("last February", "2024-02-01 2024-02-29"),
        ("this April", "2024-04-01 2024-04-30"),
        ("next March", "2025-03-01 2025-03-31"),
        ("next April", "2024-04-01 2024-04-30"),
        ("this May?", "2024-05-01 2024-05-31"),
        ("in 2023", "2023-01-01 2023-12-31"),
        ("before 2020?", "2020-01-01 2020-12-31"),
        ("last spring", "2023-03-01 2023-05-31"),
        ("in the spring", "2024-03-01 2024-05-31"),
        ("last winter", "2023-12-01 2024-02-29"),
        ("this summer", "2024-06-01 2024-08-31"),
        ("summer 2024", "2024-06-01 2024-08-31"),
        ("the fall of 2022", "2022-09-01 2022-11-30"),
        ("winter 2022", "2022-12-01 2023-02-28"),
    ],
)
def test_months_seasons_and_years(text: str, expected: str) -> None:
    check(text, expected)


@for_each(
    ("text", "expected"),
    [
        ("today", "2024-03-13"),
        ("What did I say yesterday?", "2024-03-12"),
        ("the day before yesterday", "2024-03-11"),
        ("tomorrow", "2024-03-14"),
        ("a day ago", "2024-03-12"),
        ("13 days ago", "2024-02-29"),
        ("Twelve days ago", "2024-03-01"),
        ("a couple of days ago", "2024-03-11"),
        ("a few days ago", "2024-03-08 2024-03-11"),
        ("two weeks ago", "2024-02-26 2024-03-03"),
        ("a month ago", "2024-02-01 2024-02-29"),
        ("15 months ago", "2022-12-01 2022-12-31"),
        ("3 years ago", "2021-01-01 2021-12-31"),
        ("last week", "2024-03-04 2024-03-10"),
        ("this week", "2024-03-11 2024-03-17"),
        ("next week", "2024-03-18 2024-03-24"),
        ("last weekend", "2024-03-09 2024-03-10"),
        ("this weekend", "2024-03-16 2024-03-17"),
        ("last month", "2024-02-01 2024-02-29"),
        ("next month", "2024-04-01 2024-04-30"),
        ("last year", "2023-01-01 2023-12-31"),
        ("last quarter", "2023-10-01 2023-12-31"),
        ("this quarter", "2024-01-01 2024-03-31"),
        ("last Tuesday", "2024-03-12"),
        ("on Tuesday", "2024-03-12"),
        ("on Thursday", "2024-03-07"),
        ("last Wednesday", "2024-03-06"),
        ("on Wednesday", "2024-03-13"),
        ("this Friday", "2024-03-15"),
        ("next Wednesday", "2024-03-20"),
    ],
)
def test_times_relative_to_today(text: str, expected: str) -> None:
    check(text, expected)


@for_each(
    ("text", "expected"),
    [
        ("Was habe ich gestern gesagt?", "2024-03-12"),
        ("vorgestern", "2024-03-11"),
        ("heute", "2024-03-13"),
        ("letzte Woche", "2024-03-04 2024-03-10"),
        ("im letzten Monat", "2024-02-01 2024-02-29"),
        ("letztes Jahr", "2023-01-01 2023-12-31"),
        ("nächste Woche", "2024-03-18 2024-03-24"),
        ("vor 3 Tagen", "2024-03-10"),
        ("vor einem Tag", "2024-03-12"),
        ("vor zwei Wochen", "2024-02-26 2024-03-03"),
        ("vor einem Monat", "2024-02-01 2024-02-29"),
        ("vor fünf Jahren", "2019-01-01 2019-12-31"),
        ("vor ein paar Tagen", "2024-03-08 2024-03-11"),
        ("im März", "2024-03-01 2024-03-31"),
        ("im März 2023", "2023-03-01 2023-03-31"),
        ("letzten Mai", "2023-05-01 2023-05-31"),
        ("letzten Sommer", "2023-06-01 2023-08-31"),
        ("im Frühling 2022", "2022-03-01 2022-05-31"),
        ("am Dienstag", "2024-03-12"),
        ("im Jahr 2023", "2023-01-01 2023-12-31"),
        ("Guten Morgen", ""),
        ("¿Qué dije ayer?", "2024-03-12"),
        ("anteayer", "2024-03-11"),
        ("hoy", "2024-03-13"),
        ("la semana pasada", "2024-03-04 2024-03-10"),
        ("el mes pasado", "2024-02-01 2024-02-29"),
        ("el año pasado", "2023-01-01 2023-12-31"),
        ("esta semana", "2024-03-11 2024-03-17"),
        ("el mes que viene", "2024-04-01 2024-04-30"),
        ("hace 3 días", "2024-03-10"),
        ("hace una semana", "2024-03-04 2024-03-10"),
        ("hace dos meses", "2024-01-01 2024-01-31"),
        ("hace diez años", "2014-01-01 2014-12-31"),
        ("en marzo", "2024-03-01 2024-03-31"),
        ("en marzo de 2023", "2023-03-01 2023-03-31"),
        ("el verano pasado", "2023-06-01 2023-08-31"),
        ("el martes pasado", "2024-03-12"),
        ("en el año 2023", "2023-01-01 2023-12-31"),
        ("el mes es largo", ""),
    ],
)
def test_german_and_spanish(text: str, expected: str) -> None:
    check(text, expected)
    check(unicodedata.normalize("NFD", text).upper(), expected)


@pytest.mark.parametrize(
    "text",
    [
        "May I ask where the march on Rome began?",
        "this may help",
        "version 8 may break, and 3 march on",
        "they march on, the band is on the march",
        "don't fall, the fall of Rome, it fell on the fall",
        "wait a second, second best",
        "I have 2023 books and 31 days",
        "in a week of the year, every month",
        "may 8:30 work",
        "a weekend in Paris",
        "1.2.3 and 10.0.0.1 and port 2023",
        "one sunday or monday",
        "the years ago",
        "",
    ],
)
def test_ordinary_words_are_no_times(text: str) -> None:
    check(text, "")


def test_times_come_in_the_order_of_the_text_and_once_each() -> None:
    text = "Yesterday, in May 2023 and on 2022-01-02, but not yesterday or last week?"
    expected = ["2024-03-12", "2023-05-01 2023-05-31", "2022-01-02", "2024-03-04 2024-03-10"]
    assert periods(text, TODAY) == [days(item) for item in expected]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("on May 8, 2023", "2023-05-08"),
        ("in spring 2020", "2020-03-01 2020-05-31"),
        ("June 5 years ago", "2019-01-01 2019-12-31"),
        ("in march 3 people came", "2024-03-01 2024-03-31"),
    ],
)
def test_of_overlapping_matches_the_longer_wins(text: str, expected: str) -> None:
    assert periods(text, TODAY)[0] == days(expected)


@pytest.mark.parametrize(
    ("today", "text", "expected"),
    [
        ("2024-03-31", "last month", "2024-02-01 2024-02-29"),
        ("2024-03-31", "one month ago", "2024-02-01 2024-02-29"),
        ("2024-01-01", "yesterday", "2023-12-31"),
        ("2024-01-01", "last quarter", "2023-10-01 2023-12-31"),
        ("2024-01-10", "this winter", "2023-12-01 2024-02-29"),
        ("2024-01-10", "last winter", "2022-12-01 2023-02-28"),
        ("2024-01-10", "in December", "2023-12-01 2023-12-31"),
        ("2024-03-10", "last weekend", "2024-03-02 2024-03-03"),
        ("2024-03-11", "last weekend", "2024-03-09 2024-03-10"),
        ("2023-06-01", "on 29 February", "2020-02-29"),
        ("1903-06-01", "on 29 February", "1896-02-29"),
        ("2024-04-01", "last March", "2024-03-01 2024-03-31"),
    ],
)
def test_at_the_edges_of_months_and_years(today: str, text: str, expected: str) -> None:
    check(text, expected, date.fromisoformat(today))


@pytest.mark.parametrize(
    ("today", "text", "expected"),
    [
        (date.min, "yesterday", Period(date.min, date.min)),
        (date.max, "tomorrow", Period(date.max, date.max)),
        (date.max, "next year", Period(date.max, date.max)),
        (date.max, "this week", Period(date(9999, 12, 27), date.max)),
        (date.max, "this winter", Period(date(9999, 12, 1), date.max)),
        (TODAY, "99999 years ago", Period(date.min, date.min)),
    ],
)
def test_the_calendar_ends_at_its_first_and_last_day(today: date, text: str, expected: Period) -> None:
    assert periods(text, today) == [expected]


_PARTS = [
    *("in", "on", "the", "last", "this", "next", "may", "march", "fall", "spring", "monday", "week", "weekend"),
    *("quarter", "year", "days", "ago", "a", "few", "of", "8", "8th", "31", "29", "february", "2023", "0000", "9999"),
    *("99999", "2023-05-08", "1.1.0001", "winter", "vor", "tagen", "im", "märz", "hace", "dos", "años", "el", "mes"),
    *("pasado", "que viene", "de", "mayo", ",", ".", "\u0301"),
]


@settings(max_examples=200)
@given(
    st.one_of(
        st.text(alphabet=st.characters(codec=None, exclude_categories=()), max_size=80),
        st.lists(st.sampled_from(_PARTS), max_size=12).map(" ".join),
    ),
    st.dates(),
    st.sampled_from([None, UTC, ZoneInfo("Pacific/Auckland"), ZoneInfo("America/Los_Angeles")]),
)
@example("last winter", date.min, None)
@example("next winter", date.max, None)
def test_any_text_can_be_read_on_any_day(text: str, today: date, zone: tzinfo | None) -> None:
    for period in periods(text, today):
        assert period.first <= period.last
        begin, end = period.seconds(zone)
        assert begin < end


@pytest.mark.parametrize(
    "part",
    [
        "in ",
        "in the ",
        "8 ",
        "may 8 ",
        "8 of ",
        "last ",
        "a few ",
        "vor ",
        "hace un ",
        "2023-05-",
        "1.",
        " ",
        "\n",
        "9",
    ],
)
def test_long_hostile_text_is_read_to_its_end(part: str) -> None:
    text = part * (100_000 // len(part))
    found = periods(f"{text} | yesterday", TODAY)
    assert found[-1] == days("2024-03-12")
    assert len(found) <= 2


@pytest.mark.parametrize(
    ("zone", "offset"), [(UTC, 0), (timezone(timedelta(hours=9)), -9 * 3600), (timezone(timedelta(hours=-5)), 5 * 3600)]
)
def test_seconds_are_counted_from_midnight_to_midnight(zone: tzinfo, offset: int) -> None:
    begin, end = Period(date(2024, 2, 28), date(2024, 2, 29)).seconds(zone)
    assert begin == datetime(2024, 2, 28, tzinfo=UTC).timestamp() + offset
    assert end - begin == 2 * 86_400
    begin, end = Period(date.min, date.max).seconds(zone)
    assert end - begin == date.max.toordinal() * 86_400


@for_each(
    ("text", "expected"),
    [
        ("Book a table for Friday", "2024-03-15"),
        ("am Freitag, bitte", "2024-03-15"),
        ("el jueves", "2024-03-14"),
        ("this Friday or on Saturday", "2024-03-15 2024-03-16"),
        ("today, then", "2024-03-13"),
        ("tomorrow evening?", "2024-03-14"),
        ("on 20 March", "2024-03-20"),
        ("the 20th of March 2024", "2024-03-20"),
        ("next Wednesday", "2024-03-20"),
        ("Wednesday lunch", "2024-03-13"),
        ("by 2024-03-27", "2024-03-27"),
        ("by 2024-03-28", ""),
        ("on 20 March 2023", ""),
        ("last Friday", ""),
        ("yesterday", ""),
        ("in March", ""),
        ("may I ask", ""),
        ("on 31 February", ""),
    ],
)
def test_a_plan_names_the_days_to_come(text: str, expected: str) -> None:
    assert [str(day) for day in days_ahead(text, TODAY, 14)] == expected.split()


@given(st.text(max_size=200), st.dates(date(1900, 1, 1), date(2100, 1, 1)), st.integers(0, 30))
def test_days_ahead_are_to_come_and_stand_once(text: str, today: date, count: int) -> None:
    found = days_ahead(text, today, count)
    assert all(today <= day <= today + timedelta(days=count) for day in found)
    assert len(set(found)) == len(found)


@for_each(
    ("text", "expected"),
    [
        ("in June", "2023-06-01 2023-06-30"), ("next week", "2023-05-22 2023-05-28"),
        ("this weekend", "2023-05-20 2023-05-21"),
        ("tomorrow", "2023-05-18 2023-05-18"), ("on Friday", "2023-05-19 2023-05-19"),
        ("on 3 March", "2024-03-03 2024-03-03"),
        ("in March", "2024-03-01 2024-03-31"), ("this month", "2023-05-17 2023-05-31"),
        ("now till end of June", "2023-05-17 2023-06-30"), ("the next two weeks", "2023-05-17 2023-05-31"),
        ("from June to July", "2023-06-01 2023-07-31"), ("im Juli", "2023-07-01 2023-07-31"),
        ("en junio", "2023-06-01 2023-06-30"), ("in den nächsten Wochen", "2023-05-17 2023-06-07"),
        ("in June 1914", ""), ("in Berlin in July", ""), ("in my path", ""), ("", ""),
    ],
)  # fmt: skip
def test_the_days_to_come_that_a_question_means(text: str, expected: str) -> None:
    found = to_come(text, date(2023, 5, 17))
    assert (f"{found.first} {found.last}" if found else "") == expected


@given(st.dates(date(2000, 1, 1), date(2100, 1, 1)), st.integers(0, 365))
def test_a_day_that_is_written_out_is_asked_for_and_planned_alike(today: date, ahead: int) -> None:
    day = today + timedelta(days=ahead)
    told = f"on {day.day} {MONTHS[day.month - 1]} {day.year}"
    assert to_come(told, today) == Period(day, day)
    assert planned(f"The concert is {told}.", today) == [Period(day, day)]
    assert names_time(told)


@given(st.text(max_size=60), st.dates(date(2000, 1, 1), date(2100, 1, 1)))
def test_what_is_to_come_is_not_over_and_what_was_has_begun(text: str, today: date) -> None:
    for asked in (text, f"in June {text}", f"since Monday{text}"):
        found, day = to_come(asked, today), since(asked, today)
        assert found is None or today <= found.first <= found.last
        assert day is None or day <= today


@for_each(
    ("text", "expected"),
    [
        ("since Monday", "2023-05-15"), ("since yesterday", "2023-05-16"), ("since 3 May", "2023-05-03"),
        ("seit Montag", "2023-05-15"), ("desde ayer", "2023-05-16"), ("since the war in 1945 in Europe", None),
        ("since tomorrow", None),
    ],
)  # fmt: skip
def test_since_when_a_question_asks(text: str, expected: str | None) -> None:
    found = since(text, date(2023, 5, 17))
    assert (str(found) if found else None) == expected


@for_each(
    ("text", "expected"),
    [
        ("The trip is from 3 June to 5 June.", ["2023-06-03 2023-06-05"]),
        ("In June Leah visits us.", ["2023-06-01 2023-06-30"]),
        ("We meet next week on Tuesdays.", []), ("We may go, and march on.", []),
        ("Camp 30 December - 2 January.", ["2023-12-30 2024-01-02"]),
        ("Camp mid-August.", ["2023-08-01 2023-08-31"]),
    ],
)  # fmt: skip
def test_what_a_memory_plans(text: str, expected: list[str]) -> None:
    assert planned(text, date(2023, 5, 17)) == [days(each) for each in expected]
