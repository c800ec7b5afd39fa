"""Figures, times, weekdays, dates and names in a statement, and whether one of them is all that tells two apart.

"Standup is at 9:30" and "standup is 9:15" say the same of the same, but for the time. "Dad's surgery is on May 4th" and
"Dad's check-up is on May 20th" do not: what is told of is another thing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache

from perdure.capture.clauses import parts
from perdure.capture.reading import FRAMING, NOW_SO, USER, has_verb, plain, read, same_people, stems, words_for
from perdure.regex import lazy
from perdure.text.lexicon import MONTHS, listed, stop_words
from perdure.text.normalise import fold


class Kind(StrEnum):
    """What type a value is of."""

    DATE = "date"
    WEEKDAY = "weekday"
    TIME = "time"
    FIGURE = "figure"
    NAME = "name"


@dataclass(frozen=True, slots=True)
class Value:
    """A figure, time, weekday, date or name in a clause, and where it stands there."""

    kind: Kind
    norm: str  # equal for two that mean the same
    words: str  # as it is written
    start: int
    end: int
    terms: frozenset[str]  # stems of its words


@dataclass(frozen=True, slots=True)
class Exchange:
    """One value stands in the place of another of its type."""

    kind: Kind
    stale: str  # the former value, as it is written in the known statement
    rest: bool  # the known statement says more than the new one


def exchange(known: str, text: str) -> Exchange | None:
    """Return the one value by which a clause of a text differs from a clause of what is known, or None.

    The words before it must be the same, and no word may be new. Where the clause is about nobody but the speaker, all
    of its words must be the same. Names count only if the text says that it is so now.
    """
    on_purpose = bool(NOW_SO.search(fold(text)))
    for told in _clauses(text):
        for before in _clauses(known):
            found = _exchanged(before, told, on_purpose)
            if found is not None and (found.kind is not Kind.NAME or on_purpose):
                left = stems(plain(known)) - stems(plain(text)) - stems(plain(found.stale)) - _SET
                return Exchange(found.kind, found.stale, bool(left) or len(values(known)) > len(before.values))
    return None


@lru_cache(maxsize=1024)
def values(clause: str) -> tuple[Value, ...]:
    """Return the values in a clause, in their order."""
    return tuple(_found(clause))


@dataclass(frozen=True, slots=True)
class _Clause:
    text: str
    values: tuple[Value, ...]
    terms: frozenset[str]
    norms: frozenset[str]  # of its values


@lru_cache(maxsize=64)
def _clauses(text: str) -> tuple[_Clause, ...]:
    """Return the clauses of a text that have a value, and tell of no event in the past."""
    clauses = (_REASON.sub("", part) for part in parts(text))
    return tuple(
        _Clause(each, found, _without(each, found), frozenset(value.norm for value in found))
        for each in clauses
        if (found := values(each)) and not _HISTORY.search(_settled(each))
    )


def _exchanged(before: _Clause, told: _Clause, on_purpose: bool) -> Exchange | None:
    fresh = [each for each in told.values if each.norm not in before.norms and not each.terms <= before.terms]
    if len(fresh) != 1:
        return None
    [new] = fresh
    lost = [each for each in before.values if each.norm not in told.norms]
    gone = [each for each in lost if _same_kind(each, new)]
    if len(gone) != 1 or not (_is_value(before, gone[0]) and _is_value(told, new)):
        return None
    one, other = read(before.text), read(told.text)
    if one.denied != other.denied or not same_people(one, other) or not _same_order(before, told):
        return None
    terms, whole = told.terms - (_SET - before.terms), before.terms
    if new.kind is Kind.NAME:
        terms, whole = terms - new.terms, whole - gone[0].terms
    first = _without(before.text[: gone[0].start], before.values) - _SET
    alone = one.owner == USER and not one.subject
    if alone:
        if _SELF.isdisjoint(one.words) or _SELF.isdisjoint(other.words):
            return None  # "due 30 May" tells of nobody knows what
        same = terms - _SET == whole - _SET and not lost[1:]
    else:
        anew = new.kind is not Kind.NAME and _set_anew(told, new)
        same = one.subject <= told.terms if anew else first <= terms <= whole
        if new.kind is not Kind.NAME and on_purpose:
            same = same or terms <= whole
    if not terms or not same or not _same_unit(before, gone[0], told, new):
        return None
    return Exchange(new.kind, gone[0].words, rest=False)


def _same_order(before: _Clause, told: _Clause) -> bool:
    """Return whether names and figures that both hold come in one order: "from Oslo to Rome" is not the way back."""
    one, other = read(before.text), read(told.text)
    orders = [
        ([word for word in each.sequence if word in each.names], _DIGITS.findall(clause.text))
        for each, clause in ((one, before), (other, told))
    ]
    return all(_in_order(*pair) for pair in zip(*orders, strict=True))


def _in_order(one: list[str], other: list[str]) -> bool:
    shared = set(one) & set(other)
    return [word for word in dict.fromkeys(one) if word in shared] == [
        word for word in dict.fromkeys(other) if word in shared
    ]


def _same_kind(one: Value, other: Value) -> bool:
    if one.kind is other.kind:
        # "3 May" and "3 May 2026" may be one day.
        return one.kind is not Kind.DATE or not (one.norm.startswith(other.norm) or other.norm.startswith(one.norm))
    return {one.kind, other.kind} == {Kind.TIME, Kind.FIGURE} and all(
        each.kind is Kind.TIME or (each.norm.isdecimal() and int(each.norm) < 25) for each in (one, other)
    )


def _is_value(clause: _Clause, value: Value) -> bool:
    """Return whether something is said with a value, rather than of it: "berth 12 is free" tells of berth 12."""
    front = re.findall(r"[\w']+", fold(clause.text[: value.start]))
    verb = has_verb(front) or FRAMING.search(" ".join(front))
    return bool(verb) or (bool(front) and not clause.text[value.end :].strip(" .!"))


def _set_anew(clause: _Clause, value: Value) -> bool:
    """Return whether a clause says that something is moved, raised or set to a value: "scaled the api up to 6"."""
    return any(
        match.end() == len(front)
        for front in [fold(clause.text[: value.start]).rstrip(" a")]
        for match in FRAMING.finditer(front)
    )


def _same_unit(before: _Clause, old: Value, told: _Clause, new: Value) -> bool:
    if Kind.FIGURE not in (old.kind, new.kind):
        return True
    units = [_UNIT.match(clause.text, value.end) for clause, value in ((before, old), (told, new))]
    words = [plain(unit[1]).removesuffix("s") if unit and fold(unit[1]) not in stop_words() else "" for unit in units]
    return words[0] == words[1] or (not words[1] and _set_anew(told, new))


def _without(text: str, found: tuple[Value, ...]) -> frozenset[str]:
    for each in reversed(found):
        if each.kind is not Kind.NAME and each.end <= len(text):
            text = f"{text[: each.start]} {text[each.end :]}"
    return stems(plain(text))


def _settled(text: str) -> str:
    """Return a text without the words by which something was moved or changed: they tell of no event in the past."""
    return FRAMING.sub(" ", fold(text))


def _found(clause: str) -> Iterator[Value]:
    taken = 0
    for match in _VALUE.finditer(clause):
        if match.start() < taken:
            continue
        kind = Kind(str(match.lastgroup))
        norm = _NORM[kind](match[0])
        if kind is Kind.NAME and (not match.start() or fold(match[0]) in _NO_NAMES):
            continue
        taken = match.end()
        yield Value(kind, norm, match[0], match.start(), match.end(), stems(plain(match[0])))


def _date(words: str) -> str:
    told = plain(words)
    iso = re.search(r"\d{4}-\d\d-\d\d", told)
    if iso:
        return iso[0]
    month = next((name for name in MONTHS if name in told), "")
    day, year = re.search(r"\b\d{1,2}\b", told), re.search(r"\b\d{4}\b", told)
    return " ".join([month, day[0] if day else "", year[0] if year else ""]).rstrip()


def _time(words: str) -> str:
    told = plain(words).replace(".", ":")
    hour, _, minute = told.partition(":")
    return f"{hour}:{minute or '00'}" if minute not in ("", "00") else hour


_RELATIVE = r"(?:(?:next|this) \w+|tomorrow|(?:the )?day after tomorrow|in \w+ \w+(?: time| from now)?)"
_VALUE = listed("capture", "grammar", "value")
_DIGITS = lazy(r"\d+")
_NO_NAMES = frozenset(["i", "i'm", "the", "my", "our", "we", "it", "now", "actually", "correction"])
_UNIT = lazy(r"[ -]?([^\W\d]+)")
_NORM = {
    Kind.DATE: _date,
    Kind.WEEKDAY: lambda words: fold(words).removesuffix("s"),
    Kind.TIME: _time,
    Kind.FIGURE: lambda words: plain(words).strip(" ."),
    Kind.NAME: fold,
}
_SELF = frozenset(["i", "we", "my", "our", "i'm", "we're", "i've", "we've"])
_SET = words_for("set")
"""Stems of words by which a value is said to be another now."""
_REASON = lazy(r",? (?:because|since|due to|so that|thanks to|on account of|owing to)\b.*$", re.IGNORECASE)
_HISTORY = listed("capture", "grammar", "history")
