"""The times that a question asks about and that a statement speaks of, in English, German and Spanish.

Only what can be dated is read: a month name alone is no date, for "may" and "march" are verbs as well. Where the year
is not said, a day of a statement is the next one; what a question asks about lies in the past, because a memory is
asked:

- "in March", "on Tuesday", "8 May": the latest one that has begun, so perhaps the running one;
- "last March", "last Tuesday": the latest one that is over; "next March": the first one still to begin;
- "this March": the running one, else that of this year (a weekday: of this week).

Weeks begin on Monday. Seasons are those of the northern hemisphere, in whole months from March on;
a winter belongs to the year in which it begins. "A few" is two to five.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta, tzinfo
from functools import partial
from typing import Any, TypeVar

from perdure.regex import lazy
from perdure.text.lexicon import filled, named, table, word_set
from perdure.text.normalise import fold, fold_letters
from perdure.text.timestamps import midnight

_DAY_SECONDS = 86_400.0
_NEVER = "(?!)"
_LANGUAGES: Mapping[str, Mapping[str, Any]] = table("text", "when")["languages"]
"""The words of each language; the data file says what they are."""
_Value = TypeVar("_Value")
_Read = Callable[[re.Match[str], date], "Period | None"]


@dataclass(frozen=True, slots=True)
class Period:
    """Some days on end, the last one included."""

    first: date
    last: date

    def seconds(self, zone: tzinfo | None) -> tuple[float, float]:
        """Return begin and end in epoch seconds, by midnights of the zone; the end no longer belongs to it."""
        begin = midnight(self.first, zone)
        if self.last == date.max:
            return begin, midnight(self.last, zone) + _DAY_SECONDS
        return begin, midnight(self.last + timedelta(days=1), zone)


def periods(text: str, today: date) -> list[Period]:
    """Find the times that a text names.

    Of matches that overlap the longer wins. Dates that do not exist are nothing. What lies outside the
    calendar is moved to its first or last day. Takes time linear in the length of the text.
    """
    return list(dict.fromkeys(period for read, match in _named(text, _RULES) if (period := read(match, today))))


@dataclass(frozen=True, slots=True)
class Said:
    """A time that a statement speaks of, and where it stands there."""

    start: int
    end: int
    period: Period
    relative: bool  # it depends on the day on which it is said


def said_times(text: str, today: date) -> Iterator[Said]:
    """Yield the days that a statement names, and the times whose distance from today it tells, in their order.

    What is of today, as "tonight", and what comes again and again is not among them.
    """
    for read, match in _found(fold_letters(text), (*_RULES, *_AHEAD)):
        relative = _is_turned(read, match)
        if read is _read_near:
            relative = _NEAR[match["near"]] != 0
        if read is _read_named_date and not match["year"]:
            period = _next_date(match, today)
        else:
            period = read(match, today) if relative or read in (_read_date, _read_named_date) else None
        if period is not None:
            yield Said(*match.span(), period, relative)


def days_ahead(text: str, today: date, count: int) -> list[date]:
    """Find the days to come that a text names, as a plan does: where week or year are not said, the next one.

    Today is to come as well; `count` days after it are looked at.
    """
    soon = [today + timedelta(days=step) for step in range(count + 1)]
    found: dict[date, None] = {}
    for read, match in _named(text, (*_RULES, *_AHEAD, _BARE_WEEKDAY)):
        said = read(match, today)
        # What is no distance from today is read on each day: on that day "on Friday" is the day itself.
        each = (day for day in soon if read(match, day) == Period(day, day))
        day = said.first if said and said.first == said.last else None
        if day not in soon and read not in (_read_near, _read_ago, _read_ahead):
            day = next(each, None)
        if day in soon:
            found[day] = None
    return list(found)


def names_time(text: str) -> bool:
    """Return whether a text names a time and nothing else."""
    return bool(_alone(text))


def to_come(text: str, today: date) -> Period | None:
    """Return the days from today on that a text means, if it names a time alone; without a year, the next one."""
    found = [_next(read, match, today) for read, match in _alone(text)]
    read = [period for period in found if period is not None]
    if not read or len(read) < len(found):
        return None
    first, last = min(each.first for each in read), max(each.last for each in read)
    opens = len(read) == 1 and not _UP_TO.isdisjoint(_LETTERS.findall(fold(text)))
    return Period(today if opens else max(first, today), last) if last >= today else None


def since(text: str, today: date) -> date | None:
    """Return the day since which a text means, if it names a past time alone."""
    found = [read(match, today) for read, match in _alone(text)]
    days = [period.first for period in found if period is not None]
    return min(days) if days and len(days) == len(found) and min(days) <= today else None


def _alone(text: str) -> list[tuple[_Read, re.Match[str]]]:
    """Return what names a time in a text that says nothing besides."""
    folded = " ".join(fold(text).split())
    found = _found(folded, (*_SPANS, *_RULES, *_AHEAD, _BARE_WEEKDAY, _BARE_OF_YEAR, _BARE_WEEKEND))
    for _, match in found:
        folded = f"{folded[: match.start()]}{' ' * len(match[0])}{folded[match.end() :]}"
    return found if set(_LETTERS.findall(folded)) <= _AROUND else []


def planned(text: str, since: date) -> list[Period]:
    """Return the days, months and seasons that a statement names, in the first year from a day on if it names none.

    Two of them with "to" between them are one.
    """
    folded, end = fold_letters(text), 0
    plans: list[Period] = []
    for read, match in _found(folded, (*_RULES, _BARE_MONTH)):
        vague = match.groupdict().get("name") in _WEEKDAYS or match[0] in _VERBS or _is_turned(read, match)
        goes_on = folded[end : match.start()].strip() in _UP_TO and plans
        period = None if vague else _next(read, match, plans[-1].first if goes_on else since)
        if period is not None:
            plans[-1:] = [Period(plans[-1].first, period.last)] if goes_on else [*plans[-1:], period]
            end = match.end()
    return plans


def _is_turned(read: _Read, match: re.Match[str]) -> bool:
    """Return whether a time depends on the day on which it is said."""
    told = match.groupdict()
    return read in (_read_ago, _read_ahead, _read_near, _read_span) or any(told.get(name) for name in _TURNED)


def _next(read: _Read, match: re.Match[str], today: date) -> Period | None:
    """Return the first time that a match can mean and that is not over; if it names a day or a year, that."""
    told = match.groupdict()
    if read is _read_named_date and not told["year"]:
        return _next_date(match, today)
    series = (_RECURRING | _OF_YEAR).get(told.get("name", ""))
    if series is None or read is _read_named_year or _is_turned(read, match):
        return read(match, today)
    around = (series(today, step) for step in range(-1, 3))
    return next((period for period in around if period.last >= today), None)


def _named(text: str, rules: Iterable[_Rule]) -> list[tuple[_Read, re.Match[str]]]:
    """Return what in a text names a time, and how it is read."""
    return _found(" ".join(fold(text).split()), rules)


def _found(folded: str, rules: Iterable[_Rule]) -> list[tuple[_Read, re.Match[str]]]:
    words = set(_WORD.findall(folded))
    found = [
        (rule.read, match)
        for rule in rules
        if not rule.words.isdisjoint(words)
        for match in rule.pattern.finditer(folded)
    ]
    # A date that does not exist still takes its place: of "31 February 2023" no February must be left.
    kept: list[tuple[_Read, re.Match[str]]] = []
    for read, match in sorted(found, key=lambda item: item[1].start()):
        before = kept[-1][1] if kept else None
        if before and match.start() < before.end():
            if len(match[0]) <= len(before[0]):
                continue
            kept.pop()
        kept.append((read, match))
    return kept


_Series = Callable[[date, int], Period]
"""Returns the period so many steps after the one that belongs to the day: weeks, Tuesdays, springs."""


def _days(first: int, count: int) -> Period:
    begin, end = (min(max(day, 1), date.max.toordinal()) for day in (first, first + count - 1))
    return Period(date.fromordinal(begin), date.fromordinal(end))


def _months(first: int, count: int) -> Period:
    """Return a period of months, counted from January of the year 0."""
    begin, end = _month_start(first), _month_start(first + count)
    return _days(begin, end - begin)


def _month_start(month: int) -> int:
    if month >= 12 * (date.max.year + 1):
        return date.max.toordinal() + 1
    year, index = divmod(max(month, 12), 12)
    return date(year, index + 1, 1).toordinal()


def _monday(today: date, step: int) -> int:
    return today.toordinal() - today.weekday() + 7 * step


def _day(today: date, step: int) -> Period:
    return _days(today.toordinal() + step, 1)


def _week(today: date, step: int) -> Period:
    return _days(_monday(today, step), 7)


def _weekend(today: date, step: int) -> Period:
    return _days(_monday(today, step) + 5, 2)


def _month(today: date, step: int) -> Period:
    return _months(12 * today.year + today.month - 1 + step, 1)


def _quarter(today: date, step: int) -> Period:
    return _months(12 * today.year + (today.month - 1) // 3 * 3 + 3 * step, 3)


def _year(today: date, step: int) -> Period:
    return _months(12 * (today.year + step), 12)


def _of_year(begin: int, count: int, today: date, step: int) -> Period:
    return _months(12 * (today.year + step) + begin, count)


def _of_week(weekday: int, today: date, step: int) -> Period:
    return _days(_monday(today, step) + weekday, 1)


def _entries(kind: str, code: str) -> list[list[str]]:
    listed = _LANGUAGES[code].get(kind)
    return [names.split("|") for names in listed.split(", ")] if listed else named(kind, code)


def _named_in(kind: str, values: Sequence[_Value]) -> dict[str, _Value]:
    """Give the words of one kind their values, in all languages: the entries of each stand for the values in order."""
    return {
        name: value
        for code in _LANGUAGES
        for names, value in zip(_entries(kind, code), values, strict=False)
        for name in names
    }


_MONTH_SERIES: list[_Series] = [partial(_of_year, n, 1) for n in range(12)]
_MONTHS = _named_in("months", _MONTH_SERIES)
_SEASONS: dict[str, _Series] = _named_in("seasons", [partial(_of_year, n, 3) for n in (2, 5, 8, 11)])
_WEEKDAYS: dict[str, _Series] = _named_in("weekdays", [partial(_of_week, n) for n in range(7)])
_UNITS: dict[str, _Series] = _named_in("units", [_day, _week, _weekend, _month, _quarter, _year])
_RECURRING = _MONTHS | _SEASONS | _WEEKDAYS
_OF_YEAR = _MONTHS | _SEASONS | _named_in("short_months", _MONTH_SERIES)
_MONTH_NUMBERS = _named_in("short_months", range(1, 13)) | _named_in("months", range(1, 13))
_COUNTS = _named_in("counts", [(n, n) for n in range(1, 13)]) | _named_in("few", [(2, 5)])
_NEAR = {phrase: distance for words in _LANGUAGES.values() for phrase, distance in words["near"].items()}


def month_number(name: str) -> int:
    """Return the number of a month from its name in any language, also a short one, in whatever case."""
    return _MONTH_NUMBERS[fold(name)]


def month_names() -> list[list[str]]:
    """Return the names of each month, folded, in every language."""
    return [sorted(name for name, of in _MONTH_NUMBERS.items() if of == number) for number in range(1, 13)]


def _read_recurring(match: re.Match[str], today: date) -> Period | None:
    name = match["name"]
    this = bool(match["this"])
    back, ahead = match["last"] or match["over"], match["next"] or match["coming"]
    if name in _UNITS:
        return _UNITS[name](today, -1 if back else 1 if ahead else 0) if back or ahead or this else None
    if this and name in _VERBS and _goes_on(match):
        return None
    around = [_RECURRING[name](today, step) for step in (-2, -1, 0, 1)]
    if ahead:
        return next((period for period in around if period.first > today), None)
    if this and not back:
        return next((period for period in around if period.first <= today <= period.last), around[2])
    past = [period for period in around if (period.last < today if back else period.first <= today)]
    return past[-1] if past else None


def _read_ago(match: re.Match[str], today: date) -> Period:
    count = match["count"]
    fewest, most = (int(count), int(count)) if count.isdecimal() else _COUNTS[count]
    series = _UNITS[match["unit"]]
    return Period(series(today, -most).first, series(today, -fewest).last)


def _read_ahead(match: re.Match[str], today: date) -> Period | None:
    count = match["count"]
    fewest, most = (int(count), int(count)) if count.isdecimal() else _COUNTS[count]
    series = _UNITS[match["unit"]]
    days = 1 if series is _day else 7 if series is _week else 0
    return Period(_day(today, days * fewest).first, _day(today, days * most).last) if days else None


def _read_span(match: re.Match[str], today: date) -> Period:
    count = match["count"]
    most = _SEVERAL if count is None else int(count) if count.isdecimal() else _COUNTS[count][1]
    series = _UNITS[match["unit"]]
    length = (series(today, 0).last - series(today, 0).first).days + 1
    return Period(today, _day(today, most * length).last)


def _read_near(match: re.Match[str], today: date) -> Period:
    return _day(today, _NEAR[match["near"]])


def _read_date(match: re.Match[str], _: date) -> Period | None:
    return _date(int(match["year"]), int(match["month"]), int(match["day"]))


def _read_named_date(match: re.Match[str], today: date) -> Period | None:
    name, day = match["month"], int(match["day"])
    if match["year"]:
        return _date(int(match["year"]), _MONTH_NUMBERS[name], day)
    if name in _VERBS and not (match["on"] or match["mark"]) and _goes_on(match):
        return None
    # Nine years: between 1896 and 1904 there was no 29 February.
    candidates = (_date(year, _MONTH_NUMBERS[name], day) for year in range(today.year, today.year - 9, -1))
    return next((period for period in candidates if period and period.first <= today), None)


def _next_date(match: re.Match[str], today: date) -> Period | None:
    month, day = _MONTH_NUMBERS[match["month"]], int(match["day"])
    candidates = (_date(year, month, day) for year in (today.year, today.year + 1))
    return next((period for period in candidates if period and period.first >= today), None)


def _read_named_year(match: re.Match[str], _: date) -> Period:
    return _OF_YEAR[match["name"]](date(int(match["year"]), 1, 1), 0)


def _read_year(match: re.Match[str], _: date) -> Period:
    return _year(date(int(match["year"]), 1, 1), 0)


def _date(year: int, month: int, day: int) -> Period | None:
    try:
        found = date(year, month, day)
    except ValueError:
        return None
    return Period(found, found)


_VERBS = frozenset({"may", "march"})
_MORE = lazy(r" [a-z]")


def _goes_on(match: re.Match[str]) -> bool:
    """Whether a word follows at once: "this may help" and "version 8 may break" name no time."""
    return _MORE.match(match.string, match.end()) is not None


@dataclass(frozen=True, slots=True)
class _Rule:
    words: frozenset[str]  # a text with none of these words or digits holds no match, and is not searched
    pattern: re.Pattern[str]
    read: _Read


def _any(names: Iterable[str]) -> str:
    return "|".join(names)


def _last_words(names: Iterable[str]) -> frozenset[str]:
    return frozenset(name.split()[-1] for name in names)


def _recurring_rule(code: str) -> _Rule:
    words, kinds = _LANGUAGES[code], ("months", "seasons", "weekdays", "units")
    names = [name for kind in kinds for names in _entries(kind, code) for name in names]
    before = f"(?P<last>{words['last']})|(?P<this>{words['this']})|(?P<next>{words['next']})|(?:{words['latest']})"
    behind = f"(?P<over>{words.get('over', _NEVER)})|(?P<coming>{words.get('coming', _NEVER)})"
    pattern = rf"\b(?:{before}) (?P<name>{_any(names)})\b(?: (?:{behind})\b)?"
    return _Rule(_last_words(names), lazy(pattern), _read_recurring)


def _counted_rule(around: Sequence[str], read: _Read) -> _Rule:
    before, behind = around
    pattern = rf"\b{before}(?P<count>[0-9]{{1,5}}|{_any(_COUNTS)}) (?P<unit>{_any(_UNITS)}){behind}\b"
    return _Rule(_last_words([(before or behind).strip()]), lazy(pattern), read)


def _span_rule(code: str) -> _Rule:
    """Read "the next weeks": units in the plural, with or without a number."""
    units = [name for names in _entries("units", code) for name in names[1:]]
    count = rf"(?:(?P<count>[0-9]{{1,3}}|{_any(_COUNTS)}) )?"
    pattern = rf"\b(?:{_LANGUAGES[code]['next']}s?|coming) {count}(?P<unit>{_any(units)})\b"
    return _Rule(_last_words(units), lazy(pattern), _read_span)


_SEVERAL = 3
_LETTERS = lazy(r"\w+")
_AROUND = word_set(" ".join(words["around"] for words in _LANGUAGES.values()))
_UP_TO = word_set(" ".join(words["up_to"] for words in _LANGUAGES.values()))
_WORD = lazy(r"[a-z]+|[0-9]")
_NAMES = dict[str, Iterable[str]](month=_MONTH_NUMBERS, of_year=_OF_YEAR, near=_NEAR, digit="0123456789")
"""What a text must have a word or digit of, for a rule to be tried."""
_PARTS = {
    **{kind: _any(names) for kind, names in _NAMES.items()},
    "latest": _any(words["latest"] for words in _LANGUAGES.values()),
    **table("text", "when")["parts"],
}
_READERS: Mapping[str, _Read] = {
    "date": _read_date, "named_date": _read_named_date, "named_year": _read_named_year, "near": _read_near,
    "year": _read_year,
}  # fmt: skip
_RULES = (
    *(
        _Rule(_last_words(_NAMES[rule["words"]]), lazy(filled(rule["pattern"], _PARTS)), _READERS[rule["read"]])
        for rule in table("text", "when")["rules"]
    ),
    *map(_recurring_rule, _LANGUAGES),
    *(_counted_rule(words["ago"], _read_ago) for words in _LANGUAGES.values()),
)
_AHEAD = tuple(_counted_rule(words["ahead"], _read_ahead) for words in _LANGUAGES.values())
_SPANS = tuple(map(_span_rule, _LANGUAGES))
_TURNED = ("last", "this", "next", "over", "coming")


def _bare(names: Mapping[str, _Series]) -> _Rule:
    pattern = rf"\b(?P<name>{_any(names)})\b"
    return _Rule(frozenset(names), lazy(pattern), lambda match, today: names[match["name"]](today, 0))


_BARE_WEEKDAY, _BARE_MONTH, _BARE_OF_YEAR = map(_bare, (_WEEKDAYS, _MONTHS, _OF_YEAR))
_BARE_WEEKEND = _bare({name: series for name, series in _UNITS.items() if series is _weekend})
"""A plan names its day in passing ("Friday dinner"); a look back says "on Friday"."""
