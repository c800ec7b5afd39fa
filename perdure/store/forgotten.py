"""Marks of what was forgotten, by which every way that shows or takes in a text knows it: keyed hashes, no words.

They outlive the memory itself, and go when it is brought back.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from perdure.store.fact import Fact
from perdure.store.scope import Audience, Scope
from perdure.store.sql import Backend, Connection, Row, run
from perdure.text.quotes import said_before
from perdure.text.sameness import Marks, marks_of, without

Hush = Callable[[str, float], str]
"""Takes a text and when it was said, epoch seconds; returns it without what was forgotten since."""

TABLE = Path(__file__).with_suffix(".sql").read_text(encoding="utf-8")
_SOON = 86_400.0
"""Seconds after something was said in which it may be quoted to say what comes next."""
_COLUMNS = "scope, scope_target, at, marks"


def note(connection: Connection, key: bytes, fact: Fact, at: float) -> None:
    """Mark what a fact says as forgotten at a time, epoch seconds."""
    lift(connection, fact.id)
    slot = f"My {fact.key} is {fact.value}" if fact.entity == "user" and fact.key and fact.value else ""
    # A key that is a verb, as in "have: a dog", leaves one word, which much else has too.
    told = [mark for mark in marks_of(slot, key) if " " in mark]
    marks = json.dumps(list(dict.fromkeys([*marks_of(fact.text, key), *told])))
    values = (fact.id, fact.scope, fact.scope_target, at, marks)
    run(connection, f"INSERT INTO forgotten (fact_id, {_COLUMNS}) VALUES (?, ?, ?, ?, ?)", values)


def lift(connection: Connection, fact_id: str) -> None:
    """Take the marks of a fact away."""
    run(connection, "DELETE FROM forgotten WHERE fact_id = ?", (fact_id,))


def is_forgotten(connection: Connection, key: bytes, fact: Fact, said_at: float) -> bool:
    """Return whether what a fact says was forgotten in its scope after it was said."""
    sql = f"SELECT {_COLUMNS} FROM forgotten WHERE scope = ? AND scope_target = ? AND at >= ?"
    rows = run(connection, sql, (fact.scope, fact.scope_target, said_at))
    marks = _marks(rows, key)
    return bool(rows) and not without(fact.text, lambda each: any(marks.telling(each)))


def leaning(connection: Connection, key: bytes, fact: Fact) -> list[str]:
    """Return the ids of what was said in a fact's conversation and quotes it, in a bracket, to say what it means."""
    said_at = fact.source_date or fact.created_at
    # By the index of times: whoever forgets much asks for each.
    sql = (
        "SELECT id, text FROM facts WHERE coalesce(source_date, created_at) BETWEEN ? AND ?"
        " AND provenance_session IS NOT DISTINCT FROM ?"
        " AND scope || '' = ? AND scope_target = ? AND id <> ? AND text LIKE '%)'"
    )
    values = (said_at, said_at + _SOON, fact.provenance_session, fact.scope, fact.scope_target, fact.id)
    beside = [(name, said_before(text)) for name, text in run(connection, sql, values)]
    marks = Marks([(mark, (fact.scope, fact.scope_target, 0.0)) for mark in marks_of(fact.text, key)], key)
    return [name for name, told in beside if without(told, lambda each: any(marks.telling(each))) != told]


class Forgotten:
    """What was forgotten in a store, as each reader has to do without it. Usable from any thread."""

    def __init__(self, database: Backend, key: bytes) -> None:
        self._database, self._key = database, key
        self._read: tuple[Row, Marks] = (0, None), Marks((), key)

    def hush(self, audience: Audience) -> Hush | None:
        """Return what takes out of texts what was forgotten in the scopes of a reader; None: nothing was."""
        with self._database.read() as connection:
            [state] = run(connection, "SELECT count(*), max(seq) FROM forgotten")
            if state != self._read[0]:
                self._read = state, _marks(run(connection, f"SELECT {_COLUMNS} FROM forgotten"), self._key)
        marks = self._read[1]

        def silent(sentence: str, at: float) -> bool:
            # A question says nothing anew: whenever it was asked, it makes nothing heard again.
            asks = sentence.endswith(("?", "？"))
            return any(
                (asks or at <= until) and audience.may_read(Scope(kind, target))
                for kind, target, until in marks.telling(sentence)
            )

        return (lambda text, at: without(text, lambda each: silent(each, at))) if state[0] else None


def _marks(rows: list[Row], key: bytes) -> Marks:
    return Marks([(mark, (*scope, at)) for *scope, at, marks in rows for mark in json.loads(marks)], key)
