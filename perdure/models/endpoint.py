"""JSON over HTTP: a time-out for the whole of a request, cancellation, and one more try at the most."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from typing import Any, Final

from perdure.errors import EndpointError
from perdure.models.address import Address
from perdure.models.exchange import Answer, Exchange
from perdure.secrets.redact import redact

RETRY_SECONDS: Final = 0.5
"""The wait before the second try, where the server names none."""
_DETAIL: Final = 200
_KEPT_OUT: Final = "[key]"


class Endpoint:
    """Posts JSON to one address. Usable from any thread; no connection outlives its request."""

    def __init__(self, address: Address, timeout: float = 20.0) -> None:
        """Prepare; nothing is sent before `post`.

        Args:
            address: where to.
            timeout: seconds for a request, from looking up the name to the last byte, a second try included.
        """
        self.address = address
        self.timeout = timeout
        self._running: set[Exchange] = set()
        self._lock = threading.Lock()

    def post(self, path: str, body: Mapping[str, Any], *, timeout: float | None = None) -> Any:
        """Post JSON and return the JSON of the answer.

        Tries once more after 429 or 5xx, when the wait that the server asks for ends before the time-out.

        Args:
            path: below the address, such as "/embeddings".
            body: JSON values.
            timeout: seconds; None: that of the endpoint.

        Raises:
            ModelError: the key is missing.
            EndpointError: no answer, not in time, an error, or no JSON.
        """
        key = self.address.key
        headers = {"Content-Type": "application/json", "Accept": "application/json", "User-Agent": "perdure"}
        headers |= {**self.address.headers, **(key.headers() if key else {})}
        seconds = self.timeout if timeout is None else timeout
        exchange = Exchange(self.address, time.monotonic() + seconds)
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
        return self._value(answer)

    def interrupt(self) -> None:
        """Break off every request that runs now: its `post` raises at once."""
        with self._lock:
            for exchange in self._running:
                exchange.stop("interrupted")

    def _tried(self, exchange: Exchange, path: str, body: bytes, headers: Mapping[str, str]) -> Answer:
        answer = exchange.send(path, body, headers)
        if answer.status == 429 or answer.status >= 500:
            wait = _wait(answer.retry_after)
            if exchange.pause(wait):
                answer = exchange.send(path, body, headers)
        if answer.status == 200:
            return answer
        raise EndpointError(f"{self.address.site}{self._path(path)} answered {answer.status}{self._advice(answer)}",
                            status=answer.status)  # fmt: skip

    def _path(self, path: str) -> str:
        return self.address.parts.path.rstrip("/") + path

    def _advice(self, answer: Answer) -> str:
        said = self._said(answer.body)
        said = f" ({said})" if said else ""
        key = self.address.key
        match answer.status:
            case 401 | 403 if key:
                return f"{said}; check the key in environment variable {key.variable}"
            case 401 | 403:
                return f"{said}; name the environment variable that holds its key"
            case 404:
                return f"{said}; check the address and the name of the model"
            case 429:
                wait = "" if answer.retry_after is None else f" in {_wait(answer.retry_after):.0f} s"
                return f"{said}: too many requests, or the quota is used up; try again{wait or ' later'}"
            case status if status >= 500:
                return f"{said}: the server is in trouble; try again later"
            case status if status >= 300 and status < 400:
                return "; it leads elsewhere, which is not followed. Set the address that it leads to"
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

    def _value(self, answer: Answer) -> Any:
        try:
            return json.loads(answer.body)
        except (ValueError, RecursionError):
            raise EndpointError(
                f"{self.address.site} answered with no JSON; check that the address is that of the API",
                status=answer.status,
            ) from None


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
