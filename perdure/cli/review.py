"""Commands for what waits for a person's word: memories to review or mend, lines for MEMORY.md, turns in the inbox."""

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
    FOUND_NOTHING,
    NOT_ASKED,
    OK,
    SHORT_ID,
    Output,
    choose_word,
    day,
    is_asked,
    minute,
    steps,
    tell,
)
from perdure.consolidation.proposals import Proposal
from perdure.consolidation.suspicions import Suspect
from perdure.store.fact import Fact
from perdure.text.pluralize import counted

LIMIT = 100


@click.group(invoke_without_command=True)
@click.option("--replaced", is_flag=True, help="List what was replaced or withdrawn instead.")
@click.option("--since", help="With --replaced: from this time on.")
@limit_option(LIMIT)
@store_options
@click.pass_context
def review(context: click.Context, /, replaced: bool, since: str | None, **given: Any) -> None:
    """Review memories that are not recalled before you approve them; without a command, list them.

    With --replaced, list what was replaced or withdrawn beside what took its place; `perdure review take-back` lets
    one count again.

    Example: perdure review --replaced --since 2026-01-15
    """
    if since is not None and not replaced:
        raise click.UsageError("--since needs --replaced")
    if context.invoked_subcommand is None:
        if replaced:
            context.invoke(_replaced, since=since, **given)
        else:
            context.invoke(list_waiting, **given)
    elif replaced:
        raise click.UsageError(f"--replaced lists; it does not go with the command {context.invoked_subcommand}")


@operation(review, "list", reads=True)
def list_waiting(memory: Memory, output: Output, limit: int = LIMIT) -> None:
    """List what waits for review, newest first, beside the memory that it is about, if there is one.

    What an agent asks for stands beside the memory that it asks to replace or to forget: approve does so, reject leaves
    that one as it is. What comes back stands beside what had taken its place.

    Example: perdure review list --json
    """
    waiting = memory.admin.review(limit)
    if not waiting:
        output.line("Nothing waits for review.")
    _print(output, waiting, {fact.id: about for fact in waiting if (about := beside(memory, fact)) is not None})


@operation(review)
def approve(memory: Memory, output: Output, fact_ids: tuple[str, ...], dry_run: bool) -> None:
    """Let memories be recalled from now on, or do what an agent asks for; `perdure undo` takes it back.

    Example: perdure review approve 1f0c9a3e 77ab01cd
    """
    _print(output, memory.admin.approve(*fact_ids, dry_run=dry_run))


@operation(review)
def reject(memory: Memory, output: Output, fact_ids: tuple[str, ...], dry_run: bool) -> None:
    """Keep memories from being recalled unasked; `perdure undo` takes it back.

    Example: perdure review reject 1f0c9a3e
    """
    _print(output, memory.admin.reject(*fact_ids, dry_run=dry_run))


@operation(review, "take-back")
def take_back(memory: Memory, output: Output, fact_ids: tuple[str, ...], dry_run: bool) -> None:
    """Let memories that were replaced or withdrawn count again; what took their place stays.

    `perdure undo` takes it back.

    Example: perdure review take-back 1f0c9a3e
    """
    _print(output, memory.admin.take_back(*fact_ids, dry_run=dry_run))


@operation(reads=True)
def _replaced(memory: Memory, output: Output, since: str | None, limit: int) -> None:
    """List what was replaced or withdrawn."""
    found = memory.admin.replaced(since, limit)
    rows = [
        (each.old.id[:SHORT_ID], day(each.at), each.old.text, *((each.new.id[:SHORT_ID], each.new.text) if each.new
         else ("", "")), each.reason)
        for each in found
    ]  # fmt: skip
    output.both({"replaced": found}, ("id", "day", "text", "replaced by", "its text", "why"), rows)
    if not found:
        output.line("Nothing was replaced or withdrawn.")


@operation(reads=True)
@click.option("--fix", is_flag=True, help="Ask of each whether to forget it; `perdure undo` takes it back.")
def audit(memory: Memory, output: Output, fix: bool, dry_run: bool, yes: bool) -> int:
    """Find duplicates, echoes of what perdure itself had shown, and what by its own words is over.

    Exit code 1: some were not forgotten; 2: with --fix and without --yes, nobody is there to be asked.

    Example: perdure audit --fix --dry-run
    """
    fix = fix and not dry_run
    with steps("looking", quiet=output.as_json) as moved:
        found = memory.admin.audit(fix=fix and yes, progress=moved)
    rows = [(each.id[:SHORT_ID], each.kind, each.evidence, each.text) for each in found.suspects]
    nobody = fix and not yes and not is_asked()
    if fix and not yes and rows and not nobody:
        # As one is asked of each text, the table would show them twice.
        rows, found = [], memory.admin.audit(fix=_wanted(found.suspects))
    output.json({"counts": found.counts(), **asdict(found)})
    output.table(("id", "kind", "evidence", "text"), rows, none="")
    output.line(f"{counted(found.facts, 'memory')} looked at, {len(found.suspects)} may go, {found.fixed} forgotten.")
    if found.batch:
        output.line(f"Take it back with: perdure undo --batch {found.batch}")
    if found.suspects and nobody:
        tell("Nothing was forgotten: nobody is there to be asked. If you mean all of them, repeat this with --yes.")
        return NOT_ASKED
    return int(found.fixed < len(found.suspects))


def _wanted(suspects: Sequence[Suspect]) -> list[str]:
    """Show each text with its reason, and return the ids of those that somebody wants forgotten."""
    wanted: list[str] = []
    answer = ""
    for each in suspects:
        if answer != "all":
            tell(each.text)
            tell(f"  {each.kind}: {each.evidence}")
            answer = choose_word("Forget it?", ("y", "n", "all", "quit"))
        if answer == "quit":
            break
        wanted += [each.id] if answer != "n" else []
    return wanted


@click.group()
def proposals() -> None:
    """See, accept or refuse what MEMORY.md could say of what you have said again and again.

    Example: perdure proposals list
    """


@operation(proposals, "list", reads=True)
@click.option("--all", "everything", is_flag=True, help="Also what was answered, or ran out of time.")
def list_proposals(memory: Memory, output: Output, everything: bool, dry_run: bool) -> None:
    """Look for new proposals, and show all that wait. Nothing is written into a file.

    Example: perdure proposals list
    """
    new = memory.upkeep.proposals.find(dry_run=dry_run)
    waiting = memory.upkeep.proposals.list(everything=everything)
    _print_proposals(output, [*waiting, *(new if dry_run else ())])


@operation(proposals)
def accept(memory: Memory, output: Output, proposal_id: str, dry_run: bool) -> int:
    """Write a proposal into MEMORY.md, in perdure's own section of it; eight digits of its id are enough.

    Example: perdure proposals accept 1f0c9a3e
    """
    if dry_run:
        found = [each for each in memory.upkeep.proposals.list() if each.id.startswith(proposal_id)]
    else:
        found = [memory.upkeep.proposals.accept(proposal_id)]
    _print_proposals(output, found)
    return OK if found else FOUND_NOTHING


@operation(proposals)
def refuse(memory: Memory, output: Output, proposal_id: str) -> None:
    """Refuse a proposal: it is not made again.

    Example: perdure proposals refuse 1f0c9a3e
    """
    _print_proposals(output, [memory.upkeep.proposals.refuse(proposal_id)])


@click.group(invoke_without_command=True)
@store_options
@click.pass_context
def inbox(context: click.Context, /, **given: Any) -> None:
    """Show the turns that wait to be captured, that failed, and of damaged ones what can be read.

    Example: perdure inbox
    """
    if context.invoked_subcommand is None:
        context.invoke(list_turns, **given)


@operation(inbox, "list", reads=True)
def list_turns(memory: Memory, output: Output) -> None:
    """Show them, oldest first.

    Example: perdure inbox list --json
    """
    found = memory.admin.inbox()
    _print_turns(output, found)
    if not found:
        output.line("Nothing waits.")


@operation(inbox, "drop")
def drop_turns(memory: Memory, output: Output, ids: tuple[str, ...], dry_run: bool) -> None:
    """Remove turns that failed or were damaged; this cannot be undone. What waits stays.

    Example: perdure inbox drop damaged-1f0c9a3e --dry-run
    """
    gone = memory.admin.drop_turns(*ids, dry_run=dry_run)
    _print_turns(output, gone)
    output.line(f"{'Would remove' if dry_run else 'Removed'} {counted(len(gone), 'turn')}.")


def _print(output: Output, facts: Sequence[Fact], others: Mapping[str, Beside] = MappingProxyType({})) -> None:
    places = scopes_of(facts)
    about = {name: {"beside": each.fact, "relation": each.relation} for name, each in others.items()}
    rows = [
        (fact.id[:SHORT_ID], fact.review_state, fact.channel.value, _why(fact, others.get(fact.id)),
         *places.get(fact.id, ()), fact.text)
        for fact in facts
    ]  # fmt: skip
    output.json({"facts": [asdict(fact) | about.get(fact.id, {}) for fact in facts]})
    output.table(("id", "review", "from", "why", *places.get("", ()), "text"), rows, none="")


def _why(fact: Fact, about: Beside | None) -> str:
    if about is None:
        return str(fact.metadata.get("review", ""))
    return f"{about.relation} {about.fact.id[:SHORT_ID]}: {about.fact.text}"


def _print_proposals(output: Output, found: Sequence[Proposal]) -> None:
    output.json({"proposals": [each.to_dict() for each in found]})
    for each in found:
        output.line(f"{each.id[:SHORT_ID]}  {each.state:8}  {each.text}")
        for text in each.evidence:
            output.line(f"                    because: {text}")
    output.line(f"{len(found)} proposals")


def _print_turns(output: Output, turns: Sequence[InboxTurn]) -> None:
    output.json({"turns": turns})
    rows = [(each.id, minute(each.at), each.state, each.text) for each in turns]
    output.table(("id", "when", "state", "text"), rows, none="")
