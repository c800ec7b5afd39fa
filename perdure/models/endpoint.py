"""JSON over HTTP: a time-out for the whole of a request, cancellation, and one more try at the most."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import socket
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from typing import Any, Final, Literal
from urllib.parse import SplitResult, urlsplit

from perdure.errors import EndpointError, ModelError, SettingsError
from perdure.secrets.redact import redact

RETRY_SECONDS: Final = 0.5
"""The wait before the second try, where the server names none."""
MAX_BYTES: Final = 64 * 1024 * 1024
"""Of an answer. A hundred vectors of 3072 numbers are about 7 MB."""
_DETAIL: Final = 200
_KEPT_OUT: Final = "[key]"


@dataclass(frozen=True, slots=True)
class Key:
    """A key, by the name of the environment variable that holds it. The key itself is never kept."""

    variable: str
    header: str = "Authorization"
    prefix: str = "Bearer "
    needed: bool = True  # whether there is no use in asking without it

    def headers(self) -> dict[str, str]:
        """Return the header with the key as it is now; nothing if it may be missing and is; else raise ModelError."""
        value = self.value
        if not value:
            if self.needed:
                raise ModelError(f"environment variable {self.variable} is not set; set it to the API key")
            return {}
        if not (value.isascii() and value.isprintable()):
            raise ModelError(f"environment variable {self.variable} contains invalid characters; set it again")
        return {self.header: self.prefix + value}

    @property
    def value(self) -> str:
        """The key, or "" if the variable is not set."""
        return os.environ.get(self.variable, "").strip()


@dataclass(frozen=True, slots=True)
class Address:
    """The base address of an API, such as "http://localhost:11434/v1": without user, password, query or fragment."""

    url: str
    key: Key | None = None
    headers: Mapping[str, str] = field(default_factory=dict)  # further headers of each request

    def __post_init__(self) -> None:
        try:
            parts = self.parts
            usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
        except ValueError:
            raise SettingsError(
                "the address of the model server is invalid; use one such as http://host:port/v1"
            ) from None
        # What stands before an @ could be a password: it is not repeated.
        if "@" in parts.netloc:
            raise SettingsError(
                f"the address of {parts.hostname} has a user name or password; use an environment variable instead"
            )
        if not usable or parts.query or parts.fragment:
            raise SettingsError(f"address {self.url!r} cannot be used; use one such as http://host:port/v1")

    @property
    def parts(self) -> SplitResult:
        """The address, taken apart."""
        return urlsplit(self.url)

    @property
    def site(self) -> str:
        """Scheme, host and port, for messages."""
        return site_of(self.parts)

    def path(self, below: str) -> str:
        """Return the path of a request for something below the address."""
        return self.parts.path.rstrip("/") + below


def site_of(parts: SplitResult) -> str:
    """Return scheme, host and port, for messages."""
    return f"{parts.scheme}://{parts.netloc}"


def connection_to(parts: SplitResult, timeout: float) -> http.client.HTTPConnection:
    """Return a connection that is still to be made; `timeout` in seconds counts from byte to byte."""
    kind = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
    return kind(parts.hostname or "", parts.port, timeout=timeout)


@dataclass(frozen=True, slots=True)
class _Answer:
    status: int
    body: bytes  # at most MAX_BYTES
    retry_after: str | None  # the header of that name, as it came


class _Exchange:
    """A request with its deadline (`time.monotonic()`). `stop` may be called from any thread and ends it at once.

    Whoever makes the exchange calls `stop` at the deadline: a socket's own time-out counts from byte to byte, so a
    server that trickles would never reach it.
    """

    def __init__(self, address: Address, deadline: float) -> None:
        self._address = address
        self._deadline = deadline
        self._stopped = threading.Event()
        self._reason: Literal["late", "interrupted"] = "late"
        self._http: http.client.HTTPConnection | None = None
        self._socket: socket.socket | None = None
        self._sent = False

    def stop(self, reason: Literal["late", "interrupted"]) -> None:
        """Break it off."""
        if not self._stopped.is_set():
            self._reason = reason
            self._stopped.set()
        # Before it is connected, a TLS handshake may hang in the connection's own socket.
        running = self._socket or (self._http.sock if self._http else None)
        if running is not None:
            with contextlib.suppress(OSError):
                # Not the method of an SSL socket: that one would go on reading without decrypting.
                socket.socket.shutdown(running, socket.SHUT_RDWR)

    def pause(self, seconds: float) -> bool:
        """Wait; return False, without waiting, if the deadline comes first."""
        if time.monotonic() + seconds >= self._deadline:
            return False
        if self._stopped.wait(seconds):
            raise self._error()
        return True

    def send(self, path: str, body: bytes, headers: Mapping[str, str]) -> _Answer:
        """Send a request and return the answer; raise EndpointError if there is none in time, or too large a one."""
        self._check()
        seconds = max(0.001, self._deadline - time.monotonic())
        self._http = connection = connection_to(self._address.parts, seconds)
        try:
            connection.connect()
            self._socket = connection.sock
            self._check()
            self._sent = True
            connection.request("POST", self._address.path(path), body, dict(headers))
            with contextlib.closing(connection.getresponse()) as response:
                data = response.read(MAX_BYTES + 1)
                missing = response.length
            self._check()
            if missing and len(data) <= MAX_BYTES:
                raise http.client.IncompleteRead(data, missing)
        except (OSError, UnicodeError, http.client.HTTPException) as error:
            raise self._error(error) from error
        finally:
            self._http = self._socket = None
            connection.close()
        if len(data) > MAX_BYTES:
            raise EndpointError(f"{self._address.site} sent more than {MAX_BYTES} bytes; check the address", sent=True)
        return _Answer(response.status, data, response.headers.get("Retry-After"))

    def _check(self) -> None:
        if self._stopped.is_set():
            raise self._error()

    def _error(self, cause: Exception | None = None) -> EndpointError:
        site, sent = self._address.site, self._sent
        if self._stopped.is_set() and self._reason == "interrupted":
            return EndpointError(f"the request to {site} was interrupted; call it again", sent=sent)
        if self._stopped.is_set() or isinstance(cause, TimeoutError):
            return EndpointError(f"{site} did not answer in time; raise the timeout, or check the server", sent=sent)
        name = type(cause).__name__
        if not sent:
            return EndpointError(f"{site} cannot be reached ({name}); check its address, and that it is running")
        return EndpointError(
            f"{site} closed the connection early ({name}); retry, or check the server's log", sent=True
        )


class Endpoint:
    """Posts JSON to one address. Usable from any thread; no connection outlives its request."""

    def __init__(self, address: Address, timeout: float = 20.0) -> None:
        """Prepare. A request has `timeout` seconds from looking up the name to the last byte, a second try included."""
        self.address = address
        self.timeout = timeout
        self._running: set[_Exchange] = set()
        self._lock = threading.Lock()

    def post(self, path: str, body: Mapping[str, Any], *, timeout: float | None = None) -> Any:
        """Post JSON to a path below the address, such as "/embeddings", and return the JSON of the answer.

        Tries once more after 429 or 5xx, when the wait that the server asks for ends before the time-out. Raises
        ModelError if the key is missing, EndpointError if there is no answer, not in time, an error, or no JSON.
        """
        key = self.address.key
        headers = {"Content-Type": "application/json", "Accept": "application/json", "User-Agent": "perdure"}
        headers |= {**self.address.headers, **(key.headers() if key else {})}
        seconds = self.timeout if timeout is None else timeout
        exchange = _Exchange(self.address, time.monotonic() + seconds)
        limit = threading.Timer(seconds, exchange.stop, ("late",))
        limit.daemon = True
        with self._lock:
            self._running.add(exchange)
        limit.start()
        try:
            answer = self._tried(exchange, path, json.dumps(body).encode(), headers)
        finally:
            limit.cancel()
            with self._lock:
                self._running.discard(exchange)
        try:
            return json.loads(answer.body)
        except (ValueError, RecursionError):
            raise EndpointError(
                f"{self.address.site} did not answer with JSON; check that the address is that of the API",
                status=answer.status,
            ) from None

    def interrupt(self) -> None:
        """Break off every request that runs now: its `post` raises at once."""
        with self._lock:
            for exchange in self._running:
                exchange.stop("interrupted")

    def _tried(self, exchange: _Exchange, path: str, body: bytes, headers: Mapping[str, str]) -> _Answer:
        answer = exchange.send(path, body, headers)
        if (answer.status == 429 or answer.status >= 500) and exchange.pause(_wait(answer.retry_after)):
            answer = exchange.send(path, body, headers)
        if answer.status == 200:
            return answer
        place = self.address.site + self.address.path(path)
        raise EndpointError(f"{place} answered {answer.status}{self._advice(answer)}", status=answer.status)

    def _advice(self, answer: _Answer) -> str:
        said = self._said(answer.body)
        said = f" ({said})" if said else ""
        key = self.address.key
        match answer.status:
            case 401 | 403 if key:
                return f"{said}; check the key in environment variable {key.variable}"
            case 401 | 403:
                return f"{said}; set the environment variable of its key"
            case 404:
                return f"{said}; check the address and the name of the model"
            case 429:
                wait = "" if answer.retry_after is None else f" in {_wait(answer.retry_after):.0f} s"
                return f"{said}: too many requests, or the quota is used up; try again{wait or ' later'}"
            case status if status >= 500:
                return f"{said}: the server failed; try again later"
            case status if 300 <= status < 400:
                return "; redirects are not followed. Set the target address"
        return said

    def _said(self, body: bytes) -> str:
        """Return what the server says is wrong, on one line, without secrets."""
        try:
            value = json.loads(body)
        except ValueError:
            return ""
        for name in ("error", "message", "detail"):
            if isinstance(value, dict) and name in value:
                value = value[name]
        if not isinstance(value, str):
            return ""
        key = self.address.key.value if self.address.key else ""
        value = value.replace(key, _KEPT_OUT) if key else value
        return " ".join(redact(value).text.split())[:_DETAIL]


def _wait(retry_after: str | None) -> float:
    """Return the seconds that a Retry-After header asks for (RFC 9110, section 10.2.3)."""
    if retry_after is None:
        return RETRY_SECONDS
    if retry_after.strip().isdecimal():
        return float(retry_after)
    try:
        return max(0.0, parsedate_to_datetime(retry_after).timestamp() - time.time())
    except ValueError:
        return RETRY_SECONDS
