"""Who may see and write what. Every read and write of every layer passes through `Audience`."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import NamedTuple

from perdure.errors import ScopeError

KINDS = ("global", "user", "agent", "session", "project", "custom")
SHARED = ("project", "custom")
"""Kinds of which a caller may name any."""
BOUND = ("agent", "session")
"""Kinds whose targets may also name a user, and of a session an agent."""
OWNER = "owner"
"""The user id of a host that serves one person only: who names no user is the owner."""
EVERYONE = "*"
"""Stands in an agent's target for all its users."""
MAX_ID = 256
_RESERVED = (" agent:", " user:")


class Scope(NamedTuple):
    """Whom a memory belongs to: a kind and, except for "global", an id.

    The target of an agent or a session may also name its owner: `main user:alice` holds what the agent main has
    of Alice, `main user:*` what it shares with all its users, and `main` what it stored when no user was
    named. So a scope is one pair of values to compare, spelled as it is stored.
    """

    kind: str
    target: str = ""

    def __str__(self) -> str:
        return f"{self.kind}:{self.target}" if self.target else self.kind

    @classmethod
    def parse(cls, text: str) -> Scope:
        """Read `global`, `kind:id`, `agent:id user:id`, `agent:id user:*` or `session:id agent:id user:id`."""
        kind, _, target = text.partition(":") if isinstance(text, str) else (repr(text), "", "")
        if kind not in KINDS:
            raise ScopeError(f"scope kind {kind[:40]!r} is unknown; use one of {', '.join(KINDS)}")
        if kind == "global":
            if target:
                raise ScopeError("scope 'global' takes no id")
            return GLOBAL
        if kind in BOUND:
            name, agent, user = _parts(target)
            if user == OWNER:
                raise ScopeError(f"scope {text[:80]!r} names the owner, which is the default; leave out the user")
            return bound(kind, name, agent, user)
        return cls(kind, checked_id(target, kind))

    @property
    def name(self) -> str:
        """The id of the agent or session alone, without whose it is there; of other kinds the target."""
        return _parts(self.target)[0] if self.kind in BOUND else self.target

    @property
    def user(self) -> str | None:
        """The user that it belongs to; None: it names none."""
        if self.kind == "user":
            return self.target
        return _parts(self.target)[2] if self.kind in BOUND else None

    @property
    def agent(self) -> str | None:
        """The agent that it belongs to; None: it names none."""
        if self.kind == "agent":
            return self.name
        return _parts(self.target)[1] if self.kind == "session" else None

    def given(self, whose: str) -> Scope:
        """Return the scope of the same agent or session as it belongs to somebody.

        `whose` is "user:alice", "user:*" for all users of an agent, or "user:owner" for nobody named; of a session also
        "agent:main", or both.
        """
        if self.kind not in BOUND:
            raise ScopeError(f"scope {self} cannot be reassigned; only agent and session scopes can")
        name, agent, user = _parts(f"{self.name} {whose}")
        if name != self.name:
            raise ScopeError(f"{whose[:40]!r} has no user; write user:ID, or agent:ID user:ID for a session")
        return bound(self.kind, name, agent, user)


GLOBAL = Scope("global")


def bound(kind: str, name: str, agent: str | None = None, user: str | None = None) -> Scope:
    """Return the scope of an agent or a session, as it belongs to a user and, of a session, to an agent.

    A user who is None or the owner is not named.
    """
    target = checked_id(name, kind)
    if agent is not None:
        if kind == "agent":
            raise ScopeError("an agent's scope cannot name a second agent")
        target += f" agent:{checked_id(agent, 'agent')}"
    if user is not None:
        user = user if user == EVERYONE and kind == "agent" else checked_id(user, "user")
        target += "" if user == OWNER else f" user:{user}"
    return Scope(kind, target)


def _parts(target: str) -> tuple[str, str | None, str | None]:
    """Return the name, agent and user that a target holds. No name holds what stands before an agent or a user."""
    before, has_user, user = target.partition(" user:")
    name, has_agent, agent = before.partition(" agent:")
    return name, agent if has_agent else None, user if has_user else None


def checked_id(value: str, kind: str) -> str:
    """Return `value` in NFC if it can name a user, agent, session or project; ids compare exactly."""
    if not isinstance(value, str):
        raise ScopeError(f"{kind} id is of type {type(value).__name__}; it must be a string")
    value = unicodedata.normalize("NFC", value)
    if not value or value != value.strip():
        raise ScopeError(f"{kind} id is empty or has spaces around it; give the exact id")
    if len(value) > MAX_ID:
        raise ScopeError(f"{kind} id has {len(value)} characters; the limit is {MAX_ID}")
    if any(unicodedata.category(char).startswith("C") for char in value):
        raise ScopeError(f"{kind} id contains control characters; give the exact id")
    if kind in BOUND and any(mark in value for mark in _RESERVED):
        raise ScopeError(f"{kind} id {value[:40]!r} contains the separator ' agent:' or ' user:'; choose another id")
    if kind == "user" and value == EVERYONE:
        raise ScopeError("user id '*' means all users of an agent; give one user")
    return value


def named_user(user: str) -> str:
    """Return the id of one of a program's users, who is never the owner of this machine."""
    if user == OWNER:
        raise ScopeError(f"user id {OWNER!r} is reserved for the machine's owner; choose other ids for your users")
    return checked_id(user, "user")


def shared(text: str) -> Scope:
    """Return a scope of which any caller may name one, such as "project:heron"."""
    scope = Scope.parse(text)
    if scope.kind not in SHARED:
        raise ScopeError(f"scope {text!r} is private; only {' and '.join(SHARED)} scopes can be added")
    return scope


_InScopes = Callable[[str, int], str]
"""`Dialect.in_scopes` of the engine that is asked."""


@dataclass(frozen=True, slots=True)
class Audience:
    """The caller: the scopes that may be read, and the one that new memories go to."""

    scopes: frozenset[Scope]  # what may be read
    home: Scope | None  # where new memories are written; None if nothing may be written

    @classmethod
    def of(
        cls,
        *,
        user: str | None = None,
        agent: str | None = None,
        session: str | None = None,
        others: Collection[str] = (),
    ) -> Audience:
        """Build the audience of a caller.

        Everybody reads the global scope and the user's. A caller without an agent (None) writes to the user's. An agent
        writes to what it has of this user, and also reads what it has for all its users. A session is that of its agent
        and user. An id that is empty or malformed fails closed: only the global scope is read, nothing is written. A
        user who is None is the owner of this machine, who is not told from an agent without users. `others` are further
        scopes, as "project:heron" or "custom:team"; none of another user, agent or session.
        """
        try:
            scopes = {GLOBAL}
            home = Scope("user", checked_id(OWNER if user is None else user, "user"))
            scopes.add(home)
            if agent is not None:
                home = bound("agent", agent, user=user)
                scopes |= {home, bound("agent", agent, user=EVERYONE)}
            if session is not None:
                scopes.add(bound("session", session, agent, user))
            scopes.update(shared(text) for text in others)
        except ScopeError:
            return cls(frozenset({GLOBAL}), None)
        return cls(frozenset(scopes), home)

    def meant(self, scope: Scope) -> Scope:
        """Return the scope that the caller means by one that does not say whose it is.

        `session:ID` is the caller's own session, whoever else has one of this id. `agent:ID` in the words of a named
        user is what the agent has for all its users; who names no user means what was taken in without one.
        """
        if scope in self.scopes or scope.kind not in BOUND:
            return scope
        own = (each for each in self.scopes if each.kind == scope.kind and each.name == scope.target)
        return next((each for each in own if each != self.home), scope)

    def may_read(self, scope: Scope) -> bool:
        """Return whether memories of this scope may be shown."""
        return scope in self.scopes

    def among(self, scopes: Collection[Scope]) -> Collection[Scope]:
        """Return those of some scopes that may be read."""
        return self.scopes.intersection(scopes)

    def may_write(self, scope: Scope) -> bool:
        """Return whether memories of this scope may be added and changed."""
        return self.home is not None and scope in self.scopes

    def writable(self, scope: Scope | None = None) -> Scope:
        """Return the scope a new memory goes to: the one asked for, else the caller's own."""
        if self.home is None:
            raise ScopeError("the caller's user or agent id is missing or malformed; nothing can be written")
        if scope is None:
            return self.home
        scope = self.meant(scope)
        if not self.may_write(scope):
            raise ScopeError(f"this caller may not write to scope {scope}; its own scope is {self.home}")
        return scope

    def sql(self, in_scopes: _InScopes, table: str = "facts") -> tuple[str, tuple[str, ...]]:
        """Return an SQL condition on `table`'s scope columns that holds just for readable rows, and its values."""
        ordered = sorted(self.scopes)
        return in_scopes(table, len(ordered)), tuple(part for scope in ordered for part in scope)

    def asker(self) -> tuple[str, tuple[str, ...]]:
        """Return an SQL condition that holds for the receipts of what this audience has asked, and its values."""
        return "receipts.scope = ?", (str(self.home),)


class _Owners(Audience):
    """The owner of this machine, who sees what is theirs in every scope: whatever belongs to no named user."""

    def may_read(self, scope: Scope) -> bool:
        """Return whether no named user has it."""
        return scope.user in (None, OWNER, EVERYONE)

    def among(self, scopes: Collection[Scope]) -> Collection[Scope]:
        """Return those of some scopes that may be read."""
        return [scope for scope in scopes if self.may_read(scope)]

    def may_write(self, scope: Scope) -> bool:
        """Return whether it may be read."""
        return self.may_read(scope)

    def sql(self, in_scopes: _InScopes, table: str = "facts") -> tuple[str, tuple[str, ...]]:
        """Return the condition that `may_read` is."""
        user = f"instr({table}.scope_target, ' user:')"
        return (
            f"CASE WHEN {table}.scope = 'user' THEN {table}.scope_target = ?"
            f" WHEN {table}.scope IN ('agent', 'session') AND {user} > 0"
            f" THEN substr({table}.scope_target, {user}) = ? ELSE TRUE END",
            (OWNER, f" user:{EVERYONE}"),
        )

    def asker(self) -> tuple[str, tuple[str, ...]]:
        """Return the condition that holds where no named user has asked."""
        return "(receipts.scope = ? OR receipts.scope LIKE 'agent:%' AND instr(receipts.scope, ' user:') = 0)", (
            str(self.home),
        )


OWNERS = _Owners(frozenset({GLOBAL, Scope("user", OWNER)}), Scope("user", OWNER))
"""All that is the owner's: of every agent, session, repository and other scope that names no other user."""


class _Everybody(Audience):
    """Whoever has anything in a folder."""

    def sql(self, in_scopes: _InScopes, table: str = "facts") -> tuple[str, tuple[str, ...]]:
        """Return a condition that always holds."""
        return "TRUE", ()


ALL_SCOPES = _Everybody(frozenset(), None)
"""Reads what is anybody's, for the owner of the folder, who has its files anyhow; writes nothing new."""
