"""The intake of turns: what was said in one is on disk, in the inbox, when it returns."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from perdure.capture.intake import Intake, Limits, as_sequence, take
from perdure.clock import Clock
from perdure.engine.settings import Settings
from perdure.hooks.types import Messages, TurnContext
from perdure.recent import Recent
from perdure.store.inbox_lines import PROJECT, Entry
from perdure.store.safe import safe_values
from perdure.store.scope import Scope
from perdure.text.timestamps import ZONE, seconds

CURSORS = 1024
"""Conversations of which it is at hand how far they were read, those that went on last; the store knows the others."""
RECORD = "record"
"""Under this name an entry holds what is to be recorded of its turn."""
Said = Callable[[Intake, TurnContext, float], Sequence[Mapping[str, Any]]]
_log = logging.getLogger("perdure.plugin")


@dataclass(frozen=True, slots=True)
class Taken:
    """What was taken in of a turn."""

    messages: int
    entry: Entry | None  # as it stands in the inbox; None if there was nothing new
    left_out: tuple[str, ...]  # kinds of secrets
    at: float  # the time of the turn, epoch seconds
    fresh: Messages = ()  # all new messages, of anybody


@dataclass(eq=False, repr=False)
class TurnIntake:
    """Writes what is new in a turn into the inbox. Usable from any thread."""

    append: Callable[[Entry], Entry]  # puts an entry into the inbox
    key: bytes
    settings: Settings
    clock: Clock
    cursor: Callable[[str], str]  # tells how far a conversation was read that is not at hand
    said: Said  # returns what is to be recorded of a turn, at a time; nothing if the host records it itself

    def __post_init__(self) -> None:
        limits = self.settings.capture_limits
        self._limits = Limits(limits.min_chars, limits.max_chars, self.settings.capture_assistant)
        self._cursors: Recent[str, str] = Recent(CURSORS)

    def take(self, messages: Messages, context: TurnContext, home: Scope, batch: str | None = None) -> Taken:
        """Write down what is new in the host's history, or the turn's part of it; its memories belong to `home`.

        `batch`: of what is changed in the turn, if it is known.
        """
        name = f"{home}\0{context.session_id or ''}"
        if (tail := self._cursors.get(name)) is None:
            tail = self.cursor(name)
        intake = take(as_sequence(messages), tail, self.key, context.session_id, self._limits)
        if intake.clipped:
            _log.warning("%d messages were truncated to %d characters", intake.clipped, self._limits.max_chars)
        entry, at = None, seconds(context.now) or self.clock.now()
        if intake.messages:
            said = self.said(intake, context, at)
            entry = self.append({
                "at": at, "session": context.session_id, "cursor": name, "tail": intake.tail, "scope": str(home),
                **({PROJECT: context.project} if context.project else {}),
                # Another machine may come to capture it.
                **({ZONE: zone} if (zone := context.timezone or self.settings.timezone) else {}),
                "host": context.host, "turn": context.turn_id, "messages": intake.messages,
                **({"metadata": safe_values(context.metadata)} if context.metadata else {}),
                **({RECORD: said} if said else {}), **({"batch": batch} if batch else {}),
            })  # fmt: skip
        # Not before: a turn that could not be written comes again with the next one, and is new then.
        self._cursors.put(name, intake.tail)
        return Taken(len(intake.messages), entry, intake.left_out, at, intake.fresh)
