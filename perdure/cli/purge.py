"""`perdure purge`: remove memories for good, with a certificate."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import asdict
from pathlib import Path

import click

from perdure.cli.options import dry_run_option, existing_store, home_option, json_option, yes_option
from perdure.cli.output import FOUND_NOTHING, OK, Output, confirm, steps
from perdure.errors import InputError
from perdure.hooks.types import Channel
from perdure.maintenance.exchange import fact_count
from perdure.maintenance.purge import PENDING, Doomed, Purge, certify, holding, plan, purges, resolve
from perdure.maintenance.purge import purge as remove
from perdure.service.client import dismiss
from perdure.store.inbox_lines import damaged_turns
from perdure.store.store import Store
from perdure.store.transaction import Author
from perdure.text.pluralize import counted

AUTHOR = Author(Channel.CLI, "cli")


@click.command()
@click.argument("ids", nargs=-1)
@click.option("--query", help="Also every memory that holds this text.")
@click.option("--tenant", is_flag=True, help="All memories of the tenant, of everybody, on the server.")
@click.option("--status", "only_status", is_flag=True, help="Finish and show earlier purges.")
@dry_run_option
@yes_option
@home_option
@json_option
def purge(
    ids: tuple[str, ...],
    query: str | None,
    tenant: bool,
    only_status: bool,
    home: Path | None,
    dry_run: bool,
    yes: bool,
    as_json: bool,
) -> int:
    """Remove memories from every file of the data folder; this cannot be undone.

    Exit code 1: nothing holds the text, or it is not certified yet that all is gone.

    Example: perdure purge 3f2c9a1e --dry-run
    """
    output = Output(as_json)
    if tenant and not only_status:
        if ids or query:
            raise InputError("--tenant removes all memories; leave out ids and --query")
        return _purge_tenant(home, output, dry_run=dry_run, yes=yes)
    with existing_store(home, "empty") as store:
        if only_status:
            dismiss(store.folder)
            _finish(store, output)
            return _show(output, as_json, purges(store))
        doomed = _plan(store, ids, query)
        if dry_run or not doomed:
            return _planned(store, output, doomed)
        if not yes and not as_json:
            _planned(store, output, doomed)
        if not yes:
            confirm("Remove them for good?")
        dismiss(store.folder)
        made = remove(store, [item.id for item in doomed], AUTHOR)
        return _show(output, as_json, [item for item in _finish(store, output) if item.id == made.id])


def _purge_tenant(home: Path | None, output: Output, *, dry_run: bool, yes: bool) -> int:
    from perdure.engine.opening import open_tenant
    from perdure.engine.paths import data_folder
    from perdure.maintenance.teardown import purge_tenant, tenant_of

    with closing(open_tenant(data_folder(home))) as store:
        tenant_of(store)
        if dry_run:
            return _planned_tenant(store, output)
        if not yes and not output.as_json:
            _planned_tenant(store, output)
        if not yes:
            confirm("Remove all of it for good?")
        dismiss(store.folder)
        done = purge_tenant(store)
    if output.as_json:
        output.json(asdict(done))
    output.line(f"{sum(done.rows.values())} rows of tenant {done.tenant} are gone, {done.left} are left")
    _name(output, {"removed": done.files, "stays": done.stays})
    output.line(f"Certificate: {done.certificate}")
    _name(output, {"out of reach": done.beyond})
    return OK if not done.left else FOUND_NOTHING


def _planned_tenant(store: Store, output: Output) -> int:
    from perdure.maintenance.teardown import doomed, purged_at, remaining

    files = [path.relative_to(store.folder).as_posix() for path in doomed(store.folder, copies=True)]
    count, stays, at = fact_count(store), remaining(store.folder), purged_at(store)
    if output.as_json:
        output.json({
            "would_remove_memories": count, "would_remove_files": files, "would_stay": stays, "purged_at": at,
        })  # fmt: skip
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
    from perdure.engine.file_memory import files_options
    from perdure.engine.file_purge import cleaner
    from perdure.engine.settings import Settings

    with steps("removing", quiet=output.as_json):
        return certify(store, cleaner(store, files_options(Settings.load())))


def _plan(store: Store, ids: tuple[str, ...], query: str | None) -> list[Doomed]:
    if not ids and not (query or "").strip():
        raise InputError("nothing is named; give ids, --query TEXT or --status")
    with store.database.read() as connection:
        chosen = [resolve(connection, prefix) for prefix in ids]
        chosen += holding(connection, query.strip()) if query else []
        return plan(connection, dict.fromkeys(chosen))


def _planned(store: Store, output: Output, doomed: list[Doomed]) -> int:
    damaged = len(damaged_turns(store.folder / "inbox"))
    if output.as_json:
        output.json({"would_remove": [asdict(item) for item in doomed], "damaged_turns": damaged})
    elif doomed:
        output.table(("id", "why"), [(item.id, item.why) for item in doomed])
    output.line(f"{counted(len(doomed), 'memory')} would be removed.")
    if damaged and doomed:
        output.line(f"So would {counted(damaged, 'damaged turn')}, in which nothing can be searched: perdure inbox")
    return OK if doomed else FOUND_NOTHING


def _show(output: Output, as_json: bool, found: list[Purge]) -> int:
    if as_json:
        output.json({"purges": [asdict(item) for item in found]})
    for item in found:
        asked = time.strftime("%Y-%m-%d %H:%M", time.localtime(item.asked_at))
        output.line(f"{asked}  {counted(len(item.facts), 'memory')}  {item.state}  {item.id}")
        if item.waiting:
            output.line(f"  waits: {item.waiting}. Repeat with: perdure purge --status")
        for path, kind in item.kept:
            output.line(f"  still holds it: {path} ({kind})")
        if item.damaged:
            output.line(f"  removed as well: {counted(item.damaged, 'damaged turn')}, in which nothing can be searched")
    if not found:
        output.line("Nothing was purged yet.")
    elif not as_json:
        output.line(f"Not searched: {'; '.join(found[0].beyond)}.")
    return int(any(item.state == PENDING for item in found))
