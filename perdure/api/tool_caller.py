"""Who calls a tool, and on whose word: the store as that caller may use it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import tzinfo
from typing import Any

from perdure.api.explain import MIN_PREFIX
from perdure.api.fact_search import Hit, search_facts
from perdure.api.memory import Memory
from perdure.api.stored import SHORT_ID, Outcome, Stored, redacted, stored
from perdure.capture.decide import own_view
from perdure.capture.explicit import Given, explicit_fact
from perdure.capture.lifetimes import renewed
from perdure.engine.engine import audience_of, conversation, overheard
from perdure.errors import NotFoundError, ScopeError
from perdure.hooks.types import Channel, Consent, TurnContext
from perdure.regex import lazy
from perdure.store import lifecycle, listing, search
from perdure.store.fact import Fact
from perdure.store.lifecycle import Request, Wish, checked, next_version
from perdure.store.listing import Filter
from perdure.store.safe import SafeFact, safe_fact
from perdure.store.scope import EVERYONE, OWNER, SHARED, Scope
from perdure.store.transaction import Author
from perdure.store.trust import AUTO_RECALLED, SUPERSEDES
from perdure.text.lexicon import listed
from perdure.text.normalise import fingerprint, fold
from perdure.text.quotes import speaks_of, words

KEEP, DROP = (listed("api", "asking", name) for name in ("keep", "drop"))
"""Words by which a user asks that something be kept, or left out; on folded text."""
_CUES = {"memory_forget": DROP, "memory_prune": DROP, "memory_update": lazy(f"{KEEP.pattern}|{DROP.pattern}")}

MANY = 100
"""Memories that are looked up at once at the most."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What a tool's work came to: text for the model, the same as JSON values, whether nothing was done."""

    text: str
    details: Mapping[str, Any] = field(default_factory=dict)
    refused: bool = False


class ToolCaller(Memory):
    """A store, open for one call of a tool. What is changed is noted as the tool's doing."""

    def __init__(
        self,
        memory: Memory,
        context: TurnContext,
        tool: str,
        user_message: str = "",
        consent: Consent = Consent.IN_WORDS,
        quote: str = "",
    ) -> None:
        super().__init__(memory._engine, context)
        wish = _CUES.get(tool, KEEP)
        # Only a person's turn can ask for something: a heartbeat's prompt may hold any words.
        asked = context.trigger == "user" and bool(wish.search(fold(user_message)))
        self.consent = Consent.GIVEN if asked else consent
        self.channel = Channel.TOOL_ASKED if self.consent is Consent.GIVEN else Channel.TOOL_UNASKED
        self._quote = quote

    @property
    def asked_for(self) -> bool:
        """Whether the user asks for this in the turn."""
        return self.channel in SUPERSEDES

    @property
    def overheard(self) -> bool:
        """Whether others read along, who may not see what is in memory."""
        return overheard(self._context, self._engine.settings)

    @property
    def zone(self) -> tzinfo | None:
        """In which zone who reads the answers counts days; None: the machine's."""
        return self._engine.store.zone

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

    def heard(self, new: str | None, old: str | None) -> bool:
        """Return whether the user's quoted words ask for a change; if so, it is made on their word from here on.

        That they are theirs is not enough: a page can have the model quote whatever they said last. They must speak of
        the memory, and what is new must be in them; where nothing is new, they must ask for something to be left out.

        Args:
            new: what is to be kept; None: nothing.
            old: the memory as it is; None: there is none.
        """
        fresh = words(new or "") - words(old or "")
        asked = fresh <= words(self._quote) if fresh else bool(DROP.search(fold(self._quote)))
        if asked and (old is None or speaks_of(self._quote, old)):
            self.channel = Channel.TOOL_ASKED
        return self.asked_for

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

    def place(self, scope: str | None) -> str | None:
        """Return the scope that a model names: "project" alone is the one that the agent works in.

        Raises:
            ScopeError: it works in none.
        """
        if scope != "project":
            return scope
        found = next((each for each in self._context.scopes if each.startswith("project:")), None)
        if found is None:
            raise ScopeError("the agent works in no project; leave scope out, or name one as project:NAME")
        return found

    def chosen(self, query: str, chosen: Filter, limit: int, **seen: Any) -> Sequence[Hit]:
        """Search among the memories that a filter chooses, but for what nobody vouches for and what was not approved.

        Raises:
            InputError: the query is empty.
        """
        approved = replace(chosen, review_state="approved")
        hits = search_facts(self._engine, self._view(**seen), query, approved, 3 * limit)
        return [hit for hit in hits if hit.fact.channel in AUTO_RECALLED][:limit]

    def newest(self, chosen: Filter, limit: int, **seen: Any) -> Sequence[Fact]:
        """Return the newest of the memories that `chosen` would search."""
        view = replace(self._view(**seen), channels=AUTO_RECALLED, approved_only=True)
        return self._engine.store.database.query(listing.list_facts, view, chosen, limit)

    def draft(self, text: str, given: Given, old: Fact) -> SafeFact:
        """Return what would be stored in a memory's place, without secrets.

        Raises:
            InputError: a value does not fit.
        """
        there = Scope(old.scope, old.scope_target)
        engine = self._engine
        now, zone = engine.clock.now(), engine.store.zone
        return explicit_fact(text, given, there, self.channel, now, zone, engine.categories)

    def version(self, old: Fact, values: Mapping[str, Any]) -> SafeFact:
        """Return what a memory would be with other values, without secrets.

        Raises:
            InputError: a value does not fit.
        """
        clean = safe_fact(replace(old, **values))
        new = {name: getattr(clean.fact, name) for name in values}
        found = renewed(old, clean.fact, self._engine.clock.now(), self._engine.store.zone)
        draft = next_version(old, checked(new), found)
        draft = replace(draft, channel=self.channel, preserve_tags=old.preserve_tags or "tags" in new)
        return replace(clean, fact=draft)

    def facts(self, fact_ids: Sequence[str]) -> Mapping[str, Fact]:
        """Return those of these memories that the caller may see, also if they are former ones or have expired."""
        view = replace(self._view(), everything=True)
        return self._engine.store.database.query(search.by_ids, fact_ids[:MANY], view)

    def users_own(self, new: Fact) -> Fact | None:
        """Return the memory by which the user has said the same in the same scope, if there is one."""
        view = replace(own_view(new, self._engine.clock.now()), approved_only=True)
        twins = self._engine.store.database.query(search.by_hash, fingerprint(new.text), view)
        return next((twin for twin in twins if twin.channel in SUPERSEDES), None)

    def ask(self, old: Fact, new: SafeFact | None) -> Stored:
        """Put a change aside until the user decides; return what waits. The memory itself stays as it is.

        Args:
            old: what is to be replaced or forgotten.
            new: what is to take its place; None: nothing.

        Raises:
            InputError: it was purged.
            StoreError: it could not be written.
        """
        engine = self._engine
        wish, note, vector = Wish.FORGET, _request_to_forget(old, self.channel), None
        if new is not None:
            [prepared] = engine.writer.prepare([new.fact], engine.clock.now())
            wish, note, vector = Wish.REPLACE, prepared.fact, prepared.vector
        with engine.store.write(self._author()) as tx:
            fact = lifecycle.ask(tx, note, vector, Request(wish, old.id))
            done = stored(fact, Outcome.STORED, [], tx.batch)
        return redacted(engine.store, done, new.redacted if new else (), self.channel)

    def _author(self, channel: Channel = Channel.LIBRARY) -> Author:
        return super()._author(self.channel)


def acting(memory: Memory, context: TurnContext) -> Memory:
    """Return an open store as another caller may use it, in whose folders files are searched; its opener closes it."""
    other = Memory(memory._engine, context)
    other.turns.session_start(context)
    return other


def _request_to_forget(old: Fact, channel: Channel) -> Fact:
    """Return what waits for review when a memory is to be forgotten; it repeats none of its words."""
    return Fact(
        f"Forget memory {old.id[:SHORT_ID]}.", source=channel.value, channel=channel, scope=old.scope,
        scope_target=old.scope_target, extraction_method="explicit",
    )  # fmt: skip
