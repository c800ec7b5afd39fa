"""Orders to forget, in plain words: what is meant to go from memory, told from talk about forgetting."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, partial

from perdure.regex import lazy
from perdure.text.lexicon import table, word_set
from perdure.text.normalise import fold, match_terms

_SENTENCE = lazy(r"(?<=[.!?…])\s+|\n+")
_WORD = lazy(r"[^\W_](?:[\w'.-]*\w)?")
_ALL = lazy(
    r"\b(?:everything|anything|all|nothing|alles|nichts|tout|rien|todo|nada|tudo|tutto|niente|completely|komplett)\b"
)
_ORDER = ("memory", "said", "remove", "verb")
MAX_TARGET = 12


@dataclass(frozen=True, slots=True)
class Order:
    """What is to be forgotten."""

    sentence: str  # in which it was said
    last: bool  # what was said just before
    target: str  # the words that name it, as they are written; empty if nothing does
    everything: bool  # all that there is about it
    points: bool = False  # it names nothing itself: what its target does not find is what was said just before

    @property
    def subject(self) -> str:
        """Return what it is about, in the words of the order."""
        return self.target or "what was said just before"


@dataclass(frozen=True, slots=True)
class Topic:
    """A matter that is asked about in other words than it is told in."""

    asked: re.Pattern[str]  # in an order, folded
    told: re.Pattern[str]  # in a memory, folded
    keys: frozenset[str]  # of its slots


def orders_to_forget(text: str) -> Iterator[Order]:
    """Yield the orders to forget in what the user says plainly."""
    before = ""
    for sentence in filter(None, map(str.strip, _SENTENCE.split(text))):
        if order := _order(sentence, before):
            yield order
        before = sentence


def is_order_to_forget(sentence: str) -> bool:
    """Return whether a sentence asks for something to be forgotten."""
    return _order(sentence, "") is not None


def _order(sentence: str, before: str) -> Order | None:
    folded = fold(sentence)
    named = _names_memory(folded)
    spoken = any(map(partial(_has_object, folded), _pattern("forget").finditer(folded)))
    said = bool(_pattern("said").search(folded) and _pattern("remove").search(folded))
    last = bool(_pattern("last").search(folded) or _pattern("last").search(fold(before)))
    if not (named or said or spoken or _pattern("wish").search(folded) or (last and _pattern("remove").search(folded))):
        return None
    if _pattern("question").match(folded) or (not named and _pattern("no_order").search(folded)):
        return None
    # "My medication is private. Can you take it out of your memory?"
    own = _target(sentence)
    target = own or (_target(before) if not last else "")
    return Order(sentence, last and not _is_matter(target), target, bool(_ALL.search(folded)), not own)


def speaks_of_forgetting(sentence: str) -> bool:
    """Return whether a sentence speaks of what is to be remembered or not: it is no memory, order or not."""
    folded = fold(sentence)
    return _names_memory(folded) or any(_pattern(name).search(folded) for name in ("wish", "forget"))


def _names_memory(folded: str) -> bool:
    """Return whether a sentence names the memory and takes something away."""
    return bool(_pattern("memory").search(folded) and _pattern("remove").search(folded))


def _has_object(folded: str, verb: re.Match[str]) -> bool:
    """Return whether the verb has an object that may be remembered."""
    return bool(_pattern("object").match(folded, verb.end())) or "vergess" in verb[0] or "vergisst" in verb[0]


def _is_matter(target: str) -> bool:
    """Return whether words name something, and not only that something was said."""
    return any(topic.asked.search(fold(target)) for topic in topics())


def _target(sentence: str) -> str:
    """Return the words of a sentence that carry meaning and are none of the order itself."""
    folded = fold(sentence)
    order = [match.span() for name in _ORDER for match in _pattern(name).finditer(folded)]
    meant = set(match_terms(folded)) - _empty()
    # Folding changes letters, and leaves words where they are.
    pairs = zip(_WORD.findall(sentence), _WORD.finditer(folded), strict=False)
    words = [
        word for word, told in pairs
        if not meant.isdisjoint(match_terms(told[0])) and not any(start <= told.start() < end for start, end in order)
    ]  # fmt: skip
    return " ".join(words[:MAX_TARGET])


def meanings(text: str) -> frozenset[str]:
    """Return what the words of a text are words for, in whatever language."""
    folded = fold(text)
    return frozenset(name for name, pattern in _meanings() if pattern.search(folded))


@cache
def _meanings() -> tuple[tuple[str, re.Pattern[str]], ...]:
    return tuple((name, re.compile(pattern)) for name, pattern in table("speech", "forget")["meaning"].items())


def relatives(text: str) -> frozenset[str]:
    """Return the words of a text, folded, that name relatives and other people by what they are to somebody."""
    return frozenset(_pattern("kin").findall(fold(text)))


@cache
def _empty() -> frozenset[str]:
    return word_set(table("speech", "forget")["empty"])


@cache
def topics() -> tuple[Topic, ...]:
    """Return the matters that are asked about in other words than they are told in."""
    listed = table("speech", "forget")["topics"].values()
    return tuple(Topic(re.compile(each["asked"]), re.compile(each["told"]), frozenset(each["keys"])) for each in listed)


@cache
def _pattern(name: str) -> re.Pattern[str]:
    return re.compile("".join(table("speech", "forget")[name]))
