"""Moving a store from its folder to a server, or back: copied, compared, asked, and only then the one that counts."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from perdure.api.evaluate import evaluate
from perdure.engine.engine import Engine
from perdure.engine.setting_sources import names_password, server_alone
from perdure.engine.settings import Settings
from perdure.engine.store_opening import server_of
from perdure.errors import InputError, StoreCorruptError
from perdure.files.shared_log import SharedLog, forget_seen, take_over
from perdure.hooks.types import TurnContext
from perdure.maintenance import move as rows
from perdure.store import conversation_lines as said
from perdure.store.access import opened
from perdure.store.database import Database
from perdure.store.folder import alone, prepare_folder, private_file, vault_file
from perdure.store.migrations import migrate
from perdure.store.moved import MOVED
from perdure.store.rollback_guard import FILE
from perdure.store.scope import Scope
from perdure.store.server_key import KEY_FILE, KEY_VARIABLE
from perdure.store.snapshot import snapshot, unused
from perdure.store.sql import run
from perdure.store.store import Server, Store

SAMPLE = 50
"""Memories that are asked about before and after."""
READY = 60.0
"""Seconds for which the model is waited for."""
ASKERS = 3
"""Scopes for which that is done, those with most memories."""


@dataclass(frozen=True, slots=True)
class Moved:
    """The result of a move.

    Attributes:
        to: where the memories are now, without a secret.
        rows: number of rows, by table.
        conversations: number of conversations moved.
        asked: number of questions whose answers were compared.
        same: number of these whose memory was ranked the same, or better.
        setting: what to set from now on: `store_url` and its value, or to unset it.
    """

    to: str
    rows: Mapping[str, int]
    conversations: int
    asked: int
    same: int
    setting: tuple[str, str | None]


def move(
    home: Path,
    to: str,
    settings: Settings,
    *,
    dry_run: bool = False,
    progress: rows.Progress = lambda done, total: None,
) -> Moved:
    """Move the memories of a store to a server, or from the server that the settings name into a folder.

    Args:
        home: the data folder.
        to: `postgresql://...`, without a password, or a folder.
        settings: the settings to open the store with.
        dry_run: return what would be moved; nothing is changed.
        progress: called with the number of rows done and their total.

    Raises:
        InputError: there is nothing to move, or the target has memories of its own.
        StoreError: one of its kinds; the store stays where it was. Calling again resumes the copy.
    """
    present, target = server_of(settings), _target(to, settings)
    folder = home if target is not None else Path(to).expanduser()
    if target is not None and not dry_run and (ended := _ended(home, to, target)) is not None:
        return ended
    with _opened(home, present) as source:
        if dry_run:
            return Moved(_place(to), rows.counts(source), 0, 0, 0, _setting(to, target))
        with alone(home) as free:
            _see_free(free)
        rows.see_captured(source)
        _prepare(source, folder, target)
        for each in (home, folder):
            forget_seen(each)
        before = _answers(home, settings)
        with _opened(folder, target) as copy:
            copied = rows.begin(source, copy)
            counts = rows.copy(source, copy, progress)
            copy.database.tidy(lambda: None)
            rows.compare(counts, copy)
            conversations = take_over(copy, home) if target is not None else _bring(source, folder)
        after = _answers(folder, settings.model_copy(update={"store_url": None if target is None else target.url}))
        same = _compared(before, after)
        with alone(home) as free:
            _see_free(free)
            rows.leave(source, copied, _place(to))
        with _opened(folder, target) as copy:
            rows.finish(copy)
    return Moved(_place(to), counts, conversations, len(before), same, _setting(to, target))


def _ended(home: Path, to: str, target: Server) -> Moved | None:
    """Let in a copy whose source was left, if a move was killed between the two; None: it was not."""
    path = home / "facts.db"
    if not path.is_file():
        return None
    with opened(path, looks=True) as connection:
        known = run(connection, "SELECT 1 FROM sqlite_schema WHERE name = 'meta'")
        if not known or run(connection, "SELECT value FROM meta WHERE key = ?", (MOVED,)) != [(_place(to),)]:
            return None
    with _opened(home, target) as copy:
        if not rows.is_begun(copy):
            return None
        conversations = len(copy.database.query(said.before, math.inf))
        rows.finish(copy)
        return Moved(_place(to), rows.counts(copy), conversations, 0, 0, _setting(to, target))


def _target(to: str, settings: Settings) -> Server | None:
    """Return the server that is moved to; None: it is a folder."""
    present = settings.store_url is not None
    if "://" not in to:
        if not present:
            raise InputError(
                "the memories are already in a folder; to relocate it, move the folder itself. To "
                "move them to a server, pass --to postgresql://..."
            )
        return None
    if present:
        raise InputError("the memories are already on a server; move them into a folder: perdure move --to FOLDER")
    if names_password(to):
        raise InputError(
            "the address contains a password, which others could read, or is not of the form "
            "postgresql://USER@HOST/DATABASE;"
            " leave the password out, and set PGPASSWORD"
        )
    return Server(to, settings.store_tenant, settings.store_direct_url, moved=True)


def _compared(before: Mapping[str, float], after: Mapping[str, float]) -> int:
    """Return how many figures of recall are over a copy as they were before, or better.

    Raises:
        StoreCorruptError: some are worse.
    """
    worse = [name for name, share in before.items() if after[name] < share]
    if worse:
        raise StoreCorruptError(
            f"{len(worse)} of {len(before)} recall checks are worse on the copy (first: {worse[0]}); the store"
            " was not moved. Check the model, then retry; see `perdure eval`"
        )
    return len(before)


def _opened(folder: Path, server: Server | None) -> closing[Store]:
    return closing(Store(folder, absent="refuse", server=server))


def _see_free(free: bool) -> None:
    if not free:
        raise InputError("another program has the store open; close it and retry")


def _prepare(source: Store, folder: Path, target: Server | None) -> None:
    """Create the target of the copy with the source's key, so that its seals stay valid."""
    prepare_folder(folder)
    if target is not None:
        if os.environ.get(KEY_VARIABLE, source.key.hex()) != source.key.hex():
            raise InputError(f"{KEY_VARIABLE} does not match the store's key; unset it, and copy {KEY_FILE} instead")
        file = folder / KEY_FILE
        if not file.exists():
            private_file(file).write_text(source.key.hex(), encoding="ascii")
        elif file.read_text(encoding="ascii", errors="replace").strip() != source.key.hex():
            raise InputError(f"{file} is the key of another store; move it elsewhere and retry")
        return
    path = folder / "facts.db"
    if path.exists():
        with closing(Database(path)) as database, database.read() as connection:
            sql = "SELECT key FROM meta WHERE key IN (?, ?)"
            marks = {key for (key,) in run(connection, sql, (MOVED, rows.SOURCE))}
        if not marks:
            raise InputError(f"{folder} already holds a store; name another folder")
        if MOVED not in marks:
            return  # what is there was begun before
        kept = unused(prepare_folder(folder / "backups"), "facts-moved")
        path.replace(kept)
        for other in ("facts.db-wal", "facts.db-shm", FILE):
            (folder / other).unlink(missing_ok=True)
    with closing(Database(path)) as database:
        migrate(database)
        with database.write() as connection:
            run(connection, "UPDATE meta SET value = ? WHERE key = 'store_key'", (source.key.hex(),))
            run(connection, "INSERT INTO meta VALUES (?, '')", (rows.SOURCE,))


def _answers(folder: Path, settings: Settings) -> dict[str, float]:
    """Return how well memories are found, by whom, kind of question and rank."""
    with closing(Engine(folder, settings.model_copy(update={"timers": False}), guest=True, moved=True)) as engine:
        engine.model.wait(READY)
        sql = (
            "SELECT scope, scope_target FROM facts WHERE scope IN ('global', 'user', 'agent') AND superseded_at IS NULL"
            " AND forgotten_at IS NULL GROUP BY scope, scope_target ORDER BY count(*) DESC, scope, scope_target LIMIT ?"
        )
        scopes = [Scope(*row) for row in engine.store.database.query(run, sql, (ASKERS,))]
        found = {}
        for scope in scopes:
            user, agent = (scope.name if scope.kind == kind else None for kind in ("user", "agent"))
            context = TurnContext(user_id=user, agent_id=agent)
            for kind, measure in evaluate(engine, context, SAMPLE).kinds.items():
                for name in ("at_1", "at_3", "at_5", "in_block"):
                    share = getattr(measure, name)
                    if share is not None:
                        found[f"{scope} {kind} {name}"] = share
        return found


def _bring(source: Store, folder: Path) -> int:
    """Write conversations out of the database into a folder, and copy the vault; return how many conversations."""
    conversations = SharedLog(source, lambda text, session: text, folder).write_out()
    forget_seen(folder)
    home = source.folder
    if home.resolve() != folder.resolve() and vault_file(home).is_file() and not vault_file(folder).exists():
        with opened(vault_file(home), looks=True) as vault:
            snapshot(vault, vault_file(folder))
    return conversations


def _place(to: str) -> str:
    """Return the location of a store, without credentials."""
    return server_alone(to) if "://" in to else str(Path(to).expanduser())


def _setting(to: str, target: Server | None) -> tuple[str, str | None]:
    return "store_url", to if target is not None else None
