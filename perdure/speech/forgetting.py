"""Orders to forget, in plain words: what is meant to go from memory, told from talk about forgetting."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache

from perdure.regex import lazy
from perdure.speech.orders import asks_to_remember
from perdure.text.lexicon import filled, listed, stop_words, table, word_set
from perdure.text.normalise import fold

_SENTENCE = lazy(r"(?<=[.!?…])\s+|\n+")
_CLAUSE = listed("speech", "shapes", "clause")
_WORD = lazy(r"[^\W_]+(?:[.-]\w+)*(?:'(?:s|t|re|ve|ll|d|m)\b)?", re.IGNORECASE)
_FIRST = lazy(r"\b[a-z0-9]{1,4}")
_ENGLISH = lazy(r"\b(?:my|our|your?|the)\b")
_ORDER = ("memory", "said", "store", "piece", "whole", "remove", "keep", "ask", "own")
_SURE = {"forget": ("forget_clause", "forget_it"), "keep": ("nowhere",), "deny": ("wish_clause",)}
_WISHED = {"forget": ("forget_own", "forget_you", "pretend"), "deny": ("wish",), "keep": ("absent",)}
"""What is an order by itself, and what is one unless it speaks of work; each with the words that hint at it."""
MAX_TARGET = 12
MAX_ORDER = 1_000
"""Characters: what is longer is pasted, and no order."""


@dataclass(frozen=True, slots=True)
class Order:
    """What is to be forgotten."""

    sentence: str  # in which it was said
    last: bool  # what was said just before; where it is not, and nothing is named, all that is remembered
    target: str  # the words that name it, as they are written; empty if nothing does
    everything: bool  # all that there is about it
    beside: str = ""  # the words around those
    points: bool = False  # it names nothing itself: what its target does not find is what was said just before
    sure: bool = True  # it names what an assistant remembers; otherwise only a person's own matters are meant
    tells: bool = False  # it tells what is remembered in a sentence, rather than what that is about

    @property
    def subject(self) -> str:
        """Return what it is about, in the words of the order."""
        return self.target or ("what was said just before" if self.last else "the user at all")


def orders_to_forget(text: str) -> Iterator[Order]:
    """Yield the orders to forget in what the user says plainly; one that only says again what is meant, once."""
    before: list[str] = []
    named = False
    for sentence in filter(None, map(str.strip, _SENTENCE.split(text))):
        order = None if _pattern("led").match(sentence) else _order(sentence, " ".join(before[-2:]))
        if order and not (named and _has("bare_it", fold(sentence))):
            yield order
            named = named or bool(order.target)
        before.append(sentence)


def is_order_to_forget(sentence: str) -> bool:
    """Return whether a sentence asks for something to be forgotten."""
    return _order(sentence, "") is not None


def speaks_of_forgetting(sentence: str) -> bool:
    """Return whether a sentence speaks of what is to be remembered or not: it is no memory, order or not."""
    folded = fold(sentence)
    hints = _hints(folded)
    takes = _has("remove", folded) and _any(("memory", "store", "piece", "bare", "remove_you"), folded)
    wished = _hinted(_WISHED, hints, folded) and not _has("no_order", folded)
    return wished or (takes and not _has("freed", folded)) or _hinted(_SURE, hints, folded)


def meanings(text: str, told: bool = False) -> frozenset[str]:
    """Return what the words of an order are words for, in whatever language; or those of what was `told`."""
    folded = fold(text)
    listed = table("speech", "forget")["meaning"]
    return frozenset(name for name in listed if any(each.search(folded) for each in _words_for(name)[: 1 + told]))


def _order(sentence: str, before: str) -> Order | None:
    folded = fold(sentence)
    sure = _asks(folded, fold(before))
    # "Never forget that ..." asks for the opposite.
    if sure is None or (asks_to_remember(sentence) and not _has("memory", folded)):
        return None
    own, behind = _target(sentence)
    last, beside = _has("last", folded if own else f"{fold(before)} {folded}"), _named([before, sentence])
    target = own or ("" if last else _target(before)[0]) or behind
    matters, impersonal = meanings(target), word_set(table("speech", "forget")["impersonal"])
    if not (sure or matters - impersonal or _any(("whole", "forget_name", "bare_it")[: 2 + bool(own)], folded)):
        return None
    everything = _has("all", folded)
    whole = everything and sure and not (target or last) and _has("memory", folded)
    last = not (target or whole) or (last and not matters)
    return Order(sentence, last, target, everything, beside, not own, sure, _has("tells", folded))


def _asks(folded: str, before: str) -> bool | None:
    """Return None if a sentence asks for nothing to be forgotten, else whether all memories may be meant."""
    hints = _hints(folded)
    takes = "remove" in hints and _has("remove", folded)
    denies = "keep" in hints and _has("deny", folded)
    hints = hints if denies else hints - {"deny"}
    if not (takes or hints - {"remove"}) or _any(("question", "reported"), folded):
        return None
    context = f"{before} {folded}" if takes and _any(("bare_it", "forget_that"), folded) else folded
    stored = takes and (_has("memory", context) or (_has("store", context) and not _has("freed", context)))
    if stored or _hinted(_SURE, hints, folded):
        return True
    piece = takes and _has("piece", context)
    said = (takes and _has("said", context)) or ((takes or denies) and _has("last", context))
    sorry = context != folded and _has("regret", context)
    sure = piece or said or sorry or _hinted(_WISHED, hints, folded)
    weak = (takes and _any(("whole", "bare", "bare_it", "remove_you"), folded)) or (
        "forget" in hints and _has("forget_name", folded)
    )
    if not (sure or weak) or _any(("no_order", "work", "elsewhere"), context):
        return None
    return None if not piece and _has("machine", folded) else sure


def _target(sentence: str) -> tuple[str, str]:
    """Return the words that say what an order means, of its own clause or else before it; and those behind it."""
    clauses = [clause for clause in _CLAUSE.split(sentence) if not _has("spared", fold(clause))]
    acts = [at for at, each in enumerate(clauses) if _has("act", fold(each))]
    first = acts[0] if acts else len(clauses)
    return _named([clauses[at] for at in acts]) or _named(clauses[:first]), _named(clauses[first:])


def _named(clauses: list[str]) -> str:
    """Return the words of clauses that carry meaning and are none of the order itself."""
    sentence = ", ".join(clauses)
    folded = fold(sentence)
    order = [match.span() for name in _ORDER for match in _pattern(name).finditer(folded)]
    # Of words that are empty in another language: "hat" in "my hat size".
    english = _ENGLISH.search(folded) is not None
    empty = word_set(table("speech", "forget")["empty"])
    empty |= word_set(table("text", "words")["stop"]["en"]) if english else stop_words()
    # Folding changes letters, and leaves words where they are.
    pairs = zip(_WORD.findall(sentence), _WORD.finditer(folded), strict=False)
    words = [
        word for word, told in pairs
        if told[0].partition("'")[0] not in empty and told[0] not in empty and (len(word) > 1 or word.isdecimal())
        and not any(start <= told.start() < end for start, end in order)
    ]  # fmt: skip
    return " ".join(words[:MAX_TARGET])


def _has(name: str, folded: str) -> bool:
    return _pattern(name).search(folded) is not None


def _any(names: Iterable[str], folded: str) -> bool:
    return any(_has(name, folded) for name in names)


def _hinted(names: Mapping[str, Iterable[str]], hints: frozenset[str], folded: str) -> bool:
    return any(_any(each, folded) for hint, each in names.items() if hint in hints)


def _hints(folded: str) -> frozenset[str]:
    """Return which words of an order a sentence may have: a cheap look before all patterns."""
    begun = set(_FIRST.findall(folded)) if len(folded) <= MAX_ORDER else set()
    found = {name for name, words in _begun().items() if not words.isdisjoint(begun)}
    return frozenset(found - {"denied"} | {"deny"} if "denied" in found else found - {"denied", "keep"})


@cache
def _pattern(name: str) -> re.Pattern[str]:
    listed = table("speech", "forget")
    return lazy(filled(listed["patterns"][name].replace("\n", ""), listed["parts"]))


@cache
def _words_for(meaning: str) -> tuple[re.Pattern[str], ...]:
    """Return patterns for what is called so, and, where that differs, for what is a case of it."""
    listed = table("speech", "forget")["meaning"][meaning]
    return tuple(map(lazy, [listed] if isinstance(listed, str) else listed))


@cache
def _begun() -> dict[str, frozenset[str]]:
    return {name: word_set(words) for name, words in table("speech", "forget")["hints"].items()}
