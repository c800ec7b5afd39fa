"""What was stored before the redactor knew a secret: it is passed through the present one, once.

Facts are rewritten in place, since a new version would leave the old one behind; so are receipts, parked turns, and
turns that wait in a database which several machines share.
The old bytes go the way that those of a purge go: see `perdure.maintenance.purge.certify`.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from perdure.maintenance.certificate import Needles
from perdure.maintenance.purge import PENDING, Place, bodies, needles_of, without_survivors
from perdure.secrets.redact import VERSION
from perdure.store import triggers
from perdure.store.fact import SELECT, Fact, Summaries, from_row, was_cut
from perdure.store.safe import safe, safe_fact, safe_values
from perdure.store.sql import Connection, put_meta, run
from perdure.store.store import Store
from perdure.store.transaction import Author

META = "redactor"
BATCH = 200


@dataclass(frozen=True, slots=True)
class Found:
    """Where the present redactor finds a secret."""

    facts: tuple[str, ...]  # ids of facts
    receipts: tuple[str, ...]  # ids of receipts
    parked: tuple[str, ...]  # ids of parked turns
    waiting: tuple[str, ...] = ()  # ids of turns that wait in the database

    def __bool__(self) -> bool:
        """Return whether anything was found."""
        return bool(self.facts or self.receipts or self.parked or self.waiting)


def is_due(store: Store) -> bool:
    """Return whether the store was last looked through by an older redactor."""
    return int(store.meta(META) or 0) < VERSION


def done(store: Store) -> None:
    """Note that the whole store has been through the present redactor."""
    store.database.apply(put_meta, META, str(VERSION))


def find(store: Store, pause: Callable[[], object] = lambda: None) -> Found:
    """Look through all facts, receipts, and turns that were parked or wait in the database, and change nothing."""
    facts: list[str] = []
    sql = f"SELECT seq, {SELECT} FROM facts WHERE seq > ? ORDER BY seq LIMIT ?"
    for rows in store.database.pages(sql, (), BATCH):
        facts += [fact.id for fact in map(from_row, (row[1:] for row in rows)) if _scrubbed(fact) != fact]
        pause()
    sql = "SELECT rowid, fact_id, text FROM triggers WHERE rowid > ? ORDER BY rowid LIMIT ?"
    for rows in store.database.pages(sql, (), BATCH):
        facts += [fact_id for _, fact_id, text in rows if safe(text) != text]
        pause()
    facts = list(dict.fromkeys(facts))
    places = bodies(store.database)
    ids = [tuple(row_id for row_id, body in _bodies(store, *place) if _clean(body) != body) for place in places]
    return Found(tuple(facts), *ids)


def scrub(store: Store, found: Found, author: Author) -> str | None:
    """Rewrite what `find` has found in one transaction; return the purge that takes the old bytes away, if any."""
    if not found:
        return None
    name = str(uuid.uuid4())
    with store.write(author) as tx:
        known = "SELECT 1 FROM facts WHERE id = ?"
        there = [fact_id for fact_id in found.facts if run(tx.connection, known, (fact_id,))]
        needles = needles_of(tx.connection, there)
        said: list[str] = []
        for fact_id in there:
            fact = tx.fact(fact_id)
            clean = _scrubbed(fact)
            said += _changed(fact.metadata, clean.metadata)
            tx.rewrite(clean, {"scrub": name})
            triggers.rewrite(tx.connection, fact_id)
        said += _rewrite_bodies(tx.connection, found, bodies(store.database))
        needles = without_survivors(tx.connection, Needles((*needles.texts, *said), needles.vectors))
        detail = json.dumps({"facts": there, "waiting": "not started yet", "scrub": True})
        row = (name, tx.now, PENDING, detail, needles.masked(store.key, name))
        run(tx.connection, "INSERT INTO purges VALUES (?, ?, ?, ?, ?)", row)
    return name


def _bodies(store: Store, table: str, name: str, column: str) -> list[tuple[str, str]]:
    return [(row[0], row[1]) for row in store.database.query(run, f"SELECT {name}, {column} FROM {table}")]


def _rewrite_bodies(connection: Connection, found: Found, places: Sequence[Place]) -> list[str]:
    """Return the questions and messages that stood there."""
    said: list[str] = []
    each = (found.receipts, found.parked, found.waiting)[: len(places)]
    for (table, name, column), ids in zip(places, each, strict=True):
        for row_id in ids:
            for (body,) in run(connection, f"SELECT {column} FROM {table} WHERE {name} = ?", (row_id,)):
                said += _changed(json.loads(body), json.loads(_clean(body)))
                run(connection, f"UPDATE {table} SET {column} = ? WHERE {name} = ?", (_clean(body), row_id))
    return said


def _clean(body: str) -> str:
    before = json.loads(body)
    after = safe_values(before)
    # In ASCII, as half a character in a turn could not be written else.
    return body if after == before else json.dumps(after)


def _changed(before: Any, after: Any) -> list[str]:
    """Return the texts of a JSON value of which something was taken out."""
    match before:
        case str():
            return [before] if after != before else []
        case Mapping():
            # The keys may have changed, their order has not.
            return [text for pair in zip(before.values(), after.values(), strict=False) for text in _changed(*pair)]
        case list():
            return [text for pair in zip(before, after, strict=True) for text in _changed(*pair)]
        case _:
            return []


def _scrubbed(fact: Fact) -> Fact:
    clean = safe_fact(fact).fact
    # A summary that was cut out of the text may have cut a secret in two.
    again = Summaries(0, len(fact.summary or "") - 1)
    return replace(clean, summary=again.of(clean.text)) if was_cut(fact) else clean
