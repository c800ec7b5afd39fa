"""Review: what waits for a word of its owner, what contradicts, and what could go into MEMORY.md."""

from __future__ import annotations

from starlette.responses import Response

from perdure.api.related_change import beside
from perdure.errors import ScopeError
from perdure.ui.page import Call, change, show
from perdure.ui.pages.today import last_batch

KINDS = ("contradiction", "overtaken", "duplicate", "stale", "junk", "echo", "secret")
"""What an audit finds, in the order in which it is shown."""


def review(call: Call) -> Response:
    """Show what waits; asked for, also what an audit finds."""
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
    """Approve or reject what waits."""
    approved = call.given("answer") == "approve"
    [fact] = (call.memory.admin.approve if approved else call.memory.admin.reject)(call.given("id"))
    said = f"{'Approved' if approved else 'Rejected'}: {fact.text}"
    return call.back("review", said, undo=last_batch(call))


def propose(call: Call) -> Response:
    """Accept or refuse a line for MEMORY.md."""
    accepted, proposals = call.given("answer") == "accept", call.memory.upkeep.proposals
    (proposals.accept if accepted else proposals.refuse)(call.given("id"))
    return call.back("review", "Written into MEMORY.md." if accepted else "Refused: it is not proposed again.")


ROUTES = [show("/review", review), change("/decide", decide), change("/propose", propose)]
