"""Other names of one thing, as the user sets them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from perdure.api.facade import Facade
from perdure.api.stored import Stored
from perdure.engine.engine import Engine
from perdure.errors import InputError, NotFoundError, expect
from perdure.hooks.types import Channel, TurnContext
from perdure.store import lifecycle
from perdure.store.aliases import ALIAS, MAX_CHARACTERS, MAX_WORDS, naming, words_of
from perdure.store.fact import Fact
from perdure.store.scope import Scope
from perdure.store.search import View, by_ids


class Aliases(Facade):
    """One caller's aliases: other names for things. Obtained from `Memory.aliases`.

    Each alias is a memory: `forget`, `undo` and `history` work on it as on any other.
    """

    def __init__(self, engine: Engine, context: TurnContext, store: Callable[..., Stored]) -> None:
        super().__init__(engine, context)
        self._store = store

    def add(self, name: str, other: str, *, scope: str | None = None, channel: Channel = Channel.LIBRARY) -> Stored:
        """Record another name for a thing; prompts and searches that use either name look for both.

        Args:
            name: the thing's name, such as "GitHub Actions".
            other: another name for it, such as "GHA".
            scope: whom it belongs to; None: the caller.
            channel: where it comes from.

        Raises:
            InputError: one of them is not a name, or they are the same.
            ScopeError: the caller may not write to this scope.
            StoreError: it could not be written.
        """
        name, other = _checked(name), _checked(other)
        if words_of(name) == words_of(other):
            raise InputError(f"{name!r} and {other!r} are spellings of the same name; give another name")
        text = f"{name} is also called {other}."
        return self._store(text, category="entity", entity=name, key=ALIAS, value=other, scope=scope, channel=channel)

    def list(self) -> Sequence[Fact]:
        """Return the memories that record aliases, newest first: `entity` is the thing, `value` the other name."""
        audience, now = self._audience, self._engine.clock.now()
        with self._engine.store.database.read() as connection:
            ids = [alias.fact for alias in naming(connection, audience, now)]
            facts = by_ids(connection, ids, View(audience, now))
        return [facts[fact_id] for fact_id in ids if fact_id in facts]

    def remove(self, name: str, other: str | None = None, *, dry_run: bool = False) -> Sequence[Fact]:
        """Remove an alias, or all aliases of a name; one `undo` restores them.

        Args:
            name: one of them.
            other: the other name; None: all other names of it.
            dry_run: only return what would be forgotten.

        Returns:
            The memories that recorded the alias.

        Raises:
            NotFoundError: there is no such alias.
            ScopeError: the caller may not change one of them.
        """
        expect(name, str, "a name", "name")
        expect(other, str | None, "a name", "other")
        wanted, second = words_of(name), None if other is None else words_of(other)
        pairs = [(fact, (words_of(fact.entity or ""), words_of(fact.value or ""))) for fact in self.list()]
        found = [fact for fact, pair in pairs if wanted in pair and (second is None or {wanted, second} == set(pair))]
        if not found:
            known = f"{name!r} has no alias" if other is None else f"{name!r} and {other!r} are not aliases"
            raise NotFoundError(f"{known}; list them with: perdure alias list")
        for fact in found:
            self._audience.writable(Scope(fact.scope, fact.scope_target))
        with self._engine.store.write(self._author(), keep=not dry_run) as tx:
            return [lifecycle.forget(tx, fact.id) for fact in found]


def _checked(name: str) -> str:
    """Return a name without spaces around it.

    Raises:
        InputError: it has no word, or is longer than a name is.
    """
    expect(name, str, "a name", "name")
    name = " ".join(name.split())
    if not words_of(name):
        raise InputError(f"{name[:80]!r} is not a name; give 1 to {MAX_WORDS} words, up to {MAX_CHARACTERS} characters")
    return name
