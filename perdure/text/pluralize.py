"""Numbers with their nouns: "1 memory", "2 memories"."""

from __future__ import annotations


def counted(number: int, one: str, many: str = "") -> str:
    """Return a number with its noun; without `many`, the plural is regular English."""
    if number == 1:
        return f"1 {one}"
    regular = f"{one[:-1]}ies" if one.endswith("y") and one[-2:-1] not in "aeiou" else f"{one}s"
    return f"{number:,} {many or regular}"
