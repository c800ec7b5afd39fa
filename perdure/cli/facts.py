"""Commands on single memories."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import click

from perdure.cli.options import dry_run_option, limit_option, moment, on_memory, scope_option
from perdure.cli.output import FOUND_NOTHING, OK, SHORT_ID, Output
from perdure.hooks.types import Channel
from perdure.plugin.memory import Memory
from perdure.ranking.decay import LIFETIMES
from perdure.store.fact import Fact
from perdure.store.listing import Filter
from perdure.store.scope import Scope


@click.command()
@click.argument("words", metavar="[TEXT]", required=False)
@click.option("--text", "text", help="The memory, instead of the argument.")
@click.option("--category", help="Instead of the one that the words give.")
@click.option("--importance", type=float, default=0.5, show_default=True, help="0 to 1.")
@click.option("--entity", help="Of the slot it fills.")
@click.option("--key", help="Of the slot it fills.")
@click.option("--value", help="Of the slot it fills.")
@click.option("--why", help="The reason.")
@click.option("--tags", help="A comma list, instead of the tags that the words give.")
@click.option("--decay", "decay_class", type=click.Choice(list(LIFETIMES)), help="How long it lives.")
@click.option("--scope", help='"global", "user:ID", "agent:ID", "project:ID"...; without it your own.')
@click.option("--supersedes", help="Id of the memory whose place it takes.")
@on_memory(model=True)
def store(memory: Memory, output: Output, words: str | None, text: str | None, tags: str | None, **given: Any) -> int:
    """Store a memory.

    Example: perdure store "The staging database is called heron." --tags infra
    """
    if (words is None) == (text is None):
        raise click.UsageError("give the memory once: as the argument or with --text")
    fact = memory.store(text or words or "", tags=tags.split(",") if tags else None, channel=Channel.CLI, **given)
    print_facts(output, [fact])
    return OK


@click.command(name="list")
@click.option("--category", help="Of this category.")
@click.option("--entity", help="About this entity.")
@scope_option
@click.option("--tag", help="With this tag.")
@click.option("--after", help="Said at or after this time.")
@click.option("--before", help="Said before this time.")
@click.option("--as-of", help="What was true at this time.")
@click.option("--superseded", is_flag=True, help="Also former versions.")
@click.option("--pinned", is_flag=True, help="Only what is pinned.")
@click.option("--review", "review_state", type=click.Choice(["approved", "pending", "rejected"]), help="In this state.")
@limit_option()
@click.option("--offset", type=click.IntRange(0), default=0, show_default=True, help="After so many others.")
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
    pinned: bool,
    review_state: str | None,
    limit: int,
    offset: int,
) -> int:
    """List memories, newest first.

    Example: perdure list --category preference --limit 5
    """
    within = Scope.parse(scope) if scope else None
    chosen = Filter(category, entity, within, moment(after), moment(before), pinned or None, review_state)
    facts = memory.admin.list(
        chosen, limit=limit, offset=offset, tag=tag, as_of=moment(as_of), include_superseded=superseded
    )
    print_facts(output, facts)
    return OK


@click.command()
@click.argument("entity")
@click.argument("key", required=False)
@click.option("--tag", help="With this tag.")
@click.option("--as-of", help="What was true at this time.")
@click.option("--superseded", is_flag=True, help="Also former versions.")
@on_memory()
def lookup(
    memory: Memory, output: Output, entity: str, key: str | None, tag: str | None, as_of: str | None, superseded: bool
) -> int:
    """Show what is known about an entity, and a key of it. Exit code 1: nothing is.

    Example: perdure lookup user birthday
    """
    facts = memory.lookup(entity, key, tag=tag, as_of=moment(as_of), include_superseded=superseded)
    print_facts(output, facts)
    return OK if facts else FOUND_NOTHING


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
    return OK


@click.command()
@click.argument("fact_id", metavar="[ID]", required=False)
@click.option("--scope", help="All of this scope, instead of one.")
@click.option("--after", help="All said at or after this time.")
@click.option("--before", help="All said before this time.")
@click.option("--category", help="Of these only the ones of this category.")
@dry_run_option
@on_memory()
def forget(
    memory: Memory,
    output: Output,
    fact_id: str | None,
    scope: str | None,
    after: str | None,
    before: str | None,
    category: str | None,
    dry_run: bool,
) -> int:
    """Leave a memory out of every answer from now on; `perdure unforget` and `perdure undo` bring it back.

    Example: perdure forget 1f0c9a3e
    """
    if (fact_id is None) == (scope is None and after is None and before is None):
        raise click.UsageError("give either an ID, or --scope, --after or --before for many")
    if fact_id is not None:
        print_facts(output, [memory.get(fact_id) if dry_run else memory.forget(fact_id)])
        return OK
    within = Scope.parse(scope) if scope else None
    chosen = Filter(category=category, scope=within, after=moment(after), before=moment(before))
    count = memory.admin.forget_many(chosen, dry_run=dry_run)
    if output.as_json:
        output.json({"forgotten": 0 if dry_run else count, "chosen": count})
    else:
        output.line(f"{count} memories {'would be' if dry_run else 'are'} forgotten.")
    return OK if count else FOUND_NOTHING


@click.command()
@click.argument("fact_id", metavar="ID")
@on_memory()
def unforget(memory: Memory, output: Output, fact_id: str) -> int:
    """Bring a forgotten memory back.

    Example: perdure unforget 1f0c9a3e
    """
    print_facts(output, [memory.unforget(fact_id)])
    return OK


@click.command()
@click.option("--session", help="All changes of this session.")
@click.option("--batch", help="This change.")
@dry_run_option
@on_memory()
def undo(memory: Memory, output: Output, session: str | None, batch: str | None, dry_run: bool) -> int:
    """Take back the last change, or all of a session.

    Example: perdure undo --dry-run
    """
    undone = memory.undo(batch, session=session, dry_run=dry_run)
    if output.as_json:
        output.json({**asdict(undone), "dry_run": dry_run})
        return OK
    rows = [(fact_id[:SHORT_ID], *_now(memory, fact_id)) for fact_id in undone.facts]
    output.table(("id", "is now", "text"), rows)
    output.line(f"{len(undone.facts)} memories {'would be' if dry_run else 'are'} changed back.")
    if undone.conflicts:
        left = ", ".join(fact_id[:SHORT_ID] for fact_id in undone.conflicts)
        output.line(f"Left alone, as they were changed again since: {left}")
    return OK


@click.command()
@scope_option
@on_memory()
def stats(memory: Memory, output: Output, scope: str | None) -> int:
    """Count memories by scope and category.

    Example: perdure stats
    """
    counted = memory.admin.stats(Filter(scope=Scope.parse(scope) if scope else None))
    if output.as_json:
        output.json(asdict(counted))
    else:
        rows = [("all", counted.total), *counted.by_scope.items(), *counted.by_category.items()]
        output.table(("", "memories"), rows)
    return OK


def _now(memory: Memory, fact_id: str) -> tuple[str, str]:
    """Return the state and the text of a memory, also if it is forgotten."""
    [fact] = [version for version in memory.admin.history(fact_id).versions if version.id == fact_id]
    return state_of(fact), fact.text


def state_of(fact: Fact) -> str:
    """Return in a word whether a memory is in answers."""
    if fact.forgotten_at is not None:
        return "forgotten"
    return "present" if fact.superseded_at is None else "former"


def print_facts(output: Output, facts: Sequence[Fact]) -> None:
    """Print memories, one a line."""
    if output.as_json:
        output.json({"facts": [asdict(fact) for fact in facts]})
        return
    if not facts:
        output.line("No memory fits.")
        return
    rows = [(fact.id[:SHORT_ID], day(fact.effective_date), fact.category, fact.text) for fact in facts]
    output.table(("id", "day", "category", "text"), rows)


def day(seconds: float) -> str:
    """Return the day of a time, where the user is."""
    return dt.datetime.fromtimestamp(seconds).astimezone().date().isoformat()
