"""What of a statement is compared with another: who, what, which figures, when, and whether it is denied."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from perdure.regex import lazy
from perdure.text.lexicon import MONTHS, WEEKDAYS, kin, listed, named, table, word_set
from perdure.text.normalise import cut_ending, fold, match_terms

USER = "user"
END = listed("capture", "changes", "end")
NOW_SO = listed("capture", "changes", "now_so")
FRAMING = listed("capture", "changes", "framing")
LIMITED = listed("capture", "changes", "limited")
FORMER = listed("capture", "changes", "former")
"""Words that say what has become of something known; the data file says of each what it finds."""


@dataclass(frozen=True, slots=True)
class Reading:
    """The parts of a statement that are compared."""

    owner: str  # the first person or animal that it speaks of; the user where it names none
    sequence: tuple[str, ...]  # stems of its words in order, without articles
    words: frozenset[str]  # all of them, folded, without possessive endings
    subject: frozenset[str]  # stems of what stands before the verb, without words that say whose it is
    terms: frozenset[str]  # stems of all words that carry meaning, figures included
    figures: frozenset[str]  # numbers, times of day and codes with a digit in them
    times: frozenset[str]  # weekdays, months, seasons, years, parts of the day
    names: frozenset[str]  # stems of words written as names
    dates: frozenset[str]  # the days that its relative times were resolved to
    denied: bool  # it says that something is not so


@lru_cache(maxsize=1024)
def read(text: str) -> Reading:
    """Return the parts of a statement that are compared."""
    dates = frozenset(_DATED.findall(text))
    text = _DATED.sub("", text)
    told = plain(text)
    words = _WORD.findall(told)
    bare = [word.removesuffix("'s").removesuffix("'") for word in words]
    names = frozenset(cut_ending(fold(name)) for name in _NAME.findall(text) if fold(name) not in _TIMES)
    before = _VERB.split(_REPORTED.sub("", told), maxsplit=1)
    terms = stems(told)
    return Reading(
        owner=_owner(text, before[0]),
        sequence=tuple(cut_ending(word) for word in bare if word not in _ARTICLES),
        words=frozenset(bare),
        subject=stems(before[0]) if len(before) > 1 else frozenset(),
        terms=terms,
        figures=frozenset(term for term in terms if any(map(str.isdecimal, term))),
        times=frozenset(_TIMES[word] for word in words if word in _TIMES),
        names=names,
        dates=dates,
        denied=bool(_DENIED.search(told)),
    )


def same_people(before: Reading, after: Reading) -> bool:
    """Return whether neither statement is about somebody whom the other does not mention, as dad and mum."""
    told = all(one.owner == USER or one.owner in other.words for one, other in ((before, after), (after, before)))
    return told and before.words & KIN == after.words & KIN


def has_verb(words: Sequence[str]) -> bool:
    """Return whether there is a verb, or somebody who speaks of himself, among the words."""
    return bool(_VERB.search(" ".join(words))) or not _SPEAKER.isdisjoint(words)


def plain(text: str) -> str:
    """Fold a text and write figures, times of day and words for relatives in one way."""
    told = fold(text)
    told = _HALF_PAST.sub(lambda match: f"{_NUMBERS.get(match[1], match[1])}:30", told)
    told = re.sub(r"(?<=\d),(?=\d{3})", "", told)
    told = re.sub(r"\b(\d+)(?:st|nd|rd|th)\b", r"\1", told)
    told = re.sub(r"\b(\d{1,2})\.(\d{2})\b(?! ?(?:percent|%|million|kg|euro))", r"\1:\2", told)
    told = _CLOCK.sub(_clock, told)
    told = re.sub(r"\b(\d{1,2}):00\b", r"\1", told)
    told = _IDIOM.sub("hate", told)
    return _BARE.sub(lambda match: _SAME.get(match[0], match[0]), told)


def _clock(match: re.Match[str]) -> str:
    hour = int(match[1]) % 12 + (12 if match[3] == "p" else 0)
    return f"{hour}:{match[2]}" if match[2] else str(hour)


def stems(told: str) -> frozenset[str]:
    """Return the stems of a `plain` text's words that carry meaning; a letter that stands alone names something."""
    return frozenset([*(cut_ending(term) for term in match_terms(told) if term not in _EMPTY), *_LETTER.findall(told)])


def words_for(kind: str) -> frozenset[str]:
    """Return the stems of the words of a kind in `data/changes.toml`."""
    return stems(_WORDS[kind])


def _owner(text: str, subject: str) -> str:
    """Return who stands in the subject: the user, a relative, or who the sentence begins with by name."""
    found = _OWNER.search(subject)
    if found:
        return found["kin"] or USER
    named = _SUBJECT_NAME.search(text)
    return fold(named[1]) if named and fold(named[1]) not in _TIMES else USER


_LETTER = lazy(r"(?<![\w'.])[b-hj-z](?![\w'])")
_WORD = lazy(r"[^\W_][\w:'-]*(?<![':-])")
_NAME = lazy(r"(?<=[\w,'.-] )(?!I\b|I')[A-ZÀ-Þ][\w-]+")
_SUBJECT_NAME = listed("capture", "grammar", "subject_name")
_BARE = lazy(r"[^\W_][\w-]*")
_ARTICLES = frozenset(["a", "an", "the", "is", "are"])
_SPEAKER = frozenset(["i", "we", "i'm", "we're", "i've", "we've"])
_DATED = lazy(r" \((\d{4}-\d\d-\d\d(?: to \d{4}-\d\d-\d\d)?)\)")
_IDIOM = lazy(r"\b(?:can't|cannot|couldn't) (?:stand|bear)\b")
_HALF_PAST = lazy(r"\bhalf past (\w+)\b")
_CLOCK = lazy(r"\b(\d{1,2})(?:[:.](\d{2}))? ?([ap])\.?m\b\.?")
_WORDS: dict[str, str] = table("capture", "changes")["words"]
_NUMBERS, _ORDINALS = (
    {word: str(number) for number, word in enumerate(_WORDS[kind].split(), 1)} for kind in ("counts", "ordinals")
)
_AGAIN = [*WEEKDAYS, *_WORDS["parts_of_day"].split(), *_WORDS["seasons"].split()]
_TIMES = (
    {word: word for word in (*MONTHS, "last", "next", "q1", "q2", "q3", "q4")}
    | {str(year): str(year) for year in range(1900, 2100)}
    | {form: word for word in _AGAIN for form in (word, f"{word}s")}
)
KIN = frozenset(kin().values())
"""Words for people by what they are to somebody, as `Reading.words` has them: each by one word for all."""
_OWNER = lazy(
    r"(?:^|\b(?:my|our|the|older|younger|elder|big|little|late|[\w-]+'s?) )(?P<kin>"
    + "|".join(sorted(KIN))
    + r")(?![\w-])|\b(?:i|we)\b"
)
_REPORTED = lazy(r"^.{0,200}?\b(?:says?|said|reckons?|thinks?|means?) (?:that )?|^.{0,200}?\bis that ")
_SAME = (
    kin()
    | _NUMBERS
    | _ORDINALS
    | {
        form: entry[0]
        for entry in [
            *([month, *short] for month, short in zip(MONTHS, named("short_months"), strict=True)),
            *map(str.split, _WORDS["same"].split(",")),
        ]
        for form in entry[1:]
    }
)
_VERB = listed("capture", "grammar", "verb")
_DENIED = lazy(r"\b(?:not|no|never|without|nothing|none|\w+n't|no longer)\b")
_EMPTY = word_set(_WORDS["empty"])
