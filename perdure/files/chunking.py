"""From a Markdown file to chunks: what is found, shown and cited as one.

The rules:

1.  A heading starts a new chunk, unless the chunk before it is less than half full and the whole section
    still fits. A heading of level 1 always starts one. Headings with nothing between them stay together.
2.  A section that does not fit is cut between blocks; a list or quote that does not fit, between the blocks in it;
    any other block between lines; and a line that does not fit between words. The next chunk then repeats the last
    whole lines (of a long line: the last words) within the limit of the overlap. There is no overlap at a heading
    that starts a chunk, none between a long line and its neighbours, and a chunk is never repeated as a whole.
3.  Blank lines belong to the chunk before them, those at the top to the first chunk, as far as they fit.

What a chunk holds depends on what stands before it and on the section it ends with. So an append changes the last
chunk at most, unless the file ended with a heading or with a fence, an HTML block or front matter left open.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING

from perdure.errors import InputError
from perdure.text.tokens import QUARTERS, token_quarters

if TYPE_CHECKING:
    from markdown_it import MarkdownIt

MAX_NESTING = 40
"""Levels of quotes and lists that are followed; what is nested deeper counts to the block around it."""
MAX_TITLE = 120
"""Characters of a heading that a section path holds."""
_WHOLE = {"paragraph_open", "heading_open", "fence", "code_block", "html_block"}


@dataclass(frozen=True, slots=True)
class Chunking:
    """How large chunks are."""

    tokens: int = 400  # estimated tokens (`perdure.text.tokens`) of a chunk at most
    overlap: int = 80  # estimated tokens at most that a chunk repeats of the one before

    def __post_init__(self) -> None:
        """Check the sizes."""
        if self.tokens < 1:
            raise InputError(f"chunks of {self.tokens} tokens are empty; give 1 or more")
        if not 0 <= self.overlap < self.tokens:
            raise InputError(f"an overlap of {self.overlap} tokens is out of range; give 0 to {self.tokens - 1}")


DEFAULT = Chunking()


@dataclass(frozen=True, slots=True)
class Chunk:
    """A part of a file."""

    start_line: int  # its first line; the first of the file is 1
    end_line: int  # its last line, included. A piece of a long line begins and ends with that line
    section: str  # the headings above its first content, outermost first: "A > B"; empty above the first heading
    text: str  # its lines, joined by newlines


def chunk_markdown(text: str, chunking: Chunking = DEFAULT) -> list[Chunk]:
    r"""Cut Markdown into chunks.

    Lines end at "\n"; a byte order mark at the start and "\r" at the end of a line are left out. Front matter
    (from `---` in the first line to the next `---`) is one block. Takes time linear in the length of the text.

    Returns chunks in the order of the file, which hold each line that is not blank; none for a blank file.
    """
    lines = [line.removesuffix("\r") for line in text.removeprefix("\ufeff").split("\n")]
    if not lines[-1]:
        lines.pop()  # What follows the last line end is no line.
    cutter = _Cutter(lines, chunking)
    for section in _sections(_blocks(lines)):
        cutter.take(section)
    return cutter.finish()


@dataclass(frozen=True, slots=True)
class _Block:
    """Lines from `start` up to `end`, counted from 0.

    `level` is 0 unless it is a heading; `parts` is where the blocks in a list or quote begin.
    """

    start: int
    end: int
    level: int = 0
    title: str = ""
    parts: list[int] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class _Section:
    """Headings with nothing between them, and what follows up to the next heading."""

    path: str
    blocks: list[_Block]

    @property
    def start(self) -> int:
        return self.blocks[0].start

    @property
    def end(self) -> int:
        return self.blocks[-1].end


class _Cutter:
    """Makes chunks of sections, which come in order. Sizes are in quarters of a token."""

    def __init__(self, lines: Sequence[str], chunking: Chunking) -> None:
        self._lines = lines
        self._limit = chunking.tokens * QUARTERS
        self._overlap = chunking.overlap * QUARTERS
        self._sums = list(accumulate((token_quarters(line) + 1 for line in lines), initial=0))
        self._chunks: list[Chunk] = []
        self._done = 0  # lines before this one are in a chunk
        self._open: tuple[int, int, str] | None = None  # start, end and path of whole sections

    def take(self, section: _Section) -> None:
        if self._open is not None:
            start, end, path = self._open
            small = 2 * self._size(start, end) < self._limit
            if small and section.blocks[0].level != 1 and self._fits(start, section.end):
                self._open = start, section.end, path
                return
        self._close()
        if self._fits(section.start, section.end):
            self._open = section.start, section.end, section.path
        else:
            self._split(section)

    def finish(self) -> list[Chunk]:
        self._close()
        return self._chunks

    def _close(self) -> None:
        if self._open is not None:
            self._add(*self._open)
            self._open = None

    def _size(self, start: int, end: int) -> int:
        return self._sums[end] - self._sums[start] - 1

    def _fits(self, start: int, end: int) -> bool:
        return self._size(start, end) <= self._limit

    def _split(self, section: _Section) -> None:
        start = end = -1  # of the chunk that is being filled; -1: there is none
        for first, last in self._units(section.blocks):
            if start >= 0 and self._fits(start, last):
                end = last
                continue
            if start >= 0:
                self._add(start, end, section.path)
            if self._fits(first, last):
                start, end = first if start < 0 else self._repeated(first, last), last
            else:
                self._add_pieces(first, section.path)
                start = -1
        if start >= 0:
            self._add(start, end, section.path)

    def _units(self, blocks: list[_Block]) -> Iterator[tuple[int, int]]:
        """Yield what stays whole: blocks, else the blocks in them, else lines."""
        for block in blocks:
            if self._fits(block.start, block.end):
                yield block.start, block.end
                continue
            for part in pairwise([block.start, *block.parts, block.end]):
                start, end = _trimmed(self._lines, *part)
                if not self._fits(start, end):
                    yield from ((at, at + 1) for at in range(start, end) if self._lines[at].strip())
                elif start < end:
                    yield start, end

    def _repeated(self, first: int, last: int) -> int:
        """Return where a chunk of the lines from `first` up to `last` begins with its overlap."""
        # Never as far back as the chunk before begins: with all of it these lines did not fit.
        fitting = self._sums[last] - 1 - self._limit
        repeated = self._sums[self._done] - 1 - self._overlap
        start = bisect_left(self._sums, max(fitting, repeated))
        return next(at for at in range(start, first + 1) if self._lines[at].strip())

    def _add(self, start: int, end: int, path: str) -> None:
        while start > self._done and self._fits(start - 1, end):
            start -= 1
        while end < len(self._lines) and not self._lines[end].strip() and self._fits(start, end + 1):
            end += 1
        self._chunks.append(Chunk(start + 1, end, path, "\n".join(self._lines[start:end])))
        self._done = end

    def _add_pieces(self, at: int, path: str) -> None:
        for piece in _pieces(self._lines[at], self._limit, self._overlap):
            if piece.strip():
                self._chunks.append(Chunk(at + 1, at + 1, path, piece))
        self._done = at + 1


def _pieces(line: str, limit: int, overlap: int) -> Iterator[str]:
    """Cut a line, at a space where there is one, into pieces that repeat the end of the one before."""
    start = done = 0
    while done < len(line):
        window = line[start : start + limit]
        end = start + _prefix(window, limit)
        if end < len(line):
            # The last space in the second half; without one the piece ends where it is full.
            end = line.rfind(" ", max(done, (start + end) // 2), end) + 1 or end
        yield line[start:end]
        tail = line[max(start, end - overlap) : end]
        repeated = _prefix(tail[::-1], overlap)
        space = tail.find(" ", len(tail) - repeated)
        start = end - repeated if space < 0 else end - len(tail) + space + 1
        done = end


def _prefix(text: str, limit: int) -> int:
    """Return how many of the first characters of a text fit into so many quarters of a token."""
    return bisect_right(range(len(text) + 1), limit, key=lambda length: token_quarters(text[:length])) - 1


def _sections(blocks: list[_Block]) -> Iterator[_Section]:
    titles: dict[int, str] = {}
    section = _Section("", [])
    for block in blocks:
        if block.level:
            titles = {level: title for level, title in titles.items() if level < block.level}
            titles[block.level] = block.title
            path = " > ".join(filter(None, titles.values()))
            headed = bool(section.blocks) and section.blocks[-1].level > 0 and block.level > 1
            if section.blocks and not headed:
                yield section
            section = _Section(path, section.blocks if headed else [])
        section.blocks.append(block)
    if section.blocks:
        yield section


def _blocks(lines: Sequence[str]) -> list[_Block]:
    """Return the outermost blocks; together they hold every line that is not blank."""
    top = _front_matter(lines)
    found = [_Block(0, 0)] if top else []
    # A lone carriage return is a line end to the parser, but not to us.
    tokens = _parser().parse("\n".join(lines[top:]).replace("\r", " "))
    for at, token in enumerate(tokens):
        if token.map is None:
            continue
        start = top + token.map[0]
        if token.level:
            if token.type in _WHOLE:
                found[-1].parts.append(start)
        elif token.type == "heading_open":
            title = " ".join(tokens[at + 1].content.split())
            found.append(_Block(start, start, int(token.tag[1]), title[:MAX_TITLE]))
        else:
            found.append(_Block(start, start))
    blocks = []
    # A block goes on to the next one: so no line is lost, whatever the parser says about ends.
    for block, following in pairwise([*found, _Block(len(lines), len(lines))]):
        start, end = _trimmed(lines, block.start, following.start)
        if start < end:
            blocks.append(replace(block, start=start, end=end))
    return blocks


def _trimmed(lines: Sequence[str], start: int, end: int) -> tuple[int, int]:
    """Return a range without the blank lines at its edges."""
    while start < end and not lines[start].strip():
        start += 1
    while start < end and not lines[end - 1].strip():
        end -= 1
    return start, end


def _front_matter(lines: Sequence[str]) -> int:
    """Return how many lines the front matter has."""
    if not lines or lines[0].rstrip() != "---":
        return 0
    return next((at + 1 for at in range(1, len(lines)) if lines[at].rstrip() == "---"), 0)


@cache
def _parser() -> MarkdownIt:
    from markdown_it import MarkdownIt

    # Tables and reference definitions are paragraphs here: lines like others, with the same limits.
    parser = MarkdownIt("commonmark", {"maxNesting": MAX_NESTING}).disable("reference")
    parser.core.ruler.enableOnly(["normalize", "block"])
    return parser
