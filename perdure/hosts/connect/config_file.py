"""Reading and writing the config files of other programs, which may be links into a folder of dotfiles."""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from perdure.errors import HostError
from perdure.hosts.replacing import replace_file

MAX_BYTES = 64 << 20
LOCK_SECONDS = 5.0
STALE_SECONDS = 10.0
"""A lock that nobody has touched for so long was left behind: its holder touches it every 5 s."""


@dataclass(frozen=True, slots=True)
class ConfigFile:
    """A config file as it was read.

    Attributes:
        path: where its host looks for it.
        real: where links lead from there; this is what is replaced, so that the links stay.
        content: None: there is no such file.
    """

    path: Path
    real: Path
    content: bytes | None

    @classmethod
    def read(cls, path: Path, inside: Path | None = None) -> ConfigFile:
        """Read a file through links.

        Args:
            path: where its host looks for it.
            inside: links may not lead out of this folder.

        Raises:
            HostError: it is no plain file of this user, leads nowhere or out of the folder, or cannot be read.
        """
        real = Path(os.path.realpath(path))
        if inside is not None and not real.is_relative_to(os.path.realpath(inside)):
            raise HostError(f"{path} is a link that leads out of {inside}, to {real}; nothing is written there")
        try:
            return cls(path, real, _read(real))
        except FileNotFoundError:
            if path.is_symlink():
                raise HostError(f"{path} is a link to {real}, which is missing; make that file or remove it") from None
            return cls(path, real, None)
        except OSError as error:
            raise HostError(f"{path} cannot be read: {error.strerror}") from error

    def write(self, content: bytes | None) -> tuple[Path, ...]:
        """Replace the file, or remove it; return the folders that had to be made for it, outermost first.

        Raises:
            HostError: it cannot be written, or is no longer what was read.
        """
        try:
            if ConfigFile.read(self.path) != self:
                raise HostError(f"{self.path} was changed by somebody else meanwhile; run this again")
            if content is None:
                self.real.unlink()
                return ()
            missing = [each for each in self.real.parents if not each.exists()][::-1]
            for folder in missing:
                folder.mkdir(mode=0o700)
            replace_file(self.real, content)
        except OSError as error:
            raise HostError(f"{self.path} cannot be written: {error.strerror}") from error
        return tuple(missing)


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold the lock that a host takes itself to write this file: a folder beside it.

    Raises:
        HostError: the host holds it for too long.
    """
    lock = Path(f"{path}.lock")
    until = time.monotonic() + LOCK_SECONDS
    while not _taken(lock):
        if time.monotonic() > until:
            raise HostError(f"{path} is being written by its program; if none runs, remove the folder {lock}")
        time.sleep(0.05)
    try:
        yield
    finally:
        with suppress(OSError):
            lock.rmdir()


def _taken(lock: Path) -> bool:
    try:
        lock.mkdir()
    except FileExistsError:
        # It may be gone by now, or not empty: then it is no lock of that kind.
        with suppress(OSError):
            if time.time() - lock.stat().st_mtime > STALE_SECONDS:
                lock.rmdir()
        return False
    except OSError as error:
        raise HostError(f"{lock.parent} cannot be written: {error.strerror}") from error
    return True


def _read(real: Path) -> bytes:
    # Without O_NONBLOCK a FIFO would wait for a writer.
    handle = os.open(real, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0))
    with os.fdopen(handle, "rb") as file:
        found = os.fstat(handle)
        if not stat.S_ISREG(found.st_mode):
            raise HostError(f"{real} is no plain file")
        # Replacing a file of somebody else would take it away from them: `sudo` keeps the home folder on some systems.
        if hasattr(os, "geteuid") and found.st_uid != os.geteuid():
            raise HostError(f"{real} belongs to another user; run this as that user")
        if found.st_size > MAX_BYTES:
            raise HostError(f"{real} has {found.st_size} bytes; at most {MAX_BYTES} are read")
        return file.read()
