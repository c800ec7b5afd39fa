"""How each host that runs commands tells of its events, and what it takes for its model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from perdure.text.lexicon import table

TOOL = "tool"
EVENTS = ("session-start", "prompt", TOOL, "stop", "compact", "session-end")
"""Our events: a session begins, the user says something, a tool is about to run, the assistant has answered, the host
is about to sum up what was said, a session is over."""
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
    # The events at which it takes a block: when a session begins, with each prompt, perhaps before a tool runs.
    shown: Sequence[str] = ("session-start", "prompt")
    compacts: Sequence[str] = ()  # the triggers of a compaction that are no mere check; empty: all
    drops: Sequence[str] = ()  # the sources of a session whose model does not see what it was shown before
    tools: str = ""  # a pattern of the tools that run commands and write files, by its names
    # How it calls the ways in which programs begin sessions, or how these names begin. `record`: the key under which it
    # names its own record of the session, if it tells the way at the head of that alone.
    programs: Sequence[str] = ()
    record: str | None = None
    # Its own memory files, which its model sees in any case: those of the user below the home folder, and those of each
    # folder from the repository's root down to where the session is. `notes`: what it has written down
    # itself; `imports`: whether they name further files.
    of_user: Sequence[str] = ()
    of_project: Sequence[str] = ()
    notes: str = ""
    imports: bool = False
    bare: str | None = None  # whether it takes the block under a key of its own, not within `hookSpecificOutput`


DIALECTS = {host: Dialect(**told) for host, told in table("hosts/command", "dialects").items()}
