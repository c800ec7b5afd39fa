"""`perdure recover`: a store back that lost its truth."""

from __future__ import annotations

from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path

import click

from perdure.cli.backup import refuse_shared
from perdure.cli.options import home_option, json_option
from perdure.cli.output import FOUND_NOTHING, OK, Output, steps
from perdure.engine.paths import data_folder
from perdure.errors import InputError
from perdure.maintenance.recovery import Recovery
from perdure.maintenance.recovery import recover as bring_back
from perdure.service.client import dismiss
from perdure.store.rollback_guard import Truth
from perdure.text.pluralize import counted


@click.command()
@click.option("--apply", "apply_", is_flag=True, help="Bring it back; without it only show what there is.")
@click.option("--accept", is_flag=True, help="Take facts.db as it is instead; begin an empty one if there is none.")
@home_option
@json_option
def recover(home: Path | None, apply_: bool, accept: bool, as_json: bool) -> int:
    """Bring back what is left of memories whose facts.db was lost, replaced or damaged. Exit code 1: there is nothing.

    Example: perdure recover --apply
    """
    if apply_ and accept:
        raise InputError("give --apply to bring memories back, or --accept to take facts.db as it is")
    refuse_shared("recover what is in a folder")
    if apply_ or accept:
        dismiss(data_folder(home))
    with steps("putting together", quiet=as_json):
        found = bring_back(data_folder(home), apply=apply_, accept=accept)
    output = Output(as_json)
    if as_json:
        brought = [asdict(source) for source in found.brought]
        kept = found.kept and str(found.kept)
        output.json({**asdict(found), "brought": brought, "total": found.total, "kept": kept})
    else:
        _show(output, found, accept=accept)
    useful = found.applied or found.truth is not Truth.SOUND or any(source.brings for source in found.brought)
    return OK if useful else FOUND_NOTHING


def _show(output: Output, found: Recovery, *, accept: bool) -> None:
    output.line(f"{found.said}." if found.said else "facts.db is the one that the folder remembers.")
    if found.brought:
        header = ("from", "written", "holds", "brings back", "of them for review", "stay purged", "")
        rows = [(s.source, _when(s.at), s.holds, s.brings, s.waits, s.purged, s.problem or "") for s in found.brought]
        output.table(header, rows)
    if found.turns:
        output.line(f"In the inbox: {counted(found.turns, 'turn')}, captured at the next start of a host.")
    if found.conversations:
        output.line(f"{found.conversations} conversations are recorded; perdure distill finds what is missing in them.")
    if found.purged:
        output.line(f"Purged since, and so left out: {counted(found.purged, 'memory')}.")
    if found.applied:
        output.line(
            f"It holds {counted(found.total, 'memory')} now."
            + (f" The former file: {found.kept}" if found.kept else "")
        )
        if any(source.waits for source in found.brought):
            output.line("Some wait for your word: perdure review")
    elif found.truth is Truth.SOUND and not any(source.brings for source in found.brought):
        output.line("Nothing is missing in it that anything else here has.")
    elif not accept:
        output.line(f"It would hold {counted(found.total, 'memory')}. Do it: perdure recover --apply")
        if found.truth not in (Truth.SOUND, Truth.DAMAGED):
            how = "begin an empty one" if found.truth is Truth.MISSING else "take facts.db as it is"
            output.line(f"Or {how}: perdure recover --accept")


def _when(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M UTC")
