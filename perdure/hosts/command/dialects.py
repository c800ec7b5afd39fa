"""How each host that runs commands tells of its events, and what it takes for its model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from perdure.text.lexicon import table

EVENTS = ("session-start", "prompt", "stop", "compact", "session-end")
"""Our events: a session begins, the user says something, the assistant has answered, the host is about to sum up what
was said, a session is over."""
UNRECORDED = "unrecorded"
"""The way of a session that the host itself is to keep no record of."""


@dataclass(frozen=True, slots=True)
class Dialect:
    """How one host speaks."""

    names: Mapping[str, str]  # those of `EVENTS` that it tells of, and what it calls them
    # `event`, `session`, `turn`, `reply`: the keys under which it may tell them; the first that is there counts.
    event: Sequence[str] = ("hook_event_name",)
    session: Sequence[str] = ("session_id",)
    turn: Sequence[str] = ("prompt_id", "turn_id")
    reply: Sequence[str] = ("last_assistant_message",)
    # The event at which it takes a block: with each prompt, or when a session begins and not later.
    shown: str = "prompt"
    # How it calls the ways in which programs begin sessions, or how these names begin. `record`: the key under which it
    # names its own record of the session, if it tells the way at the head of that alone.
    programs: Sequence[str] = ()
    record: str | None = None
    bare: str | None = None  # whether it takes the block under a key of its own, not within `hookSpecificOutput`


DIALECTS = {host: Dialect(**told) for host, told in table("hosts/command", "dialects").items()}
