"""Secrets in tables, of Markdown or separated by commas, semicolons or tabs: the heading of their column names them."""

from __future__ import annotations

import re
from collections.abc import Generator, Iterable, Iterator, Mapping
from typing import NamedTuple

from perdure.regex import lazy
from perdure.secrets import filters as judge
from perdure.secrets.names import Name
from perdure.secrets.shapes import Span

MAX_LINE = 2_000
"""Characters of the heading of a table."""
_DELIMITERS = "|\t;,"
"""The first of them that a heading has sets its cells apart."""
_CELLS = {
    char: lazy(
        rf"(?:^|{re.escape(char)})(?P<cell>[ ]*\"(?:[^\"]|\"\")*+\"[ ]*(?={re.escape(char)}|$)|[^{re.escape(char)}]*+)"
    )
    for char in _DELIMITERS
}
_ENDS_CELL = lazy(r"[\"'`*_ ]{0,4}(?:[|\t;,]|\r?(?:\n|\Z))")
_OF_PROSE = ";,"
_LISTED = lazy(r"'|\A\s|\".*[;,] ")
"""Quoted names one after another are code."""
_HEADING = lazy(r"[\w.#/()-]{1,40}(?: [\w.#/()-]{1,40}){0,2}\Z")
"""A cell of a heading: three words at the most."""
_MAX_ROWS = 5_000
_SHORTEST = 4
_RULE = lazy(r"[\s|:-]+\Z")
_AROUND = " \t\r\"'`*_"


class Heading(NamedTuple):
    """A name of secrets that ends a cell: where it stands, and which it is."""

    start: int
    end: int
    name: Name


class _Table(NamedTuple):
    """What the heading of a table tells of its lines."""

    delimiter: str
    width: int
    columns: Mapping[int, Name]


def ends_cell(text: str, end: int) -> bool:
    """Return whether a cell of a table may end behind a name that ends at `end`."""
    return _ENDS_CELL.match(text, end) is not None


def table_secrets(text: str, headings: Iterable[Heading]) -> Iterator[Span]:
    """Yield what stands in the columns of tables whose headings name secrets."""
    lines: dict[int, list[Heading]] = {}
    for heading in headings:
        lines.setdefault(text.rfind("\n", 0, heading.start) + 1, []).append(heading)
    done = 0
    for start in sorted(lines):
        # A line of a table that is read already heads none.
        if start >= done:
            end = _line_end(text, start)
            table = _table(text[start:end], start, lines[start])
            if table is not None:
                done = yield from _secrets(text, end, table)


def _table(line: str, start: int, headings: Iterable[Heading]) -> _Table | None:
    """Return what a line heads, if it heads a table with secrets; it stands at `start` of the text."""
    delimiter = next((char for char in _DELIMITERS if char in line), "")
    if not delimiter or len(line) > MAX_LINE:
        return None
    cells = _cells(line, delimiter)
    named = [_HEADING.match(line[begin:stop]) is not None for begin, stop in cells]
    if delimiter in _OF_PROSE and (_LISTED.search(line) or not all(named)):
        return None
    places = {start + stop: place for place, (_, stop) in enumerate(cells) if named[place]}
    columns = {places[heading.end]: heading.name for heading in headings if heading.end in places}
    return _Table(delimiter, len(cells), columns) if columns else None


def _secrets(text: str, end: int, table: _Table) -> Generator[Span, None, int]:
    """Yield the secrets in the lines below a heading that ends at `end`; return where the table ends."""
    for _ in range(_MAX_ROWS):
        start, end = end + 1, _line_end(text, end + 1)
        line = text[start : min(end, start + MAX_LINE)]
        if table.delimiter not in line:
            return start
        cells = _cells(line, table.delimiter)
        # Prose has commas, too, but not always as many.
        if table.delimiter not in _OF_PROSE or len(cells) == table.width:
            for place, name in table.columns.items():
                begin, stop = cells[place] if place < len(cells) else (0, 0)
                if _is_secret(line[begin:stop], name):
                    yield Span(start + begin, start + stop, name.kind)
    return end


def _cells(line: str, delimiter: str) -> list[tuple[int, int]]:
    """Return where the texts of the cells begin and end."""
    cells: list[tuple[int, int]] = []
    for match in _CELLS[delimiter].finditer(line):
        start, end = match.span("cell")
        start += len(match["cell"]) - len(match["cell"].lstrip(_AROUND))
        cells.append((min(start, end), max(start, end - len(match["cell"]) + len(match["cell"].rstrip(_AROUND)))))
    return cells


def _line_end(text: str, start: int) -> int:
    end = text.find("\n", start)
    return len(text) if end < 0 else end


def _is_secret(cell: str, name: Name) -> bool:
    if len(cell) < _SHORTEST or _RULE.match(cell) or judge.is_placeholder(cell) or judge.is_code(cell):
        return False
    if name.kind == "pin":
        return name.value.compiled.match(cell) is not None
    if " " in cell:
        return name.chosen and judge.is_passphrase(cell, told=True, english=name.english)
    return judge.is_marked(cell) if name.chosen else name.value.compiled.match(cell) is not None and judge.is_made(cell)
