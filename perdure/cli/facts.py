"""Commands that find and show memories."""

from __future__ import annotations

import datetime as dt
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from typing import Any

import click

from perdure.api.explain import Ending, ending
from perdure.api.memory import Memory
from perdure.api.stored import Stored
from perdure.api.tool_arguments import Lookup, Recall
from perdure.cli.operation import operation
from perdure.cli.options import arguments_option, limit_option, project_option
from perdure.cli.output import FOUND_NOTHING, OK, SHORT_ID, Output, day, minute, tell
from perdure.errors import NotFoundError
from perdure.store.fact import Fact
from perdure.store.history import Change
from perdure.store.links import Related
from perdure.store.listing import Filter, Page, State, state_of, why_hidden
from perdure.store.scope import OWNER, Scope
from perdure.store.short_ids import is_named
from perdure.text.normalise import fts_text
from perdure.text.pluralize import counted

NAMING = 50
"""Search results in which `perdure lookup` looks for a name."""

NONE, GONE = "No memory matches.", "(purged or not visible)"


@operation(model=True, reads=True)
@arguments_option("category entity tag as_of include_superseded", Recall)
@limit_option(10)
def search(
    memory: Memory, output: Output, query: str, category: str | None, entity: str | None, scope: str | None,
    as_of: str | None, **asked: Any,
) -> int:  # fmt: skip
    """Search memories by keywords and meaning, best match first.

    Also finds memories that are never recalled automatically, and marks them. Exit code 1: there are no memories.

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
    header = ("id", "score", "match", "day", "category", "hidden because", *places.get("", ()), "text")
    output.both({"results": hits}, header, rows, none="No memories to search. Store one: perdure store TEXT")
    return OK if hits else FOUND_NOTHING


@operation(reads=True)
@arguments_option("tag as_of include_superseded", Lookup)
@project_option
def lookup(memory: Memory, output: Output, entity: str, key: str | None, as_of: str | None, **asked: Any) -> int:
    """Show memories about an entity, or about one of its attributes.

    If there are none, show memories that mention it. Exit code 1: nothing found.

    Example: perdure lookup user birthday
    """
    seen = asked | {"as_of": as_of}
    facts: Sequence[Fact] = memory.lookup(entity, key, **seen)
    if not facts and key is None:
        facts = [hit.fact for hit in memory.admin.search(entity, limit=NAMING, **seen) if _names(hit.fact.text, entity)]
        if facts:
            tell(f"No memory is about {entity}; these mention it.")
    print_facts(output, facts)
    return OK if facts else FOUND_NOTHING


@operation(name="list", reads=True)
@click.option(
    "--state", "states", multiple=True, help="Only this state. Repeatable.",
    type=click.Choice([state.value for state in State]),
)  # fmt: skip
@arguments_option("category entity tag as_of", Recall)
@click.option("--after", help="Only memories dated at or after this time.")
@click.option("--before", help="Only memories dated before this time.")
@click.option("--pinned", is_flag=True, help="Only pinned memories.")
@click.option("--fading", is_flag=True, help="Only memories that expire, with the time and reason.")
@click.option("--all", "everyone", is_flag=True, help="Include other users' memories.")
@limit_option()
@click.option("--behind", metavar="ID", help="Start after this id (the last one on the previous page).")
@click.option("--offset", type=click.IntRange(0), default=0, show_default=True, help="Results to skip.")
def list_(
    memory: Memory, output: Output, category: str | None, entity: str | None, scope: str | None, after: str | None,
    before: str | None, as_of: str | None, pinned: bool, fading: bool, everyone: bool, **asked: Any,
) -> None:  # fmt: skip
    """List all memories, newest first, each with its state.

    States: present, pending (review), rejected, search-only, forgotten, former (replaced or withdrawn), expired.

    Most memories are kept forever. `--fading` lists those that expire.

    Example: perdure list --state pending --state forgotten --limit 5
    """
    within = Scope.parse(scope) if scope else None
    chosen = Filter(category, entity, within, after, before, pinned or None, ends=fading or None)
    look = partial(memory.admin.inventory, chosen, as_of=as_of, **asked)
    page = look(everyone=everyone)
    # How many of the whole folder match.
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
    """Show everything about one memory, in any state.

    Eight digits of its id are enough.

    Example: perdure show 1f0c9a3e
    """
    fact, now = whichever(memory, fact_id), time.time()
    hidden, ends = why_hidden(fact, now), ending(fact, now)
    triggers = [{"text": each.text, "origin": each.origin} for each in memory.admin.triggers(fact)]
    told = {"state": state_of(fact, now), "hidden": hidden, "ending": ends, "triggers": triggers}
    output.json({**told, **asdict(fact)})
    output.title(fact.text)
    rows = [row for row in _told(fact, hidden, ends) if row[1]]
    rows += [("trigger", f"{each['text']} ({each['origin']})") for each in triggers]
    output.table(("", ""), rows, whole=True)


@operation(reads=True)
@click.option("--since", type=click.IntRange(0), default=0, show_default=True, help="Only changes after this number.")
@project_option
def history(memory: Memory, output: Output, fact_id: str | None, since: int, limit: int = 1000) -> None:
    """Show a memory's versions and changes; without ID, all changes.

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
    texts = {each.fact.id: each.fact.text for each in changes}
    rows = [_row(each, lambda other: texts.get(other) or text_of(memory, other)) for each in changes]
    none = "No changes yet. Store a memory: perdure store TEXT"
    output.table(("number", "time", "change", "by", "id", "text", "other id", "other text"), rows, none=none)


@operation(reads=True)
@click.option("--depth", default=2, show_default=True, help="Maximum link distance, 1 to 10.")
@arguments_option("as_of", Recall)
def graph(memory: Memory, output: Output, fact_id: str, depth: int, as_of: str | None) -> None:
    """Show the memories linked to a given memory, as a tree.

    Example: perdure graph 1f0c9a3e --depth 3
    """
    root = memory.get(fact_id)
    reached = memory.related(root.id, depth, as_of=as_of)
    output.json({"fact": root, "related": reached})
    for line in (f"{root.id[:SHORT_ID]} {root.text}", *_branches(root.id, 1, reached, "")):
        output.line(line)


def print_facts(output: Output, facts: Sequence[Fact], **more: Any) -> None:
    """Print memories, one per line; `more` are further keys of the JSON object."""
    output.json({"facts": facts}, **more)
    places = scopes_of(facts)
    rows = [
        (fact.id[:SHORT_ID], day(fact.effective_date), fact.category, *places.get(fact.id, ()), fact.text)
        for fact in facts
    ]
    output.table(("id", "day", "category", *places.get("", ()), "text"), rows, none=NONE)


def scopes_of(facts: Sequence[Fact]) -> Mapping[str, tuple[str, ...]]:
    """Return the scope cell by memory id, and the header by ""; empty if all are the owner's."""
    shown = {fact.id: (str(Scope(fact.scope, fact.scope_target)),) for fact in facts}
    return {"": ("scope",), **shown} if set(shown.values()) - {(f"user:{OWNER}",)} else {}


def print_stored(output: Output, done: Stored) -> None:
    """Print a stored memory and what happened to it."""
    print_facts(
        output, [done.fact], outcome=done.outcome, gone=done.gone, batch=done.batch,
        told=done.told(), redacted=done.redacted, advice=done.advice,
    )  # fmt: skip
    for line in filter(None, (done.told(), done.advice)):
        output.line(line)


def whichever(memory: Memory, fact_id: str) -> Fact:
    """Return a memory in any state."""
    versions = memory.history(fact_id).versions
    return next(version for version in versions if is_named(version.id, fact_id))


def _names(text: str, entity: str) -> bool:
    """Return whether a text holds all words of a name."""
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
    output.table(("id", "day", "state", *more, "category", "text"), rows, none=NONE)
    counts = ", ".join(f"{count} {state}" for state, count in page.states.items())
    if counts:
        tell(f"Showing {len(page.facts)} of {page.total}: {counts}.")
    if page.behind is not None:
        tell(f"Next page: repeat with --behind {page.behind[:SHORT_ID]}")
    if elsewhere:
        tell(f"Not shown: {elsewhere} belonging to other users. Include them: perdure list --all")


def _told(fact: Fact, hidden: str | None, ends: Ending) -> Iterator[tuple[str, str]]:
    yield "state", hidden or "present: may be recalled"
    yield "kept", ends.told
    yield "pinned", "yes, recalled in every conversation" if fact.pinned else ""
    yield "category", fact.category
    yield "tags", ", ".join(fact.tags)
    slot = " / ".join(filter(None, (fact.entity, fact.key)))
    yield "slot", f"{slot} = {fact.value}" if slot and fact.value else slot
    yield "why", fact.why or ""
    yield "said", minute(fact.effective_date)
    yield "stored", minute(fact.created_at) if fact.source_date is not None else ""
    session = f", conversation {fact.provenance_session}" if fact.provenance_session else ""
    yield "source", f"{fact.channel.words}{session}"
    yield "scope", str(Scope(fact.scope, fact.scope_target))
    used = (
        f", used {counted(fact.access_count, 'time')}, last {minute(fact.last_accessed)}" if fact.last_accessed else ""
    )
    yield "recalled", f"{counted(fact.injected_count, 'time')}{used}"
    yield "repeated", counted(fact.reinforced_count, "time") if fact.reinforced_count else ""
    yield "importance", f"{fact.importance:.2f}"
    yield "confidence", f"{fact.confidence:.2f}"
    since = "" if fact.valid_from is None else f"from {minute(fact.valid_from)}"
    until = "" if fact.valid_until is None else f"until {minute(fact.valid_until)}"
    yield "valid", f"{since} {until}".strip()
    yield "replaces", (fact.supersedes_id or "")[:SHORT_ID]
    yield "review", str(fact.metadata.get("review", ""))
    yield "id", fact.id


def _row(change: Change, text_of: Callable[[str], str]) -> tuple[Any, ...]:
    time = dt.datetime.fromtimestamp(change.at).astimezone().isoformat(" ", "seconds")
    other = change.other_id or ""
    by = f"{change.channel} {change.host}".strip()
    its = (other[:SHORT_ID], text_of(other) if other else "")
    return change.seq, time, change.action, by, change.fact.id[:SHORT_ID], change.fact.text, *its


def text_of(memory: Memory, fact_id: str) -> str:
    """Return the text of a memory, or that it cannot be seen."""
    try:
        return whichever(memory, fact_id).text
    except NotFoundError:
        return GONE


def _branches(parent: str, depth: int, reached: Sequence[Related], indent: str) -> list[str]:
    """Return the lines of the tree below a memory."""
    children = [each for each in reached if each.depth == depth and parent in {each.link.source, each.link.target}]
    lines = []
    for each in children:
        last = each is children[-1]
        arrow = f"{each.link.type} ->" if each.link.source == parent else f"<- {each.link.type}"
        lines.append(f"{indent}{'└─' if last else '├─'} {arrow} {each.fact.id[:SHORT_ID]} {each.fact.text}")
        lines += _branches(each.fact.id, depth + 1, reached, indent + ("   " if last else "│  "))
    return lines
