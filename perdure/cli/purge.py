"""Commands that remove for good: purge, scrub and uninstall."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import asdict
from pathlib import Path

import click

from perdure.cli.main import COMMANDS
from perdure.cli.operation import operation
from perdure.cli.options import existing_store
from perdure.cli.output import FOUND_NOTHING, OK, Output, confirm, minute, steps
from perdure.engine.file_memory import files_options
from perdure.engine.file_purge import cleaner, scrub_folder
from perdure.engine.paths import forget_home, recorded_host
from perdure.engine.settings import Settings
from perdure.errors import HostError, InputError, StoreError
from perdure.hooks.types import Channel
from perdure.maintenance.exchange import fact_count
from perdure.maintenance.purge import PENDING, Doomed, Purge, certify, holding, plan, purges, resolve
from perdure.maintenance.purge import purge as remove
from perdure.maintenance.teardown import contents, doomed, purge_tenant, purged_at, remaining, tenant_of
from perdure.maintenance.teardown import remove as remove_all
from perdure.parts import part
from perdure.service.client import dismiss
from perdure.store.inbox_lines import damaged_turns
from perdure.store.sql import marks, run
from perdure.store.store import Store
from perdure.store.transaction import Author
from perdure.text.pluralize import counted

AUTHOR = Author(Channel.CLI, "cli")


@operation()
@click.argument("ids", nargs=-1)
@click.option("--query", help="Also every memory that contains this text.")
@click.option("--tenant", is_flag=True, help="All memories of the tenant on the server, for every user.")
@click.option("--status", "only_status", is_flag=True, help="Finish and list earlier purges.")
def purge(
    folder: Path, output: Output, ids: tuple[str, ...], query: str | None, tenant: bool, only_status: bool,
    dry_run: bool, yes: bool,
) -> int:  # fmt: skip
    """Erase memories from every file, with a certificate. No undo.

    Exit code 1: nothing matched, or the removal is not certified yet.

    Example: perdure purge 3f2c9a1e --dry-run
    """
    if tenant and not only_status:
        if ids or query:
            raise InputError("--tenant removes all memories; omit ids and --query")
        return _purge_tenant(folder, output, dry_run=dry_run, yes=yes)
    with existing_store(folder, "empty") as store:
        if only_status:
            dismiss(folder)
            _finish(store, output)
            return _show(output, purges(store))
        chosen = _plan(store, ids, query)
        if dry_run or not chosen:
            return _planned(store, output, chosen)
        if not yes:
            if not output.as_json:
                _planned(store, output, chosen)
            confirm("Erase permanently?")
        dismiss(folder)
        made = remove(store, [item.id for item in chosen], AUTHOR)
        return _show(output, [item for item in _finish(store, output) if item.id == made.id])


@operation()
def scrub(folder: Path, output: Output, dry_run: bool) -> int:
    """Remove secrets from stored memories. No undo.

    Exit code 1: traces of the secrets are still on disk.

    Example: perdure scrub --dry-run
    """
    with existing_store(folder) as store, steps("scanning for secrets", quiet=output.as_json):
        done = scrub_folder(store, files_options(Settings.load()), AUTHOR, dry_run)
    output.both(done, ("", ""), (asdict(done) | {"facts": len(done.facts)}).items())
    if done.waiting:
        output.line(f"Pending: {done.waiting}. Retry: perdure purge --status")
    return int(done.state == PENDING)


@operation()
@click.option("--purge-data", is_flag=True, help="Also remove all memories, backups and secrets.")
def uninstall(folder: Path, output: Output, purge_data: bool, dry_run: bool, yes: bool) -> None:
    """Prepare to uninstall perdure, optionally deleting all its data.

    Memories stay unless you pass --purge-data. Disconnect all hosts first; otherwise their hooks
    will have nothing to run.

    Example: perdure uninstall --purge-data --dry-run
    """
    recorded, left = recorded_host(), None
    found = contents(folder) if purge_data else None
    if connected := _connected():
        if not dry_run:
            raise HostError(connected)
        output.line(connected)
    if recorded is not None:
        output.line(f"{recorded[0]} no longer uses the data folder {recorded[1]}.")
    if found is None:
        output.line(f"The memories in {folder} are kept; --purge-data removes them.")
    else:
        output.line(f"Removes from {folder} ({found.size / 1e6:.1f} MB):")
        output.table(("",), [(path.name,) for path in found.made])
        if found.others:
            output.line("Other files there are kept:")
            output.table(("",), [(path.name,) for path in found.others])
    if not dry_run:
        if found is not None:
            if not yes:
                confirm("Erase permanently?")
            dismiss(folder)
            left = _left_elsewhere(folder)
            remove_all(folder)
        forget_home()
        if left:
            output.line(f"{left} is unreachable; remove the LanceDB tables of these memories there.")
        output.line("Done. Remove the program with: pip uninstall perdure")
    output.json({
        "home": folder, "host": recorded and recorded[0], "removed": found.made if found else [],
        "kept": found.others if found else [folder], "done": not dry_run, "left": left,
    })  # fmt: skip


def _left_elsewhere(folder: Path) -> str | None:
    """Remove LanceDB tables outside the folder; return their address if it is unreachable."""
    try:
        with existing_store(folder) as store:
            part("lance.drift").drop_elsewhere(store)
    except StoreError:
        return Settings.load().lance_url
    return None


def _connected() -> str:
    """Return which hosts have perdure in their config, and how to remove it; empty: none."""
    survey, recorded = part("hosts.connect.survey"), part("hosts.connect.config_file").recorded
    names = [each.name for each in survey.survey() if each.places or any(recorded(each.name))]
    if not names:
        return ""
    how = "; ".join(f"perdure {f'{name} uninstall' if name in COMMANDS else f'disconnect {name}'}" for name in names)
    return f"perdure is in the config of {', '.join(names)}; run first: {how}"


def _purge_tenant(folder: Path, output: Output, *, dry_run: bool, yes: bool) -> int:
    from perdure.engine.store_opening import open_tenant

    with closing(open_tenant(folder)) as store:
        tenant_of(store)
        if dry_run:
            return _planned_tenant(store, output)
        if not yes:
            if not output.as_json:
                _planned_tenant(store, output)
            confirm("Remove everything for good?")
        dismiss(folder)
        done = purge_tenant(store)
    output.say(done, f"Removed {counted(sum(done.rows.values()), 'row')} of tenant {done.tenant}, {done.left} left")
    _name(output, {"removed": done.files, "kept": done.stays})
    output.line(f"Certificate: {done.certificate}")
    _name(output, {"unreachable": done.beyond})
    return OK if not done.left else FOUND_NOTHING


def _planned_tenant(store: Store, output: Output) -> int:
    files = [path.relative_to(store.folder).as_posix() for path in doomed(store.folder, copies=True)]
    count, stays, at = fact_count(store), remaining(store.folder), purged_at(store)
    output.json({"would_remove_memories": count, "would_remove_files": files, "would_stay": stays, "purged_at": at})
    if at is not None:
        day = time.strftime("%Y-%m-%d", time.gmtime(at))
        output.line(f"Purged on {day}; would remove what is left, and certify it.")
    else:
        output.line(f"Would remove the whole tenant: {counted(count, 'memory')}, with history.")
    _name(output, {"would remove": files, "would keep": stays})
    return OK


def _name(output: Output, found: Mapping[str, Sequence[str]]) -> None:
    for how, names in found.items():
        for name in names:
            output.line(f"  {how}: {name}")


def _finish(store: Store, output: Output) -> list[Purge]:
    with steps("removing", quiet=output.as_json):
        return certify(store, cleaner(store, files_options(Settings.load())))


def _plan(store: Store, ids: tuple[str, ...], query: str | None) -> list[Doomed]:
    if not ids and not (query or "").strip():
        raise InputError("specify what to purge: IDs or --query TEXT; or pass --status")
    with store.database.read() as connection:
        chosen = [resolve(connection, prefix) for prefix in ids]
        chosen += holding(connection, query.strip()) if query else []
        return plan(connection, dict.fromkeys(chosen))


def _planned(store: Store, output: Output, chosen: list[Doomed]) -> int:
    damaged, ids = len(damaged_turns(store.folder / "inbox")), [item.id for item in chosen]
    rows = store.database.query(run, f"SELECT id, text FROM facts WHERE id IN ({marks(ids)})", ids)
    texts: dict[str, str] = dict(rows)
    doomed = [asdict(item) | {"text": texts[item.id]} for item in chosen]
    output.json({"would_remove": doomed, "damaged_turns": damaged})
    output.table(("id", "why", "text"), [tuple(each.values()) for each in doomed])
    output.line(f"Would remove {counted(len(chosen), 'memory')}.")
    if damaged and chosen:
        output.line(f"Would also remove {counted(damaged, 'damaged turn')}, which cannot be searched: perdure review")
    return OK if chosen else FOUND_NOTHING


def _show(output: Output, found: list[Purge]) -> int:
    output.json({"purges": found})
    for item in found:
        output.line(f"{minute(item.asked_at)}  {counted(len(item.facts), 'memory')}  {item.state}  {item.id}")
        if item.waiting:
            output.line(f"  not certified yet: {item.waiting}. Retry: perdure purge --status")
        for path, kind in item.kept:
            output.line(f"  still in: {path} ({kind})")
        if item.damaged:
            output.line(f"  also removed: {counted(item.damaged, 'damaged turn')}, which cannot be searched")
    output.line(f"Not searched: {'; '.join(found[0].beyond)}." if found else "No purges yet.")
    return int(any(item.state == PENDING for item in found))
