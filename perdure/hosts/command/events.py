"""From the events of command-line agents to what perdure's hooks take. Whatever is unknown gives less, never more.

What arrives as a prompt is often not the user: reports of tasks in the background, other sessions, timers, summaries.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from perdure.engine.repository import project_of
from perdure.errors import ScopeError
from perdure.hooks.types import HEADLESS, TurnContext
from perdure.hosts.command.context_files import in_context
from perdure.hosts.command.dialects import DIALECTS, TOOL, UNRECORDED, Dialect
from perdure.speech.typed import typed
from perdure.store.scope import checked_id
from perdure.text.clean import clean

HEAD = 1_000_000
"""Bytes that are read of a host's own record of a session."""


@dataclass(frozen=True, slots=True)
class Event:
    """What a host tells."""

    name: str  # one of `EVENTS`
    context: TurnContext  # who speaks with whom, where
    prompt: str = ""  # what the user says; empty if it is not the user
    reply: str = ""  # what the assistant said last
    turn: str = ""  # tells a delivery of the same event from another event
    scheduled: tuple[str, ...] = ()  # prompts that the assistant has had the host set timers for
    transcript: str = ""  # where the host keeps its own record of the session
    given: Mapping[str, Any] = field(default_factory=dict)  # to a tool that is about to run
    folder: str = ""  # where the agent is
    began: str = ""  # where its session began
    drops: bool = False  # whether the model no longer sees what it was shown


def read(name: str, host: str, payload: Mapping[str, Any], folder: str | None = None, way: str = "") -> Event | None:
    """Return what an event tells; None: it is not for memory.

    `folder` and `way`: where and how the session began, if the host tells it beside the payload that it wrote to stdin.
    """
    dialect = DIALECTS.get(host)
    if dialect is None:
        return None
    session = _text(payload, *dialect.session)
    # Another host may run the hooks that it finds in the settings of this one, and a sub-agent's events are no turns.
    wanted = name in dialect.names and _text(payload, *dialect.event) == dialect.names[name]
    if not wanted or not session or payload.get("agent_id"):
        return None
    if name == "compact" and dialect.compacts and _text(payload, "trigger") not in dialect.compacts:
        return None
    turn = _text(payload, "tool_use_id") if name == TOOL else _text(payload, *dialect.turn)
    where = folder or _folder(payload) or _text(payload, "cwd")
    project = project_of(where)
    # What is unknown is a person's: an editor, a desktop.
    trigger = HEADLESS if _way(dialect, payload, way).startswith(tuple(dialect.programs)) else "user"
    context = TurnContext(
        _name(session), project=project, turn_id=turn or None, host=host, trigger=trigger, keeps_block=True,
        takes_opening="prompt" in dialect.shown, has_tools=True,
    )  # fmt: skip
    # Before a tool there is no time for them, and nothing that they say.
    context = beside_files(context, where) if name in dialect.shown and name != TOOL else context
    came = _text(payload, "prompt")
    prompt = typed(came)
    # Some hosts tell with an answer what was asked: what no person asked for is not for memory.
    reply = "" if came and not prompt else _text(payload, *dialect.reply).strip()
    timers, given = payload.get("session_crons"), payload.get("tool_input")
    found = [each for each in timers if isinstance(each, Mapping)] if isinstance(timers, list) else []
    return Event(name, context, prompt, reply, turn, tuple(typed(_text(each, "prompt")) for each in found),
                 _text(payload, "transcript_path"), given if isinstance(given, Mapping) else {}, _text(payload, "cwd"),
                 where, name == "compact" or _text(payload, "source") in dialect.drops)  # fmt: skip


def beside_files(context: TurnContext, folder: str | None) -> TurnContext:
    """Return a context with the memory files of its own that its host shows its model in a folder."""
    dialect = DIALECTS.get(context.host)
    files = in_context(dialect, folder) if dialect else ()
    return replace(
        context,
        in_context=tuple((name, text) for name, text, own in files if own),
        in_project=tuple((name, text) for name, text, own in files if not own),
    )


def output(event: Event, block: str) -> dict[str, Any] | None:
    """Return what the host is to read on stdout, by its schema: a block for the model, or None: nothing."""
    dialect = DIALECTS[event.context.host or ""]
    if not block or event.name not in dialect.shown:
        return None
    if dialect.bare:
        return {dialect.bare: block}
    return {"hookSpecificOutput": {"hookEventName": dialect.names[event.name], "additionalContext": block}}


def _way(dialect: Dialect, payload: Mapping[str, Any], told: str) -> str:
    if dialect.record is None:
        return told
    if payload.get(dialect.record, "") is None:
        return UNRECORDED
    try:
        with Path(_text(payload, dialect.record)).open("rb") as record:
            way = json.loads(record.readline(HEAD))["payload"]["source"]
    except (OSError, ValueError, LookupError, TypeError):
        return ""
    return way if isinstance(way, str) else ""


def _folder(payload: Mapping[str, Any]) -> str:
    """Return the first folder of a window that may have several."""
    roots = payload.get("workspace_roots")
    return clean(roots[0]) if isinstance(roots, list) and roots and isinstance(roots[0], str) else ""


def _text(payload: Mapping[str, Any], *keys: str) -> str:
    """Return the first text that stands under one of the keys, as it can be stored."""
    values = (payload.get(key) for key in keys)
    return clean(next((value for value in values if isinstance(value, str) and value), ""))


def _name(session: str) -> str:
    """Return the name of a session whatever its host calls it: an id that cannot be one would lose what is said."""
    try:
        return checked_id(session.strip(), "session")
    except ScopeError:
        return hashlib.sha256(session.encode()).hexdigest()
