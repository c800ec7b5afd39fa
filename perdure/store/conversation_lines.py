"""What was said in conversations, in a database that several machines share: each keeps files of it to search."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from perdure.store.scope import Scope
from perdure.store.sql import Connection, dialect, run

EVERY = 1 << 40
_OF = "scope = ? AND scope_target = ? AND session = ?"
_CHANGED = "change = next_number('conversations')"


@dataclass(frozen=True, slots=True)
class Conversation:
    """A conversation that changed."""

    scope: Scope
    session: str  # the host's id of it
    at: float  # when something was added last, epoch seconds
    change: int  # the number of its last change; later changes of any conversation have higher ones


def since(connection: Connection, change: int, limit: int) -> list[Conversation]:
    """Return conversations that changed after a change, in the order of their last one. None is missed.

    Who writes holds the tenant's lock until the numbers are committed.
    """
    sql = "SELECT scope, scope_target, session, at, change FROM conversations WHERE change > ? ORDER BY change LIMIT ?"
    rows = run(connection, sql, (change, limit))
    return [Conversation(Scope(kind, target), *rest) for kind, target, *rest in rows]


def lines(connection: Connection, scope: Scope, session: str, last: int | None = None) -> list[bytes]:
    """Return the lines of a conversation, or the last ones."""
    sql = f"SELECT line FROM said WHERE {_OF} ORDER BY place DESC LIMIT ?"
    rows = run(connection, sql, (*_key(scope, session), last or EVERY))
    return [line.encode() for (line,) in reversed(rows)]


def add(connection: Connection, scope: Scope, session: str, more: Sequence[bytes], at: float) -> None:
    """Add lines to a conversation, which is begun if it is not there."""
    key = _key(scope, session)
    sql = (
        "INSERT INTO conversations (scope, scope_target, session, at) VALUES (?, ?, ?, ?)"
        f" {dialect(connection).on_conflict('scope', 'scope_target', 'session')}"
        f" DO UPDATE SET at = excluded.at, {_CHANGED}"
    )
    run(connection, sql, (*key, at))
    sql = "INSERT INTO said (scope, scope_target, session, line) VALUES (?, ?, ?, ?)"
    connection.executemany(sql, [(*key, line.decode()) for line in more])


def move(connection: Connection, scope: Scope, session: str, to: Scope) -> bool:
    """Give a conversation to another scope; return whether that was possible: it has none of the same id."""
    if lines(connection, to, session, 1):
        return False
    key, goal = _key(scope, session), _key(to, session)
    [(at,)] = run(connection, f"SELECT at FROM conversations WHERE {_OF}", key)
    run(connection, f"DELETE FROM conversations WHERE {_OF}", goal)
    sql = f"UPDATE conversations SET scope = ?, scope_target = ?, session = ?, {_CHANGED} WHERE {_OF}"
    run(connection, sql, (*goal, *key))
    # So that other machines learn that it is gone from there.
    run(connection, "INSERT INTO conversations (scope, scope_target, session, at) VALUES (?, ?, ?, ?)", (*key, at))
    return True


def rewrite(connection: Connection, change: Callable[[bytes], bytes]) -> int:
    """Pass every line through a function; one of which nothing is left goes. Return how many conversations changed."""
    changed = set()
    sql = "SELECT place, scope, scope_target, session, line FROM said ORDER BY place"
    for place, kind, target, session, line in run(connection, sql):
        after = change(line.encode()).removesuffix(b"\n")
        if after != line.encode():
            changed.add((kind, target, session))
            if after:
                run(connection, "UPDATE said SET line = ? WHERE place = ?", (after.decode(), place))
            else:
                run(connection, "DELETE FROM said WHERE place = ?", (place,))
    connection.executemany(f"UPDATE conversations SET {_CHANGED} WHERE {_OF}", sorted(changed))
    return len(changed)


def before(connection: Connection, at: float) -> list[tuple[Scope, str]]:
    """Return the conversations to which nothing was added since a time."""
    sql = (
        "SELECT c.scope, c.scope_target, c.session FROM conversations c WHERE c.at < ? AND EXISTS (SELECT 1 FROM said s"
        " WHERE s.scope = c.scope AND s.scope_target = c.scope_target AND s.session = c.session) ORDER BY c.change"
    )
    return [(Scope(kind, target), session) for kind, target, session in run(connection, sql, (at,))]


def sessions(connection: Connection, scope: Scope) -> list[str]:
    """Return the ids of a scope's conversations."""
    sql = "SELECT DISTINCT session FROM said WHERE scope = ? AND scope_target = ? ORDER BY session"
    return [session for (session,) in run(connection, sql, (scope.kind, scope.target))]


def drop(connection: Connection, scope: Scope, session: str) -> None:
    """Delete what was said in a conversation. Its row stays, by which other machines learn of it."""
    run(connection, f"DELETE FROM said WHERE {_OF}", _key(scope, session))
    run(connection, f"UPDATE conversations SET {_CHANGED} WHERE {_OF}", _key(scope, session))


def _key(scope: Scope, session: str) -> tuple[str, str, str]:
    return scope.kind, scope.target, session
