"""`perdure checkpoint`: what is about to be done, kept before risky work."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence

import click

from perdure.api.memory import Memory
from perdure.cli.options import limit_option, on_memory
from perdure.cli.output import Output
from perdure.consolidation.checkpoints import Checkpoint
from perdure.hooks.types import Channel


@click.group()
def checkpoint() -> None:
    """Keep for four hours what is about to be done, where things stand and what should come of it.

    Example: perdure checkpoint restore
    """


@checkpoint.command()
@click.argument("intent")
@click.option("--state", default="", help="Where things stand.")
@click.option("--expected", default="", help="What should come of it.")
@on_memory()
def save(memory: Memory, output: Output, intent: str, state: str, expected: str) -> int:
    """Keep a checkpoint.

    Example: perdure checkpoint save "move the database" --state "backup made" --expected "no downtime"
    """
    return _show(output, [memory.upkeep.checkpoint(intent, state, expected, channel=Channel.CLI)])


@checkpoint.command()
@on_memory(reads=True)
def restore(memory: Memory, output: Output) -> int:
    """Show the newest checkpoint.

    Example: perdure checkpoint restore
    """
    return _show(output, [memory.upkeep.restore()])


@checkpoint.command(name="list")
@limit_option()
@on_memory(reads=True)
def list_(memory: Memory, output: Output, limit: int) -> int:
    """List the checkpoints of the last four hours, newest first.

    Example: perdure checkpoint list
    """
    return _show(output, memory.upkeep.checkpoints(limit))


def _show(output: Output, found: Sequence[Checkpoint]) -> int:
    if output.as_json:
        output.json({"checkpoints": [each.to_dict() for each in found]})
        return 0
    if not found:
        output.line("There is no checkpoint of the last four hours.")
    for each in found:
        made = dt.datetime.fromtimestamp(each.at).astimezone().strftime("%Y-%m-%d %H:%M")
        output.line(f"{each.id[:8]}  {made}  {each.intent}")
        for name, text in (("state", each.state), ("expected", each.expected)):
            if text:
                output.line(f"  {name}: {text}")
    return 0
