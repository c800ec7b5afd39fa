"""Words as the full-text index compares them, and which of its words a misspelt one means."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache, lru_cache
from typing import Any, Final

import apsw

from perdure.text.normalise import match_terms

LONGEST: Final = 400
"""Terms that are read of a text."""
KEPT: Final = 65_536
"""Stems at hand: about 10 MB."""
LEAST_LETTERS: Final = 4
"""Shorter words have too many neighbours."""
ALIKE: Final = 0.78
"""From this likeness on a word is a misspelling: one letter of five is wrong, but not one of four ("bear", "beer")."""


@lru_cache(maxsize=KEPT)
def stem(term: str) -> str:
    """Return a folded term as the index holds it, by its own tokenizer: Porter's stems, marks removed."""
    stems = _tokenizer()(term.encode(), apsw.FTS5_TOKENIZE_QUERY, None, include_offsets=False, include_colocated=False)
    return " ".join(stems)


def terms(text: str) -> frozenset[str]:
    """Return the stems of a text's words, without function words."""
    return frozenset(map(stem, match_terms(text, limit=LONGEST)))


def may_be_misspelt(word: str) -> bool:
    """Whether a word is long enough, and of letters alone, so that another one may be meant by it."""
    return len(word) >= LEAST_LETTERS and word.isalpha()


def meant(word: str, known: Iterable[str]) -> list[str]:
    """Return which known words one may be a misspelling of, the likest first (optimal string alignment).

    Args:
        word: a stem that is unknown.
        known: stems.
    """
    from rapidfuzz import process
    from rapidfuzz.distance import OSA

    found = process.extract(word, list(known), scorer=OSA.normalized_similarity, score_cutoff=ALIKE, limit=3)
    return [known for known, _, _ in found]


def tokenised(text: str) -> list[str]:
    """Return the words of a normalised text as the index holds them, in their order."""
    found: list[str] = _tokenizer()(
        text.encode(), apsw.FTS5_TOKENIZE_DOCUMENT, None, include_offsets=False, include_colocated=False
    )
    return found


@cache
def _tokenizer() -> Any:
    return apsw.Connection(":memory:").fts5_tokenizer("porter", ["unicode61", "remove_diacritics", "2"])
