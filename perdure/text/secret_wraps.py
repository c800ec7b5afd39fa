"""Values that were broken over lines, as mail programs, terminals and programmers do with long ones."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator

from perdure.text.secret_shapes import Span

# What goes on behind a line end: "abc" + "def", a line end alone, one behind a backslash or an equals sign.
_REST = re.compile(r"\n[ \t>|#]{0,24}(?:[+.]\s{0,3})?[\"']?(?P<rest>[\w+/=.~%-]{6,}+)(?!\s{0,3}[(:=])")
_HEAD = re.compile(r"[\w+/.~%$-]{6}(?P<gap>(?:=|[\"']?\s{0,3}[+.\\]?)\s{0,3})\Z")
_LOOK = 24
_SIGNS = ("=", "\\", "+", "'", '"')
_MIXED = re.compile(
    r"(?=[^\d]{0,64}\d)(?:(?=[^a-z]{0,64}[a-z])(?=[^A-Z]{0,64}[A-Z])|[0-9a-f-]+\Z|[0-9A-Z]+\Z|(?:[^\d]{0,16}\d){4})"
)


def unfolded(text: str, detector: Callable[[str], Iterable[Span]]) -> Iterator[Span]:
    """Yield the secrets that a detector finds once broken lines are joined again.

    Lines are joined where a line ends in a run of characters of tokens and the next begins with one that looks
    generated: with many digits, or with some among hexadecimal digits, or among capitals and small letters.
    """
    parts: list[str] = []
    places: list[int] = []  # where each part begins in the joined text
    shifts: list[int] = []  # and how far it lay behind that in the text
    done = length = 0
    for start, end in _gaps(text):
        parts.append(text[done:start])
        length += start - done
        places.append(length)
        shifts.append(end - length)
        done = end
    if not parts:
        return
    for start, end, kind in detector("".join((*parts, text[done:]))):
        first, last = bisect_right(places, start), bisect_right(places, end - 1)
        if first != last:
            yield Span(start + (shifts[first - 1] if first else 0), end + shifts[last - 1], kind)


def _gaps(text: str) -> Iterator[tuple[int, int]]:
    for match in _REST.finditer(text):
        at = match.start()
        # A sign at the end of the line says that it goes on, whatever follows.
        goes_on = text[at - 1 : at] in _SIGNS or text[at - 2 : at] == "=\r"
        if not goes_on and _MIXED.match(match["rest"].rstrip(".")) is None:
            continue
        before = max(0, at - _LOOK)
        head = _HEAD.search(text[before:at])
        if head is not None:
            yield before + head.start("gap"), match.start("rest")
