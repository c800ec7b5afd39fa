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
from perdure.store.scope import Scope
from perdure.text.timestamps import seconds

CURSORS = 1024
"""Conversations of which it is at hand how far they were read, those that went on last; the store knows the others."""
RECORD = "record"
"""Under this name an entry holds what is to be recorded of its turn."""
Said = Callable[[Intake, TurnContext, float], Sequence[Mapping[str, Any]]]
_log = logging.getLogger("perdure.plugin")


@dataclass(frozen=True, slots=True)
class Taken:
    """What was taken in of a turn.

    Attributes:
        messages: how many.
        entry: as it stands in the inbox; None if there was nothing new.
        left_out: kinds of secrets that were left out.
        at: the time of the turn, epoch seconds.
    """

    messages: int
    entry: Entry | None
    left_out: tuple[str, ...]
    at: float


class TurnIntake:
    """Writes what is new in a turn into the inbox. Usable from any thread."""

    def __init__(
        self,
        append: Callable[[Entry], Entry],
        key: bytes,
        settings: Settings,
        clock: Clock,
        cursor: Callable[[str], str],
        said: Said,
    ) -> None:
        """Prepare.

        Args:
            append: puts an entry into the inbox; see `Inbox.append`.
            key: of the store.
            settings: which messages are worth a look.
            clock: where the time comes from.
            cursor: tells how far a conversation was read that is not at hand.
            said: returns what is to be recorded of a turn, at a time; nothing if the host records it itself.
        """
        self._append = append
        self._key = key
        self._limits = Limits(
            settings.capture_limits.min_chars, settings.capture_limits.max_chars, settings.capture_assistant
        )
        self._clock = clock
        self._cursor = cursor
        self._said = said
        self._cursors: Recent[str, str] = Recent(CURSORS)

    def take(self, messages: Messages, context: TurnContext, home: Scope) -> Taken:
        """Write down what is new.

        Args:
            messages: the host's history, whole or the turn's part of it.
            context: the turn.
            home: to whom its memories will belong.
        """
        name = f"{home}\0{context.session_id or ''}"
        tail = self._cursors.get(name)
        if tail is None:
            tail = self._cursor(name)
        intake = take(as_sequence(messages), tail, self._key, context.session_id, self._limits)
        if intake.clipped:
            _log.warning("%d messages were cut to %d characters", intake.clipped, self._limits.max_chars)
        entry, at = None, seconds(context.now) or self._clock.now()
        if intake.messages:
            said = self._said(intake, context, at)
            entry = self._append({
                "at": at,
                "session": context.session_id,
                "cursor": name,
                "tail": intake.tail,
                "scope": str(home),
                **({PROJECT: context.project} if context.project else {}),
                "host": context.host,
                "turn": context.turn_id,
                "messages": intake.messages,
                **({RECORD: said} if said else {}),
            })  # fmt: skip
        # Not before: a turn that could not be written comes again with the next one, and is new then.
        self._cursors.put(name, intake.tail)
        return Taken(len(intake.messages), entry, intake.left_out, at)
