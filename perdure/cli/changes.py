"""Commands that keep and change memories, their links, and the names of things."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import click

from perdure.api.memory import Memory
from perdure.api.tool_arguments import Store, Update
from perdure.cli.facts import print_facts, print_stored, whichever
from perdure.cli.operation import operation
from perdure.cli.options import arguments_option, project_option
from perdure.cli.output import FOUND_NOTHING, OK, SHORT_ID, Output, choose, day, edited
from perdure.errors import AmbiguousIdError, InputError, NotFoundError
from perdure.hooks.types import Channel
from perdure.store.fact import Fact
from perdure.store.links import TYPES
from perdure.store.listing import Filter, State, state_of
from perdure.store.scope import Scope
from perdure.text.pluralize import counted

CHOICES = 10
"""Memories to choose from."""

_scope = click.option("--scope", help='"global", "user:ID", "agent:ID", "project:ID"...; without it your own.')
_type = click.option("--type", "link_type", type=click.Choice(TYPES), default="RELATED_TO", show_default=True)


@operation(model=True)
@click.argument("words", metavar="[TEXT]", required=False)
@click.option("--text", "text", help="The memory, instead of the argument.")
@arguments_option("category importance entity key value why tags decay_class supersedes", Store)
@_scope
@project_option
def store(memory: Memory, output: Output, words: str | None, text: str | None, tags: str | None, **given: Any) -> None:
    """Store a memory.

    The answer says what it takes the place of, or that it was known. Secrets in it are left out; the answer says
    which, and how the vault keeps them.

    Example: perdure store "The staging database is called heron." --tags infra
    """
    if (words is None) == (text is None):
        raise click.UsageError("give the memory once: as the argument or with --text")
    print_stored(output, memory.store(text or words or "", tags=tags or None, channel=Channel.CLI, **given))


@operation(model=True)
@arguments_option("text category importance entity key value why tags decay_class", Update, Store)
@click.option("--summary", help="Stands for a long text in a recalled block.")
def update(memory: Memory, output: Output, fact_id: str, **given: Any) -> None:
    """Change a memory. The former version stays for `perdure history` and `perdure undo`.

    Example: perdure update 1f0c9a3e --text "The staging database is called egret."
    """
    values = {name: value for name, value in given.items() if value is not None}
    if not values:
        raise click.UsageError("say what is to change, as with --text or --category")
    print_stored(output, memory.update(fact_id, **values))


@operation(model=True)
@click.argument("which", metavar="[ID|QUERY]", required=False)
def edit(memory: Memory, output: Output, which: str | None) -> int:
    """Change the words of a memory in your editor; the former version stays, as with `perdure update`.

    The editor is that of VISUAL or EDITOR, or the usual one of the system. Of several memories that a query finds you
    are asked which you mean; without ID or QUERY, which of the newest. Nothing is changed if the editor fails, or if
    the text comes back as it was or empty.

    Exit code 1: nothing fits; or several do and nobody is there to be asked, so that they are listed.

    Example: perdure edit "staging database"
    """
    found = _found(memory, which)
    fact = found[0] if len(found) == 1 else _chosen(output, found)
    if fact is None:
        print_facts(output, found)
        return FOUND_NOTHING
    text = edited(fact.text)
    if text is None:
        print_facts(output, [fact], outcome="unchanged")
        output.line("Nothing was changed.")
    else:
        print_stored(output, memory.update(fact.id, text=text))
    return OK


@operation()
@click.option("--scope", help="All of this scope, instead of one.")
@project_option
@click.option("--after", help="All said at or after this time.")
@click.option("--before", help="All said before this time.")
@click.option("--category", help="Of these only the ones of this category.")
def forget(
    memory: Memory, output: Output, fact_id: str | None, scope: str | None, after: str | None, before: str | None,
    category: str | None, dry_run: bool,
) -> int:  # fmt: skip
    """Leave a memory out of every answer from now on; `perdure unforget` and `perdure undo` bring it back.

    Example: perdure forget 1f0c9a3e
    """
    if (fact_id is None) == (scope is None and after is None and before is None):
        raise click.UsageError("give either an ID, or --scope, --after or --before for many")
    if fact_id is not None:
        print_facts(output, [memory.get(fact_id) if dry_run else memory.forget(fact_id)])
        return OK
    within = Scope.parse(scope) if scope else None
    chosen = Filter(category=category, scope=within, after=after, before=before)
    count = memory.admin.forget_many(chosen, dry_run=dry_run)
    output.json({"forgotten": 0 if dry_run else count, "chosen": count})
    output.line(f"{'Would forget' if dry_run else 'Forgot'} {counted(count, 'memory')}.")
    return OK if count else FOUND_NOTHING


@operation()
def unforget(memory: Memory, output: Output, fact_id: str) -> None:
    """Bring a forgotten memory back.

    Example: perdure unforget 1f0c9a3e
    """
    print_facts(output, [memory.unforget(fact_id)])


@operation()
def pin(memory: Memory, output: Output, fact_id: str) -> None:
    """Keep a memory for good, and bring it up in every conversation.

    Example: perdure pin 1f0c9a3e
    """
    print_facts(output, [memory.pin(fact_id)])


@operation()
def unpin(memory: Memory, output: Output, fact_id: str) -> None:
    """Treat a pinned memory like any other again.

    Example: perdure unpin 1f0c9a3e
    """
    print_facts(output, [memory.pin(fact_id, pinned=False)])


@operation()
@_type
@click.option("--strength", type=float, default=1.0, show_default=True, help="0 to 1.")
def link(memory: Memory, output: Output, source: str, target: str, link_type: str, strength: float) -> None:
    """Link two memories.

    Example: perdure link 1f0c9a3e 77ab01cd --type CAUSED_BY
    """
    made = memory.link(source, target, link_type, strength)
    output.json(made)
    output.line(f"{made.source[:SHORT_ID]} {made.type} {made.target[:SHORT_ID]} ({made.strength:g})")


@operation()
@_type
def unlink(memory: Memory, output: Output, source: str, target: str, link_type: str, dry_run: bool) -> None:
    """Remove a link between two memories; `perdure undo` brings it back.

    Example: perdure unlink 1f0c9a3e 77ab01cd --type CAUSED_BY
    """
    memory.unlink(source, target, link_type, dry_run=dry_run)
    output.json({"source": source, "target": target, "type": link_type, "dry_run": dry_run})
    done = "would be gone" if dry_run else "is gone"
    output.line(f"{source[:SHORT_ID]} {link_type} {target[:SHORT_ID]} {done}.")


@click.group()
def alias() -> None:
    """Say which names are of one thing: who asks by one of them finds what is said of both.

    Example: perdure alias list
    """


@operation(alias, "add", model=True)
@_scope
def add_alias(memory: Memory, output: Output, name: str, other: str, scope: str | None) -> None:
    """Keep that a thing has another name.

    Example: perdure alias add "GitHub Actions" GHA
    """
    print_stored(output, memory.aliases.add(name, other, scope=scope, channel=Channel.CLI))


@operation(alias, "list", reads=True)
def list_aliases(memory: Memory, output: Output) -> None:
    """List the names that prompts are also asked by, newest first: what you have said, and what you have set.

    Example: perdure alias list --json
    """
    _print_aliases(output, memory.aliases.list())


@operation(alias, "remove")
def remove_alias(memory: Memory, output: Output, name: str, other: str | None, dry_run: bool) -> None:
    """Forget that two names are of one thing; without OTHER, whatever else NAME is called.

    The memories that say so are forgotten; `perdure undo` brings them back.

    Example: perdure alias remove GHA --dry-run
    """
    _print_aliases(output, memory.aliases.remove(name, other, dry_run=dry_run))
    output.line("Would be forgotten." if dry_run else "Forgotten; perdure undo brings it back.")


@operation()
@click.option("--session", help="All changes of this session.")
@click.option("--batch", help="This change.")
def undo(memory: Memory, output: Output, session: str | None, batch: str | None, dry_run: bool) -> None:
    """Take back the last change, or all of a session.

    Example: perdure undo --dry-run
    """
    undone = memory.undo(batch, session=session, dry_run=dry_run)
    output.json(undone, dry_run=dry_run)
    if output.as_json:
        return
    output.table(("id", "is now", "text"), [(each[:SHORT_ID], *_now(memory, each)) for each in undone.facts])
    output.line(f"{'Would change' if dry_run else 'Changed'} {counted(len(undone.facts), 'memory')} back.")
    if undone.conflicts:
        left = ", ".join(fact_id[:SHORT_ID] for fact_id in undone.conflicts)
        output.line(f"Left alone, as they were changed again since: {left}")


def _found(memory: Memory, which: str | None) -> list[Fact]:
    if which is None:
        return [each.fact for each in memory.admin.inventory(states=[State.PRESENT], limit=CHOICES).facts]
    with suppress(InputError, NotFoundError, AmbiguousIdError):
        return [memory.get(which)]
    # A memory is named by words of its own: what is merely near is not what was meant.
    return [hit.fact for hit in memory.admin.search(which, limit=CHOICES) if hit.coverage]


def _chosen(output: Output, found: list[Fact]) -> Fact | None:
    if output.as_json or not found:
        return None
    rows = [(number, fact.id[:SHORT_ID], day(fact.effective_date), fact.text) for number, fact in enumerate(found, 1)]
    output.table(("", "id", "day", "text"), rows)
    number = choose("Which one", len(found))
    return None if number is None else found[number]


def _print_aliases(output: Output, facts: Sequence[Fact]) -> None:
    rows = [(fact.id[:SHORT_ID], fact.entity, fact.value, fact.text) for fact in facts]
    none = "No other names are known. Add one: perdure alias add NAME OTHER"
    output.both({"aliases": facts}, ("id", "name", "also", "said as"), rows, none=none)


def _now(memory: Memory, fact_id: str) -> tuple[str, str]:
    """Return the state and the text of a memory."""
    try:
        fact = whichever(memory, fact_id)
    except NotFoundError:
        # What was assigned to the caller is back where it was.
        return "somebody else's", ""
    return state_of(fact, time.time()), fact.text
