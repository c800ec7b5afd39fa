"""Today: what was kept, recalled and replaced since yesterday, and a button that takes back each of it."""

from __future__ import annotations

import datetime as dt

from starlette.responses import Response

from perdure.store.listing import Filter
from perdure.ui.page import Call, change, show

MOST = 30
"""Memories, turns and replacements that are shown of each."""


def today(call: Call) -> Response:
    """Show what has happened since yesterday."""
    memory, since = call.memory, yesterday(call.now)
    kept = memory.admin.inventory(Filter(after=since), limit=MOST)
    turns = [turn for turn in memory.turns.past(MOST) if turn.at >= since]
    replaced = memory.admin.replaced(since, MOST)
    waiting = len(memory.admin.review())
    return call.render("today.html", since=since, kept=kept, turns=turns, replaced=replaced, waiting=waiting)


def yesterday(now: float) -> float:
    """Return when the day before began here, epoch seconds."""
    midnight = dt.datetime.fromtimestamp(now).astimezone().replace(hour=0, minute=0, second=0, microsecond=0)
    return (midnight - dt.timedelta(days=1)).timestamp()


def take_back(call: Call) -> Response:
    """Let what was replaced count again."""
    [fact] = call.memory.admin.take_back(call.given("id"))
    return call.back("today", f"It counts again: {fact.text}", undo=last_batch(call))


def undo(call: Call) -> Response:
    """Take back a change; without a name the last one."""
    undone = call.memory.undo(call.given("batch") or None)
    said = "Taken back." if not undone.conflicts else "Taken back, but for what was changed again since."
    return call.back(call.given("page") or "today", said)


def last_batch(call: Call) -> str:
    """Return the name of the last change, for the button that takes it back."""
    return call.memory.undo(dry_run=True).batch


ROUTES = [show("/today", today), change("/take-back", take_back), change("/undo", undo)]
