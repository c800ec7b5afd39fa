"""Secrets that are known by the name in front of them, or behind: "my password is ...", `API_KEY=...`.

In tables, of Markdown or separated by commas, semicolons or tabs, the heading of a column names what stands below.

Names are found with `str.find`; only there patterns are matched, and they look a bounded way ahead.
"""

from __future__ import annotations

import re
from collections.abc import Generator, Iterable, Iterator, Mapping
from typing import NamedTuple

from perdure.regex import lazy
from perdure.secrets import filters as judge
from perdure.secrets.names import BEFORE, CLOSED, IN_SENTENCE, LATER, NAMES, QUOTE, QUOTE_STARTS, VERBS, Name
from perdure.secrets.views import Span, View

_REACH = 200
_FAR = 700
"""Characters behind a name within which a secret that was made by a machine has its first digit."""
_DIGIT = lazy(r"[0-9]")
# A secret of letters alone, for which the signs in front of it speak.
_LETTERS = lazy(r"[^\n:=]{0,24}[:=][^A-Za-z\n]{0,8}[\w+/.-]{0,12}?[A-Za-z-]{16}")
_NEXT_SENTENCE = 160
_QUOTED = lazy(
    rf"[bruf]{{0,2}}(?P<quote>{QUOTE})"
    rf"(?P<value>(?![\s,;:)\]}}+])(?:(?!(?P=quote)|[{CLOSED}])[^\r\n]){{1,{_REACH}}})",
    re.IGNORECASE,
)
# A separator ends a value if white space or another `name=` follows it, else it is part of the value.
_BARE = lazy(
    rf"[^\s\"'`;<>,][^\s\"'`;&<,]{{0,{_REACH - 1}}}"
    rf"(?:[;&,](?!\s|$|\w{{1,40}}[=:])[^\s\"'`;&<,]{{0,{_REACH}}}){{0,4}}"
)
_PHRASE = lazy(rf"[^\s.:!?\"\[](?:(?! \()[^\r\n.:!?\"\[]){{3,{_REACH - 1}}}")
_REST = lazy(r"[^\s\"'`<]*+")
_TAIL = ".:;?)]},|*_"
# Words up to the end of a sentence or a line.
_SPACED = lazy(r"\S{1,30}(?:[ ]\S{1,30}){2,9}?(?:(?<=[.!?;,])(?=\s)|(?=[ \t]{0,8}(?:[\r\n]|\Z)))")
_SAYING = ("is", "sign", "about")
# "Password" is borrowed: what is told about it goes on in the language of the sentence.
_ENGLISH = lazy(r"\b(?:is|was|are|to)\b|['\u2019]s|[\u3040-\ud7af]", re.IGNORECASE)
_LOOSE = ("space", "dash", "near", "label", "asked")
"""Links that any word may follow."""
_ADDRESS = lazy(r"[/@\\()=]")
_YEAR = lazy(r"(?:19|20)\d\d$")
_LOOK_BACK = 80
_OPTION = lazy(r"(?<!\S)--[\w-]{0,30}$")


_STEMS = [(stem.rsplit(" ", 1)[-1], stem, name) for name in NAMES for stem in name.stems]
_ASCII_STEMS = [each for each in _STEMS if each[0].isascii()]
_OTHER_STEMS = [each for each in _STEMS if not each[0].isascii()]
"""The last word of a stem, the stem, its name."""


class _Next:
    """Where a pattern matches next, for places one after another. It looks a bounded way ahead, and twice nowhere."""

    def __init__(self, pattern: re.Pattern[str], text: str) -> None:
        self._pattern = pattern
        self._text = text
        self._known = -1
        self._found = False

    def is_near(self, after: int, reach: int) -> bool:
        """Return whether there is a match at most `reach` characters behind a place; `_FAR` at the most."""
        known = self._known
        if known - after < _FAR and not (self._found and known >= after):
            match = self._pattern.search(self._text, after, after + 2 * _FAR)
            self._found = match is not None
            self._known = known = match.start() if match is not None else after + 2 * _FAR
        return self._found and known - after < reach


def named_secrets(page: View) -> Iterator[Span]:
    """Yield the secrets that a name announces, name by name; they may lie over each other."""
    text, lower = page.text, page.lower
    headings: list[_Heading] = []
    for stem, name in _present(page.vocabulary):
        digit = _Next(_DIGIT, text)
        at = lower.find(stem)
        while at >= 0:
            after = at + len(stem)
            likely = name.chosen or digit.is_near(after, _FAR) or _LETTERS.match(text, after)
            match = name.pattern.match(text, at) if likely else None
            if match is not None:
                if _ends_cell(text, match.end()):
                    headings.append(_Heading(match.start(), match.end(), name))
                secret = _secret(text, match, name, digit)
                if secret is not None:
                    yield Span(*secret, name.kind)
                    after = max(after, secret[1])
            at = lower.find(stem, after)
    yield from _table_secrets(text, headings)


def _present(vocabulary: str) -> list[tuple[str, Name]]:
    """Return the stems that a text with these words may hold, each with its name."""
    plain = vocabulary if vocabulary.isascii() else vocabulary.encode("ascii", "ignore").decode()
    stems = [(stem, name) for last, stem, name in _ASCII_STEMS if last in plain]
    if plain is not vocabulary:
        stems += [(stem, name) for last, stem, name in _OTHER_STEMS if last in vocabulary]
    return stems


def _secret(text: str, found: re.Match[str], name: Name, digit: _Next) -> tuple[int, int] | None:
    """Return where the secret that belongs to a name begins and ends."""
    passing = name.chosen and name.passing.match(text, found.end()) and not _is_option(text, found.start())
    secret = None if passing else _ahead(text, found, name)
    if secret is None and (name.kind == "pin" or (name.kind == "password" and name.chosen)):
        if digit.is_near(found.end(), _NEXT_SENTENCE):
            secret = _later(text, found, name) or _in_sentence(text, found, name)
        if secret is None and _DIGIT.search(text, max(0, found.start() - _LOOK_BACK), found.start()):
            secret = _before(text, found, name)
    return secret


def _ahead(text: str, found: re.Match[str], name: Name) -> tuple[int, int] | None:
    """Return where the secret behind a name begins and ends."""
    link = name.link.match(text, found.end())
    if link is None:
        return None
    quoted = _QUOTED.match(text, link.end()) if text[link.end() : link.end() + 1] in QUOTE_STARTS else None
    how = "quoted" if quoted is not None else link.lastgroup or ""
    if quoted is not None:
        start, end = quoted.span("value")
    else:
        pattern = _PHRASE if name.kind.endswith("phrase") and how != "space" else _BARE
        bare = pattern.match(text, link.end())
        if bare is None:
            return None
        start, end = bare.start(), bare.start() + len(bare[0].rstrip(_TAIL).rstrip())
    secret = text[start:end]
    if name.kind == "password" and how in _SAYING and secret.isalpha() and not judge.is_ordinary(secret):
        spaced = _SPACED.match(text, start)
        if spaced is not None and judge.is_passphrase(spaced[0].rstrip(_TAIL), told=how == "is", english=name.english):
            return start, start + len(spaced[0].rstrip(_TAIL))
    if name.chosen and _is_passing(text, found, how, secret, end):
        return None
    value = name.value.match(secret)
    if value is None or judge.is_placeholder(value[0]):
        return None
    end = start + value.end()
    if not _is_secret(text, found, name, how, (start, end)):
        return None
    if end - start >= _REACH:
        rest = _REST.match(text, end)
        end = rest.end() if rest is not None else end
    return start, end


def _later(text: str, found: re.Match[str], name: Name) -> tuple[int, int] | None:
    """Return where the secret is that the next sentence tells: "I set a new password. It is ..."."""
    link = LATER.match(text, found.end())
    bare = _BARE.match(text, link.end()) if link is not None else None
    if bare is None:
        return None
    secret = bare[0].rstrip(_TAIL)
    start, end = bare.start(), bare.start() + len(secret)
    if name.kind == "pin":
        told = name.value.match(secret) and judge.stops(text, end) and not _YEAR.match(secret)
    else:
        told = judge.adjoined(text, end, secret) and not judge.is_placeholder(secret)
    return (start, end) if told else None


def _in_sentence(text: str, found: re.Match[str], name: Name) -> tuple[int, int] | None:
    """Return where in the sentence of a name a word stands that only a password looks like."""
    ahead = IN_SENTENCE.match(text, found.end()) if name.kind == "password" else None
    bare = _BARE.match(text, ahead.end()) if ahead is not None else None
    if bare is None:
        return None
    secret = bare[0].rstrip(_TAIL)
    fits = judge.is_mixed(secret) and len(secret) >= judge.SURE and _ADDRESS.search(secret) is None
    if not fits or judge.is_code(secret) or judge.is_placeholder(secret):
        return None
    return bare.start(), bare.start() + len(secret)


def _before(text: str, found: re.Match[str], name: Name) -> tuple[int, int] | None:
    """Return where the secret in front of a name is: "... is my new password"."""
    at = found.start()
    start = max(0, at - _LOOK_BACK)
    if name.kind == "pin" or VERBS.isdisjoint(text[start:at].lower().split()[-6:]):
        return None
    told = (
        BEFORE.search(text, start, at) if judge.stops(text, found.end()) or name.link.match(text, found.end()) else None
    )
    if told is None or not judge.is_mixed(told["value"]) or judge.is_placeholder(told["value"]):
        return None
    return told.span("value")


def _is_passing(text: str, found: re.Match[str], how: str, secret: str, end: int) -> bool:
    """Return whether a candidate is plainly a word of the sentence: what most are, at the least cost."""
    if not secret.isalpha() or how in ("quoted", "tag"):
        return False
    if how == "space":
        return not _is_option(text, found.start())
    if how in _LOOSE:
        return True
    if how == "sign" and text.startswith(":", end):
        return True  # the next label of a form that nobody has filled in
    return not judge.stops(text, end)


def _is_option(text: str, start: int) -> bool:
    return "--" in text[max(0, start - 32) : start] and _OPTION.search(text, max(0, start - 32), start) is not None


def _is_secret(text: str, found: re.Match[str], name: Name, how: str, span: tuple[int, int]) -> bool:
    start, end = span
    secret = text[start:end]
    if how == "tag":
        return text.startswith("</", end) and not judge.is_remark(secret)
    if how == "space" and _is_option(text, found.start()):
        return not secret.startswith("-") and not judge.is_code(secret)
    if name.kind == "pin":
        # "Pin 2024 goals to the board."
        loose = how in _LOOSE and _YEAR.match(secret) and not judge.stops(text, end)
        return not loose and not judge.counts_something(text, end)
    if name.kind == "seed-phrase":
        return True
    if name.kind == "passphrase":
        code = how != "quoted" and not {"(", ")", "=", "|"}.isdisjoint(secret)
        return how not in _LOOSE and not code and not judge.is_sentence(secret)
    if not name.chosen:
        sure = judge.is_generated if how in _LOOSE else judge.is_made
        return sure(secret) and not judge.is_code(secret) and not judge.counts_something(text, end)
    match how:
        case "quoted":
            return judge.quoted(secret)
        case "told" | "is":
            english = name.english and _ENGLISH.search(text, found.end(), start) is not None
            return judge.told(text, end, secret, english=english)
        case "label":
            said = text[found.end() : start].strip(" \t:=").split()
            return judge.is_mixed(secret) and not judge.is_code(secret) and not any(map(judge.is_ordinary, said))
        case "space" | "dash" | "asked":
            return judge.adjoined(text, end, secret)
        case "near":
            return judge.is_mixed(secret) and not judge.is_code(secret)
        case _:
            return judge.assigned(text, end, secret)


_MAX_LINE = 2_000
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
_SHORTEST_CELL = 4
_RULE = lazy(r"[\s|:-]+\Z")
_AROUND = " \t\r\"'`*_"


class _Heading(NamedTuple):
    """A name of secrets that ends a cell: where it stands, and which it is."""

    start: int
    end: int
    name: Name


class _Table(NamedTuple):
    """What the heading of a table tells of its lines."""

    delimiter: str
    width: int
    columns: Mapping[int, Name]


def _ends_cell(text: str, end: int) -> bool:
    """Return whether a cell of a table may end behind a name that ends at `end`."""
    return _ENDS_CELL.match(text, end) is not None


def _table_secrets(text: str, headings: Iterable[_Heading]) -> Iterator[Span]:
    """Yield what stands in the columns of tables whose headings name secrets."""
    lines: dict[int, list[_Heading]] = {}
    for heading in headings:
        lines.setdefault(text.rfind("\n", 0, heading.start) + 1, []).append(heading)
    done = 0
    for start in sorted(lines):
        # A line of a table that is read already heads none.
        if start >= done:
            end = _line_end(text, start)
            table = _table(text[start:end], start, lines[start])
            if table is not None:
                done = yield from _below(text, end, table)


def _table(line: str, start: int, headings: Iterable[_Heading]) -> _Table | None:
    """Return what a line heads, if it heads a table with secrets; it stands at `start` of the text."""
    delimiter = next((char for char in _DELIMITERS if char in line), "")
    if not delimiter or len(line) > _MAX_LINE:
        return None
    cells = _cells(line, delimiter)
    named = [_HEADING.match(line[begin:stop]) is not None for begin, stop in cells]
    if delimiter in _OF_PROSE and (_LISTED.search(line) or not all(named)):
        return None
    places = {start + stop: place for place, (_, stop) in enumerate(cells) if named[place]}
    columns = {places[heading.end]: heading.name for heading in headings if heading.end in places}
    return _Table(delimiter, len(cells), columns) if columns else None


def _below(text: str, end: int, table: _Table) -> Generator[Span, None, int]:
    """Yield the secrets in the lines below a heading that ends at `end`; return where the table ends."""
    for _ in range(_MAX_ROWS):
        start, end = end + 1, _line_end(text, end + 1)
        line = text[start : min(end, start + _MAX_LINE)]
        if table.delimiter not in line:
            return start
        cells = _cells(line, table.delimiter)
        # Prose has commas, too, but not always as many.
        if table.delimiter not in _OF_PROSE or len(cells) == table.width:
            for place, name in table.columns.items():
                begin, stop = cells[place] if place < len(cells) else (0, 0)
                if _is_cell_secret(line[begin:stop], name):
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


def _is_cell_secret(cell: str, name: Name) -> bool:
    if len(cell) < _SHORTEST_CELL or _RULE.match(cell) or judge.is_placeholder(cell) or judge.is_code(cell):
        return False
    if name.kind == "pin":
        return name.value.match(cell) is not None
    if " " in cell:
        return name.chosen and judge.is_passphrase(cell, told=True, english=name.english)
    return judge.is_marked(cell) if name.chosen else name.value.match(cell) is not None and judge.is_made(cell)
