"""Commands that keep memories in order: consolidate, reflect, distill, classify, prune; and checkpoints."""

from __future__ import annotations

from collections.abc import Sequence

import click

from perdure.api.memory import Memory
from perdure.cli.operation import operation
from perdure.cli.output import SHORT_ID, Output, minute, steps, tell
from perdure.consolidation.checkpoints import Checkpoint
from perdure.hooks.types import Channel
from perdure.text.pluralize import counted


@operation(model=True)
@click.option(
    "--cosine", type=click.FloatRange(0.5, 1.0), help="From here on two memories may say the same; without it 0.92."
)
def consolidate(memory: Memory, output: Output, cosine: float | None, dry_run: bool) -> None:
    """Merge memories that say the same; `perdure undo` brings all of them back.

    Example: perdure consolidate --dry-run
    """
    with steps("comparing", quiet=output.as_json) as progress:
        done = memory.upkeep.consolidate(cosine=cosine, dry_run=dry_run, progress=progress)
    output.json(done, dry_run=dry_run)
    for merge in done.merges:
        output.line(merge.text, style="bold")
        for text in merge.texts:
            output.line(f"  {text}")
    what = f"{sum(len(merge.ids) for merge in done.merges)} {'would be merged' if dry_run else 'merged'}"
    output.line(f"{counted(done.examined, 'memory')} compared, {what} into {len(done.merges)}")
    if done.batch:
        output.line(f"Take it back with: perdure undo --batch {done.batch}")


@operation(model=True)
@click.option("--days", type=float, help="So many days back; without it 14.")
@click.option("--observations", type=int, help="So many memories make a pattern; without it 2.")
def reflect(memory: Memory, output: Output, days: float | None, observations: int | None, dry_run: bool) -> None:
    """Find what the memories of the last days have in common, and keep it with its evidence.

    Example: perdure reflect --days 30 --dry-run
    """
    with steps("looking for patterns", quiet=output.as_json):
        done = memory.upkeep.reflect(days=days, observations=observations, dry_run=dry_run, channel=Channel.CLI)
    output.json(done, dry_run=dry_run)
    output.table(("", "kind", "pattern"), [(each.action, each.kind, each.text) for each in done.patterns])
    output.line(f"{counted(done.examined, 'memory')} looked at, {counted(len(done.patterns), 'pattern')}")


@operation(model=True)
def distill(memory: Memory, output: Output, dry_run: bool) -> None:
    """Capture recorded conversations that were not captured while they went on. Stopped, it goes on from there.

    Example: perdure distill --dry-run
    """
    with steps("distilling", quiet=output.as_json) as progress:
        done = memory.upkeep.distill(dry_run=dry_run, progress=progress)
    output.json(done, dry_run=dry_run)
    for name, reason in () if output.as_json else done.skipped.items():
        tell(f"passed over {name}: {reason}")
    new = f"{counted(done.messages, 'new message')}, {counted(done.added, 'new memory')}"
    output.line(f"{counted(done.sessions, 'conversation')}, {new}")


@operation()
def classify(memory: Memory, output: Output, dry_run: bool) -> None:
    """Give memories of the category "other" a better one.

    The language model is asked, if one is set; else their words decide, and then the memories near to them.

    Example: perdure classify --dry-run
    """
    with steps("classifying", quiet=output.as_json) as moved:
        done = memory.admin.classify(dry_run=dry_run, progress=moved)
    output.json({"dry_run": dry_run, "classified": done})
    output.table(("id", "category", "by"), [(each.id[:SHORT_ID], each.category, each.by) for each in done])
    output.line(f"{counted(len(done), 'memory')} {'would get' if dry_run else 'got'} a category.")


@operation()
def prune(memory: Memory, output: Output, dry_run: bool, yes: bool) -> int:
    """Let memories expire whose time is over, and remove what expired long ago.

    Exit code 1: so much would expire at once that the clock may be wrong; it waits for --yes.

    Example: perdure prune --dry-run
    """
    done = memory.admin.prune(dry_run=dry_run, confirmed=yes)
    output.json(done)
    if done.parked is not None:
        output.line(
            f"{done.parked.facts} of {counted(done.parked.total, 'memory')} would expire at once, so none did. "
            "If the clock is right: perdure prune --yes"
        )
        return 1
    would = "would be " if dry_run else ""
    output.line(f"{counted(len(done.expired), 'memory')} {would}expired, {len(done.removed)} {would}removed")
    if done.proposals:
        output.line(f"{len(done.proposals)} proposals {would}removed that nobody answered in time")
    if done.batch:
        output.line(f"They come back with: perdure undo --batch {done.batch}")
    return 0


@click.group()
def checkpoint() -> None:
    """Keep for four hours what is about to be done, where things stand and what should come of it.

    Example: perdure checkpoint restore
    """


@operation(checkpoint)
@click.option("--state", default="", help="Where things stand.")
@click.option("--expected", default="", help="What should come of it.")
def save(memory: Memory, output: Output, intent: str, state: str, expected: str) -> None:
    """Keep a checkpoint.

    Example: perdure checkpoint save "move the database" --state "backup made" --expected "no downtime"
    """
    _show(output, [memory.upkeep.checkpoint(intent, state, expected, channel=Channel.CLI)])


@operation(checkpoint, reads=True)
def restore(memory: Memory, output: Output) -> None:
    """Show the newest checkpoint.

    Example: perdure checkpoint restore
    """
    _show(output, [memory.upkeep.restore()])


@operation(checkpoint, "list", reads=True)
def list_checkpoints(memory: Memory, output: Output, limit: int = 20) -> None:
    """List the checkpoints of the last four hours, newest first.

    Example: perdure checkpoint list
    """
    found = memory.upkeep.checkpoints(limit)
    _show(output, found)
    if not found:
        output.line("There is no checkpoint of the last four hours.")


def _show(output: Output, found: Sequence[Checkpoint]) -> None:
    output.json({"checkpoints": found})
    for each in found:
        output.line(f"{each.id[:SHORT_ID]}  {minute(each.at)}  {each.intent}")
        for name, text in (("state", each.state), ("expected", each.expected)):
            if text:
                output.line(f"  {name}: {text}")
