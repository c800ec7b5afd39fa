"""What adapters of frameworks share: one recall a turn, and a block set beside what the user said."""

from __future__ import annotations

from perdure.hooks.types import Placement, Recall
from perdure.hosts.carrier import Carrier
from perdure.recent import Recent

TURNS = 64
"""Turns side by side whose block is remembered: a second recall would spoil the provider's prompt cache."""
NOTHING = Recall("")


class Turnwise:
    """Recalls once for a turn, however often its model is called."""

    def __init__(self, carrier: Carrier) -> None:
        self._carrier = carrier
        self._recalls: Recent[str, Recall] = Recent(TURNS)

    def before(self, turn: str, prompt: str, session: str | None, user: str | None = None) -> Recall:
        """Return what the model should see in a turn; an empty block: nothing."""
        found = self._recalls.get(turn)
        if found is None:
            found = self._carrier.before(prompt, session, user) or NOTHING
            self._recalls.put(turn, found)
        return found

    async def a_before(self, turn: str, prompt: str, session: str | None, user: str | None = None) -> Recall:
        """Return what the model should see in a turn; an empty block: nothing."""
        found = self._recalls.get(turn)
        if found is None:
            found = await self._carrier.a_before(prompt, session, user) or NOTHING
            self._recalls.put(turn, found)
        return found


def beside(block: object, recall: Recall, content: list[object]) -> list[object]:
    """Return the parts of a user's message with the block in front of them, or behind."""
    return [*content, block] if recall.placement is Placement.TAIL else [block, *content]
