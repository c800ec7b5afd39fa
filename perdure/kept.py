"""What is worked out from the package's own sources at every start, kept beside their byte code.

A process that answers one event spends a third of its time on that: on patterns, on tables, and on the methods that
`dataclasses` writes and compiles.
"""

from __future__ import annotations

import dataclasses
import marshal
import os
import sys
from collections.abc import Callable
from contextlib import suppress
from importlib.util import cache_from_source
from typing import Any
from zlib import crc32

_MOST = 10_000
"""Values that are kept: more than there are, unless those of many former versions are among them."""
_HEAD = 4
_OF = f"{sys.version} {sys.byteorder}"
"""What made it: another Python makes something else."""
_held: dict[Any, Any] | None = None
_made: dict[Any, Any] = {}


def begin() -> None:
    """Use from now on what processes before this one have kept, and take note of what is made, to `keep` it."""
    global _held
    _held = _read()
    vars(dataclasses)["exec"] = _execute


def begun() -> bool:
    """Return whether this process uses what is kept."""
    return _held is not None


def kept(key: Any, make: Callable[[], Any]) -> Any:
    """Return what stands under a key, or is made now; `marshal` must take both. The value is shared."""
    if _held is None:
        return make()
    if key not in _held:
        _held[key] = _made[key] = make()
    return _held[key]


def keep() -> None:
    """Write what this process had to make to where the next one finds it, if the package's folder can be written."""
    if not _made or sys.dont_write_bytecode:
        return
    with suppress(OSError, ValueError, NotImplementedError):
        held = _read()
        body = marshal.dumps((_OF, {**(held if len(held) < _MOST else {}), **_made}))
        path = _path()
        fresh = f"{path}.{os.getpid()}"
        try:
            # No more may write it than the source: what it holds is executed.
            mode = os.stat(__file__).st_mode & 0o755  # noqa: PTH116 - pathlib takes as long as much of this saves
            with open(os.open(fresh, os.O_CREAT | os.O_EXCL | os.O_WRONLY, mode), "wb") as file:  # noqa: PTH123
                file.write(crc32(body).to_bytes(_HEAD, "big") + body)
            os.replace(fresh, path)  # noqa: PTH105 - as above
        except OSError:
            os.unlink(fresh)  # noqa: PTH108 - as above


def _read() -> dict[Any, Any]:
    # Byte code is trusted as it lies there, and so is this. What a power failure cut short is told by its sum.
    with suppress(OSError, ValueError, EOFError, TypeError, NotImplementedError), open(_path(), "rb") as file:  # noqa: PTH123
        head, body = file.read(_HEAD), file.read()
        if crc32(body) == int.from_bytes(head, "big"):
            version, held = marshal.loads(body)  # noqa: S302 - as above
            if version == _OF:
                found: dict[Any, Any] = held
                return found
    return {}


def _path() -> str:
    return cache_from_source(__file__).removesuffix(".pyc") + ".kept"


def _execute(text: str, names: dict[str, Any], made: dict[str, Any]) -> None:
    exec(kept((text,), lambda: compile(text, "<dataclass>", "exec")), names, made)  # noqa: S102 - what the library does
