"""Connecting a host and disconnecting it again: what would change, and the change."""

from __future__ import annotations

import difflib
import os
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path

from perdure.errors import HostError
from perdure.hosts.connect.config_file import ConfigFile, Record, locked
from perdure.hosts.connect.parts import Part, dump, parse, prune


@dataclass(frozen=True, slots=True)
class Edit:
    """A change of one file."""

    file: ConfigFile  # as it was read
    after: bytes | None  # what it becomes; None: it is removed
    restored: bool = False  # whether it becomes what it was before perdure, byte for byte

    def diff(self) -> list[str]:
        """Return the change as lines of a unified diff."""
        old, new = (os.devnull if each is None else str(self.file.path) for each in (self.file.content, self.after))
        return list(difflib.unified_diff(_lines(self.file.content), _lines(self.after), old, new, lineterm=""))


@dataclass(frozen=True, slots=True)
class Target:
    """A config file, and what of it is ours."""

    path: Path  # where the host looks for it
    parts: Sequence[Part]  # what is ours
    inside: Path | None = None  # links may not lead out of this folder
    locks: bool = False  # whether the host locks it when it writes

    def connected(self) -> Edit | None:
        """Return how the file changes when it is connected, or None."""
        file = ConfigFile.read(self.path, self.inside)
        values = parse(self.path, file.content)
        for part in self.parts:
            part.put(values)
        if values == parse(self.path, file.content):
            return None
        return Edit(file, dump(self.path, values, file.content))

    def disconnected(self) -> Edit | None:
        """Return how the file changes when it is disconnected, or None."""
        file, record = ConfigFile.read(self.path, self.inside), Record(self.path)
        if record.untouched(file.content):
            return Edit(file, record.original, restored=True)
        before, values = parse(self.path, file.content), parse(self.path, file.content)
        former = parse(self.path, record.original)
        for part in self.parts:
            part.take(values, former)
            prune(values, before, former, part.containers)
        if values == before:
            return None
        gone = not values and record.made_file
        return Edit(file, None if gone else dump(self.path, values, file.content))


@dataclass(frozen=True, slots=True)
class WholeFile:
    """A file of which all is ours, as a rule for the model."""

    path: Path  # where the host looks for it
    text: str  # what stands in it
    inside: Path | None = None  # links may not lead out of this folder
    locks: bool = False

    def connected(self) -> Edit | None:
        """Return how the file changes when it is connected, or None."""
        file, wanted = ConfigFile.read(self.path, self.inside), self.text.encode()
        if file.content == wanted:
            return None
        if file.content is not None and not Record(self.path).untouched(file.content):
            raise HostError(f"{self.path} was not written by perdure; move it elsewhere")
        return Edit(file, wanted)

    def disconnected(self) -> Edit | None:
        """Return how the file changes when it is disconnected, or None; one that was edited stays."""
        file = ConfigFile.read(self.path, self.inside)
        ours = file.content == self.text.encode() or Record(self.path).untouched(file.content)
        return Edit(file, None) if ours else None


@dataclass(frozen=True)
class Connection:
    """perdure in one place of a host: for the user, for a project, or as a plugin."""

    host: str
    targets: Sequence[Target | WholeFile]

    def plan_connect(self) -> list[Edit]:
        """Return what `connect` would change."""
        return [edit for target in self.targets if (edit := target.connected())]

    def plan_disconnect(self) -> list[Edit]:
        """Return what `disconnect` would change."""
        return [edit for target in self.targets if (edit := target.disconnected())]

    def connect(self) -> list[Edit]:
        """Make the host call perdure. What each file was before is kept; twice is no error.

        If a file cannot be written, those that were written can be disconnected.
        """
        self.plan_connect()
        return self._apply(self._connect)

    def disconnect(self) -> list[Edit]:
        """Take perdure out of the host's config. A file that was not edited since becomes what it was."""
        self.plan_disconnect()
        done = self._apply(self._disconnect)
        for target in reversed(self.targets):
            # Backwards, so that a folder that was made for several files is empty by then.
            Record(target.path).forget()
        return done

    def _apply(self, change: Callable[[Target | WholeFile], Edit | None]) -> list[Edit]:
        done = []
        for target in self.targets:
            with locked(target.path) if target.locks else nullcontext():
                # Planned anew: its host may have written it since somebody looked at the plan.
                done.append(change(target))
        return [edit for edit in done if edit]

    def _connect(self, target: Target | WholeFile) -> Edit | None:
        edit = target.connected()
        if edit and edit.after is not None:
            record = Record(target.path)
            first = not record.exists
            record.keep(self.host, edit.file.content, edit.after)
            try:
                record.add_folders(edit.file.write(edit.after))
            except HostError:
                if first:
                    record.forget()
                raise
        return edit

    def _disconnect(self, target: Target | WholeFile) -> Edit | None:
        edit = target.disconnected()
        if edit:
            edit.file.write(edit.after)
        return edit


def _lines(content: bytes | None) -> list[str]:
    text = (content or b"").decode(errors="replace").replace("\r\n", "\n").removesuffix("\n")
    # str.splitlines breaks at signs that stand within a string, too.
    return text.split("\n") if text else []
