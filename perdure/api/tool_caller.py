"""Who calls a tool, and on whose word: the store as that caller may use it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import tzinfo
from typing import Any

from perdure.api.fact_search import Hit, search_facts
from perdure.api.memory import Memory
from perdure.api.proof import Said, fresh_terms, is_standing, meant
from perdure.api.stored import SHORT_ID, Outcome, Stored, redacted, stored
from perdure.capture.decide import own_view
from perdure.capture.describe import check_category
from perdure.capture.explicit import Given, explicit_fact
from perdure.capture.lifetimes import renewed
from perdure.engine.audiences import audience_of, conversation, overheard
from perdure.errors import NotFoundError, ScopeError
from perdure.hooks.types import Channel, Consent, TurnContext
from perdure.store import lifecycle, listing, search
from perdure.store.fact import Fact
from perdure.store.lifecycle import Request, Wish, checked, next_version
from perdure.store.listing import Filter
from perdure.store.safe import SafeFact, safe_fact
from perdure.store.scope import EVERYONE, OWNER, SHARED, Scope
from perdure.store.short_ids import SHORTEST
from perdure.store.transaction import Author
from perdure.store.trust import AUTO_RECALLED, SUPERSEDES
from perdure.text.normalise import fingerprint

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

    _looks = False

    def __init__(
        self,
        memory: Memory,
        context: TurnContext,
        user_message: str = "",
        consent: Consent = Consent.IN_WORDS,
        said_in: str | None = None,
    ) -> None:
        super().__init__(memory._engine, context)
        # Only a person's turn can ask for something: a heartbeat's prompt may hold any words.
        asks = context.trigger == "user" and context.is_users
        self.said = Said.of(user_message, shared=context.chat != "direct") if asks else Said()
        self.consent = consent
        self.channel = Channel.TOOL_ASKED if consent is Consent.GIVEN else Channel.TOOL_UNASKED
        self.doubtful: Sequence[Fact] = ()
        """The memories one of which the user means, if they ask for a change without saying to which."""
        spoken_in = context if said_in is None else replace(context, session_id=said_in)
        self._conversation = conversation(spoken_in, audience_of(spoken_in))
        self._session = spoken_in.session_id
        self._lately = self._engine.ledger.lately(self._conversation) if self._conversation else None

    @property
    def asked_for(self) -> bool:
        """Whether the user asks for this in the turn."""
        return self.channel in SUPERSEDES

    @property
    def overheard(self) -> bool:
        """Whether others read this chat, who may not see the memories."""
        return overheard(self._context, self._engine.settings)

    @property
    def zone(self) -> tzinfo | None:
        """The time zone of the reader of the answers; None: the machine's."""
        return self._engine.store.zone

    def refuse_if_overheard(self) -> None:
        """Raise if memories may not be shown in this chat: the recalled block follows the same rule.

        Raises:
            ScopeError: others can read this chat.
        """
        if self.overheard:
            raise ScopeError(
                "others can read this chat, so memories are not shown in it; the user can ask in a direct "
                "chat, or set recall_in_groups"
            )

    def may_replace(self, old: Fact) -> bool:
        """Return whether this call may change or withdraw a memory: the user's own only if the user asks."""
        return self.asked_for or old.channel not in SUPERSEDES

    def heard(self, new: str | None, old: Fact | None, beside: str = "") -> bool:
        """Return whether the user's own words ask for a change; if so, it is made in their name from here on.

        That they are theirs is not enough: a page can have the model act upon whatever they said last. They must order
        or correct something, and all that is new must be in them. And they must speak of the memory; or name nothing,
        if it is the only one shown or captured in this turn or the previous one.

        Args:
            new: what is to be kept; None: nothing.
            old: the memory as it is; None: there is none.
            beside: what is to be kept as well, each as a value of its own.
        """
        said = self.said
        if not self.asked_for:
            wanted = said.keeps(new or "", beside) if old is None else self._means(new, old, beside)
            self.channel = Channel.TOOL_ASKED if wanted else self.channel
        return self.asked_for

    def _means(self, new: str | None, old: Fact, beside: str) -> bool:
        """Return whether the user's words order or correct something, and mean this change of this memory."""
        said, before = self.said, f"{old.text} {old.value or ''}"
        if not (said.withdraws or (new is not None and said.corrects)):
            return False
        standing = is_standing(old)
        if new is None:
            proven = said.retracts(before, standing=standing)
        else:
            proven = said.changes(new, before, beside, standing=standing)
        if not proven:
            return False
        fresh = fresh_terms(f"{new or ''} {beside}", before)
        lately = self._spoken_of()
        named = bool(said.shared(old.text) - fresh)
        if not named and (old.id not in lately or not said.names_nothing_but(fresh)):
            return False
        others = [fact for fact in lately.values() if fact.id != old.id and not self._is_of_this_turn(fact)]
        fits = meant(said, [old, *others], fresh) if named else [old, *others]
        if fits == [old] or (named and said.means_several):
            return True
        self.doubtful = fits
        return False

    def theirs(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Return the values to store with a text: for the user's own statement, only those in their words."""
        if self.consent is Consent.GIVEN or not self.asked_for:
            return dict(values)
        kept = {name: value for name, value in values.items() if name not in ("category", "importance", "decay_class")}
        if tags := kept.pop("tags", None):
            own = [tag for tag in tags if self.said.says(tag)]
            kept |= {"tags": own} if own else {}
        return kept

    def _is_of_this_turn(self, fact: Fact) -> bool:
        """Return whether a memory was captured in this very turn: then it is the request, not its target."""
        began = self._lately.began if self._lately else 0.0
        return fact.since >= began and fact.provenance_session == self._session

    def _spoken_of(self) -> Mapping[str, Fact]:
        """Return the memories that were shown, or captured, in this turn of the conversation and in the one before."""
        if self._lately is None:
            return {}
        view, lately = self._view(), self._lately
        with self._engine.store.database.read() as connection:
            shown = search.by_ids(connection, lately.ids, view)
            captured = search.captured(connection, view, self._session or "", lately.since)
        return {fact.id: fact for fact in (*shown.values(), *captured)}

    def numbered(self, name: str) -> tuple[str, str] | None:
        """Return id and text of the memory with this number in the conversation's newest block; None for an id.

        Raises:
            NotFoundError: there is no such number.
        """
        plain = name.strip().lstrip("#")
        if not plain.isdecimal() or len(plain) >= SHORTEST:
            return None
        shown = self._engine.ledger.last(self._conversation) if self._conversation else ()
        if not 1 <= int(plain) <= len(shown):
            had = f"numbers run from 1 to {len(shown)}" if shown else "no memories were shown in this turn"
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
        """Whether the call is for one user among several."""
        return self._context.user_id not in (None, OWNER)

    def changeable(self, name: str) -> Fact:
        """Return the memory that a model names, if it may be changed in a conversation with this user.

        Raises:
            ScopeError: it belongs to all users, so one user's statement does not belong in it.
            NotFoundError, AmbiguousIdError, InputError: see `Memory.get`.
        """
        old = self.named(name)
        if name.strip() != old.id:
            # A line of the opening goes on showing the id of what was corrected since.
            old = self._newest(old)
        if self.one_of_many and old.scope not in SHARED and Scope(old.scope, old.scope_target).user in (None, EVERYONE):
            raise ScopeError(f"memory {old.id[:8]} belongs to all users; store what this user says as a new memory")
        return old

    def _newest(self, old: Fact) -> Fact:
        """Return the newest replacement of a memory, however often it was corrected; itself if none is left."""
        fact, passed = old, {old.id}
        while fact.superseded_by and fact.superseded_by not in passed:
            passed.add(fact.superseded_by)
            newer = self.facts([fact.superseded_by])
            if fact.superseded_by not in newer:
                return old
            fact = newer[fact.superseded_by]
        return fact if fact.superseded_at is None and fact.forgotten_at is None else old

    def handed_out(self, fact_ids: Sequence[str], *, hits: Sequence[str] = ()) -> None:
        """Count these memories as shown to the agent, and the `hits`, which it asked for, as used."""
        self._engine.handed_out(fact_ids, hits, super()._author(self.channel))
        self.touched(fact_ids)

    def touched(self, fact_ids: Sequence[str]) -> None:
        """Note that the agent may mention these memories, so that the user may refer to them."""
        if self._conversation:
            self._engine.ledger.hand(self._conversation, fact_ids)

    def place(self, scope: str | None) -> str | None:
        """Return the scope that a model names: "project" alone is the one that the agent works in.

        Raises:
            ScopeError: it works in none.
        """
        if scope != "project":
            return scope
        found = next((each for each in self._context.scopes if each.startswith("project:")), None)
        if found is None:
            raise ScopeError("the agent is not in a project; leave scope out, or name one as project:NAME")
        return found

    def chosen(self, query: str, chosen: Filter, limit: int, **seen: Any) -> Sequence[Hit]:
        """Search the memories that match a filter, except those from untrusted channels and unapproved ones.

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
        """Return the replacement of a memory that would be stored, without secrets.

        Raises:
            InputError: a value does not fit.
        """
        there = Scope(old.scope, old.scope_target)
        engine = self._engine
        now, zone = engine.clock.now(), engine.store.zone
        return explicit_fact(text, given, there, self.channel, now, zone, engine.categories)

    def version(self, old: Fact, values: Mapping[str, Any]) -> SafeFact:
        """Return a memory with other values, without secrets.

        Raises:
            InputError: a value does not fit.
        """
        if "category" in values:
            check_category(values["category"], self._engine.categories)
        clean = safe_fact(replace(old, **values))
        new = {name: getattr(clean.fact, name) for name in values}
        now = self._engine.clock.now()
        found = renewed(old, clean.fact, now, self._engine.store.zone)
        draft = next_version(old, checked(new), found, now)
        draft = replace(draft, channel=self.channel, preserve_tags=old.preserve_tags or "tags" in new)
        return replace(clean, fact=draft)

    def facts(self, fact_ids: Sequence[str]) -> Mapping[str, Fact]:
        """Return those of these memories that the caller may see, also if they are former ones or have expired."""
        view = replace(self._view(), everything=True)
        return self._engine.store.database.query(search.by_ids, fact_ids[:MANY], view)

    def users_own(self, new: Fact) -> Fact | None:
        """Return the user's own memory that says the same in the same scope, if there is one."""
        view = replace(own_view(new, self._engine.clock.now()), approved_only=True)
        twins = self._engine.store.database.query(search.by_hash, fingerprint(new.text), view)
        return next((twin for twin in twins if twin.channel in SUPERSEDES), None)

    def ask(self, old: Fact, new: SafeFact | None) -> Stored:
        """Queue a change until the user decides; return the pending request. The memory itself is not changed.

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
        author = super()._author(self.channel)
        return replace(author, batch=self._lately.batch) if self._lately else author


def acting(memory: Memory, context: TurnContext) -> Memory:
    """Return an open store as another caller may use it, in whose folders files are searched; its opener closes it."""
    other = Memory(memory._engine, context)
    other.turns.session_start(context)
    return other


def _request_to_forget(old: Fact, channel: Channel) -> Fact:
    """Return the pending request to forget a memory, which contains none of its words."""
    return Fact(
        f"Forget memory {old.id[:SHORT_ID]}.", source=channel.value, channel=channel, scope=old.scope,
        scope_target=old.scope_target, extraction_method="explicit",
    )  # fmt: skip
