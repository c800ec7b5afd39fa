"""The frozen values that cross the border between a host and perdure.

This module imports nothing of perdure, so that every layer may use it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

Message = Mapping[str, Any]
"""One message as the host has it: `role`, and `content` as a string or a list of parts."""

Messages = Sequence[Message]

HEADLESS = "headless"
"""The trigger of a turn in a run that a program has begun, with no person at it."""


class Placement(StrEnum):
    """Where a host should put the recalled block."""

    HEAD = "head"
    """In front of the newest user message."""
    TAIL = "tail"
    """Behind the newest user message."""
    SYSTEM = "system"
    """In the system prompt."""


class Channel(StrEnum):
    """By which way a memory came in. Set by the host's code path, never inferred from text."""

    USER = "user"
    LIBRARY = "library"
    CLI = "cli"
    TOOL_ASKED = "tool_asked"
    """A tool call in a turn whose user message asks for it."""
    TOOL_UNASKED = "tool_unasked"
    """A tool call that the agent made on its own."""
    ASSISTANT = "assistant"
    OWNER_FILE = "owner_file"
    """MEMORY.md or USER.md."""
    FILE = "file"
    TRANSCRIPT_USER = "transcript_user"
    TRANSCRIPT_OTHER = "transcript_other"
    IMPORT = "import"
    UNKNOWN = "unknown"

    @property
    def words(self) -> str:
        """Who or what it was, in words."""
        return _WAYS[self]


_WAYS = {
    Channel.USER: "said by you", Channel.LIBRARY: "a program", Channel.CLI: "the command line",
    Channel.TOOL_ASKED: "an agent that was asked to", Channel.TOOL_UNASKED: "an agent by itself",
    Channel.ASSISTANT: "said by an agent", Channel.OWNER_FILE: "your own file", Channel.FILE: "a file",
    Channel.TRANSCRIPT_USER: "said by you in a past conversation",
    Channel.TRANSCRIPT_OTHER: "said by another in a past conversation", Channel.IMPORT: "an import",
    Channel.UNKNOWN: "a way that is not known",
}  # fmt: skip


class Consent(StrEnum):
    """What is known of the user's will when a tool would replace or forget what they said."""

    IN_WORDS = "in words"
    """The host tells their message, and that does not ask for it: the model is to ask them."""
    UNASKED = "unasked"
    """They can be asked by the host: the answer says about what."""
    GIVEN = "given"
    """They want this change, by a word that no model can make up."""
    UNAVAILABLE = "unavailable"
    """They cannot be asked now: the change waits in review."""


@dataclass(frozen=True, slots=True)
class TurnContext:
    """What the host knows about the turn.

    Attributes:
        session_id: the conversation, among those of the same agent and user; None if the host has no sessions.
        agent_id: who answers. None: the host has no agents, the user's own scope is meant. An empty
            or malformed id fails closed: nothing that belongs to an agent is read or written.
        user_id: whom the agent serves: what is captured is theirs within the agent, and no other user's. None for the
            one owner of this machine.
        scopes: what else may be read and, if asked for by name, written: "project:..." and "custom:...".
        project: the one that the turn is about, as "project:...": read like one of `scopes`, and what is said
            is kept for it alone, but for what is plainly the user's own.
        turn_id: the host's name for this turn, if it has one.
        trigger: what started the turn. Only "user" turns are recalled for and captured; "headless" ones, which a
            program asks for, are recalled for, and captured if `capture_headless` is on.
        chat: "direct", "group" or "channel".
        workspace: the agent's folder, if it has one: MEMORY.md and memory/ in it are searched.
        sessions_folder: where the host keeps its conversations as JSONL; None: perdure records them itself.
        prompt_mode: "full" if the host wants perdure's sections of the system prompt with a recall; "none" if it
            supplies them itself or has no place for them.
        host: the host's name, for the journal.
        keeps_block: whether the host keeps the recalled block in its own history.
        now: the host's time in epoch seconds; None for the clock of perdure.
        timezone: where the user is, by its IANA name; None: as the settings say, or on this machine.
        metadata: JSON values that the memories made of this turn are to have in theirs.
    """

    session_id: str | None = None
    agent_id: str | None = None
    user_id: str | None = None
    scopes: tuple[str, ...] = ()
    project: str | None = None
    turn_id: str | None = None
    trigger: str = "user"
    chat: str = "direct"
    workspace: str | None = None
    sessions_folder: str | None = None
    prompt_mode: str = "none"
    host: str = "python"
    keeps_block: bool = False
    now: float | None = None
    timezone: str | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict, hash=False)


@dataclass(frozen=True, slots=True)
class RecallItem:
    """One memory in a recalled block.

    Attributes:
        id: the fact's id.
        text: what stands in the block, before escaping.
        category: the fact's category.
        leg: what found it: the leg with the largest part in its score.
        score: the fused score, 0 to 1.
    """

    id: str
    text: str
    category: str
    leg: str
    score: float


@dataclass(frozen=True, slots=True)
class PromptSection:
    """A part of the system prompt.

    Attributes:
        name: "memory recall", "project context" or "runtime".
        text: Markdown, without a newline at its end.
    """

    name: str
    text: str


@dataclass(frozen=True, slots=True)
class Recall:
    """What perdure would like the model to see in this turn.

    Attributes:
        block: the fenced text, ready to be placed; empty if nothing is relevant and there are sections only.
        items: what stands in it, best first.
        receipt_id: under which `why` explains it.
        placement: where the block belongs.
        sections: of the system prompt, for a host that asked for them by `TurnContext.prompt_mode`.
    """

    block: str
    items: tuple[RecallItem, ...] = field(default=())
    receipt_id: str = ""
    placement: Placement = Placement.HEAD
    sections: tuple[PromptSection, ...] = ()


@dataclass(frozen=True, slots=True)
class OpeningItem:
    """One memory in the block that a session begins with.

    Attributes:
        id: the fact's id.
        text: the memory.
        why: "rule", "person", "project" or "date".
    """

    id: str
    text: str
    why: str


@dataclass(frozen=True, slots=True)
class Opening:
    """What perdure would like the model to know before the first word of a session.

    Attributes:
        block: the fenced text, ready to be placed.
        items: what stands in it, in its order.
        tokens: of the block.
        more: its last line, which says what else is known and how to find it; empty: nothing is.
        receipt_id: under which `why` explains it.
        placement: where the block belongs.
    """

    block: str
    items: tuple[OpeningItem, ...] = ()
    tokens: int = 0
    more: str = ""
    receipt_id: str = ""
    placement: Placement = Placement.HEAD


@dataclass(frozen=True, slots=True)
class ToolResult:
    """What a tool answers.

    Attributes:
        text: for the model; at most `perdure.api.tools.MAX_CHARS` characters.
        details: the same as JSON values, for the host.
        refused: whether nothing was done; `text` then says why, and what to do instead.
    """

    text: str
    details: Mapping[str, Any] = field(default_factory=dict)
    refused: bool = False
