"""The pages, their buttons' actions, and the application with its access control."""

from __future__ import annotations

import datetime as dt
import difflib
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.background import BackgroundTask
from starlette.requests import Request
from starlette.responses import FileResponse, PlainTextResponse, Response
from starlette.routing import Mount
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp

from perdure.api import consent
from perdure.api.doctor import examine
from perdure.api.explain import INJECTED, silence
from perdure.api.memory import Memory
from perdure.api.related_change import beside
from perdure.clock import Clock, SystemClock
from perdure.consolidation.suspicions import KINDS
from perdure.engine.settings import Settings
from perdure.errors import NotFoundError, ScopeError
from perdure.maintenance.backup import backups
from perdure.store.fact import Fact
from perdure.store.listing import Filter, Listed, State, Stats, state_of, why_hidden
from perdure.store.scope import Scope
from perdure.store.short_ids import is_named
from perdure.ui.door import Door, Keys
from perdure.ui.page import Call, change, pairs, show

MOST = 30
"""Memories, turns and replacements that are shown of each."""


def today(call: Call) -> Response:
    """Show what has happened since yesterday."""
    memory, since = call.memory, yesterday(call.now)
    kept = memory.admin.inventory(Filter(after=since), limit=MOST)
    turns = [turn for turn in memory.turns.past(MOST) if turn.at >= since]
    replaced = memory.admin.replaced(since, MOST)
    waiting = len(memory.admin.review())
    last = _last(memory)
    return call.render("today.html", since=since, kept=kept, turns=turns, replaced=replaced, waiting=waiting, last=last)


def _last(memory: Memory) -> Mapping[str, Any] | None:
    """Return the last change: its batch, the change to one memory, and the number of others; None: there is none."""
    try:
        undone = memory.undo(dry_run=True)
    except NotFoundError:
        return None
    changes = [each for first in undone.facts[:1] for each in memory.history(first).changes]
    done = [each for each in changes if each.fact.id == undone.facts[0]]
    return {"batch": undone.batch, "change": done[-1], "more": len(undone.facts) - 1} if done else None


def yesterday(now: float) -> float:
    """Return when the day before began here, epoch seconds."""
    midnight = dt.datetime.fromtimestamp(now).astimezone().replace(hour=0, minute=0, second=0, microsecond=0)
    return (midnight - dt.timedelta(days=1)).timestamp()


def take_back(call: Call) -> Response:
    """Restore a replaced memory."""
    [fact] = call.memory.admin.take_back(call.given("id"))
    return call.back("today", f"Restored: {fact.text}", undo=last_batch(call))


def undo(call: Call) -> Response:
    """Take back a change; without a name the last one."""
    undone = call.memory.undo(call.given("batch") or None)
    said = "Undone." if not undone.conflicts else "Undone, except for memories that have changed since."
    return call.back(call.given("page") or "today", said)


def last_batch(call: Call) -> str:
    """Return the name of the last change, for the button that takes it back."""
    return call.memory.undo(dry_run=True).batch


PAGE = 40
FOUND = 200
"""Memories that a search by state scans."""
BY_WORDS = (State.FORGOTTEN, State.EXPIRED)
"""States that search omits: here the newest `FOUND` of them are scanned for the words of the query."""
COUNTING = 0.02
"""Maximum share of time spent on counting for the facets."""
TAGS = 20
"""Tags that are offered, the most used ones."""
FACETS = ("category", "scope", "tag", "origin", "state", "pinned")


@dataclass(frozen=True, slots=True)
class Counted:
    """Counts, the last change they include, when they were taken (monotonic seconds), and how long that took."""

    stats: Stats
    changes: int
    at: float
    took: float


@dataclass(frozen=True, slots=True)
class Facet:
    """A filter of the list: its name, and its values with their number of memories."""

    name: str
    choices: Sequence[tuple[str, int | None]]


def memories(call: Call) -> Response:
    """Show a page of memories."""
    chosen, query = {name: call.asked(name) for name in FACETS}, call.asked("q")
    wanted = Filter(
        category=chosen["category"] or None,
        scope=Scope.parse(chosen["scope"]) if chosen["scope"] else None,
        pinned=True if chosen["pinned"] else None,
        channel=chosen["origin"] or None,
    )
    tag, state = chosen["tag"] or None, chosen["state"]
    behind, total = None, None
    if query:
        found = _found(call, query, wanted, tag, state)
    else:
        page = call.memory.admin.inventory(
            wanted, states=[state] if state else [], limit=PAGE, tag=tag, behind=call.asked("behind") or None
        )
        found, behind, total = page.facts, page.behind, page.total
    used = {name: value for name, value in chosen.items() if value}
    rows = bool(call.asked("rows"))
    return call.render(
        "rows.html" if rows else "memories.html",
        found=found, query=query, used=used, facets=[] if rows else _facets(call, wanted), total=total,
        more=call.path("memories", **used, behind=behind) if behind else "", best=PAGE,
        without={name: call.path("memories", q=query, **_but(used, name)) for name in used},
    )  # fmt: skip


def _found(call: Call, query: str, wanted: Filter, tag: str | None, state: str) -> Sequence[Listed]:
    if state in BY_WORDS:
        page = call.memory.admin.inventory(wanted, states=[state], limit=FOUND, tag=tag)
        words = query.casefold().split()
        return [each for each in page.facts if all(word in each.fact.text.casefold() for word in words)][:PAGE]
    limit = FOUND if state else PAGE
    hits = call.memory.admin.search(query, wanted, limit=limit, tag=tag, include_superseded=state == State.FORMER)
    now = call.now
    listed = [Listed(hit.fact, state_of(hit.fact, now), why_hidden(hit.fact, now)) for hit in hits]
    return [each for each in listed if not state or each.state == state][:PAGE]


def _facets(call: Call, wanted: Filter) -> Sequence[Facet]:
    """Return the facets, each counted as if nothing were chosen but whether it is pinned."""
    stats = _counted(call, replace(wanted, category=None, scope=None, channel=None))
    return [
        Facet("category", pairs(stats.by_category)),
        Facet("scope", pairs(stats.by_scope)),
        Facet("tag", pairs(stats.by_tag)[:TAGS]),
        Facet("origin", pairs(stats.by_channel)),
        Facet("state", [(state.value, None) for state in State]),
        Facet("pinned", [("pinned", None)]),
    ]


def _counted(call: Call, wanted: Filter) -> Stats:
    """Count memories, from a cache: in a large store counting takes longer than the rest of the page."""
    kept: dict[Filter, Counted] = call.request.app.state.counts
    found, began = kept.get(wanted), time.monotonic()
    if found is None or (began - found.at > found.took / COUNTING and call.memory.admin.changes(found.changes, 1)):
        changes = call.memory.status().changes
        stats = call.memory.admin.stats(wanted)
        found = kept[wanted] = Counted(stats, changes, began, time.monotonic() - began)
    return found.stats


def _but(used: Mapping[str, str], name: str) -> Mapping[str, str]:
    return {other: value for other, value in used.items() if other != name}


TURNS = 200
"""Number of newest turns that are searched for a memory."""


@dataclass(frozen=True, slots=True)
class Step:
    """A version of a memory, and its difference in words from the previous one."""

    fact: Fact
    words: Sequence[tuple[str, str]]


def one(call: Call) -> Response:
    """Show a memory."""
    memory, fact_id = call.memory, call.request.path_params["id"]
    history = memory.history(fact_id)
    fact = next((each for each in history.versions if is_named(each.id, fact_id)), history.versions[-1])
    live = fact.forgotten_at is None
    came = memory.turns.past(TURNS, fact_id=fact.id)
    try:
        last = memory.why_not(fact.id)
    except NotFoundError:
        last = ""
    said = fact.source_date or fact.created_at
    asked = (turn for turn in memory.turns.past(TURNS, before=said + 1) if turn.session == fact.provenance_session)
    return call.render(
        "one.html", fact=fact, state=state_of(fact, call.now), hidden=why_hidden(fact, call.now),
        triggers=memory.admin.triggers(fact.id),
        steps=steps(history.versions), changes=history.changes, last=last, came=came,
        source=next(asked, None) if fact.provenance_session else None,
        related=memory.related(fact.id, 1) if live and fact.superseded_at is None else [],
    )  # fmt: skip


def steps(versions: Sequence[Fact]) -> Sequence[Step]:
    """Return the versions of a memory, newest first, each with its difference to the one before."""
    found, before = [], ""
    for fact in versions:
        found.append(Step(fact, difference(before, fact.text) if before else [("same", fact.text)]))
        before = fact.text
    return found[::-1]


def difference(before: str, after: str) -> Sequence[tuple[str, str]]:
    """Return the words of two texts in one row: "same", "gone" or "new", each with its words."""
    old, new = before.split(), after.split()
    parts: list[tuple[str, str]] = []
    for kind, start, end, other, last in difflib.SequenceMatcher(a=old, b=new, autojunk=False).get_opcodes():
        if kind == "equal":
            parts.append(("same", " ".join(old[start:end])))
        else:
            parts += [("gone", " ".join(old[start:end]))] if end > start else []
            parts += [("new", " ".join(new[other:last]))] if last > other else []
    return parts


def edit(call: Call) -> Response:
    """Give a memory another text."""
    done = call.memory.update(_id(call), text=call.given("text"))
    return call.back(f"memory/{done.fact.id}", "Saved.", undo=last_batch(call))


def pin(call: Call) -> Response:
    """Pin a memory, or no longer."""
    pinned = call.given("pinned") == "yes"
    fact = call.memory.pin(_id(call), pinned)
    return call.back(f"memory/{fact.id}", "Pinned." if pinned else "Unpinned.", undo=last_batch(call))


def forget(call: Call) -> Response:
    """Leave a memory out of every answer."""
    fact = call.memory.forget(_id(call))
    page = call.given("page") or f"memory/{fact.id}"
    return call.back(page, f"Forgotten: {fact.text}", undo=last_batch(call))


def unforget(call: Call) -> Response:
    """Bring a forgotten memory back."""
    fact = call.memory.unforget(_id(call))
    return call.back(f"memory/{fact.id}", "Restored.", undo=last_batch(call))


def alias(call: Call) -> Response:
    """Add an alias for the entity of a memory."""
    call.memory.aliases.add(call.given("name"), call.given("other"))
    said = f"{call.given('name')} is now also called {call.given('other')}."
    return call.back(f"memory/{_id(call)}", said, undo=last_batch(call))


def purge(call: Call) -> Response:
    """Ask before deleting a memory permanently; once confirmed, delete it."""
    fact = call.memory.history(_id(call)).versions[-1]
    if call.given("sure") != "yes":
        return call.render("sure.html", title="Delete this memory permanently?", text=fact.text, action="purge",
                           yes="Delete permanently", values={"id": _id(call)},
                           back=f"memory/{_id(call)}")  # fmt: skip
    done = call.memory.admin.purge(_id(call))
    said = "Deleted from every file in the data folder."
    if done.state != "certified":
        said = f"Deletion started, but not certified yet: {done.waiting}. Retry with: perdure purge --status"
    return call.back("memories", said)


def _id(call: Call) -> str:
    return call.given("id")


TURNS_PAGE = 50
CONSIDERED = 40
"""Memories of a turn that are shown at once, the best ones."""
MARKS = {"yes": True, "no": False, "clear": None}
SAID = {
    "yes": "Marked: should have been recalled. Evaluations will now check for it.",
    "no": "Marked: should not have been recalled. Evaluations will now check for it.",
    "clear": "Mark cleared.",
}


def turns(call: Call) -> Response:
    """Show turns, newest first."""
    before = call.asked("before")
    found = call.memory.turns.past(TURNS_PAGE, before=float(before) if before.replace(".", "", 1).isdecimal() else None)
    more = call.path("turns", before=repr(found[-1].at)) if len(found) == TURNS_PAGE else ""
    return call.render("turns.html", turns=found, more=more)


def turn(call: Call) -> Response:
    """Show one turn and, on request, what it would recall today."""
    name = call.request.path_params["id"]
    found, explained = call.memory.turns.one(name), call.memory.why(name)
    today = call.memory.turns.replay(name) if call.asked("replay") and found.query else None
    words = call.asked("find")
    hits = call.memory.admin.search(words) if words else None
    return call.render(
        "turn.html", turn=found, explained=explained, silent=silence(explained), today=today, injected=INJECTED,
        found=hits, silent_today=silence(today) if today else None, most=None if call.asked("all") else CONSIDERED,
    )  # fmt: skip


def mark(call: Call) -> Response:
    """Note whether a memory should have come up in a turn."""
    answer = call.given("wanted")
    found = call.memory.turns.mark(call.given("turn"), call.given("id"), MARKS.get(answer))
    return call.back(f"turns/{found.id}", SAID.get(answer, SAID["clear"]))


def review(call: Call) -> Response:
    """Show memories pending review and, on request, the findings of an audit."""
    memory = call.memory
    found = memory.admin.audit().suspects if call.asked("look") else None
    try:
        proposals = memory.upkeep.proposals.list()
    except ScopeError:
        proposals = []
    groups = None if found is None else {kind: [each for each in found if each.kind == kind] for kind in KINDS}
    waiting = [(fact, beside(memory, fact)) for fact in memory.admin.review()]
    return call.render("review.html", waiting=waiting, proposals=proposals, groups=groups)


def decide(call: Call) -> Response:
    """Approve or reject a pending memory."""
    approved = call.given("answer") == "approve"
    [fact] = (call.memory.admin.approve if approved else call.memory.admin.reject)(call.given("id"))
    return call.back("review", f"{'Approved' if approved else 'Rejected'}: {fact.text}", undo=last_batch(call))


def propose(call: Call) -> Response:
    """Accept or refuse a line for MEMORY.md."""
    accepted, proposals = call.given("answer") == "accept", call.memory.upkeep.proposals
    (proposals.accept if accepted else proposals.refuse)(call.given("id"))
    return call.back("review", "Added to MEMORY.md." if accepted else "Declined. It will not be proposed again.")


def files(call: Call) -> Response:
    """Show the results of a search of files and conversations, or what is searched."""
    query = call.asked("q")
    answer = call.memory.files.search(query, max_results=20) if query else None
    status = None if query else call.memory.files.status()
    return call.render("files.html", query=query, answer=answer, status=status)


def health(call: Call) -> Response:
    """Show the state of the store."""
    status = call.memory.status()
    folder = Path(status.home)
    checkups = examine(folder) if call.asked("look") else None
    shown: dict[str, Any] = {"sizes": sizes(folder), "backup": next(iter(backups(folder)), None), "checkups": checkups}
    on, terms = Settings.load().librarian, consent.terms(call.memory)
    state = {"runs": (), "failing": {}, **call.memory.admin.librarian()}
    shown["librarian"] = {"on": on, "terms": terms, **state}
    return call.render("health.html", status=status, jobs=call.memory.admin.jobs(), **shown)


def librarian(call: Call) -> Response:
    """Switch the librarian on or off, in the settings file."""
    kept = consent.keep(Path(call.memory.status().home), yes=call.given("wanted") == "yes")
    return call.back("health", f"The librarian is {'on' if kept.on else 'off'}.")


def sizes(folder: Path) -> list[tuple[str, int]]:
    """Return the parts of a data folder with their bytes, the largest first; lock files are empty and left out."""
    found: dict[str, int] = {}
    for file in folder.rglob("*"):
        try:
            state = file.lstat()
        except FileNotFoundError:
            continue
        if file.is_file() and file.suffix != ".lock":
            name = file.relative_to(folder).parts[0]
            found[name] = found.get(name, 0) + state.st_size
    return sorted(found.items(), key=lambda each: -each[1])


def export(call: Call) -> Response:
    """Ask before exporting all memories; once confirmed, send the file."""
    if call.given("sure") != "yes":
        text = "A JSONL file with every memory in every scope. Secrets are redacted."
        return call.render("sure.html", title="Export all memories?", text=text, action="export", yes="Export",
                           values={}, back="health")  # fmt: skip
    made = tempfile.TemporaryDirectory(prefix="perdure-")
    path = Path(made.name) / "memories.jsonl"
    call.memory.admin.export(path)
    return FileResponse(path, filename=path.name, background=BackgroundTask(made.cleanup))


ROUTES = [
    show("/today", today), show("/memories", memories), show("/memory/{id:str}", one), show("/turns", turns),
    show("/turns/{id:str}", turn), show("/review", review), show("/files", files), show("/health", health),
    change("/undo", undo), change("/take-back", take_back), change("/edit", edit), change("/pin", pin),
    change("/forget", forget), change("/unforget", unforget), change("/alias", alias), change("/purge", purge),
    change("/mark", mark), change("/decide", decide), change("/propose", propose), change("/export", export),
    change("/librarian", librarian),
]  # fmt: skip


def pages(memory: Memory, keys: Keys, port: int, clock: Clock | None = None) -> ASGIApp:
    """Return the pages of an open store, as a server takes them."""
    app = Starlette(
        routes=[
            Mount(
                keys.prefix, routes=[*ROUTES, Mount("/static", StaticFiles(directory=Path(__file__).parent / "static"))]
            )
        ],
        exception_handlers={404: _no_page, 405: _no_page},
    )
    app.state.memory, app.state.clock, app.state.counts = memory, clock or SystemClock(), {}
    return Door(app, keys, port)


def _no_page(request: Request, error: Exception) -> Response:
    return PlainTextResponse("Page not found.", 404)
