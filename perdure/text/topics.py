"""What a text speaks of: words and pairs of words that could name a subject, and in which way it speaks of them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

from perdure.regex import lazy
from perdure.text.lexicon import listed, stop_words, table, word_set
from perdure.text.normalise import fold, stem

_MIN_LETTERS = 4
"""Shorter words seldom name a subject by themselves; in a pair they may: "web app"."""
LIKES, DISLIKES, SPEAKS = "likes", "dislikes", "speaks"
_NEAR = 4
"""Words between "love" and what is loved at the most."""

_WORD = lazy(r"[^\W\d_]+(?:'[^\W\d_]+)*")
_SENTENCE_END = lazy(r"(?<=[.!?;])\s+|\n+")
_TOKEN = lazy(r"\w(?:\S*\w)?")
_CLAUSE = lazy(r"[.,;:!?()\u2014]|(?: - )|(?:- )|\b(?:and|but|so|or|that|because)\b", re.IGNORECASE)
_LEADS_TO = word_set("a an the my our his her their with to in at from of about for near visit love see")
_LIKING = listed("text", "topics", "liking")
_DISLIKING = listed("text", "topics", "disliking")
_OFTEN = listed("text", "topics", "often")


@dataclass(frozen=True, slots=True)
class Topic:
    """Something that a text speaks of."""

    key: str  # shared by all its forms: "dance studio" and "dance studios"
    form: str  # as in the text, folded
    way: str  # "likes", "dislikes" or "speaks"
    name: bool = False  # whether it is written like a name that somebody may be addressed by: "Thanks, Gina"
    said: str = ""  # the sentence it stands in
    wish: tuple[str, ...] = ()  # what is liked or disliked, word by word; only all of it was meant


def topics(text: str) -> list[Topic]:
    """Return what a text speaks of, each once: words that say something, and two of them side by side."""
    found: dict[str, Topic] = {}
    for sentence in _SENTENCE_END.split(text):
        start = 0
        for end, following in (*(match.span() for match in _CLAUSE.finditer(sentence)), (len(sentence),) * 2):
            for topic in _of_clause(sentence, start, end):
                # Once in the middle of a sentence in small letters, and it is no name.
                if topic.key not in found or (found[topic.key].name and not topic.name):
                    found[topic.key] = topic
            start = following
    return list(found.values())


def _of_clause(sentence: str, start: int, end: int) -> Iterator[Topic]:
    raw = list(_WORD.finditer(sentence, start, end))
    said = [fold(match[0]) for match in raw]
    telling = [_names_something(word) for word in said]

    def topic(first: int, last: int, called: bool) -> Topic:
        key, form = (" ".join(map(part, said[first : last + 1])) for part in (_key, _bare))
        near = max(0, first - _NEAR)
        way, cue = _way(said[near:first])
        wish = () if way == SPEAKS else tuple(map(fold, _TOKEN.findall(sentence[raw[near + cue - 1].end() :])))
        return Topic(key, form, way, called, sentence.strip(), wish)

    for at in range(len(said)):
        if telling[at] and len(said[at]) >= _MIN_LETTERS:
            called = raw[at][0].istitle() and (at == 0 or said[at - 1] not in _LEADS_TO)
            yield topic(at, at, called)
        if at and telling[at] and telling[at - 1]:
            yield topic(at - 1, at, False)


def frequent(text: str) -> bool:
    """Return whether a text says that something is done again and again."""
    return bool(_OFTEN.search(fold(text)))


def _names_something(word: str) -> bool:
    bare = _bare(word)
    telling = len(bare) > 2 and "'" not in bare and bare not in stop_words()
    return telling and _generic().isdisjoint((bare, bare.removesuffix("s")))


@cache
def _generic() -> frozenset[str]:
    """Return the words that are too common to be what somebody speaks of."""
    return word_set(table("text", "words")["topics"]["generic"])


def _way(before: list[str]) -> tuple[str, int]:
    """Return how something is spoken of, and behind how many of the words before it the cue of that ends."""
    for end in range(len(before), 0, -1):
        told = " ".join(before[:end])
        if _DISLIKING.search(told):
            return DISLIKES, end
        if _LIKING.search(told):
            return SPEAKS if {"not", "don't", "never", "would", "i'd", "we'd"} & set(before) else LIKES, end
    return SPEAKS, 0


def _bare(word: str) -> str:
    return word.removesuffix("'s")


def _key(word: str) -> str:
    return stem(_bare(word))
