"""`perdure backup`: copies of the store, and the way back."""

from __future__ import annotations

from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path

import click

from perdure.cli.options import dry_run_option, existing_store, home_option, json_option
from perdure.cli.output import Output, steps
from perdure.engine.paths import data_folder
from perdure.engine.settings import Settings
from perdure.errors import InputError
from perdure.maintenance import backup as backups
from perdure.service.client import dismiss


@click.group(invoke_without_command=True)
@click.option("--to", "target", type=click.Path(path_type=Path), help="The new file; without it one in backups/.")
@home_option
@json_option
@click.pass_context
def backup(context: click.Context, target: Path | None, home: Path | None, as_json: bool) -> int:
    """Copy the store while it is in use, and check the copy.

    Example: perdure backup --to /media/stick/memory.db
    """
    if context.invoked_subcommand is not None:
        return 0
    with existing_store(home) as store, steps("copying and checking", quiet=as_json):
        path = backups.backup(store, target and target.absolute())
    output = Output(as_json)
    vault = backups.vault_of(path)
    if as_json:
        found = {"vault": str(vault)} if vault.exists() else {}
        output.json({"backup": str(path), "bytes": path.stat().st_size, **found})
    else:
        output.line(f"{path} ({path.stat().st_size} bytes), checked")
        if vault.exists():
            output.line(f"{vault} (the vault, encrypted as it is; its key is not in it)")
    return 0


@backup.command()
@click.argument("file", type=click.Path(path_type=Path))
@dry_run_option
@home_option
@json_option
def restore(file: Path, dry_run: bool, home: Path | None, as_json: bool) -> int:
    """Put a backup in the place of the store. The present one is kept in backups/.

    Example: perdure backup restore facts-20260401T120000Z.db
    """
    refuse_shared("put a backup into a folder")
    folder = data_folder(home)
    beside = backups.backups_folder(folder) / file.name
    if not dry_run:
        dismiss(folder)
    with steps("checking" if dry_run else "restoring", quiet=as_json):
        done = backups.restore(folder, beside if not file.exists() and beside.exists() else file, dry_run=dry_run)
    output = Output(as_json)
    if as_json:
        output.json({"dry_run": dry_run, **asdict(done), "kept": done.kept and str(done.kept)})
    else:
        output.line(f"{done.facts} facts {'would be' if dry_run else 'are'} restored")
        if done.purged:
            output.line(f"{done.purged} that were purged since did not come back")
        if done.vault:
            output.line(f"the vault {'would come' if dry_run else 'came'} back as well")
        if done.kept is not None:
            output.line(f"the former store is kept: {done.kept}")
    return 0


@backup.command("list")
@home_option
@json_option
def list_(home: Path | None, as_json: bool) -> int:
    """Show what lies in backups/, and the daily exports.

    Example: perdure backup list
    """
    files = backups.backups(data_folder(home))
    output = Output(as_json)
    if as_json:
        output.json({"backups": [{**asdict(file), "path": str(file.path)} for file in files]})
    elif files:
        rows = [(file.path.name, file.kind, _when(file.at), file.size) for file in files]
        output.table(("file", "kind", "written", "bytes"), rows)
    else:
        output.line("there are no backups yet")
    return 0


def refuse_shared(what: str) -> None:
    """See that the memories are in a folder.

    Args:
        what: is wanted, in words.

    Raises:
        InputError: they are on a server.
    """
    if Settings.load().store_url is not None:
        raise InputError(
            "the memories are in PostgreSQL, and a backup of the server brings them back; to "
            f"{what} all the same, unset store_url (PERDURE_STORE_URL), and take it to a server with perdure move"
        )


def _when(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M UTC")
