"""From the events of Claude Code and Codex to what perdure's hooks take. Whatever is unknown gives less, never more.

What arrives as a prompt is often not the user: reports of tasks in the background, other sessions, timers, summaries.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from perdure.hooks.types import TurnContext
from perdure.hosts.repository import project_of
from perdure.text.typed import said

NAMES = {
    "session-start": "SessionStart",
    "prompt": "UserPromptSubmit",
    "stop": "Stop",
    "compact": "PreCompact",
    "session-end": "SessionEnd",
}
"""Our events, and what the hosts call them."""
HOSTS = ("claude-code", "codex")


@dataclass(frozen=True, slots=True)
class Event:
    """What a host tells.

    Attributes:
        name: one of `NAMES`.
        context: who speaks with whom, where.
        prompt: what the user says; empty if it is not the user.
        reply: what the assistant said last.
        turn: tells a delivery of the same event from another event.
        scheduled: prompts that the assistant has had the host set timers for.
    """

    name: str
    context: TurnContext
    prompt: str = ""
    reply: str = ""
    turn: str = ""
    scheduled: tuple[str, ...] = ()


def read(name: str, host: str, payload: Mapping[str, Any], folder: str | None = None) -> Event | None:
    """Return what an event tells; None: it is not for memory.

    Args:
        name: one of `NAMES`.
        host: one of `HOSTS`.
        payload: as the host wrote it to stdin.
        folder: where the session began, if the host tells it beside.
    """
    session = _text(payload, "session_id")
    # Another host may run the hooks that it finds in the settings of this one, and a sub-agent's events are no turns.
    wanted = host in HOSTS and payload.get("hook_event_name") == NAMES.get(name)
    if not wanted or not session or payload.get("agent_id"):
        return None
    turn = _text(payload, "prompt_id") or _text(payload, "turn_id")
    context = TurnContext(
        session_id=session,
        project=project_of(folder or _text(payload, "cwd")),
        turn_id=turn or None,
        host=host,
        keeps_block=True,
    )
    return Event(
        name=name,
        context=context,
        prompt=said(_text(payload, "prompt")),
        reply=_text(payload, "last_assistant_message").strip(),
        turn=turn,
        scheduled=_scheduled(payload.get("session_crons")),
    )


def output(event: Event, block: str) -> dict[str, Any] | None:
    """Return what the host is to read on stdout: a block for the model, by the schema of both hosts."""
    if not block:
        return None
    return {"hookSpecificOutput": {"hookEventName": NAMES[event.name], "additionalContext": block}}


def _scheduled(timers: Any) -> tuple[str, ...]:
    found = [each for each in timers if isinstance(each, Mapping)] if isinstance(timers, list) else []
    return tuple(said(_text(each, "prompt")) for each in found)


def _text(payload: Mapping[str, Any], key: str) -> str:
    value = payload.get(key)
    return value if isinstance(value, str) else ""
