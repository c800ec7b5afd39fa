"""Who may see and write what. Every read and write of every layer passes through `Audience`."""

from __future__ import annotations

import unicodedata
from collections.abc import Collection
from dataclasses import dataclass
from typing import NamedTuple

from perdure.errors import ScopeError

KINDS = ("global", "user", "agent", "session", "project", "custom")
SHARED = ("project", "custom")
"""Kinds of which a caller may name any."""
OWNER = "owner"
"""The user id of a host that serves one person only."""
MAX_ID = 256


class Scope(NamedTuple):
    """To whom a memory belongs: a kind and, except for "global", the id of the one it belongs to."""

    kind: str
    target: str = ""

    def __str__(self) -> str:
        return f"{self.kind}:{self.target}" if self.target else self.kind

    @classmethod
    def parse(cls, text: str) -> Scope:
        """Read `global` or `kind:id`.

        Raises:
            ScopeError: the kind is unknown, or the id is missing or malformed.
        """
        kind, _, target = text.partition(":")
        if kind not in KINDS:
            raise ScopeError(f"scope kind {kind[:40]!r} is unknown; use one of {', '.join(KINDS)}")
        if kind == "global":
            if target:
                raise ScopeError("scope 'global' takes no id")
            return GLOBAL
        return cls(kind, checked_id(target, kind))


GLOBAL = Scope("global")


def checked_id(value: str, kind: str) -> str:
    """Return `value` in NFC if it can name a user, agent, session or project; ids compare exactly.

    Raises:
        ScopeError: it is empty, too long, or holds spaces around it or control characters.
    """
    if not isinstance(value, str):
        raise ScopeError(f"{kind} id is of type {type(value).__name__}; it must be a string")
    value = unicodedata.normalize("NFC", value)
    if not value or value != value.strip():
        raise ScopeError(f"{kind} id is empty or has spaces around it; give the exact id")
    if len(value) > MAX_ID:
        raise ScopeError(f"{kind} id has {len(value)} characters; the limit is {MAX_ID}")
    if any(unicodedata.category(char).startswith("C") for char in value):
        raise ScopeError(f"{kind} id holds control characters; give the exact id")
    return value


def _shared(text: str) -> Scope:
    scope = Scope.parse(text)
    if scope.kind not in SHARED:
        raise ScopeError(f"scope {text!r} belongs to one; only {' and '.join(SHARED)} scopes can be added")
    return scope


@dataclass(frozen=True, slots=True)
class Audience:
    """Who is asking: the scopes that may be read, and the one that new memories go to.

    Attributes:
        scopes: what may be read.
        home: where new memories are written; None if nothing may be written.
    """

    scopes: frozenset[Scope]
    home: Scope | None

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

        Everybody reads the global scope. A caller without an agent (None) also reads the user's
        scope and writes there; an agent also reads its own scope and writes there. An id that is
        empty or malformed fails closed: only the global scope is read, nothing is written.

        Args:
            user: the user's id; None: the owner of this machine.
            agent: the agent's id.
            session: the conversation's id.
            others: further scopes, as "project:heron" or "custom:team"; no scope of another user, agent or session.
        """
        try:
            scopes = {GLOBAL}
            home = Scope("user", checked_id(OWNER if user is None else user, "user"))
            scopes.add(home)
            if agent is not None:
                home = Scope("agent", checked_id(agent, "agent"))
                scopes.add(home)
            if session is not None:
                scopes.add(Scope("session", checked_id(session, "session")))
            scopes.update(_shared(text) for text in others)
        except ScopeError:
            return cls(frozenset({GLOBAL}), None)
        return cls(frozenset(scopes), home)

    def may_read(self, scope: Scope) -> bool:
        """Return whether memories of this scope may be shown."""
        return scope in self.scopes

    def may_write(self, scope: Scope) -> bool:
        """Return whether memories of this scope may be added and changed."""
        return self.home is not None and scope in self.scopes

    def writable(self, scope: Scope | None = None) -> Scope:
        """Return the scope a new memory goes to: the one asked for, else the caller's own.

        Raises:
            ScopeError: the caller may not write there.
        """
        if self.home is None:
            raise ScopeError("the caller's user or agent id is missing or malformed; nothing may be written")
        if scope is None:
            return self.home
        if not self.may_write(scope):
            raise ScopeError(f"scope {scope} may not be written by this caller; own scope: {self.home}")
        return scope

    def sql(self, table: str = "facts") -> tuple[str, tuple[str, ...]]:
        """Return an SQL condition on `table`'s scope columns that holds just for readable rows, and its values."""
        ordered = sorted(self.scopes)
        marks = ", ".join(["(?, ?)"] * len(ordered))
        condition = f"({table}.scope, {table}.scope_target) IN (VALUES {marks})"
        return condition, tuple(part for scope in ordered for part in scope)
