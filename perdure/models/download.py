"""A file by HTTP: goes on where it was cut off, and follows redirects only to where it was told it may."""

from __future__ import annotations

import contextlib
import http.client
import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Final
from urllib.parse import SplitResult, urljoin, urlsplit

from perdure.errors import EndpointError
from perdure.models.address import Address

HOPS: Final = 5
"""So many redirects of one request are followed. The hub of the models needs two."""
_CHUNK: Final = 1 << 16
_MOVED: Final = frozenset({301, 302, 303, 307, 308})


def download(
    address: Address,
    path: str,
    into: Path,
    size: int,
    *,
    redirects: Sequence[str] = (),
    timeout: float = 30.0,
    advance: Callable[[int], None] = lambda count: None,
) -> None:
    """Fetch a file of known size. What `into` holds already is not asked for again (RFC 9110, section 14.2).

    Args:
        address: of the server. Its key is not sent.
        path: below the address.
        into: where it goes, also if only a part comes.
        size: bytes that the whole has.
        redirects: domains to which the server may lead, by https, with all below them. It may always lead to itself.
        timeout: seconds without a byte after which the server is given up.
        advance: told how many bytes came in; less than 0: so many are to come anew.

    Raises:
        EndpointError: no answer, not in time, an error, a cut, another size, or a redirect that is not followed.
        OSError: `into` cannot be written.
    """
    have = into.stat().st_size if into.exists() else 0
    advance(have)
    if have > size:
        into.unlink()
        advance(-have)
        have = 0
    url = address.url.rstrip("/") + path
    for _ in range(HOPS + 1):
        if have == size:
            return
        parts = urlsplit(url)
        with _asked(parts, have, timeout) as response:
            if response.status in _MOVED:
                url = _led_to(address, url, response.headers.get("Location", ""), redirects)
                continue
            start = _start(response, parts, have, size)
            advance(start - have)
            _receive(response, parts, into, start, size, advance)
            return
    raise EndpointError(f"{address.site} leads elsewhere more than {HOPS} times; check the address")


@contextlib.contextmanager
def _asked(parts: SplitResult, have: int, timeout: float) -> Iterator[http.client.HTTPResponse]:
    headers = {"User-Agent": "perdure", "Accept-Encoding": "identity"}
    if have:
        headers["Range"] = f"bytes={have}-"
    target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    kind = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
    with contextlib.closing(kind(parts.hostname or "", parts.port, timeout=timeout)) as connection:
        try:
            connection.connect()
        except (OSError, UnicodeError) as error:
            raise _unreached(parts, error) from error
        try:
            connection.request("GET", target, headers=headers)
            response = connection.getresponse()
        except (OSError, UnicodeError, http.client.HTTPException) as error:
            raise _broken(parts, error) from error
        with contextlib.closing(response):
            yield response


def _led_to(address: Address, url: str, location: str, redirects: Sequence[str]) -> str:
    """Return where a redirect leads.

    Raises:
        EndpointError: neither to the server itself nor, by https, to one of `redirects`.
    """
    try:
        target = urljoin(url, location)
        parts = urlsplit(target)
        host, _ = parts.hostname or "", parts.port
    except ValueError:
        raise EndpointError(f"{address.site} leads to an address that cannot be read; try another") from None
    home = (parts.scheme, parts.netloc) == (address.parts.scheme, address.parts.netloc)
    if home or (parts.scheme == "https" and any(host == name or host.endswith(f".{name}") for name in redirects)):
        return target
    # The query may hold a signature: only the server is named.
    raise EndpointError(
        f"{address.site} leads to {parts.scheme}://{host}, which is not followed; check the address, or set another"
    )


def _start(response: http.client.HTTPResponse, parts: SplitResult, have: int, size: int) -> int:
    """Return at which byte the answer begins.

    Raises:
        EndpointError: it is none, or not of this file.
    """
    status = response.status
    if status not in (200, 206):
        advice = {404: "the file is not there; check the address", 416: "it has fewer bytes than were kept"}.get(status)
        raise EndpointError(f"{_site(parts)} answered {status}: {advice or 'try again later'}", status=status)
    start = have if status == 206 else 0
    told = response.headers.get("Content-Range", "")
    if status == 206 and not told.startswith(f"bytes {have}-"):
        raise EndpointError(f"{_site(parts)} answered with other bytes than were asked for ({told!r})", status=status)
    if response.length is not None and start + response.length != size:
        raise EndpointError(
            f"{_site(parts)} has a file of {start + response.length} bytes, expected {size}; it is another one",
            status=status,
        )
    return start


def _receive(
    response: http.client.HTTPResponse,
    parts: SplitResult,
    into: Path,
    start: int,
    size: int,
    advance: Callable[[int], None],
) -> None:
    with into.open("r+b" if start else "wb") as file:
        file.seek(start)
        while start < size:
            try:
                data = response.read1(min(_CHUNK, size - start))
            except (OSError, http.client.HTTPException) as error:
                raise _broken(parts, error) from error
            if not data:
                raise _broken(parts, EOFError())
            file.write(data)
            start += len(data)
            advance(len(data))
        file.flush()
        os.fsync(file.fileno())


def _unreached(parts: SplitResult, cause: Exception) -> EndpointError:
    name = type(cause).__name__
    return EndpointError(f"{_site(parts)} cannot be reached ({name}); check the address, and the network")


def _broken(parts: SplitResult, cause: Exception) -> EndpointError:
    if isinstance(cause, TimeoutError):
        return EndpointError(f"{_site(parts)} sent nothing for too long; try again: it goes on from there", sent=True)
    return EndpointError(
        f"{_site(parts)} broke off its answer ({type(cause).__name__}); try again: it goes on from there", sent=True
    )


def _site(parts: SplitResult) -> str:
    return f"{parts.scheme}://{parts.netloc}"
