"""Whether a text repeats another one, told by its content words in order.

Only keyed hashes of the words are kept, so that what a conversation was shown can be written down without its text.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from perdure.regex import lazy
from perdure.text.lexicon import listed, table, word_set
from perdure.text.normalise import fold, match_terms, stem
from perdure.text.sameness import telling

MAX_WORDS = 128
SHARE = 0.8
"""A loose echo has at least this share of its words from one text."""
_REPORTING = word_set(table("text", "echo")["reporting"])
_SENSES = {sense: lazy(pattern) for sense, pattern in table("text", "echo")["senses"].items()}
_SENTENCE_END = lazy(r"(?<=[.!?…])\s+|[。！？\n]+|(?<=\w):\s")
_DETAIL = lazy(r"\d")
_QUOTED = listed("text", "echo", "quoted")


@dataclass(frozen=True, slots=True)
class Trace:
    """What is left of a text when its words are gone."""

    words: tuple[str, ...]  # keyed hash of each distinct content word, 8 hex digits, in order of first appearance
    details: frozenset[str]  # those that hold a digit, or say when, who or whose: a name, a relative, a weekday
    senses: frozenset[str]  # what else the words say: "not", "third person", "past", "future"


def trace(text: str, key: bytes) -> Trace:
    """Return the trace of a text's first 128 content words. Person and form do not count: "I like" is "you liked"."""
    terms = [term for term in match_terms(text, MAX_WORDS) if term not in _REPORTING]
    hashes = {term: _hash(stem(term), key) for term in terms}
    named = telling(text)
    details = frozenset(hashes[term] for term in terms if term in named or _DETAIL.search(term))
    folded = fold(text)
    senses = frozenset(sense for sense, pattern in _SENSES.items() if pattern.search(folded))
    return Trace(tuple(dict.fromkeys(hashes.values())), details, senses)


def traces(text: str, key: bytes) -> tuple[Trace, ...]:
    """Return the traces of a text: of all of it, and of each of its sentences."""
    parts = [part for part in _SENTENCE_END.split(text) if part.strip()]
    return tuple(trace(part, key) for part in dict.fromkeys([text, *parts]))


def same(one: Trace, other: Trace) -> bool:
    """Return whether two texts say the same in other forms: the same words in the same order."""
    return len(one.words) > 1 and one.words == other.words and one.senses == other.senses


def echoes(said: Trace, shown: Trace) -> bool:
    """Return whether a text is, for the most part, a repetition of another: a paraphrase, with no new detail."""
    known = set(shown.words)
    if not said.words or "not" in said.senses ^ shown.senses or not said.details <= known:
        return False
    return sum(word in known for word in said.words) >= SHARE * len(said.words)


def quotes(text: str) -> bool:
    """Return whether a text says of itself that it repeats what the agent said or remembers."""
    return bool(_QUOTED.search(fold(text)))


def _hash(word: str, key: bytes) -> str:
    return hashlib.blake2b(word.encode("utf-8", "replace"), digest_size=4, key=key).hexdigest()
