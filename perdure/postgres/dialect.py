"""From the SQL of the store to PostgreSQL's. What has no counterpart there is a function of the schema.

The full-text index is a `tsvector` of the words that SQLite's own tokenizer finds.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from perdure.store.vocabulary import tokenised

KEYS = {
    "meta": ("key", "value"),
    "vectors": ("fact_id embedding_id", "vector"),
    "inbox_done": ("entry_id", "at"),
    "inbox_parked": ("entry_id", "at error entry"),
    "cursors": ("session", "tail at"),
    "receipts": ("id", "at session scope body details"),
    "tombstones": ("key", ""),
    "seals": ("id", "seal"),
    "purges": ("id", "asked_at state detail needles"),
    "jobs": ("name", "last_run next_run took result failures state"),
    "file_roots": ("scope scope_target kind path", "pattern"),
}
"""Of each table that is inserted into with a replacement: the columns of its key, and the others in their order."""
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
_STRING = r"'(?:[^']|'')*'"
_TOKEN = re.compile(rf"{_STRING}|\?|:[a-z_]+\b|%")
_INSERT = re.compile(r"INSERT OR (IGNORE|REPLACE) INTO (\w+)(?: \(([^)]*)\))?")
_RANK = "facts_fts.rank"
_SCOPES = re.compile(r"\((\w+\.)?scope, (?:\w+\.)?scope_target\) IN \(VALUES ((?:\(\?, \?\)(?:, )?)+)\)")
_SUBSTITUTES = (
    (re.compile(r" NOT INDEXED\b| INDEXED BY \w+"), ""),
    (re.compile(r"\bCAST\(([\w.]+) AS BLOB\)"), r"convert_to(\1, 'UTF8')"),
    (re.compile(r"\bIS NOT \?"), "IS DISTINCT FROM ?"),
    (re.compile(r"\bIS \?"), "IS NOT DISTINCT FROM ?"),
    (re.compile(rf"\bGLOB (\?|{_STRING})"), r"LIKE glob(\1)"),
    (re.compile(r"\bON CONFLICT \("), "ON CONFLICT (tenant, "),
    (re.compile(r"\bLIMIT -1\b"), "LIMIT ALL"),
    # To SQLite it says in which order the tables are gone through.
    (re.compile(r"\bCROSS JOIN (\w+(?: \w+)?) ON\b"), r"JOIN \1 ON"),
    (re.compile(r"\bAS REAL\)"), "AS DOUBLE PRECISION)"),
    # Since version 16 the name is a word of the grammar, with another form.
    (re.compile(r"\bjson_object\("), '"json_object"('),
    # A plus keeps SQLite from an index.
    (re.compile(r"(?<=[\s(])\+(?=[a-z])"), ""),
    (re.compile(r"[\w.]+ NOT IN \(\)"), "true"),
    (re.compile(r"[\w.]+ IN \(\)"), "false"),
)
_PART = re.compile(r'"((?:[^"]|"")*)"|(AND|OR|NOT)\b|([()])|(\w+)\s*:')
_SIGNS = {"AND": " & ", "OR": " | ", "NOT": " & !"}


@dataclass(frozen=True, slots=True)
class Statement:
    """A statement as PostgreSQL takes it."""

    sql: str  # with places `%(p0)s`, `%(p1)s` and so on
    # The number of the value that is a query; its words are asked for as `words`. None: there is none
    query: int | None = None
    ranked: bool = False  # whether it orders by how well that query fits; then it names `facts_fts.rank`


@lru_cache(maxsize=2_048)
def translated(sql: str) -> Statement:
    """Return a statement of the store as PostgreSQL takes it."""
    for pattern, substitute in _SUBSTITUTES:
        sql = pattern.sub(substitute, sql)
    sql = _SCOPES.sub(_each_scope, _upsert(sql))
    count = 0
    query = None

    def place(found: re.Match[str]) -> str:
        nonlocal count, query
        part = found[0]
        if part[0] == "'" or part == "%":
            return part.replace("%", "%%")
        if part[0] == ":":
            return f"%({part[1:]})s"
        if sql[: found.start()].endswith("facts_fts MATCH "):
            query = count
        count += 1
        return f"%(p{count - 1})s"

    made = _TOKEN.sub(place, sql.replace("::", "\0")).replace("\0", "::")
    if query is not None:
        # Those that have a word at all are found by it, and only then compared with the query.
        held = "facts_fts.rowid IN (SELECT w.rowid FROM facts_words w WHERE w.term = ANY (%(words)s))"
        matches = f"{held} AND facts_fts.terms @@ CAST(%(p{query})s AS tsquery)"
        made = made.replace(f"facts_fts MATCH %(p{query})s", matches)
    return Statement(made, query, _RANK in made)


def _each_scope(found: re.Match[str]) -> str:
    """Return a condition by which the planner sees how many rows each scope has; a list of pairs it takes for many."""
    table = found[1] or ""
    each = f"{table}scope = ? AND {table}scope_target = ?"
    return f"({' OR '.join([each] * found[2].count('('))})"


def _upsert(sql: str) -> str:
    """Return an insertion that leaves alone, or replaces, what has the same key."""
    found = _INSERT.match(sql)
    if found is None:
        return sql
    how, table, named = found.groups()
    rest = sql[found.end() :]
    begins = f"INSERT INTO {table}{f' ({named})' if named else ''}"
    if how == "IGNORE":
        return f"{begins}{rest} ON CONFLICT DO NOTHING"
    key, others = (names.split() for names in KEYS[table])
    given = named.split(", ") if named else others
    changed = [f"{name} = excluded.{name}" for name in given if name not in key]
    return f"{begins}{rest} ON CONFLICT (tenant, {', '.join(key)}) DO UPDATE SET {', '.join(changed)}"


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


def query(match: str) -> tuple[str, Sequence[str]]:
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


def rank(words: Sequence[str], documents: Mapping[str, int], rows: int, mean: float) -> tuple[str, Mapping[str, str]]:
    """Return the expression that orders rows as FTS5's rank does, lower is better, and the values in it.

    Source: BM25 (Robertson and Zaragoza 2009), with FTS5's constants. `documents` says in how many rows each word of
    the query stands; `mean` is the words of a row on average.
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
