"""What PostgreSQL says in words of its own. What else it lacks of SQLite is a function of the schema.

The full-text index is a `tsvector` of the words that SQLite's own tokenizer finds.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any

from perdure.postgres.vectors import halfvec
from perdure.store.sql import Connection, Dialect, run
from perdure.store.vocabulary import tokenised

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


@lru_cache(maxsize=2_048)
def placed(sql: str) -> str:
    """Return a statement with the driver's places for values; a question mark in quotes is none. All else stays."""
    parts = sql.replace("%", "%%").split("'")
    parts[::2] = [part.replace("?", "%s") for part in parts[::2]]
    return "'".join(parts)


class PostgresDialect(Dialect):
    """PostgreSQL's words."""

    raw_ids = "SELECT convert_to(id, 'UTF8') FROM facts"

    def __init__(self, *, compares: bool) -> None:
        """Take note whether the database `compares` vectors: then each is kept as pgvector has it, too."""
        self._compares = compares

    def by_index(self, name: str) -> str:
        """Return nothing: the planner goes by its statistics."""
        return ""

    def on_conflict(self, *key: str) -> str:
        """Return the same with the tenant, who is in every key."""
        return super().on_conflict("tenant", *key)

    def in_scopes(self, table: str, count: int) -> str:
        """Return a condition by which the planner sees how many rows each scope has.

        A list of pairs it takes for many.
        """
        each = f"{table}.scope = ? AND {table}.scope_target = ?"
        return f"({' OR '.join([each] * count) or 'FALSE'})"

    def matching(self, match: str) -> tuple[str, tuple[Any, ...]]:
        """Return a condition that finds by a word what has one at all, and only then compares it with the query."""
        found, words = query(match)
        held = "facts_fts.rowid IN (SELECT w.rowid FROM facts_words w WHERE w.term = ANY (?))"
        return f"{held} AND facts_fts.terms @@ CAST(? AS tsquery)", (words, found)

    def rank(self, connection: Connection, match: str) -> tuple[str, tuple[Any, ...]]:
        """Return what FTS5's rank is: BM25 (Robertson and Zaragoza 2009), with its constants."""
        _, words = query(match)
        documents: dict[str, int] = dict(
            run(connection, "SELECT term, doc FROM facts_terms WHERE term = ANY (?)", (words,))
        )
        sql = "SELECT name, value FROM counters WHERE name IN ('rows of words', 'words')"
        counted: dict[str, int] = dict(run(connection, sql))
        rows = counted.get("rows of words", 0)
        mean = max(counted.get("words", 0) / max(1, rows), 1.0)
        length = f"{K1} * (1 - {B} + {B} * facts_fts.words / {mean:.3f})"
        parts, values = ["0"], list[str]()
        for word in dict.fromkeys(words):
            count = documents.get(word, 0)
            weight = max(math.log((rows - count + 0.5) / (count + 0.5)) if count < rows else 0.0, LEAST)
            times = "times(facts_fts.terms, ?)"
            parts.append(f"{weight:.6f} * {times} * {K1 + 1} / ({times} + {length})")
            values += [word, word]
        return f"CAST(-({' + '.join(parts)}) AS double precision)", tuple(values)

    def keep_words(self, connection: Connection, rows: Iterable[tuple[Any, ...]]) -> None:
        """Keep a `tsvector` of each fact."""
        sql = "INSERT INTO facts_fts (rowid, terms, words) VALUES (?, CAST(? AS tsvector), ?)"
        connection.executemany(sql, [(row, *vector(columns)) for row, *columns in rows])

    def keep_vector(self, connection: Connection, fact_id: str, space_id: str, blob: bytes) -> None:
        """Keep a vector; a trigger gives the row of one that is replaced a new number."""
        near, mark, changed = (
            ("near, ", "CAST(? AS halfvec), ", "near = excluded.near, ") if self._compares else [""] * 3
        )
        sql = (
            f"INSERT INTO vectors ({near}vector, embedding_id, fact_id) SELECT {mark}?, ?, id FROM facts WHERE id = ?"
            f" {self.on_conflict('fact_id', 'embedding_id')} DO UPDATE SET {changed}vector = excluded.vector"
        )
        compared = [halfvec(blob)] if self._compares else []
        run(connection, sql, (*compared, blob, space_id, fact_id))


def vector(columns: Sequence[str]) -> tuple[str, int]:
    """Return the `tsvector` of a fact's columns, and how many words they have.

    The columns are normalised, in the order of `WEIGHTS`.
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


def query(match: str) -> tuple[str, list[str]]:
    """Return a query of FTS5 as a `tsquery`, and the words in it.

    The query is quoted phrases, joined by AND, OR and NOT, in brackets, behind the name of a column.
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


def _cut(word: str) -> str:
    return word.encode()[:LONGEST].decode(errors="ignore")


def _quoted(word: str) -> str:
    return "'" + word.replace("\\", "\\\\").replace("'", "''") + "'"
