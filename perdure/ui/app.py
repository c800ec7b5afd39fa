"""The pages behind their door."""

from __future__ import annotations

from pathlib import Path

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Mount
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp, Receive, Scope, Send

from perdure.api.memory import Memory
from perdure.clock import Clock, SystemClock
from perdure.ui.door import Door, Keys
from perdure.ui.page import FormError
from perdure.ui.pages import files, health, memories, one, review, today, turns

ROUTES = [
    *today.ROUTES, *memories.ROUTES, *one.ROUTES, *turns.ROUTES, *review.ROUTES, *files.ROUTES, *health.ROUTES,
]  # fmt: skip


def pages(memory: Memory, keys: Keys, port: int, clock: Clock | None = None) -> ASGIApp:
    """Return the pages of an open store, as a server takes them.

    Args:
        memory: the store, as its caller may use it.
        keys: who may come in.
        port: on which they are served.
        clock: the store's, if it is not the system's.
    """
    app = Starlette(
        routes=[Mount(keys.prefix, routes=[*ROUTES, Mount("/static", StaticFiles(directory=_FOLDER))])],
        exception_handlers={404: _no_page, 405: _no_page, FormError: _no_form},
    )
    app.state.memory, app.state.clock, app.state.counts = memory, clock or SystemClock(), {}
    return Door(_Rooted(app, keys.prefix), keys, port)


_FOLDER = Path(__file__).parent / "static"


class _Rooted:
    """Tells the pages below which prefix they lie."""

    def __init__(self, app: ASGIApp, prefix: str) -> None:
        self._app = app
        self._prefix = prefix

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        scope["root"] = self._prefix
        await self._app(scope, receive, send)


def _no_page(request: Request, error: Exception) -> Response:
    return PlainTextResponse("There is no such page.", 404)


def _no_form(request: Request, error: Exception) -> Response:
    return PlainTextResponse(str(error), 403)
