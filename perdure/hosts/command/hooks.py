"""What the events of a command-line agent come to here."""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections import deque
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from perdure.api.memory import Memory
from perdure.api.proof import Heard
from perdure.errors import PerdureError
from perdure.hooks.types import HEADLESS, Message, TurnContext
from perdure.hosts.command.dialects import DIALECTS, TOOL
from perdure.hosts.command.events import Event, output, read
from perdure.hosts.command.transcripts import LATELY, messages
from perdure.plugin.plugin import hookimpls_for
from perdure.recent import Recent
from perdure.speech.author import HEARSAY
from perdure.store.folder import was_opened
from perdure.text.quotes import quoted

SESSIONS = 256
"""Conversations of which the last messages are at hand."""
HISTORY = 6
"""Messages of each: what the user said before gives a short answer its sense."""
SESSION_TOKENS = 4_000
"""About so many tokens of memories are put into a conversation: the host sends all of them again in every turn."""
CHARS_PER_TOKEN = 4
QUOTED, QUOTED_SECONDS = 512, 1_800.0
"""Prompts that a tool's caller may quote as the user's word, and for how long. They are on no disk."""
SCHEDULED = 64
"""Prompts of timers that a session is known to have set."""
DELIVERIES = 1_024
SAME_SECONDS = 10.0
"""An event without a turn's id that comes again so soon is the same one, delivered twice."""


@dataclass(slots=True)
class Session:
    """What is known of a conversation."""

    history: deque[Message] = field(default_factory=lambda: deque(maxlen=HISTORY))  # its last messages
    spent: int = 0  # about so many tokens of memories were put into it
    turn: str | None = None  # that of the newest prompt; None: none came yet
    scheduled: tuple[str, ...] = ()  # prompts of timers that it has set


class CommandHooks:
    """Hands events to perdure's plugin. Usable from any thread; nothing that goes wrong is raised."""

    def __init__(self, home: Path, **settings: Any) -> None:
        """Prepare; the store is opened with the first event.

        The `settings` are arguments of `Memory.open`.
        """
        self.home = home
        self._plugin = hookimpls_for(home=home, **settings)
        self._sessions: Recent[str, Session] = Recent(SESSIONS)
        self._delivered: Recent[str, tuple[float, str]] = Recent(DELIVERIES)
        self._said: deque[tuple[float, str, str | None, str]] = deque(maxlen=QUOTED)

    def open(self) -> None:
        """Open the store, so that the model is loading before the first event."""
        self._plugin.host_started(TurnContext(host="command"))

    def store(self) -> Memory:
        """Return the open store, on which tools work as well."""
        return self._plugin.opened()

    def adopt(self) -> None:
        """Take in what hooks without a helper have left behind."""
        with suppress(PerdureError):
            self.store().turns.adopt()

    def said(self, host: str, quote: str) -> Heard | None:
        """Return the newest message of a host's user that says this, word for word, as its hooks told; None: none.

        Without a quote it is where they speak, if that is in one session alone.
        """
        since, newer = time.monotonic() - QUOTED_SECONDS, set[str | None]()
        for _, _, session, text in [each for each in reversed(self._said) if each[0] > since and each[1] == host]:
            if quoted(quote, text):
                return Heard(text, None if session in newer else session)
            newer.add(session)
        return Heard("", newer.pop()) if not quote and len(newer) == 1 else None

    def answer(self, body: bytes) -> bytes:
        """Do what an event asks for.

        `body`: event, host, where and how the session began, and what the host wrote, with NULs between. What is no
        event is answered with nothing.
        """
        try:
            event, host, folder, way, written = body.split(b"\0", 4)
            payload = json.loads(written)
        except (ValueError, RecursionError):
            return b""
        if not isinstance(payload, dict):
            return b""
        name, host_name, way_name = (part.decode("ascii", "replace") for part in (event, host, way))
        said = self.handle(name, host_name, payload, os.fsdecode(folder), way_name)
        return json.dumps(said).encode("ascii") if said else b""

    def handle(
        self, name: str, host: str, payload: Mapping[str, Any], folder: str | None, way: str = ""
    ) -> dict[str, Any] | None:
        """Do what an event asks for; return what the host is to read, if anything.

        `folder` and `way`: where the session began, and how, if the host tells it.
        """
        event, dialect = read(name, host, payload, folder, way), DIALECTS.get(host)
        if event is None or dialect is None or not self._is_new(event):
            return None
        if name == "prompt":
            return output(event, self._asked(event, shown=name in dialect.shown)) if self._is_users(event) else None
        if name == TOOL:
            return output(event, self._reminded(event))
        if event.transcript and name in ("stop", "compact", "session-end"):
            self._plugin.did(partial(messages, event.transcript), event.context)
        if event.drops:
            self._session(event).spent = 0
            self._plugin.before_compaction((), event.context)
        if name == "stop":
            self._answered(event)
        elif name == "session-start":
            self._plugin.session_start(event.context)
            begun = self._plugin.opening(event.context) if name in dialect.shown else None
            return output(event, self._spent(event, begun.block if begun else ""))
        elif name == "session-end":
            self._plugin.session_end(event.context)
        return None

    def close(self) -> None:
        """Finish what was begun and close the store."""
        self._plugin.host_stopping(TurnContext(host="command"))

    def _asked(self, event: Event, *, shown: bool) -> str:
        """Recall for a prompt, if it can be shown, then take it in: should all end here, what was said is kept."""
        opening, block, session = "", "", self._session(event)
        if shown and session.spent < SESSION_TOKENS:
            found = self._plugin.before_agent_start(event.prompt, (), event.context)
            opening = self._spent(event, found.opening.block if found and found.opening else "")
            block = self._spent(event, found.block if found else "")
        if self._take({"role": "user", "content": event.prompt}, event):
            self._said.append((time.monotonic(), event.context.host, event.context.session_id, event.prompt))
        session.turn = event.turn
        return "\n\n".join(filter(None, (opening, block if session.spent <= SESSION_TOKENS else "")))

    def _reminded(self, event: Event) -> str:
        """Return what the model is to know before a tool runs. That the tool may run is not decided here."""
        if self._session(event).spent >= SESSION_TOKENS:
            return ""
        lately = partial(messages, event.transcript, LATELY) if event.transcript else tuple
        found = self._plugin.before_tool(
            event.given, event.context, folder=event.folder, began=event.began, lately=lately
        )
        return self._spent(event, found.block if found else "")

    def _spent(self, event: Event, block: str) -> str:
        self._session(event).spent += -(-len(block) // CHARS_PER_TOKEN)
        return block

    def _answered(self, event: Event) -> None:
        session = self._session(event)
        session.scheduled = (*event.scheduled, *session.scheduled)[:SCHEDULED]
        # What a machine was answered is nothing that the user heard of.
        if event.reply and session.turn in (None, event.turn):
            from perdure.capture.acts import quotes

            hearsay = quotes(event.reply, partial(messages, event.transcript, LATELY))
            self._take({"role": "assistant", "content": event.reply, HEARSAY: hearsay}, event)

    def _is_users(self, event: Event) -> bool:
        # The host delivers the prompt of a timer as if somebody had typed it.
        return bool(event.prompt) and event.prompt not in self._session(event).scheduled

    def _take(self, message: Message, event: Event) -> bool:
        """Take a message in; return whether it is a person's, or counts as such."""
        history = self._session(event).history
        taken = self._plugin.agent_end((*history, message), True, event.context)
        heeded = bool(taken) or event.context.trigger != HEADLESS
        if heeded:
            # A person may go on with what a program has begun.
            history.append(message)
        return heeded

    def _session(self, event: Event) -> Session:
        return self._sessions.first(f"{event.context.host}\0{event.context.session_id}", Session())

    def _is_new(self, event: Event) -> bool:
        """Tell an event from one that was delivered twice.

        As by settings and a plugin at once, or by the hooks of two hosts: some run those of Claude Code as well, which
        know nothing of their turns.
        """
        said = hashlib.sha256(f"{event.prompt}\0{event.reply}".encode()).hexdigest()
        # Of tools that run side by side each is an event.
        tool = event.turn if event.name == TOOL else ""
        key = "\0".join((event.name, event.context.session_id or "", said, tool, str(event.drops)))
        came = time.monotonic(), event.turn
        at, turn = before = self._delivered.first(key, came)
        if before is not came:
            both = bool(turn and event.turn)
            if (turn == event.turn) if both else (came[0] - at <= SAME_SECONDS):
                return event.name in ("compact", "session-end")
            self._delivered.put(key, came)
        return True


def handled(home: str, body: bytes) -> bytes:
    """Do what an event asks for without a helper: recall by words, and what was said into the inbox.

    The process may end when this returns: what was taken in is on disk.
    """
    folder = Path(home)
    # A guest leaves the housekeeping to the helper that is being started; only a first one may make the store.
    guest = was_opened(folder)
    return CommandHooks(folder, load_model=False, guest=guest, timers=False, watch=False).answer(body)
