"""Commands that copy a store, carry it elsewhere and bring it back: backup, export, move, recover."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import click

from perdure.cli.operation import operation
from perdure.cli.options import existing_store
from perdure.cli.output import FOUND_NOTHING, OK, Output, minute_utc, progress, steps
from perdure.engine.settings import Settings
from perdure.errors import InputError
from perdure.maintenance import backup as backups
from perdure.maintenance import exchange
from perdure.maintenance.exports import daily_export
from perdure.maintenance.markdown import export_pages
from perdure.maintenance.recovery import Recovery
from perdure.maintenance.recovery import recover as bring_back
from perdure.service.client import dismiss
from perdure.store.rollback_guard import Truth
from perdure.text.pluralize import counted

_file = click.Path(path_type=Path)


@operation(cls=click.Group, invoke_without_command=True)
@click.option("--to", "target", type=_file, help="The new file; without it one in backups/.")
def backup(folder: Path, output: Output, target: Path | None) -> None:
    """Copy the store while it is in use, and check the copy.

    Example: perdure backup --to /media/stick/memory.db
    """
    if click.get_current_context().invoked_subcommand is not None:
        return
    with existing_store(folder) as store, steps("copying and checking", quiet=output.as_json):
        path = backups.backup(store, target and target.absolute())
    vault, size = backups.vault_of(path), path.stat().st_size
    kept = vault.exists()
    output.json({"backup": path, "bytes": size} | ({"vault": vault} if kept else {}))
    output.line(f"{path} ({size} bytes), checked")
    if kept:
        output.line(f"{vault} (the vault, encrypted as it is; its key is not in it)")


@operation(backup)
def restore(folder: Path, output: Output, file: Path, dry_run: bool) -> None:
    """Put a backup in the place of the store. The present one is kept in backups/.

    Example: perdure backup restore facts-20260401T120000Z.db
    """
    _refuse_shared("put a backup into a folder")
    beside = backups.backups_folder(folder) / file.name
    if not dry_run:
        dismiss(folder)
    with steps("checking" if dry_run else "restoring", quiet=output.as_json):
        done = backups.restore(folder, beside if not file.exists() and beside.exists() else file, dry_run=dry_run)
    output.json({"dry_run": dry_run, **asdict(done)})
    output.line(f"{done.facts} facts {'would be' if dry_run else 'are'} restored")
    if done.purged:
        output.line(f"{done.purged} that were purged since did not come back")
    if done.vault:
        output.line(f"the vault {'would come' if dry_run else 'came'} back as well")
    if done.kept is not None:
        output.line(f"the former store is kept: {done.kept}")


@operation(backup, "list")
def list_backups(folder: Path, output: Output) -> None:
    """Show what lies in backups/, and the daily exports.

    Example: perdure backup list
    """
    files = backups.backups(folder)
    rows = [(file.path.name, file.kind, minute_utc(file.at), file.size) for file in files]
    output.both({"backups": files}, ("file", "kind", "written", "bytes"), rows, none="there are no backups yet")


@operation()
@click.option("--vectors", is_flag=True, help="Also the vectors, so that nothing need be embedded anew.")
@click.option("--journal", is_flag=True, help="Also the journal of changes, for reading.")
@click.option(
    "--format",
    "form",
    type=click.Choice(["jsonl", "markdown"]),
    default="jsonl",
    show_default=True,
    help="Lines of JSON, or a folder of Markdown pages to read and edit.",
)
@click.option("--former", is_flag=True, help="In Markdown: also what was replaced or forgotten, or has expired.")
@click.option("--daily", is_flag=True, help="Write today's file into exports/, as a timer does, and keep the newest.")
def export(
    folder: Path, output: Output, file: Path | None, vectors: bool, journal: bool, form: str, former: bool, daily: bool
) -> None:
    """Write all memories with everything that is known of them: as lines of JSON, or as Markdown pages.

    Example: perdure export memories.jsonl
    """
    if (form == "markdown" and (vectors or journal or daily)) or (form != "markdown" and former):
        raise InputError("--former goes with --format markdown; --vectors, --journal and --daily go without it")
    if daily == (file is not None) or (daily and (vectors or journal)):
        raise InputError("give a FILE, or --daily alone")
    with existing_store(folder) as store:
        if file is None:
            path = daily_export(store, Settings.load().keep.copies, again=True)
            output.json({"path": path})
            output.line(str(path))
            return
        with progress("exporting", exchange.fact_count(store), quiet=output.as_json) as advance:
            if form == "markdown":
                pages = export_pages(store, file.absolute(), former=former, advance=advance)
                output.json(pages)
                output.line(f"{pages.path}: {pages.facts} facts in {pages.pages} pages")
                if pages.left_out:
                    output.line(f"{pages.left_out} former or forgotten ones are left out; --former writes them, too")
                return
            done = exchange.export(store, file.absolute(), vectors=vectors, journal=journal, advance=advance)
    output.json(done)
    output.line(f"{done.path}: {done.facts} facts, {done.links} links, {done.vectors} vectors")


@operation()
@click.option("--to", required=True, help="postgresql://... without a password, or a folder.")
def move(folder: Path, output: Output, to: str, dry_run: bool) -> None:
    """Move the memories to a PostgreSQL server, or from one into a folder. A move that was killed goes on.

    Example: perdure move --to postgresql://perdure@db.example/perdure
    """
    from perdure.api import moving

    if not dry_run:
        dismiss(folder)
    with progress("copying", None, quiet=output.as_json) as advance:
        done = moving.move(folder, to, Settings.load(), dry_run=dry_run, progress=advance)
    name, value = done.setting
    output.json({"dry_run": dry_run, **asdict(done), "setting": {name: value}})
    facts, changes = done.rows["facts"], done.rows["journal"]
    output.line(f"{facts} facts and {changes} changes {'would be' if dry_run else 'are'} moved to {done.to}")
    if not dry_run:
        output.line(
            f"{done.conversations} conversations went along; {done.asked} figures of recall are as before or better"
        )
        what = f"perdure config set {name} {value}" if value else f"perdure config unset {name}"
        output.line(f"From now on: {what} (or set PERDURE_STORE_URL), and restart what uses the store")


@operation()
@click.option("--apply", "apply_", is_flag=True, help="Bring it back; without it only show what there is.")
@click.option("--accept", is_flag=True, help="Take facts.db as it is instead; begin an empty one if there is none.")
def recover(folder: Path, output: Output, apply_: bool, accept: bool) -> int:
    """Bring back what is left of memories whose facts.db was lost, replaced or damaged. Exit code 1: there is nothing.

    Example: perdure recover --apply
    """
    if apply_ and accept:
        raise InputError("give --apply to bring memories back, or --accept to take facts.db as it is")
    _refuse_shared("recover what is in a folder")
    if apply_ or accept:
        dismiss(folder)
    with steps("putting together", quiet=output.as_json):
        found = bring_back(folder, apply=apply_, accept=accept)
    output.json({**asdict(found), "brought": found.brought, "total": found.total})
    _show_recovery(output, found, accept=accept)
    useful = found.applied or found.truth is not Truth.SOUND or any(source.brings for source in found.brought)
    return OK if useful else FOUND_NOTHING


def _show_recovery(output: Output, found: Recovery, *, accept: bool) -> None:
    output.line(f"{found.said}." if found.said else "facts.db is the one that the folder remembers.")
    header = ("from", "written", "holds", "brings back", "of them for review", "stay purged", "")
    rows = [(s.source, minute_utc(s.at), s.holds, s.brings, s.waits, s.purged, s.problem) for s in found.brought]
    output.table(header, rows, none="")
    if found.turns:
        output.line(f"In the inbox: {counted(found.turns, 'turn')}, captured at the next start of a host.")
    if found.conversations:
        output.line(f"{found.conversations} conversations are recorded; perdure distill finds what is missing in them.")
    if found.purged:
        output.line(f"Purged since, and so left out: {counted(found.purged, 'memory')}.")
    if found.applied:
        former = f" The former file: {found.kept}" if found.kept else ""
        output.line(f"It holds {counted(found.total, 'memory')} now.{former}")
        if any(source.waits for source in found.brought):
            output.line("Some wait for your word: perdure review")
    elif found.truth is Truth.SOUND and not any(source.brings for source in found.brought):
        output.line("Nothing is missing in it that anything else here has.")
    elif not accept:
        output.line(f"It would hold {counted(found.total, 'memory')}. Do it: perdure recover --apply")
        if found.truth not in (Truth.SOUND, Truth.DAMAGED):
            how = "begin an empty one" if found.truth is Truth.MISSING else "take facts.db as it is"
            output.line(f"Or {how}: perdure recover --accept")


def _refuse_shared(what: str) -> None:
    """See that the memories are in a folder; `what` is wanted, in words."""
    if Settings.load().store_url is not None:
        raise InputError(
            "the memories are in PostgreSQL, and a backup of the server brings them back; to "
            f"{what} all the same, unset store_url (PERDURE_STORE_URL), and take it to a server with perdure move"
        )
