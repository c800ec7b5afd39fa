"""Values that were broken over lines, set apart by hyphens, or written in base64: read as they were before."""

from __future__ import annotations

import binascii
import re
from codecs import getincrementaldecoder
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from perdure.regex import lazy
from perdure.secrets.shapes import is_slug, tokens
from perdure.secrets.views import SHORTEST, Edit, Span, View

_VALUE = r"[^\s\"'`<>|,;:()\[\]{}\\\x80-\U0010ffff"
# What goes on behind a line end: "abc" + "def", a line end alone, one behind a backslash, an equals sign or a hyphen.
# A word of prose is looked at only behind a sign that the line goes on.
_REST = lazy(
    r"\n(?:(?<=[=\\+\"'-]\n)|(?<=[=\\+\"'-]\r\n)|(?![ \t]{0,24}(?:[A-Z]?[a-z]{1,15}|[A-Z]{1,15})[.,!?]{0,2}\s))"
    rf"[ \t>|#]{{0,24}}(?:[+.]\s{{0,3}})?[\"']?(?P<rest>{_VALUE}]{{2,}}+)(?!\s{{0,3}}[(:=])"
)
_HEAD = lazy(rf"(?<!{_VALUE}=])(?P<head>{_VALUE}=]{{2,}}+)(?P<gap>(?:=|[\"']?[ \t]{{0,3}}[+.\\]?)[ \t\r]{{0,3}})\Z")
_GOES_ON = lazy(r"[=\\+\"'-]\r?\Z")
_LOOK = 32
_REACH = 64
_FAR = 500
"""Characters around a line end in which what tells that a value is a secret may stand."""
_SURE = 6
"""Characters on each side of a line end by whose form alone they belong together."""
_MIXED = lazy(
    r"(?=[^\d]{0,64}\d)(?:(?=[^a-z]{0,64}[a-z])(?=[^A-Z]{0,64}[A-Z])|[0-9a-f-]+\Z|[0-9A-Z]+\Z|(?:[^\d]{0,16}\d){4})"
)
_TURN = lazy(r"[a-z](?=[A-Z0-9])|[A-Z](?=[0-9])|[0-9](?=[A-Za-z])")
_LETTER = lazy(r"[^\W\d_]")
_MARK = lazy(r"[\d!#$%&*+@^~]")
_NUMBER = lazy(r"[0-9-]+\Z")
_ASSIGNED = lazy(r"[\w.-]+=")
_END = ".,!?"

_GROUPS = lazy(r"(?<![\w.:~-])(?=[\w.:~-]{16})[\w.:~]++(?:-[\w.:~]++)+", re.ASCII)
_RUN = lazy(r"[A-Za-z0-9+/_-]{6,}+={0,2}")
_MORE = lazy(r"(?:\r?\n[ \t>]{0,8}[A-Za-z0-9+/_-]{4,}+={0,2})++")
_PROBE = 32
_URL_SAFE = str.maketrans("-_", "+/")


class _Gap(NamedTuple):
    """What stands between the parts of a value that goes on in the next line."""

    start: int
    end: int
    sure: bool  # they belong together also if a hyphen at the end of the line is one of the value's
    hyphen: bool  # there is such a hyphen


def joined(text: str) -> Iterator[View]:
    """Yield readings in which broken lines are joined: with the hyphens at their ends, and without.

    Each is of the surroundings of some line ends; what is far from all of them has been read.
    """
    for start, end, gaps in _parts(text, _gaps(text)):
        part = text[start:end]
        yield View(part, ((gap.start - start, gap.end - start, "") for gap in gaps if gap.sure), start)
        if any(gap.hyphen for gap in gaps):
            yield View(part, ((gap.start - gap.hyphen - start, gap.end - start, "") for gap in gaps), start)


def _parts(text: str, gaps: Iterable[_Gap]) -> Iterator[tuple[int, int, list[_Gap]]]:
    """Yield parts of a text that lie apart, each with the gaps in it."""
    near: list[_Gap] = []
    for gap in gaps:
        if near and gap.start - near[-1].end > 2 * _FAR:
            yield max(0, near[0].start - _FAR), near[-1].end + _FAR, near
            near = []
        near.append(gap)
    if near:
        yield max(0, near[0].start - _FAR), near[-1].end + _FAR, near


def ungrouped(page: View) -> Iterator[Span]:
    """Yield the tokens that hyphens set apart in groups; the first hyphen may belong to a token."""
    found = (_GROUPS.finditer(page.text, *place) for place in page.places(word for word in page.long if "-" in word))
    groups = [match for matches in found for match in matches if not is_slug(match[0])]
    for count in (0, 1):
        forms = [_without_hyphens(match[0], count) for match in groups]
        if any(tokens(" ".join(forms), forms)):
            for match, form in zip(groups, forms, strict=True):
                yield from (Span(*match.span(), found.kind) for found in tokens(form, [form]))


def _without_hyphens(text: str, first: int) -> str:
    """Return a text without its hyphens but the first so many."""
    parts = text.split("-")
    return "-".join((*parts[:first], "".join(parts[first:])))


def decoded(page: View) -> Iterator[View]:
    """Yield the reading in which base64 that holds a text is this text."""
    words = page.words if "=" in page.text else page.long
    words = [word for word in words if (len(word) >= SHORTEST or "=" in word) and not word.islower()]
    if words:
        yield View(page.text, _decoded(page, words))


def _gaps(text: str) -> Iterator[_Gap]:
    for match in _REST.finditer(text):
        at, rest = match.start(), match["rest"][:_REACH].rstrip(_END)
        before = text[max(0, at - _LOOK) : at]
        # A sign at the end of the line says that it goes on, whatever follows.
        goes_on = _GOES_ON.search(before) is not None
        if not goes_on and rest.isalpha() and not _TURN.search(rest):
            continue
        head = _HEAD.search(before)
        if head is not None:
            hyphen = before.rstrip()[-1] == "-" and head["head"][-2].isalnum()
            sure = goes_on and not hyphen and len(rest) >= _SURE
            sure = sure or _belong(before[: head.start()], head["head"], rest)
            if sure or hyphen:
                yield _Gap(at - len(head["gap"]), match.start("rest"), sure, hyphen)


def _belong(words: str, head: str, rest: str) -> bool:
    """Return whether the end of a line, behind other words, and the beginning of the next look like one value."""
    if _NUMBER.match(rest):
        # Numbers below each other are a column.
        return _NUMBER.match(head) is not None and _LETTER.search(words) is not None
    if min(len(head), len(rest)) >= _SURE and (_MIXED.match(rest) or len(_TURN.findall(rest)) > 1):
        return True
    marked = all(_MARK.search(part) and _LETTER.search(part) for part in (head, rest))
    return marked and len(rest) > 2 and not _ASSIGNED.match(rest)


def _decoded(page: View, words: Iterable[str]) -> Iterator[Edit]:
    """Yield the runs of base64 in these words that hold a text, with this text."""
    text, done = page.text, 0
    for place in page.places(words):
        for run in _RUN.finditer(text, *place):
            start, end = run.span()
            if start < done or run[0].islower() or (end - start < SHORTEST and text[end - 1] != "="):
                continue
            if _text(run[0][:_PROBE].rstrip("="), whole=False) is None:
                continue
            more = _MORE.match(text, end)
            for stop in (more.end(), end) if more is not None else (end,):
                inner = _text("".join(text[start:stop].replace(">", " ").split()).rstrip("="), whole=True)
                if inner is not None:
                    yield start, stop, inner
                    done = stop
                    break


def _text(run: str, *, whole: bool) -> str | None:
    """Return the text that a run of base64 (no signs at its end) holds, or None; of a part, the end may be cut."""
    if not whole:
        run = run[: len(run) // 4 * 4]
    try:
        raw = binascii.a2b_base64(run.translate(_URL_SAFE) + "=" * (-len(run) % 4), strict_mode=True)
        text = getincrementaldecoder("utf-8")().decode(raw, final=whole)
    except ValueError:
        return None
    return text if text and "".join(text.split()).isprintable() else None
