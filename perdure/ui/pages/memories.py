"""Memories: all that is kept, searched as one types, narrowed by facets, a page at a time."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from starlette.responses import Response

from perdure.store.listing import Filter, Listed, State, Stats, state_of, why_hidden
from perdure.store.scope import Scope
from perdure.ui.page import Call, pairs, show

PAGE = 40
FOUND = 200
"""Memories that a search looks through for a state."""
BY_WORDS = (State.FORGOTTEN, State.EXPIRED)
"""What no search answers with: here it is looked through for the words of the query, the newest `FOUND`."""
COUNTING = 0.02
"""Share of the time that may go into counting for the facets."""
TAGS = 20
"""Tags that are offered, the most used ones."""
FACETS = ("category", "scope", "tag", "origin", "state", "pinned")


@dataclass(frozen=True, slots=True)
class Counted:
    """What was counted, up to which change, when (seconds of a clock that only goes on), and how long that took."""

    stats: Stats
    changes: int
    at: float
    took: float


@dataclass(frozen=True, slots=True)
class Facet:
    """A way to narrow the list: its name, and what may be chosen with how many memories."""

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
    """Count, but not anew for each page: of a large store that takes longer than all the rest."""
    kept: dict[Filter, Counted] = call.request.app.state.counts
    found, began = kept.get(wanted), time.monotonic()
    if found is None or (began - found.at > found.took / COUNTING and call.memory.changes(found.changes, 1)):
        changes = call.memory.status().changes
        stats = call.memory.admin.stats(wanted)
        found = kept[wanted] = Counted(stats, changes, began, time.monotonic() - began)
    return found.stats


def _but(used: Mapping[str, str], name: str) -> Mapping[str, str]:
    return {other: value for other, value in used.items() if other != name}


ROUTES = [show("/memories", memories)]
