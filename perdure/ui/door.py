"""Who may come in: one browser of one person, and nothing else that can reach a port of this machine.

Other users see the browser's command line and may connect to the port; other servers of this machine get the cookies
of ours, as these heed no port. So the way in is a token that works once and for a minute, all pages lie below a random
prefix, and the cookie is sent nowhere else. A page elsewhere can make the browser send a request, but knows neither the
prefix nor a form's token, and its Origin tells.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
import threading
import time
from collections.abc import Callable, Mapping
from urllib.parse import parse_qs

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import cookie_parser
from starlette.responses import HTMLResponse, PlainTextResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

COOKIE = "perdure"
ENTER = "/enter"
TOKEN_SECONDS = 60.0
TOKENS = 32
"""Tokens that wait to be used at once."""
HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": (
        "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; img-src 'self'; "
        "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}
# The cookie is not sent along when a file or another page leads here: this page, our own, leads on.
_WELCOME = (
    '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>perdure</title>'
    '<meta http-equiv="refresh" content="0; url={0}"></head>'
    '<body><p><a href="{0}">Open your memory</a></p></body></html>'
)


class Keys:
    """What opens the pages of one server: its prefix, tokens that work once, and the browsers that used one."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        """Draw a prefix.

        `now`: seconds of a clock that is never set.
        """
        self.prefix = f"/{secrets.token_urlsafe(16)}"
        self._now = now
        self._lock = threading.Lock()
        self._tokens: dict[str, float] = {}
        self._browsers: set[str] = set()

    def token(self) -> str:
        """Return a token that lets one browser in, within a minute."""
        made = secrets.token_urlsafe(32)
        with self._lock:
            self._tokens[made] = self._now() + TOKEN_SECONDS
            for old in list(self._tokens)[:-TOKENS]:
                del self._tokens[old]
        return made

    def enter(self, token: str) -> str | None:
        """Return a cookie for a token, which is used up by it; None: it is no token, or no longer."""
        with self._lock:
            ends = self._tokens.pop(token, None)
            if ends is None or self._now() > ends:
                return None
            cookie = secrets.token_urlsafe(32)
            self._browsers.add(cookie)
            return cookie

    def known(self, cookie: str) -> bool:
        """Return whether a browser with this cookie was let in."""
        with self._lock:
            return cookie in self._browsers

    def form(self, cookie: str) -> str:
        """Return the token that a form of this browser carries."""
        return hmac.new(cookie.encode(), b"form", hashlib.sha256).hexdigest()


class Door:
    """Checks the key of each request, and adds the security headers to each response."""

    def __init__(self, app: ASGIApp, keys: Keys, port: int) -> None:
        """Stand in front of an app."""
        self._app = app
        self._keys = keys
        self._host = f"127.0.0.1:{port}"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] != "http":
            return
        refused = self._refused(scope)
        await (refused or self._app)(scope, receive, _with_headers(send))

    def _refused(self, scope: Scope) -> Response | None:
        headers, path = Headers(scope=scope), str(scope["path"])
        if headers.get("host") != self._host:
            return _no("This address is not allowed. Open the page with: perdure ui")
        if not self._is_own(headers, str(scope["method"])):
            return _no("Refused: this request came from another site. Reload the page and try again.")
        if path == ENTER:
            return self._entered(scope)
        if path == "/favicon.ico":
            return Response(status_code=204)  # browsers ask for one by themselves; there is none
        if not path.startswith(f"{self._keys.prefix}/"):
            return PlainTextResponse("Page not found.", 404)
        cookie = cookie_of(headers)
        if not self._keys.known(cookie):
            return _no("This browser is not signed in. Run: perdure ui")
        scope["form_token"], scope["root"] = self._keys.form(cookie), self._keys.prefix
        return None

    def _is_own(self, headers: Mapping[str, str], method: str) -> bool:
        """Return whether a request comes from our own pages or a typed address, not from another page."""
        origin, site = headers.get("origin"), headers.get("sec-fetch-site")
        if origin not in (None, "null"):
            return origin == f"http://{self._host}"
        if method in ("GET", "HEAD"):
            return True
        # As our pages send no referrer, a browser calls their origin null, and tells by another header that it is ours.
        return site == "same-origin"

    def _entered(self, scope: Scope) -> Response:
        [token] = parse_qs(scope["query_string"].decode("latin-1")).get("token", [""])[:1]
        cookie = self._keys.enter(token) if scope["method"] == "GET" else None
        if cookie is None:
            return _no("This link has expired: it can be used once, within a minute. Run: perdure ui")
        answer = HTMLResponse(_WELCOME.format(f"{self._keys.prefix}/today"))
        answer.set_cookie(COOKIE, cookie, path=self._keys.prefix, httponly=True, samesite="strict")
        return answer


def cookie_of(headers: Mapping[str, str]) -> str:
    """Return our cookie of a request; empty: it has none."""
    return cookie_parser(headers.get("cookie", "")).get(COOKIE, "")


def _no(text: str) -> Response:
    return PlainTextResponse(text, 403)


def _with_headers(send: Send) -> Send:
    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start":
            MutableHeaders(scope=message).update(HEADERS)
        await send(message)

    return sending
