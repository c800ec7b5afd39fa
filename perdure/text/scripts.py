"""Which characters belong to scripts that are written without spaces between words."""

from __future__ import annotations

from bisect import bisect_right
from functools import lru_cache

_RANGES: tuple[tuple[int, int, str], ...] = (
    (0x0E00, 0x0E7F, "thai"),
    (0x0E80, 0x0EFF, "lao"),
    (0x1000, 0x109F, "myanmar"),
    (0x1100, 0x11FF, "hangul"),
    (0x1780, 0x17FF, "khmer"),
    (0x2E80, 0x2FDF, "han"),  # radicals
    (0x3005, 0x3007, "han"),  # iteration mark, closing mark, zero
    (0x3021, 0x3029, "han"),  # Suzhou numerals
    (0x3031, 0x3035, "kana"),
    (0x3038, 0x303B, "han"),
    (0x3041, 0x3096, "kana"),
    (0x3099, 0x309A, "kana"),  # combining voiced sound marks
    (0x309D, 0x309F, "kana"),
    (0x30A1, 0x30FA, "kana"),
    (0x30FC, 0x30FF, "kana"),  # with the prolonged sound mark; U+30FB is punctuation
    (0x3131, 0x318E, "hangul"),
    (0x31F0, 0x31FF, "kana"),
    (0x3400, 0x4DBF, "han"),
    (0x4E00, 0x9FFF, "han"),
    (0xA960, 0xA97C, "hangul"),
    (0xA9E0, 0xA9FE, "myanmar"),
    (0xAA60, 0xAA7F, "myanmar"),
    (0xAC00, 0xD7A3, "hangul"),
    (0xD7B0, 0xD7FB, "hangul"),
    (0xF900, 0xFAFF, "han"),
    (0xFF66, 0xFF9F, "kana"),  # half-width
    (0xFFA0, 0xFFDC, "hangul"),  # half-width
    (0x1AFF0, 0x1B16F, "kana"),
    (0x20000, 0x323AF, "han"),
)
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
