"""Commands by which a memory looks after itself: consolidate, reflect, distill."""

from __future__ import annotations

from dataclasses import asdict

import click

from perdure.api.memory import Memory
from perdure.cli.options import dry_run_option, on_memory
from perdure.cli.output import Output, steps, tell
from perdure.hooks.types import Channel
from perdure.text.pluralize import counted


@click.command()
@click.option(
    "--cosine", type=click.FloatRange(0.5, 1.0), help="From here on two memories may say the same; without it 0.92."
)
@dry_run_option
@on_memory(model=True)
def consolidate(memory: Memory, output: Output, cosine: float | None, dry_run: bool) -> int:
    """Merge memories that say the same; `perdure undo` brings all of them back.

    Example: perdure consolidate --dry-run
    """
    with steps("comparing", quiet=output.as_json) as progress:
        done = memory.upkeep.consolidate(cosine=cosine, dry_run=dry_run, progress=progress)
    if output.as_json:
        output.json({**asdict(done), "dry_run": dry_run})
        return 0
    for merge in done.merges:
        output.line(merge.text, style="bold")
        for text in merge.texts:
            output.line(f"  {text}")
    what = "would be merged" if dry_run else "merged"
    output.line(f"{counted(done.examined, 'memory')} compared, {sum(len(merge.ids) for merge in done.merges)} {what} "
                f"into {len(done.merges)}")  # fmt: skip
    if done.batch:
        output.line(f"Take it back with: perdure undo --batch {done.batch}")
    return 0


@click.command()
@click.option("--days", type=float, help="So many days back; without it 14.")
@click.option("--observations", type=int, help="So many memories make a pattern; without it 2.")
@dry_run_option
@on_memory(model=True)
def reflect(memory: Memory, output: Output, days: float | None, observations: int | None, dry_run: bool) -> int:
    """Find what the memories of the last days have in common, and keep it with its evidence.

    Example: perdure reflect --days 30 --dry-run
    """
    with steps("looking for patterns", quiet=output.as_json):
        done = memory.upkeep.reflect(days=days, observations=observations, dry_run=dry_run, channel=Channel.CLI)
    if output.as_json:
        output.json({**asdict(done), "dry_run": dry_run})
        return 0
    output.table(("", "kind", "pattern"), [(each.action, each.kind, each.text) for each in done.patterns])
    output.line(f"{counted(done.examined, 'memory')} looked at, {counted(len(done.patterns), 'pattern')}")
    return 0


@click.command()
@dry_run_option
@on_memory(model=True)
def distill(memory: Memory, output: Output, dry_run: bool) -> int:
    """Capture recorded conversations that were not captured while they went on. Stopped, it goes on from there.

    Example: perdure distill --dry-run
    """
    with steps("distilling", quiet=output.as_json) as progress:
        done = memory.upkeep.distill(dry_run=dry_run, progress=progress)
    if output.as_json:
        output.json({**asdict(done), "dry_run": dry_run})
        return 0
    for name, reason in done.skipped.items():
        tell(f"passed over {name}: {reason}")
    new = f"{counted(done.messages, 'new message')}, {counted(done.added, 'new memory')}"
    output.line(f"{counted(done.sessions, 'conversation')}, {new}")
    return 0
