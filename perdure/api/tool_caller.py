"""Who calls a tool, and on whose word: the store as that caller may use it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from perdure.api.explain import MIN_PREFIX
from perdure.api.memory import Memory
from perdure.engine.engine import audience_of, conversation, overheard
from perdure.errors import NotFoundError, ScopeError
from perdure.hooks.types import Channel, TurnContext
from perdure.store import links
from perdure.store.fact import Fact
from perdure.store.scope import EVERYONE, OWNER, SHARED, Scope
from perdure.store.transaction import Author
from perdure.store.trust import SUPERSEDES
from perdure.text.normalise import fold

KEEP = re.compile(
    r"\b(?:remember|memori[sz]e|note|save|store|record|keep (?:in mind|a note|track)|write (?:this |that |it )?down|"
    r"(?:do ?n[o']t|never) forget|for the record|update|correct|change|replace|actually|merk\w*|notier\w*|speicher\w*|"
    r"vergiss nicht|souviens|retiens|rappelle-toi|note[sz]?|enregistre|recuerda|acuerdate|anota|guarda|ricorda\w*|"
    r"lembr\w*|anote|onthoud|zapamietaj|zapisz|bewaar)\b|记住|記住|记下|覚えて|記録して|기억해|запомни|запиши"
)
"""Words by which a user asks that something be kept; on folded text."""
DROP = re.compile(
    r"\b(?:forget|delete|remove|erase|drop|clear|purge|prune|clean up|tidy|retract|no longer|vergiss|loesch\w*|"
    r"losch\w*|entfern\w*|oublie\w*|supprime\w*|efface\w*|olvida\w*|borra\w*|elimina\w*|dimentica\w*|cancella\w*|esquec\w*|"
    r"apag\w*|vergeet|verwijder|zapomnij|usun)\b|忘记|忘れて|削除|删除|잊어|삭제|забудь|удали"
)
"""Words by which a user asks that something be left out."""
_CUES = {"memory_forget": DROP, "memory_prune": DROP, "memory_update": re.compile(f"{KEEP.pattern}|{DROP.pattern}")}


@dataclass(frozen=True, slots=True)
class Answer:
    """What a tool's work came to: text for the model, the same as JSON values, whether nothing was done."""

    text: str
    details: Mapping[str, Any] = field(default_factory=dict)
    refused: bool = False


class ToolCaller(Memory):
    """A store, open for one call of a tool. What is changed is noted as the tool's doing."""

    def __init__(self, memory: Memory, context: TurnContext, tool: str, user_message: str = "") -> None:
        super().__init__(memory._engine, context)
        wish = _CUES.get(tool, KEEP)
        # Only a person's turn can ask for something: a heartbeat's prompt may hold any words.
        asked = context.trigger == "user" and bool(wish.search(fold(user_message)))
        self.channel = Channel.TOOL_ASKED if asked else Channel.TOOL_UNASKED

    @property
    def asked_for(self) -> bool:
        """Whether the user asks for this in the turn."""
        return self.channel in SUPERSEDES

    @property
    def overheard(self) -> bool:
        """Whether others read along, who may not see what is in memory."""
        return overheard(self._context, self._engine.settings)

    def refuse_if_overheard(self) -> None:
        """See that what is in memory may be shown in this chat: the recalled block follows the same rule.

        Raises:
            ScopeError: others read along.
        """
        if self.overheard:
            raise ScopeError(
                "others read along in this chat, so what is in memory stays out of it; the user can ask in a direct "
                "chat, or set recall_in_groups"
            )

    def may_replace(self, old: Fact) -> bool:
        """Return whether this call may change or retract a memory: what the user said only if the user asks."""
        return self.asked_for or old.channel not in SUPERSEDES

    def numbered(self, name: str) -> tuple[str, str] | None:
        """Return id and text of the memory with this number in the conversation's newest block; None for an id.

        Raises:
            NotFoundError: there is no such number.
        """
        plain = name.strip().lstrip("#")
        if not plain.isdecimal() or len(plain) >= MIN_PREFIX:
            return None
        key = conversation(self._context, audience_of(self._context))
        shown = self._engine.ledger.last(key) if key else ()
        if not 1 <= int(plain) <= len(shown):
            had = f"numbers go from 1 to {len(shown)}" if shown else "this turn was shown none"
            raise NotFoundError(f"no memory has the number {plain}: {had}; use an id, or search with query")
        return shown[int(plain) - 1]

    def named(self, name: str) -> Fact:
        """Return the memory that a model names by its number or its id.

        Raises:
            NotFoundError, AmbiguousIdError, InputError: see `Memory.get`.
        """
        numbered = self.numbered(name)
        return self.get(numbered[0] if numbered else name.strip())

    @property
    def one_of_many(self) -> bool:
        """Whether the call is for a user beside whom there are others."""
        return self._context.user_id not in (None, OWNER)

    def changeable(self, name: str) -> Fact:
        """Return the memory that a model names, if it may be changed in a conversation with this user.

        Raises:
            ScopeError: all users have it, so that what one says does not belong into it.
            NotFoundError, AmbiguousIdError, InputError: see `Memory.get`.
        """
        old = self.named(name)
        if self.one_of_many and old.scope not in SHARED and Scope(old.scope, old.scope_target).user in (None, EVERYONE):
            raise ScopeError(f"memory {old.id[:8]} is for all users; store what this one says as a memory of its own")
        return old

    def handed_out(self, fact_ids: Sequence[str]) -> None:
        """Count that these memories have reached the agent."""
        self._engine.handed_out(fact_ids)

    def doubt(self, note: Fact, old: Fact) -> None:
        """Put what contradicts the user's word aside until the user decides, linked with what it contradicts."""
        with self._engine.store.write(self._author()) as tx:
            tx.change(note.id, "update", {"review_state": "pending"})
            links.link(tx, note.id, old.id, "CONTRADICTS")

    def _author(self, channel: Channel = Channel.LIBRARY) -> Author:
        return super()._author(self.channel)
