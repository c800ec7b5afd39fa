"""What a config file was before perdure was put into it."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from perdure.engine.paths import connections_folder
from perdure.errors import HostError
from perdure.hosts.replacing import replace_file


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
        """What the file was before; None: there was none, or nothing is known of it.

        Raises:
            HostError: the backup cannot be read.
        """
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
        return content is not None and self._values().get("after") == _digest(content)

    def keep(self, host: str, before: bytes | None, after: bytes) -> None:
        """Note a change that is about to be made. The first time the file's content is kept.

        Raises:
            HostError: it cannot be written down.
        """
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
            self._write(values | {"after": None if values.get("edited") else _digest(after)})
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
        return _read(self._file)


def recorded(host: str) -> Iterator[Path]:
    """Yield the config files of a host that perdure was put into.

    Raises:
        HostError: a record cannot be read.
    """
    for file in sorted(connections_folder().glob("*/record.json")):
        values = _read(file)
        if values.get("host") == host:
            yield Path(values["path"])


def _read(file: Path) -> dict[str, Any]:
    try:
        values: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise HostError(f"{file} cannot be read ({type(error).__name__}); delete it") from error
    return values


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
