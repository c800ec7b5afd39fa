"""Commands that find and show memories."""

from __future__ import annotations

import datetime as dt
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from typing import Any

import click

from perdure.api.explain import Ending, ending
from perdure.api.memory import Memory
from perdure.api.stored import Stored
from perdure.api.tool_arguments import Recall
from perdure.cli.operation import operation
from perdure.cli.options import arguments_option, limit_option, project_option
from perdure.cli.output import FOUND_NOTHING, OK, SHORT_ID, Output, day, minute, tell
from perdure.store.fact import Fact
from perdure.store.history import Change
from perdure.store.links import Related
from perdure.store.listing import Filter, Page, State, state_of, why_hidden
from perdure.store.scope import OWNER, Scope
from perdure.text.normalise import fts_text
from perdure.text.pluralize import counted

NAMING = 50
"""Memories among which `perdure lookup` finds those that name something."""

_superseded = click.option("--superseded", "include_superseded", is_flag=True, help="Also former versions.")


@operation(model=True, reads=True)
@arguments_option("category entity tag as_of", Recall)
@_superseded
@limit_option(10)
def search(
    memory: Memory, output: Output, query: str, category: str | None, entity: str | None, scope: str | None,
    as_of: str | None, **asked: Any,
) -> int:  # fmt: skip
    """Search memories by words and meaning, also those that never come up unasked; they are marked.

    The nearest come first, with their scores. Exit code 1: there is nothing to choose from.

    Example: perdure search "staging database" --category entity --limit 5
    """
    chosen = Filter(category, entity, Scope.parse(scope) if scope else None)
    hits = memory.admin.search(query, chosen, as_of=as_of, **asked)
    places = scopes_of([hit.fact for hit in hits])
    rows = [
        (hit.fact.id[:SHORT_ID], f"{hit.score:.2f}", hit.leg, day(hit.fact.effective_date), hit.fact.category,
         hit.marks, *places.get(hit.fact.id, ()), hit.fact.text)
        for hit in hits
    ]  # fmt: skip
    header = ("id", "score", "by", "day", "category", "marks", *places.get("", ()), "text")
    output.both({"results": hits}, header, rows, none="There is nothing.")
    return OK if hits else FOUND_NOTHING


@operation(reads=True)
@arguments_option("tag as_of", Recall)
@_superseded
@project_option
def lookup(memory: Memory, output: Output, entity: str, key: str | None, as_of: str | None, **asked: Any) -> int:
    """Show what is known about an entity, and a key of it; if nothing is, what names it. Exit code 1: nothing does.

    Example: perdure lookup user birthday
    """
    seen = asked | {"as_of": as_of}
    facts: Sequence[Fact] = memory.lookup(entity, key, **seen)
    if not facts and key is None:
        facts = [hit.fact for hit in memory.admin.search(entity, limit=NAMING, **seen) if _names(hit.fact.text, entity)]
        if facts:
            tell(f"No memory is about {entity} alone; these name it.")
    print_facts(output, facts)
    return OK if facts else FOUND_NOTHING


@operation(name="list", reads=True)
@click.option(
    "--state",
    "states",
    type=click.Choice([state.value for state in State]),
    multiple=True,
    help="In this state; may be repeated.",
)
@arguments_option("category entity tag as_of", Recall)
@click.option("--after", help="Said at or after this time.")
@click.option("--before", help="Said before this time.")
@click.option("--pinned", is_flag=True, help="Only what is pinned.")
@click.option("--fading", is_flag=True, help="Only what fades and ends one day, or has ended: when, and why.")
@click.option("--all", "everyone", is_flag=True, help="Also what belongs to named users.")
@limit_option()
@click.option("--behind", metavar="ID", help="Behind this memory, the last one of the page before.")
@click.option("--offset", type=click.IntRange(0), default=0, show_default=True, help="After so many others.")
def list_(
    memory: Memory, output: Output, category: str | None, entity: str | None, scope: str | None, after: str | None,
    before: str | None, as_of: str | None, pinned: bool, fading: bool, everyone: bool, **asked: Any,
) -> None:  # fmt: skip
    """List all memories, newest first: also those that are in no answer, each with the word why.

    A state is present, pending, rejected, search-only, forgotten, former (replaced or withdrawn) or expired.

    Most are kept for good. `--fading` lists the others, with their end and why.

    Example: perdure list --state pending --state forgotten --limit 5
    """
    within = Scope.parse(scope) if scope else None
    chosen = Filter(category, entity, within, after, before, pinned or None, ends=fading or None)
    look = partial(memory.admin.inventory, chosen, as_of=as_of, **asked)
    page = look(everyone=everyone)
    # How many the whole folder has that fit, but for those shown.
    whole = page if everyone or scope else look(everyone=True, limit=1, offset=0, behind=None)
    elsewhere = whole.total - page.total
    if not output.as_json:
        _print_page(output, page, elsewhere, fading)
        return
    now = time.time()
    facts = [
        asdict(each.fact) | {"state": each.state, "hidden": each.hidden, "ending": ending(each.fact, now)}
        for each in page.facts
    ]
    counts = {"total": page.total, "states": page.states, "elsewhere": elsewhere}
    output.json({"facts": facts, **counts, "behind": page.behind})


@operation(reads=True)
def show(memory: Memory, output: Output, fact_id: str) -> None:
    """Show all that is known about one memory, in whatever state it is; eight digits of its id are enough.

    Example: perdure show 1f0c9a3e
    """
    fact, now = whichever(memory, fact_id), time.time()
    hidden, ends = why_hidden(fact, now), ending(fact, now)
    output.json({"state": state_of(fact, now), "hidden": hidden, "ending": ends, **asdict(fact)})
    output.title(fact.text)
    output.table(("", ""), [row for row in _told(fact, hidden, ends) if row[1]], whole=True)


@operation(reads=True)
@click.option("--since", type=click.IntRange(0), default=0, show_default=True, help="Changes after this number.")
@project_option
def history(memory: Memory, output: Output, fact_id: str | None, since: int, limit: int = 1000) -> None:
    """Show all versions of a memory and who changed what; without ID the changes of all memories.

    Example: perdure history 1f0c9a3e
    """
    known = None if fact_id is None else memory.history(fact_id)
    changes = memory.admin.changes(since, limit) if known is None else known.changes
    told: dict[str, Any] = {"changes": [asdict(each) | {"fact": each.fact.id} for each in changes]}
    output.json(told if known is None else told | {"versions": known.versions})
    if known is not None and known.versions:
        now = time.time()
        rows = [(each.id[:SHORT_ID], day(each.effective_date), state_of(each, now), each.text)
                for each in known.versions]  # fmt: skip
        output.table(("id", "day", "state", "text"), rows)
        output.rule("changes")
    output.table(("number", "time", "change", "id", "other", "by", "text"), map(_row, changes))


@operation(reads=True)
@click.option("--depth", default=2, show_default=True, help="So many links far, 1 to 10.")
@arguments_option("as_of", Recall)
def graph(memory: Memory, output: Output, fact_id: str, depth: int, as_of: str | None) -> None:
    """Show the memories that links lead to from one, as a tree: to the right an arrow, back an arrow to the left.

    Example: perdure graph 1f0c9a3e --depth 3
    """
    root = memory.get(fact_id)
    reached = memory.related(root.id, depth, as_of=as_of)
    output.json({"fact": root, "related": reached})
    for line in (f"{root.id[:SHORT_ID]} {root.text}", *_branches(root.id, 1, reached, "")):
        output.line(line)


def print_facts(output: Output, facts: Sequence[Fact], **more: Any) -> None:
    """Print memories, one a line; `more` is what the JSON object holds beside them."""
    output.json({"facts": facts}, **more)
    places = scopes_of(facts)
    rows = [
        (fact.id[:SHORT_ID], day(fact.effective_date), fact.category, *places.get(fact.id, ()), fact.text)
        for fact in facts
    ]
    output.table(("id", "day", "category", *places.get("", ()), "text"), rows, none="No memory fits.")


def scopes_of(facts: Sequence[Fact]) -> Mapping[str, tuple[str, ...]]:
    """Return the cell of a column of scopes by a memory's id, and its header by ""; nothing if all are the owner's."""
    shown = {fact.id: (str(Scope(fact.scope, fact.scope_target)),) for fact in facts}
    return {"": ("scope",), **shown} if set(shown.values()) - {(f"user:{OWNER}",)} else {}


def print_stored(output: Output, done: Stored) -> None:
    """Print a memory, and what became of what was to be stored."""
    print_facts(
        output, [done.fact], outcome=done.outcome, gone=done.gone, batch=done.batch,
        told=done.told(), redacted=done.redacted, advice=done.advice,
    )  # fmt: skip
    for line in filter(None, (done.told(), done.advice)):
        output.line(line)


def whichever(memory: Memory, fact_id: str) -> Fact:
    """Return a memory, also if it is forgotten or expired."""
    versions = memory.history(fact_id).versions
    return next(version for version in versions if version.id.startswith(fact_id.strip().lower()))


def _names(text: str, entity: str) -> bool:
    """Return whether all words of a name stand in a text."""
    return set(fts_text(entity).split()) <= set(fts_text(text).split())


def _print_page(output: Output, page: Page, elsewhere: int, fading: bool) -> None:
    now = time.time()
    more: dict[str, list[str]] = {}
    if fading:
        more["kept"] = [ending(each.fact, now).told for each in page.facts]
    if places := scopes_of([each.fact for each in page.facts]):
        more["scope"] = [places[each.fact.id][0] for each in page.facts]
    rows = [
        (each.fact.id[:SHORT_ID], day(each.fact.effective_date), each.hidden or each.state,
         *(cells[number] for cells in more.values()), each.fact.category, each.fact.text)
        for number, each in enumerate(page.facts)
    ]  # fmt: skip
    output.table(("id", "day", "state", *more, "category", "text"), rows, none="No memory fits.")
    counts = ", ".join(f"{count} {state}" for state, count in page.states.items())
    if counts:
        tell(f"{len(page.facts)} of {page.total} are shown; in all {counts}.")
    if page.behind is not None:
        tell(f"The next page: the same with --behind {page.behind[:SHORT_ID]}")
    if elsewhere:
        tell(f"Out of your sight, as of named users: {elsewhere} more; perdure list --all shows them.")


def _told(fact: Fact, hidden: str | None, ends: Ending) -> Iterator[tuple[str, str]]:
    yield "state", hidden or "present: it may come up by itself"
    yield "kept", ends.told
    yield "pinned", "yes, it comes up in every conversation" if fact.pinned else ""
    yield "category", fact.category
    yield "tags", ", ".join(fact.tags)
    slot = " / ".join(filter(None, (fact.entity, fact.key)))
    yield "slot", f"{slot} = {fact.value}" if slot and fact.value else slot
    yield "why", fact.why or ""
    yield "said", minute(fact.effective_date)
    yield "stored", minute(fact.created_at) if fact.source_date is not None else ""
    session = f", in the conversation {fact.provenance_session}" if fact.provenance_session else ""
    yield "came in by", f"{fact.channel.words}{session}"
    yield "belongs to", str(Scope(fact.scope, fact.scope_target))
    used = (
        f", used {counted(fact.access_count, 'time')}, last {minute(fact.last_accessed)}" if fact.last_accessed else ""
    )
    yield "in a prompt", f"{counted(fact.injected_count, 'time')}{used}"
    yield "said again", counted(fact.reinforced_count, "time") if fact.reinforced_count else ""
    yield "importance", f"{fact.importance:.2f}"
    yield "certainty", f"{fact.confidence:.2f}"
    since = "" if fact.valid_from is None else f"from {minute(fact.valid_from)}"
    until = "" if fact.valid_until is None else f"until {minute(fact.valid_until)}"
    yield "true", f"{since} {until}".strip()
    yield "replaces", (fact.supersedes_id or "")[:SHORT_ID]
    yield "review", str(fact.metadata.get("review", ""))
    yield "id", fact.id


def _row(change: Change) -> tuple[Any, ...]:
    time = dt.datetime.fromtimestamp(change.at).astimezone().isoformat(" ", "seconds")
    other = (change.other_id or "")[:SHORT_ID]
    by = f"{change.channel} {change.host}".strip()
    return change.seq, time, change.action, change.fact.id[:SHORT_ID], other, by, change.fact.text


def _branches(parent: str, depth: int, reached: Sequence[Related], indent: str) -> list[str]:
    """Return the lines under a memory: each of those reached stands under the one that its link comes from."""
    children = [each for each in reached if each.depth == depth and parent in {each.link.source, each.link.target}]
    lines = []
    for each in children:
        last = each is children[-1]
        arrow = f"{each.link.type} ->" if each.link.source == parent else f"<- {each.link.type}"
        lines.append(f"{indent}{'└─' if last else '├─'} {arrow} {each.fact.id[:SHORT_ID]} {each.fact.text}")
        lines += _branches(each.fact.id, depth + 1, reached, indent + ("   " if last else "│  "))
    return lines
