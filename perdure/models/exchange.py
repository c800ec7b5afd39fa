"""One request and its answer, which another thread can break off."""

from __future__ import annotations

import contextlib
import http.client
import socket
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal

from perdure.errors import EndpointError
from perdure.models.address import Address

MAX_BYTES: Final = 64 * 1024 * 1024
"""Of an answer. A hundred vectors of 3072 numbers are about 7 MB."""

Reason = Literal["late", "interrupted"]


@dataclass(frozen=True, slots=True)
class Answer:
    """What a server answered.

    Attributes:
        status: of HTTP.
        body: at most `MAX_BYTES`.
        retry_after: the header of that name, as it came.
    """

    status: int
    body: bytes
    retry_after: str | None


class Exchange:
    """A request with its deadline. `stop` may be called from any thread and ends it at once."""

    def __init__(self, address: Address, deadline: float) -> None:
        """Prepare.

        Args:
            address: where to.
            deadline: `time.monotonic()` up to which it may take. Whoever makes the exchange calls `stop` then: a
                socket's own time-out counts from byte to byte, so a server that trickles would never reach it.
        """
        self._address = address
        self._deadline = deadline
        self._stopped = threading.Event()
        self._reason: Reason = "late"
        self._http: http.client.HTTPConnection | None = None
        self._socket: socket.socket | None = None
        self._sent = False

    def stop(self, reason: Reason) -> None:
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
        """Wait; return False, without waiting, if the deadline comes first.

        Raises:
            EndpointError: it was stopped.
        """
        if time.monotonic() + seconds >= self._deadline:
            return False
        if self._stopped.wait(seconds):
            raise self._error()
        return True

    def send(self, path: str, body: bytes, headers: Mapping[str, str]) -> Answer:
        """Send a request and return the answer.

        Raises:
            EndpointError: there was none, not in time, or it is too large.
        """
        self._http = connection = self._connection()
        try:
            connection.connect()
            self._socket = connection.sock
            self._check()
            self._sent = True
            connection.request("POST", self._address.parts.path.rstrip("/") + path, body, dict(headers))
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
            raise EndpointError(f"{self._address.site} answered more than {MAX_BYTES} bytes; ask for less", sent=True)
        return Answer(response.status, data, response.headers.get("Retry-After"))

    def _connection(self) -> http.client.HTTPConnection:
        parts = self._address.parts
        kind = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
        self._check()
        return kind(parts.hostname or "", parts.port, timeout=max(0.001, self._deadline - time.monotonic()))

    def _check(self) -> None:
        if self._stopped.is_set():
            raise self._error()

    def _error(self, cause: Exception | None = None) -> EndpointError:
        site = self._address.site
        if self._stopped.is_set() and self._reason == "interrupted":
            return EndpointError(f"the request to {site} was interrupted; call it again", sent=self._sent)
        if self._stopped.is_set() or isinstance(cause, TimeoutError):
            return EndpointError(
                f"{site} did not answer in time; raise the timeout, or see what keeps it", sent=self._sent
            )
        name = type(cause).__name__
        if not self._sent:
            return EndpointError(f"{site} cannot be reached ({name}); check the address, and that the server runs")
        return EndpointError(f"{site} broke off its answer ({name}); try again, or see what the server says", sent=True)
