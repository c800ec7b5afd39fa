"""What a database of one machine answers where one that several share has more to say."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

import apsw

from perdure.errors import StoreUnavailableError


class OneMachine:
    """The part of a `Backend` that is about other machines: there are none."""

    path: Path
    shared = compares = False

    def write(self) -> AbstractContextManager[apsw.Connection]:
        """Run a transaction; see `Backend.write`."""
        raise NotImplementedError

    def ending(self) -> AbstractContextManager[apsw.Connection]:
        """Here nobody adds anything beside a writer."""
        return self.write()

    def beside(self) -> AbstractContextManager[apsw.Connection]:
        """Here there is one writer at a time."""
        return self.write()

    def lead(self) -> bool:
        """Who leads among the processes of one machine is told by a lock in the folder."""
        return True

    def leading(self) -> AbstractContextManager[None]:
        """Such a lock is held until death, so nobody else leads before."""
        return nullcontext()

    def about(self) -> str:
        """Return SQLite's version."""
        return f"SQLite {apsw.sqlite_lib_version()}"

    def erase(self, now: float) -> tuple[dict[str, int], int]:
        """A file is removed as one."""
        raise StoreUnavailableError(f"{self.path} is removed as a whole: perdure uninstall")
