"""`perdure review`: look at what waits for a word, and say it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from types import MappingProxyType
from typing import Any

import click

from perdure.api.memory import Memory
from perdure.api.related_change import Beside, beside
from perdure.cli.facts import day
from perdure.cli.options import dry_run_option, limit_option, moment, on_memory, store_options
from perdure.cli.output import SHORT_ID, Output
from perdure.store.fact import Fact

LIMIT = 100


@click.group(invoke_without_command=True)
@click.option("--replaced", is_flag=True, help="List what was replaced or withdrawn instead.")
@click.option("--since", help="With --replaced: from this time on.")
@limit_option(LIMIT)
@store_options
@click.pass_context
def review(context: click.Context, /, replaced: bool, since: str | None, **given: Any) -> int:
    """Review memories that are not recalled before you approve them; without a command, list them.

    With --replaced, list what was replaced or withdrawn beside what took its place; `perdure review take-back` lets
    one count again.

    Example: perdure review --replaced --since 2026-01-15
    """
    if since is not None and not replaced:
        raise click.UsageError("--since needs --replaced")
    if context.invoked_subcommand is None:
        if replaced:
            context.invoke(replaced_, since=since, **given)
        else:
            context.invoke(list_, **given)
    elif replaced:
        raise click.UsageError(f"--replaced lists; it does not go with the command {context.invoked_subcommand}")
    return 0


@review.command(name="list")
@limit_option(LIMIT)
@on_memory(reads=True)
def list_(memory: Memory, output: Output, limit: int) -> int:
    """List what waits for review, newest first, beside the memory that it is about, if there is one.

    What an agent asks for stands beside the memory that it asks to replace or to forget: approve does so, reject leaves
    that one as it is. What comes back stands beside what had taken its place.

    Example: perdure review list --json
    """
    waiting = memory.admin.review(limit)
    _print(output, waiting, {fact.id: about for fact in waiting if (about := beside(memory, fact)) is not None})
    return 0


@review.command()
@click.argument("fact_ids", metavar="ID...", nargs=-1, required=True)
@dry_run_option
@on_memory()
def approve(memory: Memory, output: Output, fact_ids: tuple[str, ...], dry_run: bool) -> int:
    """Let memories be recalled from now on, or do what an agent asks for; `perdure undo` takes it back.

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


@review.command(name="take-back")
@click.argument("fact_ids", metavar="ID...", nargs=-1, required=True)
@dry_run_option
@on_memory()
def take_back(memory: Memory, output: Output, fact_ids: tuple[str, ...], dry_run: bool) -> int:
    """Let memories that were replaced or withdrawn count again; what took their place stays.

    `perdure undo` takes it back.

    Example: perdure review take-back 1f0c9a3e
    """
    _print(output, memory.admin.take_back(*fact_ids, dry_run=dry_run))
    return 0


@on_memory(reads=True)
def replaced_(memory: Memory, output: Output, since: str | None, limit: int) -> int:
    """List what was replaced or withdrawn."""
    found = memory.admin.replaced(moment(since), limit)
    if output.as_json:
        output.json({"replaced": [asdict(each) for each in found]})
        return 0
    rows = [
        (each.old.id[:SHORT_ID], day(each.at), each.old.text, each.new.id[:SHORT_ID] if each.new else "",
         each.new.text if each.new else "", each.reason)
        for each in found
    ]  # fmt: skip
    output.table(("id", "day", "text", "replaced by", "its text", "why"), rows)
    return 0


def _print(output: Output, facts: Sequence[Fact], others: Mapping[str, Beside] = MappingProxyType({})) -> None:
    if output.as_json:
        about = {name: {"beside": asdict(each.fact), "relation": each.relation} for name, each in others.items()}
        output.json({"facts": [asdict(fact) | about.get(fact.id, {}) for fact in facts]})
        return
    rows = [
        (fact.id[:SHORT_ID], fact.review_state, fact.channel.value, _why(fact, others.get(fact.id)), fact.text)
        for fact in facts
    ]
    output.table(("id", "review", "from", "why", "text"), rows)


def _why(fact: Fact, about: Beside | None) -> str:
    if about is None:
        return str(fact.metadata.get("review", ""))
    return f"{about.relation} {about.fact.id[:SHORT_ID]}: {about.fact.text}"
