"""Memories of mem0: what its `get_all` and its export give, as JSON. Those of several users stay apart."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from perdure.importers.archive import Member, begins, elements, members
from perdure.importers.conversation_import import HOME
from perdure.importers.records import fact_of, scope_of, seconds
from perdure.maintenance.importing import FURTHEST, Incoming, Load
from perdure.ranking.decay import DAY
from perdure.regex import lazy

KIND = "mem0"
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
        KIND, good, lambda: (_incoming(each, apart) for each in _memories(files)), lambda: (), unreadable=every - good
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
        "source": KIND,
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
