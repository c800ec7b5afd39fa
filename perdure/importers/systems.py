"""Memories of other systems: of hybrid-memory, memory-lancedb-pro, claude-mem and mem0.

Of hybrid-memory the folder is read: its facts.db, the links in it, and what waits in its memory.wal. Of lancedb-pro the
LanceDB table, or the newest of its daily backups. Of claude-mem its database. Of mem0 what its `get_all` and its export
give, as JSON; memories of several users stay apart.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any

import apsw

from perdure.errors import InputError, StoreUnavailableError
from perdure.importers.archive import Member, begins, elements, members
from perdure.importers.conversation_import import HOME, Talk, Talks, typed
from perdure.importers.records import fact_of, json_object, scope_of, seconds
from perdure.maintenance.importing import FURTHEST, Incoming, Load, fact_id
from perdure.parts import part
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
            raise InputError(f"{path} is itself a perdure store; run `perdure export` on it and import the result")
        if not {"id", "text"} <= _columns(connection, "facts"):
            raise InputError(f"{path} has no facts table with id and text; name the hybrid-memory folder")
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
    if not wal.exists():
        return [], 0
    waiting: dict[str, Mapping[str, Any]] = {}
    unreadable = 0
    for value in _values(_text(wal)):
        entry = value if isinstance(value, dict) else {}
        match entry:
            case {"op": "remove", "id": str(done)}:
                waiting.pop(done, None)
            case {"id": str(name), "operation": "delete"} | {"id": str(name), "data": {"text": str()}}:
                waiting[name] = entry
            case _:
                unreadable += 1
    return list(waiting.values()), unreadable


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig", errors="replace")
    except OSError as error:
        raise InputError(f"{path} cannot be read ({error.strerror}); check its permissions") from error


def _values(content: str) -> Iterator[object]:
    if content.lstrip().startswith("["):
        try:
            yield from json.loads(content)
        except (ValueError, RecursionError):
            yield None
        return
    for line in content.split("\n"):  # a line separator may stand in a text
        if line.strip():
            try:
                yield json.loads(line)
            except (ValueError, RecursionError):
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
    still = "&immutable=1" if _keeps_a_log(path) else ""
    try:
        connection = apsw.Connection(
            f"{path.absolute().as_uri()}?mode=ro{still}", flags=apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI
        )
        try:
            connection.set_busy_timeout(5_000)
            yield connection
        finally:
            connection.close()
    except apsw.Error as error:
        raise InputError(f"{path} cannot be read as a database ({type(error).__name__}); check the path") from error


def _keeps_a_log(path: Path) -> bool:
    """Return whether SQLite would make a log of changes beside a database, even to read it: none is there."""
    try:
        with path.open("rb") as file:
            return file.read(20)[18:] == b"\2\2" and not path.with_name(f"{path.name}-wal").exists()
    except OSError:
        return False


TABLE = "memories"
_COLUMNS = ("id", "text", "category", "scope", "importance", "timestamp", "metadata")
_LONGEST = 1 << 24
"""Bytes of a line at the most that tells what a file is."""
_FOLDERS = ("lancedb-pro", "lancedb")
"""Where it stands below the folder that its user knows."""
_NAMES: Mapping[str, str] = table("importers", "columns")["lancedb"]
"""Metadata that stands in columns of ours by another name."""
_SAME = ("confidence", "source", "access_count", "injected_count", "valid_from", "superseded_by")
_TIERS = {"core": "hot", "working": "warm", "peripheral": "cold"}
_STATES = {"pending": "pending", "confirmed": "approved"}
_BACKUPS = "memory-backup-????-??-??.jsonl"


def is_lancedb_pro(path: Path) -> bool:
    """Return whether this is a LanceDB database with a table of memories, or a backup of one."""
    return (_table_in(path) / f"{TABLE}.lance").is_dir() or any(map(_is_row, _beginning(_backup_in(path))))


def _table_in(path: Path) -> Path:
    places = (path, *(path / name for name in _FOLDERS))
    return next((place for place in places if (place / f"{TABLE}.lance").is_dir()), path)


def _backup_in(path: Path) -> Path | None:
    """Return the file of a backup: itself, or the newest in a folder; what was deleted since is in the older ones."""
    if path.is_file():
        return path if path.suffix == ".jsonl" else None
    found = [each for folder in (path, path / "backups") for each in folder.glob(_BACKUPS)]
    # One that was cut off while it was written has nothing, or no whole line.
    newest = sorted(found, key=lambda each: each.name, reverse=True)
    return next((each for each in newest if any(map(_is_row, _beginning(each)))), None)


def load_lancedb_pro(path: Path) -> Load:
    """Return what the table of memories in a LanceDB folder holds, without its vectors: they are of another space.

    Or what a backup of it holds, which has none.
    """
    table = _table_in(path)
    backup = None if (table / f"{TABLE}.lance").is_dir() else _backup_in(path)
    rows, torn = (_rows(table), 0) if backup is None else _lines(backup)
    times = {row["id"]: row["timestamp"] for row in rows}
    unread = {backup.name: f"{torn} of its lines are not memories"} if backup is not None and torn else {}
    return Load(
        "lancedb-pro", len(rows), lambda: (Incoming(_fact(row, times)) for row in rows), lambda: (),
        unreadable=torn, unread=unread,
    )  # fmt: skip


def _lines(path: Path) -> tuple[list[dict[str, Any]], int]:
    """Return the rows in a backup, and how many of its lines are none."""
    values = list(_values(_text(path)))
    found = [value for value in values if isinstance(value, dict) and _is_row(value)]
    rows = [{name: value.get(name) for name in _COLUMNS} for value in found]
    return _in_order(rows), len(values) - len(rows)


def _beginning(path: Path | None) -> Iterator[object]:
    if path is not None:
        with path.open("rb") as file:
            yield from _values(file.readline(_LONGEST).decode("utf-8-sig", "replace"))


def _is_row(value: object) -> bool:
    match value:
        case {"id": str(name), "text": str(), "timestamp": int() | float(), "category": _, "scope": _}:
            return bool(name)
    return False


def _in_order(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(rows, key=lambda row: (row["timestamp"] or 0, row["id"]))


def _rows(path: Path) -> list[dict[str, Any]]:
    try:
        rows: list[dict[str, Any]] = part("lance.table").rows_in(path / f"{TABLE}.lance")
    except StoreUnavailableError as error:
        if isinstance(error.__cause__, ModuleNotFoundError):
            raise
        kind = type(error.__cause__).__name__
        raise InputError(f"LanceDB folder {path} cannot be read ({kind}); check the path") from error
    missing = {"id", "text", "timestamp"} - rows[0].keys() if rows else ()
    if missing:
        raise InputError(f"{path} has no column {', '.join(sorted(missing))}; it is not a lancedb-pro table")
    return _in_order(rows)


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
    if seconds(metadata.get("valid_until")) is not None:
        values["expires_at"] = metadata.pop("valid_until")
    ended = metadata.get("invalidated_at")
    if seconds(ended) is not None:
        del metadata["invalidated_at"]
    elif isinstance(values.get("superseded_by"), str):
        ended = times.get(values["superseded_by"], row["timestamp"])
    rest = {name: value for name, value in row.items() if name not in ("metadata", "timestamp")}
    return fact_of(
        {
            **rest,
            **values,
            "created_at": row["timestamp"],
            "superseded_at": ended,
            "valid_until": ended,
            "decay_class": "permanent",  # nothing expires there that has no end of its own
            "metadata": metadata,
        }
    )


CLAUDE_MEM = "claude-mem"


def is_claude_mem(path: Path) -> bool:
    """Return whether this is the database of claude-mem, or its folder."""
    try:
        with _opened(_claude_mem(path)) as connection:
            return {"title", "narrative", "created_at_epoch"} <= _columns(connection, "observations")
    except InputError:
        return False


def load_claude_mem(path: Path) -> Talks:
    """Return what a person typed while claude-mem looked on, and its observations."""
    path = _claude_mem(path)
    with _opened(path) as connection:
        sql = "SELECT (SELECT count(*) FROM observations), (SELECT count(*) FROM user_prompts)"
        [(total, said)] = run(connection, sql)

    def facts() -> Iterator[Incoming]:
        with _opened(path) as connection:
            cursor = connection.execute("SELECT * FROM observations ORDER BY id")
            names = [name for name, *_ in cursor.getdescription()] if total else []
            for row in cursor:
                yield Incoming(_observed(dict(zip(names, row, strict=True))))

    def read() -> Iterator[Talk]:
        with _opened(path) as connection:
            # Its name in older databases.
            named = {"content_session_id", "claude_session_id"} & _columns(connection, "user_prompts")
            session = max(named, default="id")
            sql = f"SELECT {session}, prompt_text, created_at_epoch FROM user_prompts ORDER BY {session}, id"
            for name, rows in groupby(connection.execute(sql), key=itemgetter(0)):
                found = [(typed(text, "text"), at) for _, text, at in rows]
                messages = [{"role": "user", "content": text, "timestamp": at} for text, at in found if text]
                yield Talk(str(name), messages, len(found))

    return Talks(CLAUDE_MEM, said, read, Load(CLAUDE_MEM, total, facts, lambda: ()))


def _claude_mem(path: Path) -> Path:
    return path / "claude-mem.db" if path.is_dir() else path


def _observed(row: Mapping[str, Any]) -> Fact:
    told = row["narrative"] or row.get("text") or row.get("subtitle")
    return fact_of({
        "id": f"{CLAUDE_MEM} {row['id']} {row['created_at_epoch']}",
        "text": ": ".join(filter(None, (row["title"], told))),
        "scope": str(HOME),
        "source": CLAUDE_MEM,
        "source_date": row["created_at_epoch"],
        "metadata": {name: row[name] for name in ("project", "type") if row.get(name)},
    })  # fmt: skip


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
