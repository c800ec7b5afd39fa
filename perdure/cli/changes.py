"""Commands that change a memory, and show how it changed."""

from __future__ import annotations

import datetime as dt
import time
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import click

from perdure.api.memory import Memory
from perdure.cli.facts import day, print_facts, print_stored
from perdure.cli.options import limit_option, on_memory
from perdure.cli.output import OK, SHORT_ID, Output
from perdure.ranking.decay import LIFETIMES
from perdure.store.fact import Fact
from perdure.store.history import Change
from perdure.store.listing import state_of


@click.command()
@click.argument("fact_id", metavar="ID")
@click.option("--text", help="New words: they make a new version with a new id.")
@click.option("--category", help="Another category.")
@click.option("--importance", type=float, help="0 to 1.")
@click.option("--entity", help="Of the slot it fills.")
@click.option("--key", help="Of the slot it fills.")
@click.option("--value", help="Of the slot it fills.")
@click.option("--why", help="The reason.")
@click.option("--summary", help="Stands for a long text in a recalled block.")
@click.option("--tags", help="A comma list, instead of those it has.")
@click.option("--decay", "decay_class", type=click.Choice(list(LIFETIMES)), help="How long it lives.")
@on_memory(model=True)
def update(memory: Memory, output: Output, fact_id: str, tags: str | None, **given: Any) -> int:
    """Change a memory. The former version stays for `perdure history` and `perdure undo`.

    Example: perdure update 1f0c9a3e --text "The staging database is called egret."
    """
    values = {name: value for name, value in given.items() if value is not None}
    if tags is not None:
        values["tags"] = tuple(tags.split(","))
    if not values:
        raise click.UsageError("say what is to change, as with --text or --category")
    print_stored(output, memory.update(fact_id, **values))
    return OK


@click.command()
@click.argument("fact_id", metavar="ID")
@on_memory()
def pin(memory: Memory, output: Output, fact_id: str) -> int:
    """Keep a memory for good, and bring it up in every conversation.

    Example: perdure pin 1f0c9a3e
    """
    print_facts(output, [memory.pin(fact_id)])
    return OK


@click.command()
@click.argument("fact_id", metavar="ID")
@on_memory()
def unpin(memory: Memory, output: Output, fact_id: str) -> int:
    """Treat a pinned memory like any other again.

    Example: perdure unpin 1f0c9a3e
    """
    print_facts(output, [memory.pin(fact_id, pinned=False)])
    return OK


@click.command()
@click.argument("fact_id", metavar="[ID]", required=False)
@click.option("--since", type=click.IntRange(0), default=0, show_default=True, help="Changes after this number.")
@limit_option(1000)
@on_memory(reads=True)
def history(memory: Memory, output: Output, fact_id: str | None, since: int, limit: int) -> int:
    """Show all versions of a memory and who changed what; without ID the changes of all memories.

    Example: perdure history 1f0c9a3e
    """
    if fact_id is None:
        versions: Sequence[Fact] = ()
        changes: Sequence[Change] = memory.changes(since, limit)
    else:
        found = memory.admin.history(fact_id)
        versions, changes = found.versions, found.changes
    if output.as_json:
        answer: dict[str, Any] = {"changes": [_entry(each) for each in changes]}
        output.json(answer | ({"versions": [asdict(fact) for fact in versions]} if fact_id else {}))
        return OK
    if versions:
        now = time.time()
        rows = [(fact.id[:SHORT_ID], day(fact.effective_date), state_of(fact, now), fact.text) for fact in versions]
        output.table(("id", "day", "state", "text"), rows)
        output.rule("changes")
    output.table(("number", "time", "change", "id", "other", "by"), [_row(each) for each in changes])
    return OK


def _entry(change: Change) -> dict[str, Any]:
    entry = asdict(change)
    return entry | {"fact": change.fact.id}


def _row(change: Change) -> tuple[Any, ...]:
    time = dt.datetime.fromtimestamp(change.at).astimezone().isoformat(" ", "seconds")
    other = (change.other_id or "")[:SHORT_ID]
    return change.seq, time, change.action, change.fact.id[:SHORT_ID], other, f"{change.channel} {change.host}".strip()
