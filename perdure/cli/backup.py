"""Commands that copy, move and restore a store: backup, export, move, recover."""

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
@click.option("--to", "target", type=_file, help="File to write. Default: a new file in backups/.")
def backup(folder: Path, output: Output, target: Path | None) -> None:
    """Back up the store while it is in use, and check the copy.

    Example: perdure backup --to /media/stick/memory.db
    """
    if click.get_current_context().invoked_subcommand is not None:
        return
    with existing_store(folder) as store, steps("copying and checking", quiet=output.as_json):
        path = backups.backup(store, target and target.absolute())
    vault, size = backups.vault_of(path), path.stat().st_size
    kept = vault.exists()
    output.say({"backup": path, "bytes": size} | ({"vault": vault} if kept else {}), f"{path} ({size} bytes), checked")
    if kept:
        output.line(f"{vault} (the vault, encrypted; its key is not included)")


@operation(backup)
def restore(folder: Path, output: Output, file: Path, dry_run: bool) -> None:
    """Restore a backup. The current store is kept in backups/.

    Example: perdure backup restore facts-20260401T120000Z.db
    """
    _refuse_shared("restore a backup into a folder")
    beside = backups.backups_folder(folder) / file.name
    if not dry_run:
        dismiss(folder)
    with steps("checking" if dry_run else "restoring", quiet=output.as_json):
        done = backups.restore(folder, beside if not file.exists() and beside.exists() else file, dry_run=dry_run)
    output.json({"dry_run": dry_run, **asdict(done)})
    output.line(f"{'Would restore' if dry_run else 'Restored'} {counted(done.facts, 'memory')}")
    if done.purged:
        output.line(f"Left out, because they have been purged since: {counted(done.purged, 'memory')}")
    if done.vault:
        output.line(f"{'Would restore' if dry_run else 'Restored'} the vault")
    if done.kept is not None:
        output.line(f"Previous store: {done.kept}")


@operation(backup, "list")
def list_backups(folder: Path, output: Output) -> None:
    """List backups and daily exports.

    Example: perdure backup list
    """
    files = backups.backups(folder)
    rows = [(file.path.name, file.kind, minute_utc(file.at), file.size) for file in files]
    output.both(
        {"backups": files}, ("file", "kind", "written", "bytes"), rows, none="No backups yet. Make one: perdure backup"
    )


@operation()
@click.option("--vectors", is_flag=True, help="Include vectors, so that an import need not re-embed anything.")
@click.option("--journal", is_flag=True, help="Include the journal of changes, for reading.")
@click.option(
    "--format",
    "form",
    type=click.Choice(["jsonl", "markdown"]),
    default="jsonl",
    show_default=True,
    help="JSON Lines, or a folder of Markdown pages to read and edit.",
)
@click.option("--former", is_flag=True, help="Markdown only: include replaced, forgotten and expired memories.")
@click.option("--daily", is_flag=True, help="Write today's export into exports/ and rotate old ones.")
def export(
    folder: Path, output: Output, file: Path | None, vectors: bool, journal: bool, form: str, former: bool, daily: bool
) -> None:
    """Export all memories as JSON Lines or Markdown pages.

    Example: perdure export memories.jsonl
    """
    if (form == "markdown" and (vectors or journal or daily)) or (form != "markdown" and former):
        raise InputError(
            "--former requires --format markdown, which cannot be combined with --vectors, --journal or --daily"
        )
    if daily == (file is not None) or (daily and (vectors or journal)):
        raise InputError("give a FILE, or --daily without other options")
    with existing_store(folder) as store:
        if file is None:
            path = daily_export(store, Settings.load().keep.copies, again=True)
            output.say({"path": path}, str(path))
            return
        with progress("exporting", exchange.fact_count(store), quiet=output.as_json) as advance:
            if form == "markdown":
                pages = export_pages(store, file.absolute(), former=former, advance=advance)
                output.say(pages, f"{pages.path}: {counted(pages.facts, 'memory')}, {counted(pages.pages, 'page')}")
                if pages.left_out:
                    output.line(f"Left out: {pages.left_out} former or forgotten; include them with --former")
                return
            done = exchange.export(store, file.absolute(), vectors=vectors, journal=journal, advance=advance)
    output.json(done)
    counts = {"memory": done.facts, "link": done.links, "trigger": done.triggers, "vector": done.vectors}
    output.line(f"{done.path}: {', '.join(counted(count, what) for what, count in counts.items())}")


@operation()
@click.option("--to", required=True, help="Target: postgresql://... without a password, or a folder.")
def move(folder: Path, output: Output, to: str, dry_run: bool) -> None:
    """Move the memories to PostgreSQL or into a folder.

    Repeat an interrupted move to resume it.

    Example: perdure move --to postgresql://perdure@db.example/perdure
    """
    from perdure.api import moving

    if not dry_run:
        dismiss(folder)
    with progress("copying", None, quiet=output.as_json) as advance:
        done = moving.move(folder, to, Settings.load(), dry_run=dry_run, progress=advance)
    name, value = done.setting
    output.json({"dry_run": dry_run, **asdict(done), "setting": {name: value}})
    what = f"{counted(done.rows['facts'], 'memory')} and {counted(done.rows['journal'], 'change')}"
    output.line(f"{'Would move' if dry_run else 'Moved'} {what} to {done.to}")
    if not dry_run:
        output.line(
            f"Moved {counted(done.conversations, 'conversation')}; passed {counted(done.asked, 'recall check')}"
        )
        what = f"perdure config set {name} {value}" if value else f"perdure config unset {name}"
        output.line(f"Next: {what} (or set PERDURE_STORE_URL), and restart the programs that use the store")


@operation()
@click.option(
    "--apply", "apply_", is_flag=True, help="Recover; without this option, only show what could be recovered."
)
@click.option("--accept", is_flag=True, help="Accept facts.db as it is; if it is missing, start an empty one.")
def recover(folder: Path, output: Output, apply_: bool, accept: bool) -> int:
    """Recover memories after facts.db was lost, replaced or damaged.

    Exit code 1: nothing to recover.

    Example: perdure recover --apply
    """
    if apply_ and accept:
        raise InputError("give either --apply to recover memories or --accept to keep facts.db as it is")
    _refuse_shared("recover a folder")
    if apply_ or accept:
        dismiss(folder)
    with steps("collecting", quiet=output.as_json):
        found = bring_back(folder, apply=apply_, accept=accept)
    output.json({**asdict(found), "brought": found.brought, "total": found.total})
    _show_recovery(output, found, accept=accept)
    useful = found.applied or found.truth is not Truth.SOUND or any(source.brings for source in found.brought)
    return OK if useful else FOUND_NOTHING


def _show_recovery(output: Output, found: Recovery, *, accept: bool) -> None:
    output.line(f"{found.said}." if found.said else "facts.db is current.")
    header = ("source", "written", "memories", "recoverable", "to review", "purged", "problem")
    rows = [(s.source, minute_utc(s.at), s.holds, s.brings, s.waits, s.purged, s.problem) for s in found.brought]
    output.table(header, rows, none="")
    if found.turns:
        turns = counted(found.turns, "turn")
        output.line(f"In the inbox: {turns}; a running host captures them within a minute, or the next one to start.")
    if found.conversations:
        output.line(f"Recorded: {counted(found.conversations, 'conversation')}. Capture the rest: perdure distill")
    if found.purged:
        output.line(f"Left out, because they have been purged since: {counted(found.purged, 'memory')}.")
    if found.applied:
        previous = f" Previous file: {found.kept}" if found.kept else ""
        output.line(f"The store now holds {counted(found.total, 'memory')}.{previous}")
        if any(source.waits for source in found.brought):
            output.line("Some need review: perdure review")
    elif found.truth is Truth.SOUND and not any(source.brings for source in found.brought):
        output.line("Nothing is missing.")
    elif not accept:
        output.line(f"The store would hold {counted(found.total, 'memory')}. Recover: perdure recover --apply")
        if found.truth not in (Truth.SOUND, Truth.DAMAGED):
            how = "start an empty store" if found.truth is Truth.MISSING else "accept facts.db as it is"
            output.line(f"Or {how}: perdure recover --accept")


def _refuse_shared(what: str) -> None:
    """Refuse to `what` unless the memories are in a folder."""
    if Settings.load().store_url is not None:
        raise InputError(
            f"the memories are in PostgreSQL: restore a backup of the server. To {what} anyway, unset store_url "
            "(PERDURE_STORE_URL); to move that folder to a server afterwards: perdure move"
        )
