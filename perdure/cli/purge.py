"""Commands that remove for good: memories with a certificate, secrets, and perdure off this machine."""

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
from perdure.errors import InputError
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
@click.option("--query", help="Also every memory that holds this text.")
@click.option("--tenant", is_flag=True, help="All memories of the tenant, of everybody, on the server.")
@click.option("--status", "only_status", is_flag=True, help="Finish and show earlier purges.")
def purge(
    folder: Path, output: Output, ids: tuple[str, ...], query: str | None, tenant: bool, only_status: bool,
    dry_run: bool, yes: bool,
) -> int:  # fmt: skip
    """Remove memories from every file of the data folder; this cannot be undone.

    Exit code 1: nothing holds the text, or it is not certified yet that all is gone.

    Example: perdure purge 3f2c9a1e --dry-run
    """
    if tenant and not only_status:
        if ids or query:
            raise InputError("--tenant removes all memories; leave out ids and --query")
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
            confirm("Remove them for good?")
        dismiss(folder)
        made = remove(store, [item.id for item in chosen], AUTHOR)
        return _show(output, [item for item in _finish(store, output) if item.id == made.id])


@operation()
def scrub(folder: Path, output: Output, dry_run: bool) -> int:
    """Take the secrets out of what is stored; this cannot be undone. Exit code 1: old bytes are still there.

    Example: perdure scrub --dry-run
    """
    with existing_store(folder) as store, steps("looking for secrets", quiet=output.as_json):
        done = scrub_folder(store, files_options(Settings.load()), AUTHOR, dry_run)
    output.both(done, ("", ""), (asdict(done) | {"facts": len(done.facts)}).items())
    if done.waiting:
        output.line(f"waits: {done.waiting}. Repeat with: perdure purge --status")
    return int(done.state == PENDING)


@operation()
@click.option("--purge-data", is_flag=True, help="Also remove every memory, backup and secret in the data folder.")
def uninstall(folder: Path, output: Output, purge_data: bool, dry_run: bool, yes: bool) -> None:
    """Forget which host perdure was installed into and, if asked to, remove the data folder. Memories stay otherwise.

    Example: perdure uninstall --purge-data --dry-run
    """
    recorded = recorded_host()
    found = contents(folder) if purge_data else None
    _tell_hosts(output, folder, recorded)
    if found is None:
        output.line(f"The memories in {folder} stay; --purge-data removes them.")
    else:
        output.line(f"In {folder} these go, {found.size / 1e6:.1f} MB in all:")
        output.table(("",), [(path.name,) for path in found.made])
        if found.others:
            output.line("These are not ours, and stay:")
            output.table(("",), [(path.name,) for path in found.others])
    if not dry_run:
        if found is not None:
            if not yes:
                confirm("Remove them for good?")
            dismiss(folder)
            remove_all(folder)
        forget_home()
        output.line("Done. The program itself goes with: pip uninstall perdure")
    output.json({
        "home": folder, "host": recorded and recorded[0], "removed": found.made if found else [],
        "kept": found.others if found else [folder], "done": not dry_run,
    })  # fmt: skip


def _tell_hosts(output: Output, folder: Path, recorded: tuple[str, Path] | None) -> None:
    """Tell which hosts have perdure in their config, and how each is rid of it."""
    if output.as_json:
        return
    if recorded is not None:
        host, home = recorded
        output.line(f"{home} is no longer the data folder of {host}.")
        how = f"; do that first: perdure {host} uninstall" if host in COMMANDS else ""
        output.line(f"This takes nothing out of the config of {host}{how}.")
    for host in part("hosts.connect.survey").CONNECTED:
        if any(part("hosts.connect.config_file").recorded(host)):
            output.line(f"perdure stays in the config of {host}; do that first: perdure disconnect {host}")


def _purge_tenant(folder: Path, output: Output, *, dry_run: bool, yes: bool) -> int:
    from perdure.engine.opening import open_tenant

    with closing(open_tenant(folder)) as store:
        tenant_of(store)
        if dry_run:
            return _planned_tenant(store, output)
        if not yes:
            if not output.as_json:
                _planned_tenant(store, output)
            confirm("Remove all of it for good?")
        dismiss(folder)
        done = purge_tenant(store)
    output.json(done)
    output.line(f"{sum(done.rows.values())} rows of tenant {done.tenant} are gone, {done.left} are left")
    _name(output, {"removed": done.files, "stays": done.stays})
    output.line(f"Certificate: {done.certificate}")
    _name(output, {"out of reach": done.beyond})
    return OK if not done.left else FOUND_NOTHING


def _planned_tenant(store: Store, output: Output) -> int:
    files = [path.relative_to(store.folder).as_posix() for path in doomed(store.folder, copies=True)]
    count, stays, at = fact_count(store), remaining(store.folder), purged_at(store)
    output.json({"would_remove_memories": count, "would_remove_files": files, "would_stay": stays, "purged_at": at})
    if at is not None:
        day = time.strftime("%Y-%m-%d", time.gmtime(at))
        output.line(f"The tenant was purged on {day}; what is left of it would be removed, and that certified.")
    else:
        output.line(f"All {counted(count, 'memory')} of the tenant would be removed, with their history.")
    _name(output, {"would be removed": files, "would stay": stays})
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
        raise InputError("nothing is named; give ids, --query TEXT or --status")
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
    output.table(("id", "why", "text"), [tuple(each.values()) for each in doomed], none="")
    output.line(f"{counted(len(chosen), 'memory')} would be removed.")
    if damaged and chosen:
        output.line(f"So would {counted(damaged, 'damaged turn')}, in which nothing can be searched: perdure inbox")
    return OK if chosen else FOUND_NOTHING


def _show(output: Output, found: list[Purge]) -> int:
    output.json({"purges": found})
    for item in found:
        output.line(f"{minute(item.asked_at)}  {counted(len(item.facts), 'memory')}  {item.state}  {item.id}")
        if item.waiting:
            output.line(f"  waits: {item.waiting}. Repeat with: perdure purge --status")
        for path, kind in item.kept:
            output.line(f"  still holds it: {path} ({kind})")
        if item.damaged:
            output.line(f"  removed as well: {counted(item.damaged, 'damaged turn')}, in which nothing can be searched")
    output.line(f"Not searched: {'; '.join(found[0].beyond)}." if found else "Nothing was purged yet.")
    return int(any(item.state == PENDING for item in found))
