"""Regular expressions that are compiled when they are first used.

To compile all of them is a third of what an import of perdure costs, and a process that answers one question or takes
in one message uses few.
"""

from __future__ import annotations

import re
from array import array
from typing import Any, AnyStr, cast

from perdure.kept import begun, kept

_RE: Any = re
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
        compiled = _compiled(self.pattern, int(self._flags))
        # From now on a use finds the compiled pattern's own method, at no cost.
        for use in _USES:
            setattr(self, use, getattr(compiled, use))
        return getattr(compiled, name)


def _compiled(pattern: str | bytes, flags: int) -> Any:
    """Return a compiled pattern, where codes are kept by the one that `re` has made of it."""
    if not begun():
        return re.compile(pattern, flags)
    try:
        flags_, code, groups, names, numbers = kept((pattern, flags), lambda: _code(pattern, flags))
        return _RE._compiler._sre.compile(pattern, flags_, array("I", code).tolist(), groups, names, numbers)
    except (AttributeError, TypeError, ValueError, OverflowError, RuntimeError):
        # Another Python may go another way inside.
        return re.compile(pattern, flags)


def _code(pattern: str | bytes, flags: int) -> tuple[int, bytes, int, dict[str, int], tuple[str | None, ...]]:
    # What `re.compile` does, up to its last step.
    parsed = _RE._parser.parse(pattern, flags)
    code = _RE._compiler._code(parsed, flags)
    groups: int = parsed.state.groups
    names: dict[str, int] = dict(parsed.state.groupdict)
    of = {number: name for name, number in names.items()}
    return (
        int(flags | parsed.state.flags), array("I", map(int, code)).tobytes(), groups - 1, names,
        tuple(of.get(number) for number in range(groups)),
    )  # fmt: skip
