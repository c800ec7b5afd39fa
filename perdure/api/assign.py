"""Reassigning memories of an agent or a session that were stored without a user to one of its users, or to all."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

from perdure.engine.engine import Engine
from perdure.errors import ScopeError
from perdure.files import registry
from perdure.store.scope import Scope
from perdure.store.sql import Connection, run
from perdure.store.transaction import Author, Transaction

ACTION = "assign"
"""In the journal."""


@dataclass(frozen=True, slots=True)
class Assigned:
    """The result of an assignment, or of a dry run.

    Attributes:
        source: the previous scope.
        target: the new scope.
        memories: number of memories, including previous versions and forgotten ones.
        conversations: number of recorded conversations.
        left: number of recorded conversations that stay, because the new scope has one with the same id.
        batch: pass this to the new owner's `undo` to reverse the assignment; None: nothing was assigned.
    """

    source: str
    target: str
    memories: int
    conversations: int
    left: int
    batch: str | None


def assign(
    engine: Engine, author: Author, scope: str, whose: str, sessions: Sequence[str] = (), dry_run: bool = False
) -> Assigned:
    """Assign a scope's memories and conversations to another owner. Searched folders stay: their host sets them.

    Args:
        engine: of the store.
        author: for the journal.
        scope: the present scope.
        whose: the new owner; see `Scope.given`.
        sessions: only memories of these conversations; none: all.
        dry_run: only count.

    Raises:
        ScopeError: the scope cannot be given to others, or `whose` names nobody, or it is theirs already.
        StoreError: it could not be written; calling again resumes.
    """
    source = Scope.parse(scope)
    target = source.given(whose)
    if target == source:
        raise ScopeError(f"{source} already owns these memories; choose another user")
    with engine.store.write(author, keep=not dry_run) as tx:
        ids = _ids(tx.connection, source, sessions)
        for fact_id in ids:
            tx.change(fact_id, ACTION, {"scope_target": target.target})
        _copy_cursors(tx, source, target, sessions)
    log = engine.files.log
    conversations, left = log.move(source, target, sessions, dry_run)
    if conversations and not dry_run:
        registry.add_log(engine.store, target)
        engine.files.sync.start()
    batch = tx.batch if ids and not dry_run else None
    return Assigned(str(source), str(target), len(ids), conversations, left, batch)


def _ids(connection: Connection, scope: Scope, sessions: Sequence[str]) -> list[str]:
    said = " AND EXISTS (SELECT 1 FROM journal j WHERE j.fact_id = facts.id AND j.action = 'add' AND j.session IN"
    sql = "SELECT id FROM facts WHERE scope = ? AND scope_target = ?"
    if sessions:
        sql += f"{said} (SELECT value FROM json_each(?)))"
    named = (json.dumps(list(sessions)),) if sessions else ()
    return [row[0] for row in run(connection, f"{sql} ORDER BY seq", (*scope, *named))]


def _copy_cursors(tx: Transaction, source: Scope, target: Scope, sessions: Sequence[str]) -> None:
    """Record how far the conversations were read, so that nothing in them is captured again."""
    for prefix in ("", "distill\0"):
        start = f"{prefix}{source}\0"
        # Compared here: what SQLite cuts out of a text ends at a NUL, and PostgreSQL knows none.
        for name, tail in run(tx.connection, "SELECT session, tail FROM cursors"):
            session = name.removeprefix(start)
            if name.startswith(start) and (not sessions or session in sessions):
                where = f"{prefix}{target}\0{session}"
                run(tx.connection, "INSERT INTO cursors VALUES (?, ?, ?) ON CONFLICT DO NOTHING", (where, tail, tx.now))
