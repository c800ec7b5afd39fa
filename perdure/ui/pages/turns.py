"""Turns: what each was given and why, what it would get today, and what should have come."""

from __future__ import annotations

from starlette.responses import Response

from perdure.api.explain import INJECTED, silence
from perdure.ui.page import Call, change, show

PAGE = 50
CONSIDERED = 40
"""Memories of a turn that are shown at once, the best ones."""
MARKS = {"yes": True, "no": False, "clear": None}
SAID = {
    "yes": "Marked as one that should have come. perdure eval asks for it from now on.",
    "no": "Marked as one that should not have come. perdure eval looks for it from now on.",
    "clear": "The mark is taken back.",
}


def turns(call: Call) -> Response:
    """Show turns, newest first."""
    before = call.asked("before")
    found = call.memory.turns.past(PAGE, before=float(before) if before.replace(".", "", 1).isdecimal() else None)
    more = call.path("turns", before=repr(found[-1].at)) if len(found) == PAGE else ""
    return call.render("turns.html", turns=found, more=more)


def turn(call: Call) -> Response:
    """Show one turn; asked for, also what it would get today."""
    name = call.request.path_params["id"]
    found, explained = call.memory.turns.one(name), call.memory.why(name)
    today = call.memory.turns.replay(name) if call.asked("replay") and found.query else None
    return call.render(
        "turn.html", turn=found, explained=explained, silent=silence(explained), today=today, injected=INJECTED,
        silent_today=silence(today) if today else None, most=None if call.asked("all") else CONSIDERED,
    )  # fmt: skip


def mark(call: Call) -> Response:
    """Note whether a memory should have come up in a turn."""
    answer = call.given("wanted")
    found = call.memory.turns.mark(call.given("turn"), call.given("id"), MARKS.get(answer))
    return call.back(f"turns/{found.id}", SAID.get(answer, SAID["clear"]))


ROUTES = [show("/turns", turns), show("/turns/{id:str}", turn), change("/mark", mark)]
