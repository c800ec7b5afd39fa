"""`perdure inbox`: turns that were acknowledged and are no memories."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from typing import Any

import click

from perdure.api.inbox import InboxTurn
from perdure.api.memory import Memory
from perdure.cli.options import dry_run_option, on_memory, store_options
from perdure.cli.output import Output
from perdure.text.pluralize import counted


@click.group(invoke_without_command=True)
@store_options
@click.pass_context
def inbox(context: click.Context, /, **given: Any) -> int:
    """Show the turns that wait to be captured, that failed, and of damaged ones what can be read.

    Example: perdure inbox
    """
    if context.invoked_subcommand is None:
        context.invoke(list_, **given)
    return 0


@inbox.command(name="list")
@on_memory(reads=True)
def list_(memory: Memory, output: Output) -> int:
    """Show them, oldest first.

    Example: perdure inbox list --json
    """
    _show(output, memory.admin.inbox(), "Nothing waits.")
    return 0


@inbox.command()
@click.argument("ids", metavar="ID...", nargs=-1, required=True)
@dry_run_option
@on_memory()
def drop(memory: Memory, output: Output, ids: tuple[str, ...], dry_run: bool) -> int:
    """Remove turns that failed or were damaged; this cannot be undone. What waits stays.

    Example: perdure inbox drop damaged-1f0c9a3e --dry-run
    """
    gone = memory.admin.drop_turns(*ids, dry_run=dry_run)
    _show(output, gone, "")
    output.line(f"{'Would remove' if dry_run else 'Removed'} {counted(len(gone), 'turn')}.")
    return 0


def _show(output: Output, turns: Sequence[InboxTurn], none: str) -> None:
    if output.as_json:
        output.json({"turns": [turn.to_dict() for turn in turns]})
    elif turns:
        output.table(
            ("id", "when", "state", "text"), [(turn.id, _when(turn.at), turn.state, turn.text) for turn in turns]
        )
    else:
        output.line(none)


def _when(at: float) -> str:
    return dt.datetime.fromtimestamp(at).astimezone().strftime("%Y-%m-%d %H:%M")
