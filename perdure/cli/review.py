"""`perdure review`: look at what waits for a word, and say it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import click

from perdure.cli.options import dry_run_option, limit_option, on_memory, store_options
from perdure.cli.output import SHORT_ID, Output
from perdure.plugin.memory import Memory
from perdure.store.fact import Fact

LIMIT = 100


@click.group(invoke_without_command=True)
@store_options
@click.pass_context
def review(context: click.Context, /, **given: Any) -> int:
    """Review memories that are not recalled before you approve them; without a command, list them.

    Example: perdure review approve 1f0c9a3e
    """
    if context.invoked_subcommand is None:
        context.invoke(list_, limit=LIMIT, **given)
    return 0


@review.command(name="list")
@limit_option(LIMIT)
@on_memory()
def list_(memory: Memory, output: Output, limit: int) -> int:
    """List what waits for review, newest first.

    Example: perdure review list --json
    """
    _print(output, memory.admin.review(limit))
    return 0


@review.command()
@click.argument("fact_ids", metavar="ID...", nargs=-1, required=True)
@dry_run_option
@on_memory()
def approve(memory: Memory, output: Output, fact_ids: tuple[str, ...], dry_run: bool) -> int:
    """Let memories be recalled from now on; `perdure undo` takes it back.

    Example: perdure review approve 1f0c9a3e 77ab01cd
    """
    _print(output, memory.admin.approve(*fact_ids, dry_run=dry_run))
    return 0


@review.command()
@click.argument("fact_ids", metavar="ID...", nargs=-1, required=True)
@dry_run_option
@on_memory()
def reject(memory: Memory, output: Output, fact_ids: tuple[str, ...], dry_run: bool) -> int:
    """Keep memories from being recalled unasked; `perdure undo` takes it back.

    Example: perdure review reject 1f0c9a3e
    """
    _print(output, memory.admin.reject(*fact_ids, dry_run=dry_run))
    return 0


def _print(output: Output, facts: Sequence[Fact]) -> None:
    if output.as_json:
        output.json({"facts": [asdict(fact) for fact in facts]})
        return
    rows = [
        (fact.id[:SHORT_ID], fact.review_state, fact.channel.value, fact.metadata.get("review", ""), fact.text)
        for fact in facts
    ]
    output.table(("id", "review", "from", "why", "text"), rows)
