"""Commands on other names of things."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict

import click

from perdure.api.memory import Memory
from perdure.cli.facts import print_stored
from perdure.cli.options import dry_run_option, on_memory
from perdure.cli.output import OK, SHORT_ID, Output
from perdure.hooks.types import Channel
from perdure.store.fact import Fact


@click.group()
def alias() -> None:
    """Say which names are of one thing: who asks by one of them finds what is said of both.

    Example: perdure alias list
    """


@alias.command(name="add")
@click.argument("name")
@click.argument("other")
@click.option("--scope", help='"global", "user:ID", "agent:ID", "project:ID"...; without it your own.')
@on_memory(model=True)
def add(memory: Memory, output: Output, name: str, other: str, scope: str | None) -> int:
    """Keep that a thing has another name.

    Example: perdure alias add "GitHub Actions" GHA
    """
    print_stored(output, memory.aliases.add(name, other, scope=scope, channel=Channel.CLI))
    return OK


@alias.command(name="list")
@on_memory(reads=True)
def list_(memory: Memory, output: Output) -> int:
    """List the names that prompts are also asked by, newest first: what you have said, and what you have set.

    Example: perdure alias list --json
    """
    _print(output, memory.aliases.list())
    return OK


@alias.command(name="remove")
@click.argument("name")
@click.argument("other", required=False)
@dry_run_option
@on_memory()
def remove(memory: Memory, output: Output, name: str, other: str | None, dry_run: bool) -> int:
    """Forget that two names are of one thing; without OTHER, whatever else NAME is called.

    The memories that say so are forgotten; `perdure undo` brings them back.

    Example: perdure alias remove GHA --dry-run
    """
    found = memory.aliases.remove(name, other, dry_run=dry_run)
    _print(output, found)
    output.line("Would be forgotten." if dry_run else "Forgotten; perdure undo brings it back.")
    return OK


def _print(output: Output, facts: Sequence[Fact]) -> None:
    if output.as_json:
        output.json({"aliases": [asdict(fact) for fact in facts]})
    elif facts:
        rows = [(fact.id[:SHORT_ID], fact.entity, fact.value, fact.text) for fact in facts]
        output.table(("id", "name", "also", "said as"), rows)
    else:
        output.line("No other names are known. Add one: perdure alias add NAME OTHER")
