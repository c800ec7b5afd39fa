"""Commands on single memories."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import click

from perdure.cli.options import moment, on_memory
from perdure.cli.output import Output
from perdure.hooks.types import Channel
from perdure.plugin.memory import Memory
from perdure.store.fact import Fact
from perdure.store.links import TYPES
from perdure.store.listing import Filter
from perdure.store.scope import Scope

SHORT_ID = 8


@click.command()
@click.argument("text")
@click.option("--category", help="Instead of the one that the words give.")
@click.option("--importance", type=float, default=0.5, show_default=True, help="0 to 1.")
@click.option("--entity", help="Of the slot it fills.")
@click.option("--key", help="Of the slot it fills.")
@click.option("--value", help="Of the slot it fills.")
@click.option("--why", help="The reason.")
@click.option("--tags", help="A comma list, instead of the tags that the words give.")
@click.option("--scope", help='"global", "user:ID", "agent:ID", "project:ID"...; without it your own.')
@click.option("--supersedes", help="Id of the memory whose place it takes.")
@on_memory(model=True)
def store(memory: Memory, output: Output, text: str, tags: str | None, **given: Any) -> int:
    """Store a memory.

    Example: perdure store "The staging database is called heron." --tags infra
    """
    fact = memory.store(text, tags=tags.split(",") if tags else None, channel=Channel.CLI, **given)
    _print(output, [fact])
    return 0


@click.command(name="list")
@click.option("--category", help="Of this category.")
@click.option("--entity", help="About this entity.")
@click.option("--scope", help="Of this scope only.")
@click.option("--tag", help="With this tag.")
@click.option("--after", help="Said at or after this time.")
@click.option("--before", help="Said before this time.")
@click.option("--as-of", help="What was true at this time.")
@click.option("--superseded", is_flag=True, help="Also former versions.")
@click.option("--limit", default=20, show_default=True, help="So many at the most.")
@click.option("--offset", default=0, show_default=True, help="After so many others.")
@on_memory()
def list_(
    memory: Memory,
    output: Output,
    category: str | None,
    entity: str | None,
    scope: str | None,
    tag: str | None,
    after: str | None,
    before: str | None,
    as_of: str | None,
    superseded: bool,
    limit: int,
    offset: int,
) -> int:
    """List memories, newest first.

    Example: perdure list --category preference --limit 5
    """
    chosen = Filter(category, entity, Scope.parse(scope) if scope else None, moment(after), moment(before))
    facts = memory.admin.list(
        chosen, limit=limit, offset=offset, tag=tag, as_of=moment(as_of), include_superseded=superseded
    )
    _print(output, facts)
    return 0


@click.command()
@click.argument("entity")
@click.argument("key", required=False)
@click.option("--tag", help="With this tag.")
@click.option("--as-of", help="What was true at this time.")
@on_memory()
def lookup(memory: Memory, output: Output, entity: str, key: str | None, tag: str | None, as_of: str | None) -> int:
    """Show what is known about an entity, and a key of it.

    Example: perdure lookup user birthday
    """
    facts = memory.lookup(entity, key, tag=tag, as_of=moment(as_of))
    _print(output, facts)
    return 0


@click.command()
@click.argument("fact_id", metavar="ID")
@on_memory()
def show(memory: Memory, output: Output, fact_id: str) -> int:
    """Show all that is known about one memory; eight digits of its id are enough.

    Example: perdure show 1f0c9a3e
    """
    fact = memory.get(fact_id)
    if output.as_json:
        output.json(asdict(fact))
    else:
        output.table(("", ""), [(name, value) for name, value in asdict(fact).items() if value not in (None, "", ())])
    return 0


@click.command()
@click.argument("fact_id", metavar="ID")
@on_memory()
def forget(memory: Memory, output: Output, fact_id: str) -> int:
    """Leave a memory out of every answer from now on; `perdure unforget` and `perdure undo` bring it back.

    Example: perdure forget 1f0c9a3e
    """
    _print(output, [memory.forget(fact_id)])
    return 0


@click.command()
@click.argument("fact_id", metavar="ID")
@on_memory()
def unforget(memory: Memory, output: Output, fact_id: str) -> int:
    """Bring a forgotten memory back.

    Example: perdure unforget 1f0c9a3e
    """
    _print(output, [memory.unforget(fact_id)])
    return 0


@click.command()
@click.argument("source")
@click.argument("target")
@click.option("--type", "link_type", type=click.Choice(TYPES), default="RELATED_TO", show_default=True)
@click.option("--strength", type=float, default=1.0, show_default=True, help="0 to 1.")
@on_memory()
def link(memory: Memory, output: Output, source: str, target: str, link_type: str, strength: float) -> int:
    """Link two memories.

    Example: perdure link 1f0c9a3e 77ab01cd --type CAUSED_BY
    """
    made = memory.link(source, target, link_type, strength)
    if output.as_json:
        output.json(asdict(made))
    else:
        output.line(f"{made.source[:SHORT_ID]} {made.type} {made.target[:SHORT_ID]} ({made.strength:g})")
    return 0


@click.command()
@click.option("--session", help="All changes of this session.")
@click.option("--batch", help="This change.")
@on_memory()
def undo(memory: Memory, output: Output, session: str | None, batch: str | None) -> int:
    """Take back the last change, or all of a session.

    Example: perdure undo
    """
    undone = memory.undo(batch, session=session)
    if output.as_json:
        output.json(asdict(undone))
    else:
        output.line(f"{len(undone.facts)} memories changed back, {len(undone.conflicts)} left alone: changed since")
    return 0


@click.command()
@on_memory()
def stats(memory: Memory, output: Output) -> int:
    """Count memories by scope and category.

    Example: perdure stats
    """
    counted = memory.admin.stats()
    if output.as_json:
        output.json(asdict(counted))
    else:
        rows = [("all", counted.total), *counted.by_scope.items(), *counted.by_category.items()]
        output.table(("", "memories"), rows)
    return 0


def _print(output: Output, facts: Sequence[Fact]) -> None:
    if output.as_json:
        output.json({"facts": [asdict(fact) for fact in facts]})
        return
    rows = [(fact.id[:SHORT_ID], _day(fact.effective_date), fact.category, fact.text) for fact in facts]
    output.table(("id", "day", "category", "text"), rows)


def _day(seconds: float) -> str:
    return dt.datetime.fromtimestamp(seconds).astimezone().date().isoformat()
