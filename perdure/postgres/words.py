"""The full-text index: the words of the store, by the same tokenizer as SQLite's, in a `tsvector`."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence

from perdure.store.stems import tokenised

WEIGHTS = {"text": "A", "entity": "B", "key": "B", "value": "B", "category": "C"}
"""The columns of the index, by the labels that a `tsvector` has."""
K1, B, LEAST = 1.2, 0.75, 1e-6
"""Constants of BM25, and the weight of a word that stands in most rows."""
LAST_PLACE = 16_383
MOST_PLACES = 255
"""Of a word, and of a vector: PostgreSQL keeps no more."""
NOTHING = "'no word'"
"""Is no word of any text: words have no space."""
LONGEST = 500
"""Bytes of a word; a longer one is cut."""
_PART = re.compile(r'"((?:[^"]|"")*)"|(AND|OR|NOT)\b|([()])|(\w+)\s*:')
_SIGNS = {"AND": " & ", "OR": " | ", "NOT": " & !"}


def vector(columns: Sequence[str]) -> tuple[str, int]:
    """Return the `tsvector` of a fact's columns, and how many words they have.

    Args:
        columns: normalised, in the order of `WEIGHTS`.
    """
    places: dict[str, list[str]] = {}
    at = count = 0
    for text, label in zip(columns, WEIGHTS.values(), strict=True):
        for word in tokenised(text):
            at, count = at + 1, count + 1
            found = places.setdefault(_cut(word), [])
            if len(found) < MOST_PLACES:
                found.append(f"{min(at, LAST_PLACE)}{label}")
        # Words of two columns stand in no phrase.
        at += 1
    return " ".join(f"{_quoted(word)}:{','.join(of)}" for word, of in places.items()), count


def query(match: str) -> tuple[str, Sequence[str]]:
    """Return a query of FTS5 as a `tsquery`, and the words in it.

    Args:
        match: quoted phrases, joined by AND, OR and NOT, in brackets, behind the name of a column.
    """
    made: list[str] = []
    words: list[str] = []
    label, depth = "", 0
    for phrase, sign, bracket, column in _PART.findall(match):
        if column:
            label, depth = f":{WEIGHTS[column]}", 0
        elif bracket:
            depth += 1 if bracket == "(" else -1
            made.append(bracket)
            label = label if depth else ""
        elif sign:
            made.append(_SIGNS[sign])
        else:
            found = [_cut(word) for word in tokenised(phrase.replace('""', '"'))]
            words += found
            # A phrase of signs alone stands in nothing.
            made.append("(" + " <-> ".join(f"{_quoted(word)}{label}" for word in found) + ")" if found else NOTHING)
    return "".join(made), words


def rank(words: Sequence[str], documents: Mapping[str, int], rows: int, mean: float) -> tuple[str, Mapping[str, str]]:
    """Return the expression that orders rows as FTS5's rank does, lower is better, and the values in it.

    Source: BM25 (Robertson and Zaragoza 2009), with FTS5's constants.

    Args:
        words: of the query.
        documents: in how many rows each stands.
        rows: how many there are.
        mean: words of a row on average.
    """
    length = f"{K1} * (1 - {B} + {B} * facts_fts.words / {max(mean, 1.0):.3f})"
    parts = ["0"]
    values = {}
    for number, word in enumerate(dict.fromkeys(words)):
        count = documents.get(word, 0)
        weight = max(math.log((rows - count + 0.5) / (count + 0.5)) if count < rows else 0.0, LEAST)
        times = f"times(facts_fts.terms, %(w{number})s)"
        parts.append(f"{weight:.6f} * {times} * {K1 + 1} / ({times} + {length})")
        values[f"w{number}"] = word
    return f"CAST(-({' + '.join(parts)}) AS double precision)", values


def _cut(word: str) -> str:
    return word.encode()[:LONGEST].decode(errors="ignore")


def _quoted(word: str) -> str:
    return "'" + word.replace("\\", "\\\\").replace("'", "''") + "'"
