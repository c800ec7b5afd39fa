"""Fetching models into perdure's cache, by HTTP: a cut is gone on with, redirects lead only to where they may."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final
from urllib.parse import SplitResult, urljoin, urlsplit

from perdure.embed.catalogue import OnnxModel
from perdure.embed.load import MARKER, fetch_folder, fetched, sha256_of
from perdure.errors import EndpointError, ModelError
from perdure.models.endpoint import Address, connection_to, site_of

_HUB: Final = "https://huggingface.co"
"""The hub; a mirror of it is named by HF_ENDPOINT, as for the hub's own library."""
HUB_DOMAINS: Final = ("huggingface.co", "hf.co")
"""The hub leads from its own address to servers of these domains, where the large files are."""
HOPS: Final = 5
"""So many redirects of one request are followed. The hub of the models needs two."""
_CHUNK: Final = 1 << 16
_MOVED: Final = frozenset({301, 302, 303, 307, 308})
_TRUE: Final = frozenset({"1", "ON", "YES", "TRUE"})
"""What the hub's own library takes for true in HF_HUB_OFFLINE."""

Advance = Callable[[int], None]
"""Told how many bytes came in; less than 0: so many are to come anew."""


def hub(environ: Mapping[str, str] = os.environ) -> str:
    """Return the address from which models are fetched."""
    return environ.get("HF_ENDPOINT") or _HUB


def forbidden(environ: Mapping[str, str] = os.environ) -> str | None:
    """Return what forbids a fetch, for people; None: nothing does."""
    if environ.get("HF_HUB_OFFLINE", "").upper() in _TRUE:
        return f"HF_HUB_OFFLINE is {environ['HF_HUB_OFFLINE']}"
    return None


def fetch(
    model: OnnxModel, site: str | None = None, *, timeout: float = 30.0, advance: Advance = lambda count: None
) -> Path:
    """Fetch a model's files at its pinned revision and return their folder; what is there already is not fetched again.

    What the hub, or another `site`, sends is checked, so it need not be trusted. It is given up after `timeout` seconds
    without a byte (EndpointError); what came is kept, and the next fetch goes on from there. Raises ModelError where
    HF_HUB_OFFLINE forbids it, another process does it, what came is not the pinned file, or it cannot be written.
    """
    from filelock import FileLock, Timeout

    folder = fetch_folder(model)
    if folder is None or model.hub is None:
        raise ModelError(f"model {model.name} ships with perdure; if it is missing, reinstall perdure")
    if fetched(model) is not None:
        return folder
    reason = forbidden()
    if reason:
        raise ModelError(f"model {model.name} was not downloaded: {reason}. Change that, or set model_path")
    address = Address(site or hub())
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with FileLock(folder.with_suffix(".lock"), timeout=0):
            for file, (size, sha256) in model.pins.items():
                source = model.hub.path(file)
                _fetch_file(model.name, file, address, source, folder / file, size, sha256, timeout, advance)
            part = folder / (MARKER + ".part")
            part.write_text(json.dumps(model.digests), encoding="utf-8")
            part.replace(folder / MARKER)
    except Timeout:
        raise ModelError(f"model {model.name} is being downloaded by another process; retry later") from None
    except OSError as error:
        raise ModelError(
            f"{folder} cannot be written ({error.strerror or error}); free some space or fix the path"
        ) from error
    return folder


def _fetch_file(
    name: str, file: str, address: Address, path: str, target: Path, size: int, sha256: str, timeout: float,
    advance: Advance,
) -> None:  # fmt: skip
    """Fetch one file, and go on after a cut as long as each try brings something."""
    if target.is_file() and sha256_of(target) == sha256:
        advance(size)
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    part = target.with_name(target.name + ".part")
    shown = 0

    def count(more: int) -> None:
        nonlocal shown
        shown += more
        advance(more)

    while True:
        before = _size(part)
        try:
            download(address, path, part, size, redirects=HUB_DOMAINS, timeout=timeout, advance=count)
            break
        except EndpointError:
            if _size(part) <= before:
                raise
            count(-shown)
    found = sha256_of(part)
    if found != sha256:
        part.unlink()
        raise ModelError(
            f"{address.url} sent a different file for {file} of model {name}: its sha256 is {found}, expected {sha256}."
            " It was deleted; try another address (HF_ENDPOINT), or give the path of a good copy (model_path)"
        )
    part.replace(target)


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def download(
    address: Address, path: str, into: Path, size: int, *, redirects: Sequence[str] = (), timeout: float = 30.0,
    advance: Advance = lambda count: None,
) -> None:  # fmt: skip
    """Fetch a file of known size. What `into` holds already is not asked for again (RFC 9110, section 14.2).

    The server may lead to itself, and by https to the domains `redirects` with all below them; the key of its address
    is not sent. It is given up after `timeout` seconds without a byte. Raises EndpointError for no answer, an error, a
    cut, another size, or a redirect that is not followed; what came until then stays in `into`.
    """
    have = _size(into)
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
    raise EndpointError(f"{address.site} redirects more than {HOPS} times; check the address")


@contextlib.contextmanager
def _asked(parts: SplitResult, have: int, timeout: float) -> Iterator[http.client.HTTPResponse]:
    headers = {"User-Agent": "perdure", "Accept-Encoding": "identity"}
    if have:
        headers["Range"] = f"bytes={have}-"
    target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    with contextlib.closing(connection_to(parts, timeout)) as connection:
        try:
            connection.connect()
        except (OSError, UnicodeError) as error:
            name = type(error).__name__
            raise EndpointError(
                f"{site_of(parts)} cannot be reached ({name}); check the address, and the network"
            ) from error
        try:
            connection.request("GET", target, headers=headers)
            response = connection.getresponse()
        except (OSError, UnicodeError, http.client.HTTPException) as error:
            raise _broken(parts, error) from error
        with contextlib.closing(response):
            yield response


def _led_to(address: Address, url: str, location: str, redirects: Sequence[str]) -> str:
    """Return where a redirect leads: to the server itself or, by https, to one of `redirects`; else raise."""
    try:
        target = urljoin(url, location)
        parts = urlsplit(target)
        host, _ = parts.hostname or "", parts.port
    except ValueError:
        raise EndpointError(f"{address.site} redirects to an invalid address; set another in HF_ENDPOINT") from None
    home = (parts.scheme, parts.netloc) == (address.parts.scheme, address.parts.netloc)
    if home or (parts.scheme == "https" and any(host == name or host.endswith(f".{name}") for name in redirects)):
        return target
    # The query may hold a signature: only the server is named.
    raise EndpointError(
        f"{address.site} redirects to {parts.scheme}://{host}, which is not followed; check the address, or set another"
    )


def _start(response: http.client.HTTPResponse, parts: SplitResult, have: int, size: int) -> int:
    """Return at which byte the answer begins; raise if it is none, or not of this file."""
    status, site = response.status, site_of(parts)
    if status not in (200, 206):
        shorter = "it is shorter than the part already downloaded"
        advice = {404: "the file is not there; check the address", 416: shorter}.get(status)
        raise EndpointError(f"{site} answered {status}: {advice or 'try again later'}", status=status)
    start = have if status == 206 else 0
    told = response.headers.get("Content-Range", "")
    if status == 206 and not told.startswith(f"bytes {have}-"):
        raise EndpointError(f"{site} sent a different byte range than requested ({told!r})", status=status)
    if response.length is not None and start + response.length != size:
        whole = start + response.length
        raise EndpointError(f"{site} has a file of {whole} bytes, expected {size}: a different file", status=status)
    return start


def _receive(
    response: http.client.HTTPResponse, parts: SplitResult, into: Path, start: int, size: int, advance: Advance
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


def _broken(parts: SplitResult, cause: Exception) -> EndpointError:
    late = isinstance(cause, TimeoutError)
    how = "sent nothing for too long" if late else f"closed the connection early ({type(cause).__name__})"
    return EndpointError(f"{site_of(parts)} {how}; try again: the download resumes", sent=True)
