"""`perdure review`: what waits for a decision (memories, lines for MEMORY.md, uncaptured turns), and the audit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from types import MappingProxyType
from typing import Any

import click

from perdure.api.inbox import InboxTurn
from perdure.api.memory import Memory
from perdure.api.related_change import Beside, beside
from perdure.cli.facts import scopes_of
from perdure.cli.operation import operation
from perdure.cli.options import limit_option, store_options
from perdure.cli.output import (
    NOT_ASKED,
    SHORT_ID,
    Output,
    choose,
    day,
    is_asked,
    minute,
    steps,
    tell,
)
from perdure.consolidation.proposals import Proposal
from perdure.store.fact import Fact
from perdure.store.short_ids import is_id
from perdure.text.pluralize import counted

LIMIT = 100


@click.group(invoke_without_command=True)
@click.option("--replaced", is_flag=True, help="Instead, list memories that were replaced or withdrawn.")
@click.option("--since", help="With --replaced: only changes since this time.")
@limit_option(LIMIT)
@store_options
@click.pass_context
def review(context: click.Context, /, replaced: bool, since: str | None, **given: Any) -> None:
    """Review memories and proposals that await your decision.

    Three kinds of items wait: memories that are not recalled until you approve them, lines proposed for MEMORY.md, and
    turns that were not captured. `review audit` and `review propose` look for more. With --replaced, list replaced or
    withdrawn memories; `review take-back` restores one.

    Example: perdure review --replaced --since 2026-01-15
    """
    if since is not None and not replaced:
        raise click.UsageError("--since requires --replaced; add it")
    if context.invoked_subcommand is None:
        if replaced:
            context.invoke(_replaced, since=since, **given)
        else:
            context.invoke(list_waiting, **given)
    elif replaced:
        raise click.UsageError(f"--replaced cannot be combined with the command {context.invoked_subcommand}")


@operation(review, "list", reads=True)
def list_waiting(memory: Memory, output: Output, limit: int = LIMIT) -> None:
    """List pending items, with their kind.

    A memory that concerns another one is shown together with it. If you approve an agent's request, the other one is
    replaced or forgotten.

    Example: perdure review list --json
    """
    facts, lines = memory.admin.review(limit), memory.upkeep.proposals.list()
    turns = memory.admin.inbox()
    about = {fact.id: other for fact in facts if (other := beside(memory, fact)) is not None}
    _print(output, facts, about, lines, turns)
    if not (facts or lines or turns):
        output.line(
            "Nothing pending. Find duplicates: perdure review audit. Propose lines for MEMORY.md: perdure "
            "review propose"
        )


@operation(review)
def approve(memory: Memory, output: Output, ids: tuple[str, ...], dry_run: bool) -> None:
    """Approve memories, agents' requests and lines for MEMORY.md.

    An approved memory can be recalled from then on (`perdure undo` reverts that); a line is written into perdure's
    section of MEMORY.md.

    Example: perdure review approve 1f0c9a3e 77ab01cd
    """
    facts, lines = _split(memory, ids)
    done = [line if dry_run else memory.upkeep.proposals.accept(line.id) for line in lines]
    _print(output, memory.admin.approve(*facts, dry_run=dry_run) if facts else (), {}, done)


@operation(review)
def reject(memory: Memory, output: Output, ids: tuple[str, ...], dry_run: bool) -> None:
    """Reject memories, agents' requests and lines for MEMORY.md.

    Rejected memories are found only by a search (`perdure undo` reverts that); a rejected line is not proposed again.

    Example: perdure review reject 1f0c9a3e
    """
    facts, lines = _split(memory, ids)
    done = [line if dry_run else memory.upkeep.proposals.refuse(line.id) for line in lines]
    _print(output, memory.admin.reject(*facts, dry_run=dry_run) if facts else (), {}, done)


@operation(review, "take-back")
def take_back(memory: Memory, output: Output, ids: tuple[str, ...], dry_run: bool) -> None:
    """Restore replaced or withdrawn memories.

    Their replacements stay; `perdure undo` reverts this.

    Example: perdure review take-back 1f0c9a3e
    """
    _print(output, memory.admin.take_back(*ids, dry_run=dry_run))


@operation(review)
def propose(memory: Memory, output: Output, dry_run: bool) -> None:
    """Look for repeated statements to propose for MEMORY.md.

    No file is written until you approve a line.

    Example: perdure review propose
    """
    new = memory.upkeep.proposals.find(dry_run=dry_run)
    _print(output, (), {}, new)
    if not new:
        output.line("Nothing new to propose.")


@operation(review)
def drop(memory: Memory, output: Output, ids: tuple[str, ...], dry_run: bool) -> None:
    """Permanently remove failed or damaged turns.

    Turns still waiting to be captured cannot be removed.

    Example: perdure review drop damaged-1f0c9a3e --dry-run
    """
    gone = memory.admin.drop_turns(*ids, dry_run=dry_run)
    _print(output, (), {}, (), gone)
    output.line(f"{'Would remove' if dry_run else 'Removed'} {counted(len(gone), 'turn')}.")


@operation(reads=True)
def _replaced(memory: Memory, output: Output, since: str | None, limit: int) -> None:
    """List what was replaced or withdrawn."""
    found = memory.admin.replaced(since, limit)
    rows = [
        (each.old.id[:SHORT_ID], day(each.at), each.old.text, *((each.new.id[:SHORT_ID], each.new.text) if each.new
         else ("", "")), each.reason)
        for each in found
    ]  # fmt: skip
    header = ("id", "day", "text", "replaced by", "new text", "why")
    output.both({"replaced": found}, header, rows, none="Nothing was replaced or withdrawn.")


@operation(review, reads=True)
@click.option("--fix", is_flag=True, help="Choose which to forget; revert with `perdure undo`.")
def audit(memory: Memory, output: Output, fix: bool, dry_run: bool, yes: bool) -> int:
    """Find duplicates, echoes and outdated memories.

    Exit code 1: suspects are left; 2: --fix without --yes and without a terminal.

    Example: perdure review audit --fix --dry-run
    """
    fix = fix and not dry_run
    with steps("comparing", quiet=output.as_json) as moved:
        found = memory.admin.audit(fix=fix and yes, progress=moved)
    rows = [(at, each.id[:SHORT_ID], each.kind, each.evidence, each.text) for at, each in enumerate(found.suspects, 1)]
    output.table(("", "id", "kind", "evidence", "text"), rows)
    waits = bool(fix and not yes and rows)
    if asks := waits and is_asked():
        found = memory.admin.audit(fix=[found.suspects[at].id for at in choose("Forget", len(rows))])
    output.json({"counts": found.counts(), **asdict(found)})
    suspects = counted(len(rows), "suspect")
    output.line(f"Checked {counted(found.facts, 'memory')}: {suspects}, {found.fixed} forgotten.")
    if found.batch:
        output.line(f"Undo: perdure undo --batch {found.batch}")
    if waits and not asks:
        tell("Nothing was forgotten: cannot ask without a terminal. To forget all of them, repeat with --yes.")
        return NOT_ASKED
    return int(found.fixed < len(found.suspects))


def _split(memory: Memory, ids: tuple[str, ...]) -> tuple[list[str], list[Proposal]]:
    """Return the ids of memories, and the proposals that the other ids name."""
    waiting = memory.upkeep.proposals.list()
    named = {each: [line for line in waiting if is_id(each) and line.id.startswith(each.lower())] for each in ids}
    return [each for each, lines in named.items() if not lines], [line for lines in named.values() for line in lines]


def _print(
    output: Output, facts: Sequence[Fact], others: Mapping[str, Beside] = MappingProxyType({}),
    lines: Sequence[Proposal] = (), turns: Sequence[InboxTurn] = (),
) -> None:  # fmt: skip
    about = {name: {"beside": each.fact, "relation": each.relation} for name, each in others.items()}
    output.json({
        "facts": [asdict(fact) | about.get(fact.id, {}) for fact in facts],
        "proposals": [each.to_dict() for each in lines],
        "turns": turns,
    })  # fmt: skip
    places = scopes_of(facts)
    blank = ("",) * bool(places)
    rows = [
        (fact.id[:SHORT_ID], "memory", fact.review_state, f"{fact.channel.words}, {_why(fact, others.get(fact.id))}",
         *places.get(fact.id, ()), fact.text)
        for fact in facts
    ]  # fmt: skip
    rows += [
        (each.id[:SHORT_ID], "line for MEMORY.md", each.state, "; ".join(each.evidence), *blank, each.text)
        for each in lines
    ]
    rows += [(each.id, "turn", each.state, minute(each.at), *blank, each.text) for each in turns]
    output.table(("id", "kind", "state", "why", *places.get("", ()), "text"), rows)


def _why(fact: Fact, about: Beside | None) -> str:
    if about is None:
        return str(fact.metadata.get("review", ""))
    return f"{about.relation} {about.fact.id[:SHORT_ID]}: {about.fact.text}"
