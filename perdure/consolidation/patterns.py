"""What memories of several days have in common, in the words that they were said in; never a topic alone.

Each memory of a pattern says by itself what all of them do: what somebody must not eat, what runs out on which day, an
hour of the week, or the very thing that another one says. By which words, stands in
`data/patterns.toml`, in English; about what is told in other words nothing is said.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from functools import cache
from itertools import islice

from perdure.regex import lazy
from perdure.store.fact import Fact
from perdure.text.lexicon import WEEKDAYS, listed, table
from perdure.text.normalise import fold_letters
from perdure.text.sameness import Mark, marks_of
from perdure.text.timestamps import day_of
from perdure.text.when import planned

LIMIT = 10
"""Patterns of a reflection at the most, those of most days."""
QUOTED, TOLD = 200, 12
"""Characters of one text that is quoted, and how many are, at the most."""
ALIKE = ("restriction", "medicine", "own_limit", "end", "birthday", "wish")
"""Kinds of which each memory says the same of something or somebody else."""
RESTRICTION, END, WEEK, WEEKDAY = "restriction", "end", "week", "weekday"
WISHES = ("preference", "aversion")
AGAIN = (*WISHES, "habit", "trouble")
"""Kinds of which each memory says the very thing that the others say."""
_FEWEST, _FEWEST_OF_WEEK, _MOST_OF_WEEK = 2, 3, 6
"""Memories of a pattern at the least; hours that make a week, and so many that it is still told at once."""
_COMPARED = 400
"""Sentences of a kind, the newest, that are compared with each other."""
_MOST_DAYS = 3
"""What comes on more days of a week is told of none of them."""
_SENTENCE_END = lazy(r"(?<=[.!?])\s+|\n+")
_WORD = lazy(r"[^\W\d_]+")
Key = tuple[str, str]
"""Kind and subject: a weekday, or nothing further."""
Said = tuple[Fact, str]
"""A fact, and what is quoted of it."""


@dataclass(frozen=True, slots=True)
class Found:
    """A pattern before it is stored."""

    kind: str  # one of the above
    subject: str
    text: str  # in a sentence, without the evidence
    evidence: tuple[Fact, ...]  # the facts it was found in, oldest first


def find(
    facts: Iterable[Fact], now: float, since: float = 0.0, minimum: int = _FEWEST, limit: int = LIMIT
) -> list[Found]:
    """Return what facts of at least two days have in common, what most of them have first.

    One of them at least was said at `since`, epoch seconds, or later. What is part of another pattern is left out, and
    what has run out by now.
    """
    ordered = sorted(facts, key=lambda fact: (fact.effective_date, fact.id))
    alike: dict[Key, dict[str, Said]] = defaultdict(dict)
    again: dict[str, list[tuple[Said, Mark]]] = defaultdict(list)
    for fact in ordered:
        for text in _quotable(fact.text):
            for key in _says(text):
                if key[0] != END or not _is_over(fact, text, now):
                    alike[key].setdefault(fact.id, (fact, text))
            for sentence in _SENTENCE_END.split(text):
                if (own := _says_of_oneself(sentence)) is not None:
                    again[own[0]].append(((fact, sentence), own[1]))
    groups = [(key, said := list(each.values()), said) for key, each in alike.items()]
    for kind, told_again in again.items():
        groups += [((kind, ""), [best], said) for best, said in _repeated(told_again[-_COMPARED:])]
    found = [
        Found(*key, _sentence(*key, [text for _, text in told]), tuple(fact for fact, _ in said))
        for key, told, said in groups
        if len(said) >= minimum and said[-1][0].effective_date >= since and len(days_of(fact for fact, _ in said)) > 1
    ]
    # A week that is too full to be told is told by its days, and two hours are no week.
    told = (each for each in found if each.kind != WEEK or _FEWEST_OF_WEEK <= len(each.evidence) <= _MOST_OF_WEEK)
    ranked = sorted(told, key=lambda each: (-len(days_of(each.evidence)), -len(each.evidence), each.kind, each.text))
    return list(islice(_not_within(ranked), limit))


def days_of(facts: Iterable[Fact]) -> list[date]:
    """Return the days on which facts were said, in order."""
    return sorted({day_of(fact.effective_date, fact.zone) for fact in facts})


def _not_within(ranked: Iterable[Found]) -> Iterator[Found]:
    kept: list[frozenset[str]] = []
    for each in ranked:
        ids = frozenset(fact.id for fact in each.evidence)
        if not any(ids <= other for other in kept):
            kept.append(ids)
            yield each


def _quotable(text: str) -> list[str]:
    """Return a text or, of a long one, the sentences that are short enough to be quoted."""
    parts = [text] if len(text) <= QUOTED else _SENTENCE_END.split(text)
    return [part.strip() for part in parts if part.strip() and len(part) <= QUOTED]


def _says(text: str) -> Iterator[Key]:
    folded = _folded(text)
    for kind in ALIKE:
        # What somebody must not come near, a cat or a bleach, is minded at other times than a meal.
        if _cue(kind).search(folded) and (kind != RESTRICTION or _cue("edible").search(folded)):
            yield kind, ""
    if _cue("hour").search(folded):
        days = _weekdays(folded)
        if days or _cue("stretch").search(folded):
            yield WEEK, ""
        yield from ((WEEKDAY, day.title()) for day in days if len(days) <= _MOST_DAYS)


def _is_over(fact: Fact, text: str, now: float) -> bool:
    """Return whether all days that a text names were over, where the year is not said those that came first."""
    named = planned(text, day_of(fact.effective_date, fact.zone))
    return bool(named) and max(each.last for each in named) < day_of(now, fact.zone)


def _weekdays(folded: str) -> set[str]:
    rest = _cue("stretch").sub(" ", folded)
    words = (word for match in _cue("recurring").finditer(rest) for word in _WORD.findall(match[0]))
    return {day for word in words if (day := _day_names().get(word)) is not None}


@cache
def _day_names() -> dict[str, str]:
    """Return what days of the week are called: in full, in the plural, and by their first three to five letters."""
    short = {day[:end]: day for day in WEEKDAYS for end in (3, 4, 5)}
    return short | {form: day for day in WEEKDAYS for form in (day, f"{day}s")}


def _says_of_oneself(sentence: str) -> tuple[str, Mark] | None:
    """Return what somebody says of themselves that they may say again: its kind, and its point."""
    folded = _folded(sentence)
    for kind in AGAIN:
        if (cue := _cue(kind).search(folded)) is None:
            continue
        if kind in WISHES and _cue("compared").search(folded):
            return None  # by its words alone, tea over coffee is coffee over tea
        # When it is done is part of a habit; what is liked or not stands behind the cue, what hurts around it.
        around = f"{folded[: cue.start()]} {folded[cue.end() :]}"
        point = {"habit": folded, "trouble": around}.get(kind, f"I {folded[cue.end() :]}")
        mark = Mark.parse(next(iter(marks_of(point, b"")), ""))
        return (kind, mark) if mark.who and len(mark.words) > (kind == "habit") else None
    return None


def _repeated(said: Sequence[tuple[Said, Mark]]) -> Iterator[tuple[Said, list[Said]]]:
    """Yield the shortest words for what is said more than once, and all that says it; what most say first."""
    left = list(said)
    while left:
        alike = [{fact.id: (fact, text) for (fact, text), other in left if mark.tells(other)} for _, mark in left]
        best = min(range(len(left)), key=lambda at: (-len(alike[at]), len(left[at][0][1]), at))
        if len(alike[best]) < _FEWEST:
            return
        yield left[best][0], list(alike[best].values())
        left = [each for each in left if each[0][0].id not in alike[best]]


def _sentence(kind: str, subject: str, said: Sequence[str]) -> str:
    """Return how a pattern is told: by what all of it has in common, and each part in its own words."""
    lead = table("consolidation", "patterns")["leads"][kind].format(subject=subject)
    parts = list(dict.fromkeys(f'"{text.rstrip(" .;,")}"' for text in said))
    more = [f"and {len(parts) - TOLD} more"] if len(parts) > TOLD else []
    return f"{lead}: {'; '.join([*parts[:TOLD], *more])}"


def _folded(text: str) -> str:
    return fold_letters(text).replace("\u2019", "'")


def _cue(name: str) -> re.Pattern[str]:
    return listed("consolidation", "patterns", name)
