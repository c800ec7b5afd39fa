"""Blocks between fences, as Markdown has them: a fence ends by its own sign alone, and by no fewer of these."""

from __future__ import annotations

import re
from collections.abc import Iterator

from perdure.regex import lazy

_FENCE = lazy(r"(?P<before>^[ \t>]*)?(?P<marks>`{3,}|(?(before)~{3,}|(?!)))", re.MULTILINE)


def fenced(text: str, at: int = 0) -> Iterator[tuple[int, int]]:
    """Yield where blocks between fences begin and end, from a place on; one that is not closed ends with the text."""
    missing = set[str]()  # fences that no line is, further on
    while (fence := _FENCE.search(text, at)) is not None:
        at = _end(text, fence, missing)
        yield fence.start("marks"), at


def outside(text: str) -> str:
    """Return a text without its blocks between fences."""
    kept, at = [], 0
    for start, end in fenced(text):
        kept.append(text[at:start])
        at = end
    return "\n".join([*kept, text[at:]])


def _end(text: str, fence: re.Match[str], missing: set[str]) -> int:
    marks, begins = fence["marks"], fence.end()
    same = rf"{re.escape(marks[0])}{{{len(marks)},}}"
    if text.find(marks[0], begins, (text.find("\n", begins) + 1 or len(text))) >= 0:
        # Within a line.
        found = re.compile(same).search(text, begins)
    else:
        # Where no line is a fence, some clients have put it behind the last one.
        line = rf"(?m)^[ \t>]{{0,{len(fence['before'] or '') + 3}}}{same}[ \t\r]*$"
        found = None if line in missing else re.compile(line).search(text, begins)
        if found is None:
            missing.add(line)
            found = re.compile(rf"(?m){same}[ \t\r]*$").search(text, begins)
    return found.end() if found else len(text)
