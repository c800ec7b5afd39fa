"""`perdure revive`: what earlier rules hid or shortened comes back."""

from __future__ import annotations

from dataclasses import asdict

import click

from perdure.api.memory import Memory
from perdure.cli.options import dry_run_option, on_memory
from perdure.cli.output import SHORT_ID, Output, steps, tell
from perdure.text.pluralize import counted


@click.command()
@dry_run_option
@on_memory()
def revive(memory: Memory, output: Output, dry_run: bool) -> int:
    """Bring back what earlier rules let expire, gave a short life or replaced on a guess.

    It is done by itself at the first start after an update. What had been replaced waits for `perdure review`. Nothing
    that you forgot or purged comes back.

    Example: perdure revive --dry-run
    """
    with steps("reviving", quiet=output.as_json):
        done = memory.upkeep.revive(dry_run=dry_run)
    if output.as_json:
        output.json({**asdict(done), "dry_run": dry_run})
        return 0
    would = "would " if dry_run else ""
    output.table(
        ("id", "replaced by", "text"),
        [(each.id[:SHORT_ID], (each.beside or "")[:SHORT_ID], each.text) for each in done.review],
    )
    output.line(f"{counted(len(done.expired), 'memory')} {'would come' if dry_run else 'came'} back that had expired")
    output.line(f"{len(done.lengthened) - len(done.expired)} more {would}live longer, as nobody gave them an end")
    output.line(f"{len(done.review)} {would}wait for a review that had been replaced or withdrawn: perdure review")
    if done.removed:
        output.line(f"{done.removed} were removed for good after they had expired")
        for path, count in (done.kept_in or {}).items():
            tell(f"{count} of them are in {path}")
    if done.batch:
        output.line(f"Take it back with: perdure undo --batch {done.batch}")
    return 0
