"""Other readings of a text, each with the way back to the places of the text itself.

A secret that is wrapped (in full-width digits, look-alike letters, base64, two lines) is found in a reading without
the wrapping, and taken out of the text where it stands.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from functools import cached_property

from perdure.secrets.shapes import SHORTEST, Span, lowered

Edit = tuple[int, int, str]
"""What stands from here to there, and what is read instead of it."""


class View:
    """A text as it is read.

    Attributes:
        text: the reading.
        edited: whether it differs from the text.
    """

    def __init__(self, text: str, edits: Iterable[Edit] = (), offset: int = 0) -> None:
        """Read `text` with these edits.

        Args:
            text: a text, or a part of one.
            edits: in order, none over another.
            offset: where the part begins in the text.
        """
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
