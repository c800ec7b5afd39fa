"""From the SQL of the store to PostgreSQL's. What has no counterpart there is a function of the schema."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from perdure.postgres.schema import KEYS

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


@dataclass(frozen=True, slots=True)
class Statement:
    """A statement as PostgreSQL takes it.

    Attributes:
        sql: with places `%(p0)s`, `%(p1)s` and so on.
        query: the number of the value that is a query; its words are asked for as `words`. None: there is none.
        ranked: whether it orders by how well that query fits; then it names `facts_fts.rank`.
    """

    sql: str
    query: int | None = None
    ranked: bool = False


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
    key, columns = KEYS[table]
    given = [name.strip() for name in named.split(",")] if named else list(columns)
    changed = [f"{name} = excluded.{name}" for name in given if name not in key]
    return f"{begins}{rest} ON CONFLICT (tenant, {', '.join(key)}) DO UPDATE SET {', '.join(changed)}"
