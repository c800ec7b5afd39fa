"""What all parts of the API have: an engine, and who asks it."""

from __future__ import annotations

from perdure.engine.engine import Engine, audience_of
from perdure.hooks.types import Channel, TurnContext
from perdure.store.scope import Audience, Scope
from perdure.store.search import View
from perdure.store.transaction import Author


class Facade:
    """An engine as one caller has it."""

    def __init__(self, engine: Engine, context: TurnContext) -> None:
        """Take the engine, and the context that tells the caller."""
        self._engine = engine
        self._context = context

    @property
    def _audience(self) -> Audience:
        return audience_of(self._context)

    def _home(self) -> Scope:
        return self._audience.writable()

    def _author(self, channel: Channel = Channel.LIBRARY) -> Author:
        return Author(channel, self._context.host, self._context.session_id)

    def _view(self, *, tag: str | None = None, as_of: float | None = None, include_superseded: bool = False) -> View:
        return View(self._audience, self._engine.clock.now(), as_of, include_superseded, tag)
