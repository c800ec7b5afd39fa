"""Memories of other systems: of hybrid-memory, memory-lancedb-pro and mem0.

Of hybrid-memory the folder is read: its facts.db, the links in it, and what waits in its memory.wal. Of lancedb-pro the
LanceDB table. Of mem0 what its `get_all` and its export give, as JSON; memories of several users stay apart.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import apsw

from perdure.errors import InputError
from perdure.importers.archive import Member, begins, elements, members
from perdure.importers.conversation_import import HOME
from perdure.importers.records import fact_of, json_object, scope_of, seconds
from perdure.maintenance.importing import FURTHEST, Incoming, Load, fact_id
from perdure.ranking.decay import DAY
from perdure.regex import lazy
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


TABLE = "memories"
_FOLDERS = ("lancedb-pro", "lancedb")
"""Where it stands below the folder that its user knows."""
_NAMES: Mapping[str, str] = table("importers", "columns")["lancedb"]
"""Metadata that stands in columns of ours by another name."""
_SAME = ("confidence", "source", "access_count", "injected_count", "valid_from", "superseded_by")
_TIERS = {"core": "hot", "working": "warm", "peripheral": "cold"}
_STATES = {"pending": "pending", "confirmed": "approved"}


def is_lancedb_pro(path: Path) -> bool:
    """Return whether this folder is a LanceDB database with a table of memories."""
    return (_table_in(path) / f"{TABLE}.lance").is_dir()


def _table_in(path: Path) -> Path:
    places = (path, *(path / name for name in _FOLDERS))
    return next((place for place in places if (place / f"{TABLE}.lance").is_dir()), path)


def load_lancedb_pro(path: Path) -> Load:
    """Return what the table of memories in a LanceDB folder holds, without its vectors: they are of another space."""
    rows = _rows(_table_in(path))
    times = {row["id"]: row["timestamp"] for row in rows}
    return Load("lancedb-pro", len(rows), lambda: (Incoming(_fact(row, times)) for row in rows), lambda: ())


def _rows(path: Path) -> list[dict[str, Any]]:
    try:
        import lancedb

        opened = lancedb.connect(path).open_table(TABLE)
        missing = {"id", "text", "timestamp"} - set(opened.schema.names)
        if missing:
            raise InputError(f"{path} has no column {', '.join(sorted(missing))}; it is no table of lancedb-pro")
        names = [name for name in opened.schema.names if name != "vector"]
        rows: list[dict[str, Any]] = opened.search().select(names).limit(None).to_arrow().to_pylist()
    except (ImportError, OSError, RuntimeError, ValueError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"LanceDB folder {path} cannot be read ({type(error).__name__}); check the path") from error
    return sorted(rows, key=lambda row: (row["timestamp"] or 0, row["id"]))


def _fact(row: Mapping[str, Any], times: Mapping[str, Any]) -> Fact:
    metadata = json_object(row.get("metadata"))
    values = {name: metadata.pop(name) for name in _SAME if name in metadata}
    values |= {ours: metadata.pop(name) for name, ours in _NAMES.items() if name in metadata}
    if metadata.get("tier") in _TIERS:
        values["tier"] = _TIERS[metadata.pop("tier")]
    if "state" in metadata:
        # What was archived there came up for nobody who did not search for it.
        values["review_state"] = _STATES.get(metadata["state"], "rejected")
        if metadata["state"] in _STATES:
            del metadata["state"]
    ended = metadata.get("invalidated_at")
    if seconds(ended) is not None:
        del metadata["invalidated_at"]
    elif values.get("superseded_by"):
        ended = times.get(values["superseded_by"], row["timestamp"])
    rest = {name: value for name, value in row.items() if name not in ("metadata", "timestamp")}
    return fact_of(
        {
            **rest,
            **values,
            "created_at": row["timestamp"],
            "superseded_at": ended,
            "valid_until": ended,
            "decay_class": "permanent",  # nothing expires there
            "metadata": metadata,
        }
    )


MEM0 = "mem0"
_ONE_DAY = lazy(r"\d{4}-\d\d-\d\d")


def is_mem0(path: Path) -> bool:
    """Return whether this is a file of mem0's memories, or a folder or zip of these."""
    return any(begins(member, _is_memory) for member in members(path, ".json"))


def load_mem0(path: Path) -> Load:
    """Return the memories in files of mem0."""
    files = [member for member in members(path, ".json") if begins(member, _is_memory)]
    users: set[str] = set()
    good = every = 0
    for member in files:
        for value, _ in elements(member):
            every += 1
            if _is_memory(value):
                good += 1
                users.add(str(value.get("user_id") or ""))
    # What is of several people must not become one person's.
    apart = len(users) > 1
    return Load(
        MEM0, good, lambda: (_incoming(each, apart) for each in _memories(files)), lambda: (), unreadable=every - good
    )


def _memories(files: list[Member]) -> Iterator[dict[str, Any]]:
    return (value for member in files for value, _ in elements(member) if _is_memory(value))


def _is_memory(value: Any) -> bool:
    return isinstance(value, dict) and isinstance(value.get("memory"), str) and bool(value.get("id"))


def _incoming(value: dict[str, Any], apart: bool) -> Incoming:
    home = scope_of("user", value.get("user_id")) if apart and value.get("user_id") else HOME
    left = ("memory", "hash", "categories", "updated_at", "expiration_date")
    rest = {name: each for name, each in value.items() if name not in left}
    categories = value.get("categories")
    return Incoming(fact_of({
        **rest,
        "text": value["memory"],
        "expires_at": _end(value.get("expiration_date")),
        "scope": home.kind,
        "scope_target": home.target,
        "source": MEM0,
        "source_date": value.get("updated_at") or value.get("created_at"),
        "tags": [tag for tag in categories if isinstance(tag, str)] if isinstance(categories, list) else None,
    }))  # fmt: skip


def _end(expiration: Any) -> str | None:
    """Return when a memory ends: with its last day, if that is all that is told. What is centuries ahead is no end."""
    at = seconds(expiration)
    if at is None or at > FURTHEST:
        return None
    last = at + DAY if _ONE_DAY.fullmatch(str(expiration)) else at
    return datetime.fromtimestamp(last, UTC).isoformat()  # so far ahead, a number would be read as milliseconds
