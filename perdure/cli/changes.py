"""Commands that store and change memories, links and aliases."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import click

from perdure.api.memory import Memory
from perdure.api.tool_arguments import Link, Recall, Store, Update
from perdure.cli.facts import GONE, print_facts, print_stored, whichever
from perdure.cli.operation import operation
from perdure.cli.options import arguments_option, project_option
from perdure.cli.output import (
    FOUND_NOTHING,
    NOT_ASKED,
    OK,
    SHORT_ID,
    Output,
    choose,
    day,
    edited,
    is_asked,
    tell,
)
from perdure.errors import InputError, NotFoundError
from perdure.hooks.types import Channel
from perdure.store.fact import Fact
from perdure.store.links import TYPES
from perdure.store.listing import Filter, State, state_of
from perdure.store.scope import Scope
from perdure.store.short_ids import is_id
from perdure.text.pluralize import counted

CHOICES = 10
"""Memories offered to choose from."""
UNCHANGED = "Nothing changed."


@operation(model=True)
@click.argument("words", metavar="[TEXT]", required=False)
@click.option("--text", "text", help="Text of the memory, instead of the argument.")
@arguments_option("category importance entity key value why tags decay_class supersedes triggers scope", Store)
@project_option
def store(memory: Memory, output: Output, words: str | None, text: str | None, **given: Any) -> None:
    """Store a memory.

    The output says which memory it replaces, or that it was already known. Secrets are redacted; the output names them
    and says how to keep them in the vault.

    Example: perdure store "The staging database is called heron." --tags infra
    """
    if (words is None) == (text is None):
        raise click.UsageError("give the text either as the argument or with --text")
    print_stored(
        output, memory.store(text or words or "", channel=Channel.CLI, **given | {"tags": given["tags"] or None})
    )


@operation(model=True)
@arguments_option("text category importance entity key value why tags decay_class triggers", Update, Store)
@click.option("--summary", help="Summary to show instead of a long text in the recalled block.")
def update(memory: Memory, output: Output, fact_id: str, **given: Any) -> None:
    """Change a memory and keep the previous version.

    A new text, slot or summary creates a new version with its own id and the original dates. `perdure history` shows
    the versions; `perdure undo` reverts the change. Triggers replace those you gave before; `--trigger ""`
    removes them.

    Example: perdure update 1f0c9a3e --text "The staging database is called egret."
    """
    values = {name: value for name, value in given.items() if value is not None}
    if not values:
        raise click.UsageError("nothing to change; pass a new value, for example with --text, --category or --trigger")
    print_stored(output, memory.update(fact_id, **values))


@operation(model=True)
@click.argument("which", metavar="[ID|QUERY]", required=False)
def edit(memory: Memory, output: Output, which: str | None) -> int:
    """Edit a memory's text in your editor.

    VISUAL or EDITOR names the editor. If a query matches several memories, choose one; without an argument, choose from
    the newest. If the editor fails, or the text is unchanged or empty, nothing changes.

    Exit code 1: nothing matched, or several memories matched and there is no terminal to choose on.

    Example: perdure edit "staging database"
    """
    if which is None:
        found = [each.fact for each in memory.admin.inventory(states=[State.PRESENT], limit=CHOICES).facts]
    else:
        found, _ = _found(memory, [which])
    chosen = _chosen(output, found, "Edit") if len(found) > 1 else found
    if not chosen:
        print_facts(output, found)
        return FOUND_NOTHING
    for fact in chosen:
        text = edited(fact.text)
        if text is None:
            print_facts(output, [fact], outcome="unchanged")
            output.line(UNCHANGED)
        else:
            print_stored(output, memory.update(fact.id, text=text))
    return OK


@operation()
@click.argument("which", nargs=-1, metavar="[ID...|WORDS...]")
@click.option("--scope", help="Forget everything in this scope.")
@project_option
@click.option("--after", help="Forget every memory dated at or after this time.")
@click.option("--before", help="Forget every memory dated before this time.")
@arguments_option("category", Recall)
def forget(
    memory: Memory, output: Output, which: tuple[str, ...], scope: str | None, after: str | None, before: str | None,
    category: str | None, dry_run: bool, yes: bool,
) -> int:  # fmt: skip
    """Forget memories: never recall them again.

    IDs are forgotten at once. For WORDS, choose among the memories that contain them. `perdure undo` and
    `perdure unforget` restore them; `perdure purge` erases them for good.

    Exit code 1: nothing matched; 2: words matched, but there is neither a terminal nor --yes.

    Example: perdure forget "staging database"
    """
    if bool(which) == (scope is not None or after is not None or before is not None):
        raise click.UsageError("give either IDs or words, or --scope, --after or --before")
    if which:
        return _forget(memory, output, which, dry_run=dry_run, yes=yes)
    within = Scope.parse(scope) if scope else None
    chosen = Filter(category=category, scope=within, after=after, before=before)
    count = memory.admin.forget_many(chosen, dry_run=dry_run)
    output.json({"forgotten": 0 if dry_run else count, "chosen": count})
    output.line(f"{'Would forget' if dry_run else 'Forgot'} {counted(count, 'memory')}.")
    return OK if count else FOUND_NOTHING


def _forget(memory: Memory, output: Output, which: tuple[str, ...], *, dry_run: bool, yes: bool) -> int:
    """Forget memories named by ids, or those chosen among the ones that words name."""
    found, by_words = _found(memory, which, whichever)
    chosen = _chosen(output, found, "Forget") if by_words and not (dry_run or yes) else found
    if not chosen:
        print_facts(output, found)
        if found:
            tell("Nothing was forgotten. Name the ids, or repeat with --yes to forget all of these.")
        return NOT_ASKED if found else FOUND_NOTHING
    print_facts(output, chosen if dry_run else [memory.forget(fact.id) for fact in chosen])
    ids = " ".join(fact.id[:SHORT_ID] for fact in chosen)
    output.line("Would be forgotten." if dry_run else f"Forgotten. Undo: perdure unforget {ids}")
    return OK


@operation()
def unforget(memory: Memory, output: Output, fact_ids: tuple[str, ...]) -> None:
    """Restore forgotten memories.

    Example: perdure unforget 1f0c9a3e
    """
    print_facts(output, [memory.unforget(each) for each in fact_ids])


@operation()
def pin(memory: Memory, output: Output, fact_id: str) -> None:
    """Keep a memory forever and recall it in every conversation.

    Example: perdure pin 1f0c9a3e
    """
    print_facts(output, [memory.pin(fact_id)])


@operation()
def unpin(memory: Memory, output: Output, fact_id: str) -> None:
    """Unpin a memory.

    Example: perdure unpin 1f0c9a3e
    """
    print_facts(output, [memory.pin(fact_id, pinned=False)])


@operation()
@arguments_option("type strength", Link)
def link(memory: Memory, output: Output, source: str, target: str, **given: Any) -> None:
    """Link two memories.

    Example: perdure link 1f0c9a3e 77ab01cd --type CAUSED_BY
    """
    made = memory.link(source, target, given["type"], given["strength"])
    output.json(made)
    _print_link(output, memory, made.source, f"{made.type} ({made.strength:g})", made.target)


@operation()
@click.option(
    "--type", "link_type", type=click.Choice(TYPES), default="RELATED_TO", show_default=True, help="Type of the link."
)
def unlink(memory: Memory, output: Output, source: str, target: str, link_type: str, dry_run: bool) -> None:
    """Remove a link between two memories; revert with `perdure undo`.

    Example: perdure unlink 1f0c9a3e 77ab01cd --type CAUSED_BY
    """
    memory.unlink(source, target, link_type, dry_run=dry_run)
    output.json({"source": source, "target": target, "type": link_type, "dry_run": dry_run})
    _print_link(output, memory, source, link_type, target)
    output.line("Would be removed." if dry_run else "Removed.")


@click.group()
def alias() -> None:
    """Manage aliases: other names for one thing, searched together.

    Example: perdure alias list
    """


@operation(alias, "add", model=True)
@arguments_option("scope", Store)
def add_alias(memory: Memory, output: Output, name: str, other: str, scope: str | None) -> None:
    """Add another name for a thing.

    Example: perdure alias add "GitHub Actions" GHA
    """
    print_stored(output, memory.aliases.add(name, other, scope=scope, channel=Channel.CLI))


@operation(alias, "list", reads=True)
def list_aliases(memory: Memory, output: Output) -> None:
    """List aliases, newest first.

    Example: perdure alias list --json
    """
    _print_aliases(output, memory.aliases.list())


@operation(alias, "remove")
def remove_alias(memory: Memory, output: Output, name: str, other: str | None, dry_run: bool) -> None:
    """Remove an alias; without OTHER, all aliases of NAME.

    This forgets the memories that state it; `perdure undo` restores them.

    Example: perdure alias remove GHA --dry-run
    """
    _print_aliases(output, memory.aliases.remove(name, other, dry_run=dry_run))
    output.line("Would be removed." if dry_run else "Removed. Undo: perdure undo")


@operation()
@click.option("--session", help="Undo all changes of this session.")
@click.option("--batch", help="Undo this batch of changes, by its id.")
def undo(memory: Memory, output: Output, session: str | None, batch: str | None, dry_run: bool) -> None:
    """Undo the last change, or all changes of a session.

    Example: perdure undo --dry-run
    """
    undone = memory.undo(batch, session=session, dry_run=dry_run)
    output.json(undone, dry_run=dry_run)
    if output.as_json:
        return
    output.table(("id", "state", "text"), [(each[:SHORT_ID], *_now(memory, each)) for each in undone.facts])
    output.line(f"{'Would revert' if dry_run else 'Reverted'} {counted(len(undone.facts), 'memory')}.")
    if undone.conflicts:
        output.line("Not reverted, because they have changed since:")
        rows = [(each[:SHORT_ID], *_now(memory, each)) for each in undone.conflicts]
        output.table(("id", "state", "text"), rows)


def _found(
    memory: Memory, which: Sequence[str], get: Callable[[Memory, str], Fact] = Memory.get
) -> tuple[list[Fact], bool]:
    """Return the memories that ids, by `get`, or words name, and whether words did."""
    # A short id of letters alone may be a word. Where memories hold that word, it is one.
    if not all(map(is_id, which)):
        hits = [hit for hit in memory.admin.search(" ".join(which), limit=CHOICES) if hit.coverage]
        if hits:
            return [hit.fact for hit in hits if hit.coverage == max(each.coverage for each in hits)], True
    try:
        return [get(memory, each) for each in which], False
    except (InputError, NotFoundError):
        if all(map(is_id, which)):
            raise
        return [], True


def _chosen(output: Output, found: list[Fact], verb: str) -> list[Fact]:
    """Return what somebody chooses, or nothing without a terminal. To choose none raises click.Abort."""
    if output.as_json or not found or not is_asked():
        return []
    rows = [(number, fact.id[:SHORT_ID], day(fact.effective_date), fact.text) for number, fact in enumerate(found, 1)]
    output.table(("", "id", "day", "text"), rows)
    if not (chosen := choose(verb, len(found))):
        raise click.Abort
    return [found[at] for at in chosen]


def _print_link(output: Output, memory: Memory, source: str, middle: str, target: str) -> None:
    for fact_id, before in ((source, ""), (target, f"  {middle} -> ")):
        fact = whichever(memory, fact_id)
        output.line(f"{before}{fact.id[:SHORT_ID]} {fact.text}")


def _print_aliases(output: Output, facts: Sequence[Fact]) -> None:
    rows = [(fact.id[:SHORT_ID], fact.entity, fact.value, fact.text) for fact in facts]
    none = "No aliases. Add one: perdure alias add NAME OTHER"
    output.both({"aliases": facts}, ("id", "name", "alias", "text"), rows, none=none)


def _now(memory: Memory, fact_id: str) -> tuple[str, str]:
    """Return a memory's state and text."""
    try:
        fact = whichever(memory, fact_id)
    except NotFoundError:
        # An assigned memory is back with its former owner.
        return "belongs to another user", GONE
    return state_of(fact, time.time()), fact.text
