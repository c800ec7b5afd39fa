"""Memories: all that is kept, searched as one types, narrowed by facets, a page at a time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from starlette.responses import Response

from perdure.store.inventory import Listed, State, state_of, why_hidden
from perdure.store.listing import Filter, Stats
from perdure.store.scope import Scope
from perdure.ui.page import Call, pairs, show

PAGE = 40
TAGS = 20
"""Tags that are offered, the most used ones."""
FACETS = ("category", "scope", "tag", "origin", "state", "pinned")


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
        more=call.path("memories", **used, behind=behind) if behind else "",
        without={name: call.path("memories", q=query, **_but(used, name)) for name in used},
    )  # fmt: skip


def _found(call: Call, query: str, wanted: Filter, tag: str | None, state: str) -> Sequence[Listed]:
    former = state == State.FORMER
    hits = call.memory.admin.search(query, wanted, limit=PAGE, tag=tag, include_superseded=former)
    now = call.now
    listed = [Listed(hit.fact, state_of(hit.fact, now), why_hidden(hit.fact, now)) for hit in hits]
    return [each for each in listed if not state or each.state == state]


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
    """Count, unless nothing has changed since the last time: of a large store that takes longer than all the rest."""
    kept: dict[Filter, tuple[int, Stats]] = call.request.app.state.counts
    number, stats = kept.get(wanted, (-1, None))
    if stats is None or call.memory.changes(number, 1):
        number = call.memory.status().changes
        stats = call.memory.admin.stats(wanted)
        kept[wanted] = number, stats
    return stats


def _but(used: Mapping[str, str], name: str) -> Mapping[str, str]:
    return {other: value for other, value in used.items() if other != name}


ROUTES = [show("/memories", memories)]
