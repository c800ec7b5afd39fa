"""Regular expressions that are compiled when they are first used.

To compile all of them is a third of what an import of perdure costs, and a process that answers one question or takes
in one message uses few.
"""

from __future__ import annotations

import re
from typing import Any, AnyStr, cast

_USES = ("match", "fullmatch", "search", "sub", "subn", "split", "findall", "finditer")


def lazy(pattern: AnyStr, flags: int = 0) -> re.Pattern[AnyStr]:
    """Return a pattern as `re.compile` does; one that is no regular expression raises `re.error` on its first use."""
    return cast("re.Pattern[AnyStr]", Lazy(pattern, flags))


class Lazy:
    """Stands for a compiled pattern. Usable from any thread: to compile it twice does no harm."""

    def __init__(self, pattern: str | bytes, flags: int) -> None:
        self.pattern = pattern
        self._flags = flags

    def __getattr__(self, name: str) -> Any:
        compiled = re.compile(self.pattern, self._flags)
        # From now on a use finds the compiled pattern's own method, at no cost.
        for use in _USES:
            setattr(self, use, getattr(compiled, use))
        return getattr(compiled, name)
