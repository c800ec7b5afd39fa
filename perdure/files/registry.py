"""Where the memory files and conversations of a store lie: kept with the truth, as nothing else knows it."""

from __future__ import annotations

from pathlib import Path

from perdure.files.roots import Kind, Root, root_of
from perdure.files.transcript_log import TranscriptLog
from perdure.store.scope import Audience, Scope
from perdure.store.sql import run
from perdure.store.store import Store

_PLACE = "scope = ? AND scope_target = ? AND kind = ? AND path = ?"
_LOG = "log"
"""The kind of a root that is perdure's own record of conversations: it moves with the data folder."""


def roots(store: Store, log: TranscriptLog, audience: Audience | None = None) -> list[Root]:
    """Return the roots of a store that an audience may read; without one those of every scope."""
    readable, values = (
        ("true", ()) if audience is None else audience.sql(store.database.dialect.in_scopes, "file_roots")
    )
    sql = (
        f"SELECT scope, scope_target, kind, path, pattern FROM file_roots WHERE {readable}"
        " ORDER BY scope, scope_target, kind, path"
    )
    rows = store.database.query(run, sql, values)
    home = log.home.resolve()
    found = []
    for scope_kind, target, kind, path, pattern in rows:
        scope = Scope(scope_kind, target)
        if kind == _LOG:
            found.append(_recorded(scope, home / log.folder(scope).name))
        else:
            found.append(Root(scope, Path(path), kind, pattern))
    return found


def add_root(store: Store, scope: Scope, path: Path | str, kind: Kind, pattern: str = "**/*.md") -> Root:
    """Remember a root; one that is known already stays as it is."""
    root = root_of(scope, path, kind, pattern)
    _put(store, scope, kind, str(root.path), root.pattern)
    return root


def add_log(store: Store, scope: Scope) -> None:
    """Remember that perdure keeps conversations of this scope."""
    _put(store, scope, _LOG, "", "")


def drop_root(store: Store, root: Root) -> None:
    """Forget a root; the next synchronisation takes its files out of the index."""
    place = (root.scope.kind, root.scope.target, root.kind, str(root.path))
    store.database.apply(run, f"DELETE FROM file_roots WHERE {_PLACE}", place)


def _recorded(scope: Scope, path: Path) -> Root:
    """Return the root of a scope's record, in a folder without links; only the last part of the path may be one."""
    # `root_of` looks at every part of a path, which takes longer than all else where each search asks for many scopes.
    return root_of(scope, path, "sessions") if path.is_symlink() else Root(scope, path, "sessions")


def _put(store: Store, scope: Scope, kind: str, path: str, pattern: str) -> None:
    place = (scope.kind, scope.target, kind, path)
    if not store.database.query(run, f"SELECT 1 FROM file_roots WHERE {_PLACE}", place):
        sql = "INSERT INTO file_roots VALUES (?, ?, ?, ?, ?) ON CONFLICT DO NOTHING"
        store.database.apply(run, sql, (*place, pattern))
