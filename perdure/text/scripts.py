"""Which characters belong to scripts that are written without spaces between words."""

from __future__ import annotations

from bisect import bisect_right
from functools import lru_cache

from perdure.text.lexicon import table

_RANGES: list[tuple[int, int, str]] = table("text", "scripts")["ranges"]
_STARTS = [start for start, _, _ in _RANGES]

DENSE_CLASS = "".join(f"{chr(start)}-{chr(end)}" for start, end, _ in _RANGES)
"""All these characters, as the inside of a character class of a regular expression."""


@lru_cache(maxsize=8192)
def dense_script(char: str) -> str | None:
    """Return the script of a character ("han", "thai", ...) if it is written without spaces, else None.

    Korean does put spaces between words, but attaches particles to them, so "hangul" counts.
    """
    code = ord(char)
    at = bisect_right(_STARTS, code) - 1
    if at < 0:
        return None
    _, end, script = _RANGES[at]
    return script if code <= end else None
