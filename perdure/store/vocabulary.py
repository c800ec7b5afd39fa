"""Words as the full-text index has them: their stems, how common they are, and which one a misspelt word means."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping
from functools import cache, lru_cache
from typing import Any, Final
from weakref import WeakKeyDictionary

import apsw

from perdure.store.sql import Connection, marks, newest, run
from perdure.text.normalise import match_terms

LONGEST: Final = 400
"""Terms that are read of a text."""
KEPT: Final = 65_536
"""Stems at hand: about 10 MB."""
_LEAST_LETTERS: Final = 4
"""Shorter words have too many neighbours."""
ALIKE: Final = 0.78
"""From this likeness on a word is a misspelling: one letter of five is wrong, but not one of four ("bear", "beer")."""


@lru_cache(maxsize=KEPT)
def stem(term: str) -> str:
    """Return a folded term as the index holds it, by its own tokenizer: Porter's stems, marks removed."""
    return " ".join(_tokens(term, apsw.FTS5_TOKENIZE_QUERY))


def terms(text: str) -> frozenset[str]:
    """Return the stems of a text's words, without function words."""
    return frozenset(map(stem, match_terms(text, limit=LONGEST)))


def may_be_misspelt(word: str) -> bool:
    """Whether a word is long enough, and of letters alone, so that another one may be meant by it."""
    return len(word) >= _LEAST_LETTERS and word.isalpha()


def meant(word: str, known: Iterable[str]) -> list[str]:
    """Return which known words one may be a misspelling of, the likest first (optimal string alignment)."""
    from rapidfuzz import process
    from rapidfuzz.distance import OSA

    found = process.extract(word, list(known), scorer=OSA.normalized_similarity, score_cutoff=ALIKE, limit=3)
    return [known for known, _, _ in found]


def tokenised(text: str) -> list[str]:
    """Return the words of a normalised text as the index holds them, in their order."""
    return _tokens(text, apsw.FTS5_TOKENIZE_DOCUMENT)


def _tokens(text: str, reason: int) -> list[str]:
    found: list[str] = _tokenizer()(text.encode(), reason, None, include_offsets=False, include_colocated=False)
    return found


@cache
def _tokenizer() -> Any:
    return apsw.Connection(":memory:").fts5_tokenizer("porter", ["unicode61", "remove_diacritics", "2"])


MAX_TERMS = 8
MAX_POSTINGS = 5_000
"""Only the rarest terms are searched, up to this many terms and rows that hold them (at least one term),
so that a large store costs little more than a small one."""
TYPICAL = 1_000
"""Rows of the store that words are weighed for, if it is smaller: in a small store the words that it lacks would
outweigh those that it has."""

MAX_FREQUENCIES = 50_000
"""Terms whose frequency is kept for a connection: 5 MB."""
_kept: WeakKeyDictionary[Connection, tuple[int, dict[str, int]]] = WeakKeyDictionary()
"""With the journal's newest number at which they were counted."""


def fact_frequencies(connection: Connection, terms: Collection[str]) -> dict[str, int]:
    """Return how many facts hold each term; counted once for each state of the facts.

    To count a common term SQLite walks the list of all facts that hold it.
    """
    if connection.in_transaction:
        # A rollback gives the journal's number to another state.
        return frequencies(connection, terms, "facts_terms")
    seq = newest(connection)
    at, known = _kept.get(connection, (seq, {}))
    if at != seq or len(known) >= MAX_FREQUENCIES:
        known = {}
    _kept[connection] = seq, known
    # What is nowhere costs nothing to look up, and may only be missing until a repair, which no journal tells.
    fresh = [term for term in terms if not known.get(term)]
    known |= frequencies(connection, fresh, "facts_terms")
    return {term: known[term] for term in terms}


def alike(connection: Connection, unknown: str) -> list[str]:
    """Return the known stems with the first letter of this one, and at most two letters more or less."""
    sql = "SELECT term FROM facts_terms WHERE term >= ? AND term < ? AND abs(length(term) - ?) < 3"
    first = unknown[0]
    return [term for (term,) in run(connection, sql, (first, chr(ord(first) + 1), len(unknown)))]


def frequencies(connection: Connection, terms: Iterable[str], vocabulary: str) -> dict[str, int]:
    """Return how many rows hold each term, by the fts5vocab table of this name.

    A phrase is taken to be as frequent as its rarest word.
    """
    stems = {term: stem(term).split() for term in terms}
    wanted = list({each for found in stems.values() for each in found})
    # All at once: with each statement SQLite and Python hand each other the interpreter's lock.
    sql = f"SELECT term, doc FROM {vocabulary} WHERE term IN ({marks(wanted)})"
    held: dict[str, int] = dict(run(connection, sql, wanted) if wanted else ())
    return {term: min((int(held.get(each, 0)) for each in found), default=0) for term, found in stems.items()}


def rarest(counts: Mapping[str, int], postings: int = MAX_POSTINGS) -> list[str]:
    """Return the terms that are searched, rarest first.

    Beyond so many rows in all (`postings`) only the first term is taken.
    """
    chosen: list[str] = []
    total = 0
    for term, count in sorted(counts.items(), key=lambda item: item[1])[:MAX_TERMS]:
        if chosen and total + count > postings:
            break
        chosen.append(term)
        total += count
    return chosen


def weight(count: int, rows: int = TYPICAL) -> float:
    """Return the inverse document frequency of a term that is in `count` of `rows` rows, as in BM25."""
    return math.log(1 + max(0.0, max(rows, TYPICAL) - count + 0.5) / (count + 0.5))
