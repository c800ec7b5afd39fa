"""`perdure prune`: let memories expire whose time is over."""

from __future__ import annotations

from dataclasses import asdict

import click

from perdure.api.memory import Memory
from perdure.cli.options import dry_run_option, on_memory, yes_option
from perdure.cli.output import Output
from perdure.text.pluralize import counted


@click.command()
@dry_run_option
@yes_option
@on_memory()
def prune(memory: Memory, output: Output, dry_run: bool, yes: bool) -> int:
    """Let memories expire whose time is over, and remove what expired long ago.

    Exit code 1: so much would expire at once that the clock may be wrong; it waits for --yes.

    Example: perdure prune --dry-run
    """
    done = memory.admin.prune(dry_run=dry_run, confirmed=yes)
    if output.as_json:
        output.json(asdict(done))
    elif done.parked is not None:
        output.line(
            f"{done.parked.facts} of {counted(done.parked.total, 'memory')} would expire at once, so none did. "
            "If the clock is right: perdure prune --yes"
        )
    else:
        would = "would be " if dry_run else ""
        output.line(f"{counted(len(done.expired), 'memory')} {would}expired, {len(done.removed)} {would}removed")
        if done.proposals:
            output.line(f"{len(done.proposals)} proposals {would}removed that nobody answered in time")
        if done.batch:
            output.line(f"They come back with: perdure undo --batch {done.batch}")
    return int(done.parked is not None)
