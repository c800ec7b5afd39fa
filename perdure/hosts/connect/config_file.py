"""Reading and writing the config files of other programs, which may be links into a folder of dotfiles."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import stat
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from perdure.engine.paths import connections_folder
from perdure.errors import HostError
from perdure.store.folder import replace_file

MAX_BYTES = 64 << 20
LOCK_SECONDS = 5.0
STALE_SECONDS = 10.0
"""A lock that nobody has touched for so long was left behind: its holder touches it every 5 s."""


@dataclass(frozen=True, slots=True)
class ConfigFile:
    """A config file as it was read."""

    path: Path  # where its host looks for it
    real: Path  # where links lead from there; this is what is replaced, so that the links stay
    content: bytes | None  # None: there is no such file

    @classmethod
    def read(cls, path: Path, inside: Path | None = None) -> ConfigFile:
        """Read a file through links.

        Links may not lead out of the folder `inside`.
        """
        real = Path(os.path.realpath(path))
        if inside is not None and not real.is_relative_to(os.path.realpath(inside)):
            raise HostError(
                f"{path} is a link that leads out of {inside}, to {real}, and is not followed; replace it "
                "with a regular file"
            )
        try:
            return cls(path, real, _read(real))
        except FileNotFoundError:
            if path.is_symlink():
                raise HostError(f"{path} is a link to {real}, which is missing; create it or remove the link") from None
            return cls(path, real, None)
        except OSError as error:
            raise HostError(f"{path} cannot be read: {error.strerror}") from error

    def write(self, content: bytes | None) -> tuple[Path, ...]:
        """Replace the file, or remove it; return the folders that had to be made for it, outermost first."""
        try:
            if ConfigFile.read(self.path) != self:
                raise HostError(f"{self.path} was changed by another program in the meantime; run this again")
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
    """Hold the lock that a host takes itself to write this file: a folder beside it."""
    lock = Path(f"{path}.lock")
    until = time.monotonic() + LOCK_SECONDS
    while not _taken(lock):
        if time.monotonic() > until:
            raise HostError(f"{path} is being written by its program; if that is not running, remove the folder {lock}")
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
            raise HostError(f"{real} is not a regular file; replace it with one")
        # Replacing a file of somebody else would take it away from them: `sudo` keeps the home folder on some systems.
        if hasattr(os, "geteuid") and found.st_uid != os.geteuid():
            raise HostError(f"{real} belongs to another user; run this as that user")
        if found.st_size > MAX_BYTES:
            raise HostError(
                f"{real} has {found.st_size} bytes; the limit is {MAX_BYTES}. Check that it is the right file"
            )
        return file.read()


class Record:
    """The backup of one config file, and what is known of our change. Both are for their owner alone."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._folder = connections_folder() / hashlib.sha256(os.fsencode(path)).hexdigest()[:24]
        self._backup = self._folder / "before"
        self._file = self._folder / "record.json"

    @property
    def exists(self) -> bool:
        """Whether perdure was put into the file, and was not taken out since."""
        return self._file.is_file()

    @property
    def original(self) -> bytes | None:
        """What the file was before; None: there was none, or nothing is known of it."""
        if not self._values().get("existed"):
            return None
        try:
            return self._backup.read_bytes()
        except OSError as error:
            raise HostError(f"the backup {self._backup} cannot be read: {error.strerror}") from error

    @property
    def made_file(self) -> bool:
        """Whether there was no such file before."""
        return self._values().get("existed") is False

    def untouched(self, content: bytes | None) -> bool:
        """Return whether the file is as we left it, and was never edited between two changes of ours."""
        return content is not None and self._values().get("after") == digest(content)

    def keep(self, host: str, before: bytes | None, after: bytes) -> None:
        """Note a change that is about to be made. The first time the file's content is kept."""
        values, own = self._values(), None
        if not values:
            values = {"host": host, "path": str(self.path), "existed": before is not None, "folders": []}
            own = before
        elif not self.untouched(before):
            # Edited by hand between two changes: the backup is no longer what should come back as a whole.
            values["edited"] = True
        try:
            self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            if own is not None:
                replace_file(self._backup, own)
            self._write(values | {"after": None if values.get("edited") else digest(after)})
        except OSError as error:
            raise HostError(f"{self._folder} cannot be written: {error.strerror}") from error

    def add_folders(self, folders: Sequence[Path]) -> None:
        """Note folders that were made for the file, outermost first."""
        if folders:
            values = self._values()
            self._write(values | {"folders": [*values["folders"], *map(str, folders)]})

    def forget(self) -> None:
        """Remove the backup and the record, and folders that were made for the file and are empty now."""
        for folder in reversed(self._values().get("folders", [])):
            try:
                Path(folder).rmdir()
            except OSError:
                break  # something else lies in it by now
        shutil.rmtree(self._folder, ignore_errors=True)

    def _write(self, values: dict[str, Any]) -> None:
        replace_file(self._file, json.dumps(values, indent=2).encode())

    def _values(self) -> dict[str, Any]:
        return read_record(self._file)


def recorded(host: str) -> Iterator[Path]:
    """Yield the config files of a host that perdure was put into."""
    for file in sorted(connections_folder().glob("*/record.json")):
        values = read_record(file)
        if values.get("host") == host:
            yield Path(values["path"])


def read_record(file: Path) -> dict[str, Any]:
    """Return what a record of ours says; nothing if there is none."""
    try:
        values: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise HostError(f"{file} cannot be read ({type(error).__name__}); delete it") from error
    return values


def digest(content: bytes) -> str:
    """Return what tells a file's content from any other."""
    return hashlib.sha256(content).hexdigest()
