"""Commands that consolidate memories: consolidate, reflect, distill, classify, prune; and checkpoints."""

from __future__ import annotations

from collections.abc import Sequence

import click

from perdure.api import tool_arguments as arguments
from perdure.api.memory import Memory
from perdure.cli.operation import operation
from perdure.cli.options import arguments_option
from perdure.cli.output import SHORT_ID, Output, minute, steps, tell
from perdure.consolidation.checkpoints import Checkpoint
from perdure.hooks.types import Channel
from perdure.text.pluralize import counted


@operation(model=True)
@click.option("--cosine", type=click.FloatRange(0.5, 1.0), help="Similarity threshold for merging; default: 0.92.")
def consolidate(memory: Memory, output: Output, cosine: float | None, dry_run: bool) -> None:
    """Merge duplicate memories; revert with `perdure undo`.

    Example: perdure consolidate --dry-run
    """
    with steps("comparing", quiet=output.as_json) as progress:
        done = memory.upkeep.consolidate(cosine=cosine, dry_run=dry_run, progress=progress)
    output.json(done, dry_run=dry_run)
    for merge in done.merges:
        output.line(merge.text, style="bold")
        for text in merge.texts:
            output.line(f"  {text}")
    what = f"{'would merge' if dry_run else 'merged'} {sum(len(merge.ids) for merge in done.merges)}"
    output.line(f"Compared {counted(done.examined, 'memory')}, {what} into {len(done.merges)}.")
    if done.batch:
        output.line(f"Undo: perdure undo --batch {done.batch}")


@operation(model=True)
@arguments_option("days", arguments.Reflect)
@click.option("--observations", type=int, help="Minimum number of memories that form a pattern; default: 2.")
def reflect(memory: Memory, output: Output, days: int, observations: int | None, dry_run: bool) -> None:
    """Find patterns in memories from different days, with evidence.

    A shared topic alone is not a pattern.

    Example: perdure reflect --days 30 --dry-run
    """
    with steps("looking for patterns", quiet=output.as_json):
        done = memory.upkeep.reflect(days=days, observations=observations, dry_run=dry_run, channel=Channel.CLI)
    output.json(done, dry_run=dry_run)
    output.table(("action", "kind", "pattern"), [(each.action, each.kind, each.text) for each in done.patterns])
    output.line(f"Examined {counted(done.examined, 'memory')}, found {counted(len(done.patterns), 'pattern')}.")


@operation(model=True)
def distill(memory: Memory, output: Output, dry_run: bool) -> None:
    """Capture recorded conversations that were not captured live.

    Repeat an interrupted run to resume it.

    Example: perdure distill --dry-run
    """
    with steps("distilling", quiet=output.as_json) as progress:
        done = memory.upkeep.distill(dry_run=dry_run, progress=progress)
    output.json(done, dry_run=dry_run)
    for name, reason in () if output.as_json else done.skipped.items():
        tell(f"skipped {name}: {reason}")
    new = f"{counted(done.messages, 'new message')}, {counted(done.added, 'new memory')}"
    output.line(f"{counted(done.sessions, 'conversation')}, {new}")


@operation()
def classify(memory: Memory, output: Output, dry_run: bool) -> None:
    """Assign a category to memories in "other".

    The words of each memory decide, then similar memories.

    Example: perdure classify --dry-run
    """
    with steps("classifying", quiet=output.as_json) as moved:
        done = memory.admin.classify(dry_run=dry_run, progress=moved)
    output.json({"dry_run": dry_run, "classified": done})
    rows = [(each.id[:SHORT_ID], each.category, each.by, memory.get(each.id).text) for each in done]
    output.table(("id", "category", "by", "text"), rows)
    output.line(f"{'Would classify' if dry_run else 'Classified'} {counted(len(done), 'memory')}.")


@operation()
def prune(memory: Memory, output: Output, dry_run: bool, yes: bool) -> int:
    """Expire memories that are due and remove long-expired ones.

    Exit code 1: suspiciously many would expire at once, perhaps because the clock is wrong; confirm with --yes.

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
        output.line(f"{counted(len(done.proposals), 'unanswered proposal')} {would}removed")
    if done.batch:
        output.line(f"Undo: perdure undo --batch {done.batch}")
    return 0


@click.group()
def checkpoint() -> None:
    """Save and show checkpoints of work, each kept for four hours.

    Example: perdure checkpoint restore
    """


@operation(checkpoint)
@arguments_option("state expected", arguments.Checkpoint)
def save(memory: Memory, output: Output, intent: str, state: str | None, expected: str) -> None:
    """Save a checkpoint.

    Example: perdure checkpoint save "move the database" --state "backup made" --expected "no downtime"
    """
    _show(output, [memory.upkeep.checkpoint(intent, state or "", expected, channel=Channel.CLI)])


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
        output.line("No checkpoints in the last four hours. Save one: perdure checkpoint save INTENT")


def _show(output: Output, found: Sequence[Checkpoint]) -> None:
    output.json({"checkpoints": found})
    for each in found:
        output.line(f"{each.id[:SHORT_ID]}  {minute(each.at)}  {each.intent}")
        for name, text in (("state", each.state), ("expected", each.expected)):
            if text:
                output.line(f"  {name}: {text}")
