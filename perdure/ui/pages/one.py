"""One memory: its text, slot, origin and history, where it came up, and what can be done with it."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import dataclass

from starlette.responses import Response

from perdure.errors import NotFoundError
from perdure.store.fact import Fact
from perdure.store.listing import state_of, why_hidden
from perdure.ui.page import Call, change, show
from perdure.ui.pages.today import last_batch

TURNS = 200
"""Turns, the newest, in which is looked where a memory came up."""


@dataclass(frozen=True, slots=True)
class Step:
    """A version of a memory, and in which words it differs from the one before: what is said, and how it changed."""

    fact: Fact
    words: Sequence[tuple[str, str]]


def one(call: Call) -> Response:
    """Show a memory."""
    memory, fact_id = call.memory, call.request.path_params["id"]
    history = memory.admin.history(fact_id)
    fact = next((each for each in history.versions if each.id.startswith(fact_id)), history.versions[-1])
    live = fact.forgotten_at is None
    came = memory.turns.past(TURNS, fact_id=fact.id)
    try:
        last = memory.why_not(fact.id)
    except NotFoundError:
        last = ""
    return call.render(
        "one.html", fact=fact, state=state_of(fact, call.now), hidden=why_hidden(fact, call.now),
        steps=steps(history.versions), changes=history.changes, last=last, came=came,
        related=memory.related(fact.id, 1) if live and fact.superseded_at is None else [],
    )  # fmt: skip


def steps(versions: Sequence[Fact]) -> Sequence[Step]:
    """Return the versions of a memory, newest first, each with its difference to the one before.

    Args:
        versions: oldest first.
    """
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
    return call.back(f"memory/{done.fact.id}", "Changed.", undo=last_batch(call))


def pin(call: Call) -> Response:
    """Pin a memory, or no longer."""
    pinned = call.given("pinned") == "yes"
    fact = call.memory.pin(_id(call), pinned)
    return call.back(f"memory/{fact.id}", "Pinned." if pinned else "No longer pinned.", undo=last_batch(call))


def forget(call: Call) -> Response:
    """Leave a memory out of every answer."""
    fact = call.memory.forget(_id(call))
    page = call.given("page") or f"memory/{fact.id}"
    return call.back(page, f"Forgotten: {fact.text}", undo=last_batch(call))


def unforget(call: Call) -> Response:
    """Bring a forgotten memory back."""
    fact = call.memory.unforget(_id(call))
    return call.back(f"memory/{fact.id}", "It counts again.", undo=last_batch(call))


def alias(call: Call) -> Response:
    """Give the thing that a memory is about another name."""
    call.memory.aliases.add(call.given("name"), call.given("other"))
    said = f"{call.given('name')} is also called {call.given('other')} from now on."
    return call.back(f"memory/{_id(call)}", said, undo=last_batch(call))


def purge(call: Call) -> Response:
    """Ask whether a memory is to be removed for good; asked already, remove it."""
    fact = call.memory.admin.history(_id(call)).versions[-1]
    if call.given("sure") != "yes":
        return call.render("sure.html", title="Remove this memory for good?", text=fact.text, action="purge",
                           values={"id": _id(call)}, back=f"memory/{_id(call)}")  # fmt: skip
    done = call.memory.admin.purge(_id(call))
    waits = f" The certificate waits for: {done.waiting}." if done.state != "certified" else ""
    return call.back("memories", f"Removed from every file of the data folder.{waits}")


def _id(call: Call) -> str:
    return call.given("id")


ROUTES = [
    show("/memory/{id:str}", one), change("/edit", edit), change("/pin", pin), change("/forget", forget),
    change("/unforget", unforget), change("/alias", alias), change("/purge", purge),
]  # fmt: skip
