"""The base of all parts of the API: an engine and a caller."""

from __future__ import annotations

from perdure.engine.audiences import audience_of
from perdure.engine.engine import Engine
from perdure.errors import refused
from perdure.hooks.types import Channel, TurnContext
from perdure.store.fact import tags_of
from perdure.store.scope import Audience, Scope
from perdure.store.search import View
from perdure.store.transaction import Author
from perdure.text.timestamps import Moment, moment


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
        if channel not in tuple(Channel):
            raise refused(channel, f"one of {', '.join(Channel)}", "channel")
        return Author(Channel(channel), self._context.host, self._context.session_id)

    def _view(self, *, tag: str | None = None, as_of: Moment | None = None, include_superseded: bool = False) -> View:
        wanted = None if tag is None else tags_of(tag)
        return View(self._audience, self._engine.clock.now(), moment(as_of), include_superseded, wanted)
