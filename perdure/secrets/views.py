"""Other readings of a text, each with the way back to the places of the text itself.

A secret that is wrapped (in full-width digits, look-alike letters, base64, two lines) is found in a reading without
the wrapping, and taken out of the text where it stands.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from functools import cached_property
from typing import NamedTuple

from perdure.regex import lazy
from perdure.text.lexicon import table
from perdure.text.normalise import UNSEEN_CLASS

SHORTEST = 16
"""Characters without white space that every token has at least."""


class Span(NamedTuple):
    """A secret in a text: from `start` up to `end`, and what it is."""

    start: int
    end: int
    kind: str


def lowered(text: str) -> str:
    """Return a text in lower case, each character at its place."""
    # Only one character gets longer when made lower; with it, positions would no longer agree.
    return text.replace("\u0130", "I").lower()


Edit = tuple[int, int, str]
"""What stands from here to there, and what is read instead of it."""


class View:
    """A text as it is read; `edited` if that differs from how it is written."""

    def __init__(self, text: str, edits: Iterable[Edit] = (), offset: int = 0) -> None:
        """Read a text, or the part of one that begins at `offset`, with edits in order, none over another."""
        self._offset = offset
        self._begins: list[int] = []  # of each edit in the reading
        self._ends: list[int] = []
        self._sources: list[tuple[int, int]] = []  # and where it stands in the text
        parts: list[str] = []
        done = length = 0
        for start, end, new in edits:
            parts += (text[done:start], new)
            length += start - done
            self._begins.append(length)
            length += len(new)
            self._ends.append(length)
            self._sources.append((start, end))
            done = end
        self.edited = bool(parts)
        self.text = "".join((*parts, text[done:])) if parts else text

    @cached_property
    def words(self) -> list[str]:
        """What stands between white space."""
        return self.text.split()

    @cached_property
    def long(self) -> list[str]:
        """Those of them that are long enough for a token."""
        return [word for word in self.words if len(word) >= SHORTEST]

    @cached_property
    def lower(self) -> str:
        """The text in lower case, each character at its place."""
        return lowered(self.text)

    def places(self, words: Iterable[str]) -> Iterator[tuple[int, int]]:
        """Yield where words of the text stand that are given in its order."""
        at = 0
        for word in words:
            start = self.text.index(word, at)
            at = start + len(word)
            yield start, at

    @cached_property
    def vocabulary(self) -> str:
        """Its words in lower case, each once: the quickest way to see what a text has not."""
        return lowered(" ".join(set(self.words)))

    def place(self, span: Span) -> Span:
        """Return where a span of the reading stands in the text; of what an edit made, all that it was made of."""
        if not self.edited and not self._offset:
            return span
        start, end = self._source(span.start)[0], self._source(span.end - 1)[1]
        return Span(start + self._offset, end + self._offset, span.kind)

    def touched(self, spans: Iterable[Span]) -> Iterator[Span]:
        """Yield, as they stand in the text, those spans of the reading that only an edit has brought about."""
        for span in spans:
            # An edit that took something out has no width: it counts only inside the span.
            first = bisect_right(self._ends, span.start)
            if first < len(self._begins) and self._begins[first] < span.end:
                yield self.place(span)

    def _source(self, place: int) -> tuple[int, int]:
        at = bisect_right(self._begins, place) - 1
        if at < 0:
            return place, place + 1
        (start, end), begin = self._sources[at], self._begins[at]
        if place >= self._ends[at]:
            there = end + place - self._ends[at]
        elif end - start == self._ends[at] - begin:
            there = start + place - begin
        else:
            return start, end
        return there, there + 1


# Letters of other scripts by the ASCII that they look like.
_LOOK_OF = {ord(look): row[0] for row in table("secrets", "letters")["looks"].split() for look in row[1:]}
_ALIEN = "".join(map(chr, _LOOK_OF))
_FOREIGN = lazy(f"[{_ALIEN}]")
_MIXED = lazy(rf"[0-9A-Za-z_](?:(?=[{_ALIEN}])|(?<=[{_ALIEN}].))")
# Only whole words that come out as ASCII: a Russian word with a digit stays what it is.
_MIXED_WORD = lazy(rf"(?<!\w)[0-9A-Za-z_]*+[{_ALIEN}][0-9A-Za-z_{_ALIEN}]*+(?!\w)")

# Forms of other characters, as Unicode's compatibility mappings have them: full-width, styled, circled, raised. Spaces,
# fractions and ellipses are not among them, and the punctuation of Chinese and Japanese only behind another form.
_FORMS = (
    "\u00aa\u00b2\u00b3\u00b9\u00ba\u02b0-\u02b8\u02e1-\u02e3\u1d2c-\u1d65\u2024\u2070-\u209c\u2100-\u2149\u2160-\u217f"
    "\u2460-\u24ea\ufb00-\ufb06\ufe50-\ufe6b\uff02-\uff07\uff0a\uff0b\uff0d-\uff19\uff1c-\uff1e\uff20-\uff60\uff66-\uff9f"
    "\U0001d400-\U0001d7ff\U0001f130-\U0001f149\U0001fbf0-\U0001fbf9"
)
_ODD = lazy(rf"[{UNSEEN_CLASS}{_FORMS}][{UNSEEN_CLASS}{_FORMS}\uff01-\uff5e]*+")
_UNSEEN = lazy(f"[{UNSEEN_CLASS}]+")
_LATIN = (
    "\\0-\u00a9\u00ab\u00ac\u00ae-\u00b1\u00b4-\u00b8\u00bb-\u0130\u0132-\u024f\u1e00-\u1eff"
    "\u2000-\u200a\u2010-\u2023\u2026-\u2029\u202f\u20a0-\u20bf"
)
# Most texts hold nothing beyond Latin letters and typographic punctuation; in most others nothing is another's form.
_BEYOND_LATIN = lazy(f"[^{_LATIN}]")
_UNCOMMON = lazy(
    f"[^{_LATIN}\u0131\u0370-\u0482\u048a-\u0590\u05c0-\u0610\u0660-\u066f\u0671-\u1809\u180f-\u1aaf\u3001-\ud7ff\uff01\uff08\uff09\uff0c\uff1a\uff1b\uff1f]"
)


def plain(text: str) -> View:
    """Return a text as it reads with ordinary characters: none without width, full-width, styled or of another script.

    It costs a text in ASCII nothing, and others a look at each character.
    """
    if text.isascii() or not _BEYOND_LATIN.search(text):
        return View(text)
    view = View(text, _edits(text) if _UNCOMMON.search(text) else ())
    if _FOREIGN.search(view.text) and _MIXED.search(view.text):
        view.text = _MIXED_WORD.sub(_look, view.text)  # as long as before, so every place stays
    return view


def _edits(text: str) -> Iterator[Edit]:
    for match in _ODD.finditer(text):
        start, end = match.span()
        # A mark belongs to the letter in front of it: together they may be one character.
        start -= start > 0 and unicodedata.combining(text[start]) > 0
        read = _UNSEEN.sub("", unicodedata.normalize("NFKC", text[start:end]))
        if read != text[start:end]:
            yield start, end, read


def _look(match: re.Match[str]) -> str:
    return match[0].translate(_LOOK_OF)
