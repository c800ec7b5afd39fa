"""What a look at a store finds wrong, and what to do about it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Finding:
    """A problem found by `verify`."""

    what: str
    where: str  # the id, file, table or row
    hint: str  # what to do about it
    repair: str = ""  # the repair that `fix` makes; empty: there is none

    @property
    def fixable(self) -> bool:
        """Whether `fix` can repair it."""
        return bool(self.repair)
