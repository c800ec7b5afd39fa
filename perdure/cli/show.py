"""`perdure show`: one memory, as people speak of it."""

from __future__ import annotations

import datetime as dt
import time
from collections.abc import Iterator
from dataclasses import asdict

import click

from perdure.api.expiration import Ending, ending
from perdure.api.memory import Memory
from perdure.cli.options import on_memory
from perdure.cli.output import OK, SHORT_ID, Output
from perdure.store.fact import Fact
from perdure.store.listing import state_of, why_hidden
from perdure.store.scope import Scope
from perdure.text.pluralize import counted


@click.command()
@click.argument("fact_id", metavar="ID")
@on_memory(reads=True)
def show(memory: Memory, output: Output, fact_id: str) -> int:
    """Show all that is known about one memory, in whatever state it is; eight digits of its id are enough.

    Example: perdure show 1f0c9a3e
    """
    fact, now = whichever(memory, fact_id), time.time()
    hidden, ends = why_hidden(fact, now), ending(fact, now)
    if output.as_json:
        output.json({"state": state_of(fact, now), "hidden": hidden, "ending": asdict(ends), **asdict(fact)})
        return OK
    output.title(fact.text)
    output.table(("", ""), [row for row in _told(fact, hidden, ends) if row[1]], whole=True)
    return OK


def whichever(memory: Memory, fact_id: str) -> Fact:
    """Return a memory, also if it is forgotten or expired.

    Raises:
        NotFoundError, AmbiguousIdError: see `perdure.errors`.
    """
    versions = memory.admin.history(fact_id).versions
    return next(version for version in versions if version.id.startswith(fact_id.strip().lower()))


def _told(fact: Fact, hidden: str | None, ends: Ending) -> Iterator[tuple[str, str]]:
    yield "state", hidden or "present: it may come up by itself"
    yield "kept", ends.told
    yield "pinned", "yes, it comes up in every conversation" if fact.pinned else ""
    yield "category", fact.category
    yield "tags", ", ".join(fact.tags)
    slot = " / ".join(filter(None, (fact.entity, fact.key)))
    yield "slot", f"{slot} = {fact.value}" if slot and fact.value else slot
    yield "why", fact.why or ""
    yield "said", _when(fact.effective_date)
    yield "stored", _when(fact.created_at) if fact.source_date is not None else ""
    session = f", in the conversation {fact.provenance_session}" if fact.provenance_session else ""
    yield "came in by", f"{fact.channel.words}{session}"
    yield "belongs to", str(Scope(fact.scope, fact.scope_target))
    used = (
        f", used {counted(fact.access_count, 'time')}, last {_when(fact.last_accessed)}" if fact.last_accessed else ""
    )
    yield "in a prompt", f"{counted(fact.injected_count, 'time')}{used}"
    yield "said again", counted(fact.reinforced_count, "time") if fact.reinforced_count else ""
    yield "importance", f"{fact.importance:.2f}"
    yield "certainty", f"{fact.confidence:.2f}"
    yield "true", _span(fact)
    yield "replaces", (fact.supersedes_id or "")[:SHORT_ID]
    yield "review", str(fact.metadata.get("review", ""))
    yield "id", fact.id


def _span(fact: Fact) -> str:
    since = f"from {_when(fact.valid_from)}" if fact.valid_from is not None else ""
    until = f"until {_when(fact.valid_until)}" if fact.valid_until is not None else ""
    return " ".join(filter(None, (since, until)))


def _when(seconds: float) -> str:
    return dt.datetime.fromtimestamp(seconds).astimezone().strftime("%Y-%m-%d %H:%M")
