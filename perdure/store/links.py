"""Typed links between facts."""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from dataclasses import dataclass

from perdure.errors import InputError, NotFoundError
from perdure.store.fact import Fact
from perdure.store.search import View, by_ids
from perdure.store.sql import Connection, dialect, marks, run
from perdure.store.transaction import Transaction

_TYPES = "RELATED_TO CAUSED_BY PART_OF DEPENDS_ON CONTRADICTS INSTANCE_OF DERIVED_FROM SUPERSEDES CORRECTS"
TYPES = tuple(_TYPES.split())
"""CORRECTS leads to a fact of which a part is out of date, and the rest still holds."""
MAX_DEPTH = 10
COLUMNS = "id, source_fact_id, target_fact_id, link_type, strength, created_at"
_SELECT = f"SELECT {COLUMNS} FROM memory_links"


@dataclass(frozen=True, slots=True)
class Link:
    """A directed link: `source` relates to `target` by `type`."""

    id: str  # UUID
    source: str
    target: str
    type: str  # one of `TYPES`
    strength: float  # 0 to 1
    created_at: float  # epoch seconds


@dataclass(frozen=True, slots=True)
class Related:
    """A linked memory, its distance in links, and the last link to it."""

    fact: Fact
    depth: int
    link: Link


def link(tx: Transaction, source: str, target: str, link_type: str = "RELATED_TO", strength: float = 1.0) -> Link:
    """Link two facts; linking them again sets the strength."""
    _check_type(link_type)
    if not isinstance(strength, int | float) or not 0 <= strength <= 1:
        raise InputError(f"strength is {strength!r}; it must be from 0 to 1")
    if source == target:
        raise InputError(f"memory {source} cannot be linked to itself")
    tx.fact(source)
    tx.fact(target)
    before = between(tx.connection, source, target, link_type)
    made = Link(str(uuid.uuid4()), source, target, link_type, strength, tx.now)
    sql = (
        "INSERT INTO memory_links VALUES (?, ?, ?, ?, ?, ?)"
        f" {dialect(tx.connection).on_conflict('source_fact_id', 'target_fact_id', 'link_type')}"
        " DO UPDATE SET strength = excluded.strength"
    )
    run(tx.connection, sql, (made.id, source, target, link_type, strength, tx.now))
    former = before.strength if before else None
    tx.journal("link", source, target, {"type": link_type, "before": former, "after": strength})
    return between(tx.connection, source, target, link_type) or made


def _check_type(link_type: str) -> None:
    if link_type not in TYPES:
        raise InputError(f"link type {link_type!r} is unknown; use one of {', '.join(TYPES)}")


def unlink(tx: Transaction, source: str, target: str, link_type: str) -> None:
    """Remove a link."""
    _check_type(link_type)
    before = between(tx.connection, source, target, link_type)
    if before is None:
        raise NotFoundError(f"there is no {link_type} link from {source} to {target}")
    run(tx.connection, "DELETE FROM memory_links WHERE id = ?", (before.id,))
    tx.journal("unlink", source, target, {"type": link_type, "before": before.strength, "after": None})


def links_of(connection: Connection, fact_ids: Iterable[str]) -> list[Link]:
    """Return the links from or to these facts."""
    ids = list(fact_ids)
    ends = f"source_fact_id IN ({marks(ids)}) OR target_fact_id IN ({marks(ids)})"
    rows = run(connection, f"{_SELECT} WHERE {ends} ORDER BY strength DESC, created_at, id", (*ids, *ids))
    return [Link(*row) for row in rows]


def related(connection: Connection, seeds: Iterable[str], view: View, depth: int = 2) -> list[Related]:
    """Follow links from the seeds in both directions, nearest first. Only what the view shows is passed through.

    The seeds are not in the result. The `depth` is from 1 to 10.
    """
    if not isinstance(depth, int) or not 1 <= depth <= MAX_DEPTH:
        raise InputError(f"depth is {depth}; it must be from 1 to {MAX_DEPTH}")
    frontier = list(dict.fromkeys(seeds))
    seen = set(frontier)
    found: list[Related] = []
    for level in range(1, depth + 1):
        steps: dict[str, Link] = {}
        for each in links_of(connection, frontier):
            for end in (each.source, each.target):
                if end not in seen:
                    steps.setdefault(end, each)
        visible = by_ids(connection, steps, view)
        found += [Related(visible[end], level, step) for end, step in steps.items() if end in visible]
        seen |= steps.keys()
        frontier = [end for end in steps if end in visible]
    return found


def between(connection: Connection, source: str, target: str, link_type: str) -> Link | None:
    """Return the link of this type from one fact to another, if there is one."""
    sql = f"{_SELECT} WHERE source_fact_id = ? AND target_fact_id = ? AND link_type = ?"
    rows = run(connection, sql, (source, target, link_type))
    return Link(*rows[0]) if rows else None
