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
    """Before the newest user message."""
    TAIL = "tail"
    """After the newest user message."""
    SYSTEM = "system"
    """In the system prompt."""


class Channel(StrEnum):
    """Where a memory came from. Set by the host's code path, never inferred from text."""

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
        """Who or what it was, in plain English."""
        return _WAYS[self]


_WAYS = {
    Channel.USER: "said by you", Channel.LIBRARY: "a program", Channel.CLI: "the command line",
    Channel.TOOL_ASKED: "an agent, on request", Channel.TOOL_UNASKED: "an agent, on its own",
    Channel.ASSISTANT: "said by an agent", Channel.OWNER_FILE: "your own file", Channel.FILE: "a file",
    Channel.TRANSCRIPT_USER: "said by you in a past conversation",
    Channel.TRANSCRIPT_OTHER: "said by someone else in a past conversation", Channel.IMPORT: "an import",
    Channel.UNKNOWN: "an unknown source",
}  # fmt: skip


class Consent(StrEnum):
    """The user's known consent when a tool would replace or forget what they said."""

    IN_WORDS = "in words"
    """The host passes their message, which does not ask for it: the model should ask them."""
    UNASKED = "unasked"
    """The host can ask them: the answer contains the question."""
    GIVEN = "given"
    """They confirmed this change, in a way that no model can forge."""
    UNAVAILABLE = "unavailable"
    """They cannot be asked now: the change waits for review."""


@dataclass(frozen=True, slots=True)
class TurnContext:
    """What the host knows about the turn.

    Attributes:
        session_id: the conversation, unique within the agent and user; None if the host has no sessions.
        agent_id: the agent that answers. None: the host has no agents, the user's own scope is used. An empty
            or malformed id fails closed: nothing that belongs to an agent is read or written.
        user_id: the user whom the agent serves: captured memories are theirs alone within the agent. None for the
            one owner of this machine.
        scopes: other scopes that may be read and, if named, written: "project:..." and "custom:...".
        project: the one that the turn is about, as "project:...": read like one of `scopes`, and what is said
            is kept for it alone, but for what is plainly the user's own.
        turn_id: the host's name for this turn, if it has one.
        trigger: what started the turn. Only "user" turns are recalled for and captured; "headless" ones, which a
            program asks for, are recalled for, and captured if `capture_headless` is on.
        chat: "direct", "group" or "channel".
        vouched: whether the host vouches that the turn is of whom the agent serves. Where others write, only such turns
            change memory, and of earlier messages those that say so by `senderIsOwner`.
        workspace: the agent's folder, if it has one: MEMORY.md and memory/ in it are searched.
        sessions_folder: where the host keeps its conversations as JSONL; None: perdure records them itself.
        prompt_mode: "full" if the host wants perdure's sections of the system prompt with a recall; "none" if it
            supplies them itself or has no place for them.
        host: the host's name, for the journal.
        keeps_block: whether the host keeps the recalled block in its history.
        takes_opening: whether the host places `Recall.opening`.
        has_tools: whether the model has the memory tools: then each memory that it is shown ends in its short id.
        in_context: what the model sees in any case, as the host puts its own memory files there: name and text of each.
            What they say is not said again, and a memory that says otherwise names them. They are kept nowhere.
        in_project: the same of files that anybody may have written, as those of a repository: what is pinned, and
            standing instructions, are said all the same, and an opening has no less room for them.
        now: the host's time in epoch seconds; None for the clock of perdure.
        timezone: where the user is, by its IANA name; None: as the settings say, or on this machine.
        metadata: JSON values to add to the metadata of memories captured from this turn.
    """

    session_id: str | None = None
    agent_id: str | None = None
    user_id: str | None = None
    scopes: tuple[str, ...] = ()
    project: str | None = None
    turn_id: str | None = None
    trigger: str = "user"
    chat: str = "direct"
    vouched: bool = False
    workspace: str | None = None
    sessions_folder: str | None = None
    prompt_mode: str = "none"
    host: str = "python"
    keeps_block: bool = False
    takes_opening: bool = False
    has_tools: bool = False
    in_context: tuple[tuple[str, str], ...] = field(default=(), hash=False)
    in_project: tuple[tuple[str, str], ...] = field(default=(), hash=False)
    now: float | None = None
    timezone: str | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict, hash=False)

    @property
    def is_users(self) -> bool:
        """Whether what is asked in the turn is of whom the agent serves: in a direct chat it is."""
        return self.chat == "direct" or self.vouched


@dataclass(frozen=True, slots=True)
class RecallItem:
    """One memory in a recalled block.

    Attributes:
        id: the memory's id.
        text: its text in the block, before escaping.
        category: the memory's category.
        leg: the retriever that contributed most to its score.
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
        text: Markdown, without a trailing newline.
    """

    name: str
    text: str


@dataclass(frozen=True, slots=True)
class OpeningItem:
    """One memory in the opening of a session.

    Attributes:
        id: the memory's id.
        text: the memory.
        why: "rule", "person", "project", "date", or "session": what the agent did in the one before.
    """

    id: str
    text: str
    why: str


@dataclass(frozen=True, slots=True)
class Opening:
    """What the model should know before the first word of a session.

    Attributes:
        block: the fenced text, ready to be placed.
        items: its memories, in order.
        tokens: tokens of the block.
        more: its last line, which says what else is stored and how to find it; empty: nothing.
        receipt_id: id by which `why` explains it.
        placement: where to put the block.
    """

    block: str
    items: tuple[OpeningItem, ...] = ()
    tokens: int = 0
    more: str = ""
    receipt_id: str = ""
    placement: Placement = Placement.HEAD


@dataclass(frozen=True, slots=True)
class Recall:
    """What the model should see in this turn.

    Attributes:
        block: the fenced text, ready to be placed; empty if nothing is relevant and there are sections only.
        items: its memories, best first.
        receipt_id: id by which `why` explains it.
        placement: where to put the block.
        sections: system prompt sections, for a host that asked for them with `TurnContext.prompt_mode`.
        opening: the opening of the session, for a host that places it (`TurnContext.takes_opening`):
            once where the host keeps blocks, else the same bytes with each turn.
    """

    block: str
    items: tuple[RecallItem, ...] = field(default=())
    receipt_id: str = ""
    placement: Placement = Placement.HEAD
    sections: tuple[PromptSection, ...] = ()
    opening: Opening | None = None

    @property
    def for_system(self) -> str:
        """The text for the system prompt: the opening, and the block if placed there."""
        opening = self.opening.block if self.opening else ""
        return "\n\n".join(filter(None, (opening, self.block if self.placement is Placement.SYSTEM else "")))

    @property
    def for_message(self) -> str:
        """The block, if placed with the user's message; otherwise empty."""
        return "" if self.placement is Placement.SYSTEM else self.block


@dataclass(frozen=True, slots=True)
class ToolResult:
    """The answer of a tool.

    Attributes:
        text: for the model; at most `perdure.api.tools.MAX_CHARS` characters.
        details: the same as JSON values, for the host.
        refused: whether nothing was done; `text` then says why, and what to do instead.
    """

    text: str
    details: Mapping[str, Any] = field(default_factory=dict)
    refused: bool = False
