"""Shared by all pages: rendering, reading forms, and redirecting after a change."""

from __future__ import annotations

import datetime as dt
import hmac
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any
from urllib.parse import urlencode

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import FormData
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, RedirectResponse, Response
from starlette.routing import Route

from perdure.api.memory import Memory
from perdure.errors import NotFoundError, PerdureError
from perdure.hooks.types import Channel
from perdure.store.fact import Fact
from perdure.store.scope import Scope
from perdure.text.pluralize import counted

PAGES = (
    ("today", "Recent"), ("memories", "Memories"), ("turns", "Turns"),
    ("review", "Review"), ("files", "Files"), ("health", "Health"),
)  # fmt: skip
MAX_SAID = 300
"""Characters of a page's notice about a change: it is passed in the URL."""


MAX_ASKED = 1_000
"""Characters of a query parameter: pages echo it."""


@dataclass(frozen=True, slots=True)
class Call:
    """A request for a page."""

    memory: Memory  # the open store
    now: float  # the time by the store's clock, epoch seconds
    request: Request  # what the browser asks for
    form: Mapping[str, str]  # what a form has sent; empty where nothing was

    def asked(self, name: str) -> str:
        """Return a query parameter, stripped; empty if missing."""
        return self.request.query_params.get(name, "").strip()[:MAX_ASKED]

    def given(self, name: str) -> str:
        """Return a form field, stripped; empty if missing."""
        return self.form.get(name, "").strip()

    def path(self, page: str, **query: object) -> str:
        """Return the address of a page."""
        told = urlencode({name: value for name, value in query.items() if value not in (None, "", False)})
        return f"{self.request.scope['root']}/{page}{f'?{told}' if told else ''}"

    def render(self, name: str, code: int = 200, **values: Any) -> Response:
        """Return a page."""
        shown = {
            "call": self, "path": self.path, "pages": PAGES, "here": name.partition(".")[0],
            "said": self.asked("said")[:MAX_SAID], "undo": self.asked("undo"), "wrong": self.asked("wrong")[:MAX_SAID],
            "form_token": self.request.scope["form_token"], "button": self.button,
        }  # fmt: skip
        return HTMLResponse(templates().get_template(name).render(shown | values), code)

    def button(self, action: str, name: str, values: Mapping[str, str], kind: str = "") -> Markup:
        """Return a button that makes a change."""
        token, part = self.request.scope["form_token"], templates().get_template("button.html")
        shown = {"action": action, "name": name, "values": values, "kind": kind, "path": self.path, "form_token": token}
        return Markup(part.render(shown))  # noqa: S704 - the template has escaped it

    def back(self, page: str, said: str = "", **query: object) -> Response:
        """Redirect to a page after a change, with a notice of what was done."""
        return RedirectResponse(self.path(page, said=said[:MAX_SAID], **query), 303)


Work = Callable[[Call], Response]


def show(path: str, work: Work) -> Route:
    """Return the route of a page that only shows something."""
    return Route(path, _handler(work), methods=["GET"])


def change(path: str, work: Work) -> Route:
    """Return the route of a button: its form is checked, then the change is made."""
    return Route(path, _handler(work), methods=["POST"])


def _handler(work: Work) -> Callable[[Request], Any]:
    async def handle(request: Request) -> Response:
        given = await request.form() if request.method == "POST" else FormData()
        form = {name: value for name, value in given.items() if isinstance(value, str)}
        if request.method == "POST" and not _is_ours(request, form.pop("form_token", "")):
            return PlainTextResponse("this form is from an earlier run of perdure ui; reload the page", 403)
        state = request.app.state
        # The store blocks; a page that takes its time must not keep the others waiting.
        return await run_in_threadpool(_answered, work, Call(state.memory, state.clock.now(), request, form))

    return handle


def _answered(work: Work, call: Call) -> Response:
    try:
        return work(call)
    except NotFoundError as error:
        return call.render("wrong.html", 404, problem=str(error))
    except PerdureError as error:
        return call.render("wrong.html", 400, problem=str(error))


def _is_ours(request: Request, token: str) -> bool:
    return hmac.compare_digest(token.encode(), request.scope["form_token"].encode())


@cache
def templates() -> Environment:
    """Return the templates. All that they show is escaped: memories are text that anybody may have written."""
    made = Environment(
        loader=PackageLoader("perdure.ui"), autoescape=True, undefined=StrictUndefined, trim_blocks=True,
        lstrip_blocks=True,
    )  # fmt: skip
    made.filters |= {
        "when": when,
        "day": day,
        "count": counted,
        "size": size,
        "origin": origin,
        "scope": scope,
        "place": place,
    }
    return made


def when(seconds: float | None) -> str:
    """Return a local time in words: "2026-11-23 14:05"; empty for none."""
    return _local(seconds, "%Y-%m-%d %H:%M")


def day(seconds: float | None) -> str:
    """Return a local day: "2026-11-23"; empty for none."""
    return _local(seconds, "%Y-%m-%d")


def origin(channel: str) -> str:
    """Return in words where a memory came from."""
    return Channel(channel).words if channel in set(Channel) else channel


def scope(fact: Fact) -> str:
    """Return the scope of a memory."""
    return str(Scope(fact.scope, fact.scope_target))


def place(fact: Fact) -> str:
    """Return the scope of a memory if it is not the owner's; otherwise nothing."""
    return "" if fact.scope == "user" else scope(fact)


def size(bytes_: float) -> str:
    """Return a number of bytes in words: "12.3 MB"."""
    for unit in ("bytes", "kB", "MB"):
        if bytes_ < 1000:
            return f"{bytes_:.0f} {unit}" if unit == "bytes" else f"{bytes_:.1f} {unit}"
        bytes_ /= 1000
    return f"{bytes_:.1f} GB"


def _local(seconds: float | None, form: str) -> str:
    if seconds is None:
        return ""
    try:
        return dt.datetime.fromtimestamp(seconds).astimezone().strftime(form)
    except (OSError, OverflowError, ValueError):
        return "?"


def pairs(names: Mapping[str, int]) -> Sequence[tuple[str, int]]:
    """Return counts by name, the most first."""
    return sorted(names.items(), key=lambda each: (-each[1], each[0]))
