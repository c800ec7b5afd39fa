"""Converts a store that perdure wrote before its first release, once: python -m scripts.convert_store FOLDER.

The tables hold the same. What differs is the number of the schema, which begins at 1 now; the statement that made the
table of receipts; the mark by which memories of earlier rules were known; and the form of a conversation's cursor.
"""

from __future__ import annotations

from pathlib import Path

import apsw
import click

from perdure.errors import PerdureError
from perdure.maintenance.backup import backups_folder
from perdure.maintenance.verify import verify
from perdure.store.access import CLOSE, opened
from perdure.store.folder import alone, prepare_folder
from perdure.store.inbox import waiting_in
from perdure.store.migrations import APPLICATION_ID, STEPS
from perdure.store.snapshot import snapshot, unused
from perdure.store.sql import run
from perdure.store.store import Store

SCHEMA = 6
"""What the last commit before the first release wrote."""


def convert(folder: Path) -> list[str]:
    """Convert the store of a data folder, of which a copy is kept; return what was done, line by line.

    Raises:
        PerdureError: it is in use, or is no such store; it is as it was.
    """
    path = folder / "facts.db"
    with alone(folder) as free, opened(path) as connection:
        if not free:
            raise PerdureError(f"{folder} is in use; {CLOSE}")
        if waiting := waiting_in(folder / "inbox"):
            raise PerdureError(f"{waiting} turns wait in {folder}; run the perdure that wrote them once more before")
        marks = (run(connection, "PRAGMA application_id"), run(connection, "PRAGMA user_version"))
        if marks != ([(APPLICATION_ID,)], [(SCHEMA,)]):
            raise PerdureError(f"{path} has not schema {SCHEMA}; it was left untouched")
        copy = unused(prepare_folder(backups_folder(folder)), "facts-before-schema-1")
        done = [f"a copy is kept: {snapshot(connection, copy)}"]
        with connection:
            run(connection, "DELETE FROM meta WHERE key IN ('earlier_rules', 'reviving', 'revived')")
            run(connection, "DELETE FROM cursors WHERE tail NOT GLOB 'k1:*'")
            done.append(f"conversations that are read from their beginning again: {connection.changes()}")
            run(connection, "UPDATE cursors SET tail = substr(tail, 4)")
            _receipts_anew(connection)
            run(connection, "PRAGMA user_version = 1")
    store = Store(folder, absent="refuse")
    try:
        found = [f"{finding.what} ({finding.where}): {finding.hint}" for finding in verify(store)]
    finally:
        store.close()
    return [*done, f"{path} has schema 1 now, and perdure verify finds: {'; '.join(found) or 'nothing'}"]


def _receipts_anew(connection: apsw.Connection) -> None:
    """Have the table in the words of today, by which `verify` knows it; it had got a column later."""
    fresh = apsw.Connection(":memory:")
    STEPS[0](fresh)
    made = run(fresh, "SELECT sql FROM sqlite_schema WHERE tbl_name = 'receipts' AND sql IS NOT NULL ORDER BY rowid")
    fresh.close()
    run(connection, "DROP INDEX receipts_at; ALTER TABLE receipts RENAME TO former")
    for (sql,) in made:
        run(connection, sql)
    columns = "rowid, id, at, session, scope, body, details"
    run(connection, f"INSERT INTO receipts ({columns}) SELECT {columns} FROM former; DROP TABLE former")


@click.command()
@click.argument("folder", type=click.Path(exists=True, file_okay=False, path_type=Path))
def main(folder: Path) -> None:
    """Convert the store in FOLDER. Take new backups and exports afterwards: those of before are not read any more."""
    try:
        click.echo("\n".join(convert(folder)))
    except PerdureError as error:
        raise click.ClickException(str(error)) from None


if __name__ == "__main__":
    main()
