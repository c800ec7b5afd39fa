"""Commands on single memories."""

from __future__ import annotations

import datetime as dt
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict
from functools import partial
from typing import Any

import click

from perdure.api.expiration import ending
from perdure.api.memory import Memory
from perdure.api.stored import Stored
from perdure.cli.options import dry_run_option, limit_option, moment, on_memory, scope_option
from perdure.cli.output import FOUND_NOTHING, OK, SHORT_ID, Output, tell
from perdure.cli.show import whichever
from perdure.errors import NotFoundError
from perdure.hooks.types import Channel
from perdure.ranking.decay import LIFETIMES
from perdure.store.fact import Fact
from perdure.store.listing import Filter, Page, State, state_of
from perdure.store.scope import Scope
from perdure.text.normalise import fts_text
from perdure.text.pluralize import counted

NAMING = 50
"""Memories among which `perdure lookup` finds those that name something."""


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

    The answer says what it takes the place of, or that it was known. Secrets in it are left out; the answer says
    which, and how the vault keeps them.

    Example: perdure store "The staging database is called heron." --tags infra
    """
    if (words is None) == (text is None):
        raise click.UsageError("give the memory once: as the argument or with --text")
    print_stored(
        output,
        memory.store(text or words or "", tags=tags.split(",") if tags else None, channel=Channel.CLI, **given),
    )
    return OK


@click.command(name="list")
@click.option(
    "--state",
    "states",
    type=click.Choice([state.value for state in State]),
    multiple=True,
    help="In this state; may be repeated.",
)
@click.option("--category", help="Of this category.")
@click.option("--entity", help="About this entity.")
@scope_option
@click.option("--tag", help="With this tag.")
@click.option("--after", help="Said at or after this time.")
@click.option("--before", help="Said before this time.")
@click.option("--as-of", help="What was true at this time.")
@click.option("--pinned", is_flag=True, help="Only what is pinned.")
@click.option("--fading", is_flag=True, help="Only what fades and ends one day, or has ended: when, and why.")
@click.option("--all", "everyone", is_flag=True, help="Of every scope of the data folder, whoever may read it.")
@limit_option()
@click.option("--behind", metavar="ID", help="Behind this memory, the last one of the page before.")
@click.option("--offset", type=click.IntRange(0), default=0, show_default=True, help="After so many others.")
@on_memory(reads=True)
def list_(
    memory: Memory,
    output: Output,
    category: str | None,
    entity: str | None,
    scope: str | None,
    after: str | None,
    before: str | None,
    as_of: str | None,
    pinned: bool,
    fading: bool,
    everyone: bool,
    **asked: Any,
) -> int:
    """List all memories, newest first: also those that are in no answer, each with the word why.

    A state is present, pending, rejected, search-only, forgotten, former (replaced or withdrawn) or expired.

    Most are kept for good. `--fading` lists the others, with their end and why.

    Example: perdure list --state pending --state forgotten --limit 5
    """
    within = Scope.parse(scope) if scope else None
    chosen = Filter(category, entity, within, moment(after), moment(before), pinned or None, ends=fading or None)
    look = partial(memory.admin.inventory, chosen, as_of=moment(as_of), **asked)
    page = look(everyone=everyone)
    elsewhere = 0 if everyone or scope else _counted(look) - page.total
    if output.as_json:
        now = time.time()
        facts = [
            asdict(each.fact) | {"state": each.state, "hidden": each.hidden, "ending": asdict(ending(each.fact, now))}
            for each in page.facts
        ]
        counts = {"total": page.total, "states": page.states, "elsewhere": elsewhere}
        output.json({"facts": facts, **counts, "behind": page.behind})
    else:
        _print_page(output, page, elsewhere, everyone, fading)
    return OK


@click.command()
@click.argument("entity")
@click.argument("key", required=False)
@click.option("--tag", help="With this tag.")
@click.option("--as-of", help="What was true at this time.")
@click.option("--superseded", is_flag=True, help="Also former versions.")
@on_memory(reads=True)
def lookup(
    memory: Memory, output: Output, entity: str, key: str | None, tag: str | None, as_of: str | None, superseded: bool
) -> int:
    """Show what is known about an entity, and a key of it; if nothing is, what names it. Exit code 1: nothing does.

    Example: perdure lookup user birthday
    """
    seen: dict[str, Any] = {"tag": tag, "as_of": moment(as_of), "include_superseded": superseded}
    facts: Sequence[Fact] = memory.lookup(entity, key, **seen)
    if not facts and key is None:
        facts = [hit.fact for hit in memory.admin.search(entity, limit=NAMING, **seen) if _names(hit.fact.text, entity)]
        if facts:
            tell(f"No memory is about {entity} alone; these name it.")
    print_facts(output, facts)
    return OK if facts else FOUND_NOTHING


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
        output.line(f"{'Would forget' if dry_run else 'Forgot'} {counted(count, 'memory')}.")
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
    output.line(f"{'Would change' if dry_run else 'Changed'} {counted(len(undone.facts), 'memory')} back.")
    if undone.conflicts:
        left = ", ".join(fact_id[:SHORT_ID] for fact_id in undone.conflicts)
        output.line(f"Left alone, as they were changed again since: {left}")
    return OK


@click.command()
@scope_option
@on_memory(reads=True)
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


def _names(text: str, entity: str) -> bool:
    """Return whether all words of a name stand in a text."""
    return set(fts_text(entity).split()) <= set(fts_text(text).split())


def _print_page(output: Output, page: Page, elsewhere: int, everyone: bool, fading: bool) -> None:
    if page.facts:
        now = time.time()
        scopes = [(str(Scope(each.fact.scope, each.fact.scope_target)),) if everyone else () for each in page.facts]
        ends = [(ending(each.fact, now).told,) if fading else () for each in page.facts]
        rows = [
            (each.fact.id[:SHORT_ID], day(each.fact.effective_date), each.hidden or each.state, *end, *scope,
             each.fact.category, each.fact.text)
            for each, end, scope in zip(page.facts, ends, scopes, strict=True)
        ]  # fmt: skip
        more = (*(("kept",) if fading else ()), *(("scope",) if everyone else ()))
        output.table(("id", "day", "state", *more, "category", "text"), rows)
    else:
        output.line("No memory fits.")
    counts = ", ".join(f"{count} {state}" for state, count in page.states.items())
    if counts:
        tell(f"{len(page.facts)} of {page.total} are shown; in all {counts}.")
    if page.behind is not None:
        tell(f"The next page: the same with --behind {page.behind[:SHORT_ID]}")
    if elsewhere:
        tell(f"In scopes of agents, projects and others: {elsewhere} more; perdure list --all shows them.")


def _counted(look: Callable[..., Page]) -> int:
    """Return how many memories the whole folder has that fit."""
    return look(everyone=True, limit=1, offset=0, behind=None).total


def _now(memory: Memory, fact_id: str) -> tuple[str, str]:
    """Return the state and the text of a memory."""
    try:
        fact = whichever(memory, fact_id)
    except NotFoundError:
        # What was assigned to the caller is back where it was.
        return "somebody else's", ""
    return state_of(fact, time.time()), fact.text


def print_facts(output: Output, facts: Sequence[Fact], **more: Any) -> None:
    """Print memories, one a line.

    Args:
        output: where to.
        facts: the memories.
        more: what the JSON object holds beside them.
    """
    if output.as_json:
        output.json({"facts": [asdict(fact) for fact in facts], **more})
        return
    if not facts:
        output.line("No memory fits.")
        return
    rows = [(fact.id[:SHORT_ID], day(fact.effective_date), fact.category, fact.text) for fact in facts]
    output.table(("id", "day", "category", "text"), rows)


def print_stored(output: Output, done: Stored) -> None:
    """Print a memory, and what became of what was to be stored."""
    if output.as_json:
        gone = [asdict(fact) for fact in done.gone]
        told = {"told": done.told(), "redacted": done.redacted, "advice": done.advice}
        output.json({"facts": [asdict(done.fact)], "outcome": done.outcome, "gone": gone, "batch": done.batch, **told})
        return
    print_facts(output, [done])
    for line in filter(None, (done.told(), done.advice)):
        output.line(line)


def day(seconds: float) -> str:
    """Return the day of a time, where the user is."""
    return dt.datetime.fromtimestamp(seconds).astimezone().date().isoformat()
