"""Importing a folder of hybrid-memory: its facts.db, the links in it, and what waits in its memory.wal."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import apsw

from perdure.errors import InputError
from perdure.importers.records import fact_of, seconds
from perdure.maintenance.importing import Incoming, Load, fact_id
from perdure.store.fact import Fact
from perdure.store.links import Link
from perdure.store.migrations import APPLICATION_ID
from perdure.store.sql import run
from perdure.text.lexicon import table

_LINK_COLUMNS = ("id", "source_fact_id", "target_fact_id", "link_type", "strength", "created_at")
_CAMEL = {
    re.sub("_(.)", lambda letter: letter[1].upper(), name): name
    for name in table("importers", "columns")["hybrid"].split()
}
"""How memory.wal calls columns, decayClass for decay_class."""


@dataclass(slots=True)
class _Pending:
    """What memory.wal changes."""

    facts: list[Fact] = field(default_factory=list)  # facts that had not reached the database
    # the id of a fact, to when and by which fact it was replaced
    successors: dict[str, tuple[float, str]] = field(default_factory=dict)
    forgotten: dict[str, float] = field(default_factory=dict)  # the id of a fact, to when it was deleted
    unreadable: int = 0  # how many lines of it were torn


def _database(path: Path) -> Path:
    return path / "facts.db" if path.is_dir() else path


def is_hybrid(path: Path) -> bool:
    """Return whether this is a database with facts, as that of a hybrid-memory folder."""
    try:
        with _opened(_database(path)) as connection:
            return {"id", "text"} <= _columns(connection, "facts")
    except InputError:
        return False


def load_hybrid(path: Path) -> Load:
    """Return what a facts.db, and the memory.wal beside it, hold. Neither is changed."""
    path = _database(path)
    with _opened(path) as connection:
        if run(connection, "PRAGMA application_id") == [(APPLICATION_ID,)]:
            raise InputError(f"{path} is a store of perdure itself; import what `perdure export` writes of it")
        if not {"id", "text"} <= _columns(connection, "facts"):
            raise InputError(f"{path} has no table of facts with id and text; name the folder of hybrid-memory")
        total = int(run(connection, "SELECT count(*) FROM facts")[0][0])
        pending = _pending(connection, path.with_name("memory.wal"))

    def facts() -> Iterator[Incoming]:
        with _opened(path) as connection:
            cursor = connection.execute("SELECT * FROM facts ORDER BY rowid")
            names = [name for name, *_ in cursor.getdescription()] if total else []
            for row in cursor:
                yield Incoming(_changed(fact_of(dict(zip(names, row, strict=True))), pending))
        yield from map(Incoming, pending.facts)

    return Load("hybrid-memory", total + len(pending.facts), facts, lambda: _links(path), unreadable=pending.unreadable)


def _changed(fact: Fact, pending: _Pending) -> Fact:
    if fact.superseded_at is None and fact.id in pending.successors:
        at, successor = pending.successors[fact.id]
        fact = replace(fact, superseded_at=at, superseded_by=successor, valid_until=at)
    if fact.id in pending.forgotten:
        fact = replace(fact, forgotten_at=pending.forgotten[fact.id])
    return fact


def _pending(connection: apsw.Connection, wal: Path) -> _Pending:
    pending = _Pending()
    entries, pending.unreadable = _entries(wal)
    for entry in entries:
        at = seconds(entry.get("timestamp")) or 0.0
        target = entry.get("targetId")
        if entry.get("operation") == "delete":
            if target:
                pending.forgotten[fact_id(target)] = at
            continue
        fact = _entry_fact(entry, at)
        there = run(connection, "SELECT id FROM facts WHERE text = ? LIMIT 1", (fact.text,))
        if not there:
            pending.facts.append(fact)
        successor = fact_id(there[0][0]) if there else fact.id
        if fact.supersedes_id and fact.supersedes_id != successor:
            pending.successors[fact.supersedes_id] = (at, successor)
    return pending


def _entry_fact(entry: Mapping[str, Any], at: float) -> Fact:
    data = {_CAMEL.get(name, name): value for name, value in entry["data"].items() if name != "vector"}
    update = entry.get("operation") == "update" and entry.get("targetId")
    replaced = {"supersedes_id": entry["targetId"], "valid_from": data.get("valid_from") or at} if update else {}
    return fact_of({"created_at": at, **data, **replaced, "id": entry["id"]})


def _entries(wal: Path) -> tuple[list[Mapping[str, Any]], int]:
    try:
        content = wal.read_text(encoding="utf-8", errors="replace")
    except FileNotFoundError:
        return [], 0
    except OSError as error:
        raise InputError(f"{wal} cannot be read ({error.strerror}); check its mode") from error
    waiting: dict[str, Mapping[str, Any]] = {}
    unreadable = 0
    for value in _values(content):
        entry = value if isinstance(value, dict) else {}
        match entry:
            case {"op": "remove", "id": str(done)}:
                waiting.pop(done, None)
            case {"id": str(name), "operation": "delete"} | {"id": str(name), "data": {"text": str()}}:
                waiting[name] = entry
            case _:
                unreadable += 1
    return list(waiting.values()), unreadable


def _values(content: str) -> Iterator[object]:
    if content.lstrip().startswith("["):
        try:
            yield from json.loads(content)
        except ValueError:
            yield None
        return
    for line in content.splitlines():
        if line.strip():
            try:
                yield json.loads(line)
            except ValueError:
                yield None  # torn by a kill in the middle of a write


def _links(path: Path) -> Iterator[Link]:
    with _opened(path) as connection:
        if not set(_LINK_COLUMNS) <= _columns(connection, "memory_links"):
            return
        sql = f"SELECT {', '.join(_LINK_COLUMNS)} FROM memory_links ORDER BY rowid"
        for name, source, target, kind, strength, created_at in connection.execute(sql):
            strength = min(1.0, max(0.0, 1.0 if strength is None else float(strength)))
            yield Link(str(name), fact_id(source), fact_id(target), str(kind), strength, seconds(created_at) or 0.0)


def _columns(connection: apsw.Connection, table: str) -> set[str]:
    return {row[0] for row in run(connection, "SELECT name FROM pragma_table_info(?)", (table,))}


@contextmanager
def _opened(path: Path) -> Iterator[apsw.Connection]:
    try:
        connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
        try:
            connection.set_busy_timeout(5_000)
            yield connection
        finally:
            connection.close()
    except apsw.Error as error:
        raise InputError(f"{path} cannot be read as a database ({type(error).__name__}); check the path") from error
