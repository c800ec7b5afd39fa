"""The parts of what a person typed, each with its author: what is said plainly is told from what a task works on.

In doubt a part is not the user's: what is not kept can be said again, what is kept wrongly speaks for them unasked.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby, islice, pairwise, takewhile
from typing import NewType

from perdure.regex import lazy
from perdure.secrets.redact import redact
from perdure.speech.author import Author
from perdure.speech.forgetting import is_order_to_forget
from perdure.speech.orders import asks_to_remember
from perdure.text.clean import clean, clip
from perdure.text.fenced import fenced
from perdure.text.history import MAX_RAW
from perdure.text.lexicon import listed, table
from perdure.text.normalise import fold

Clean = NewType("Clean", str)
"""Text without secrets, half characters and NULs."""

_TAIL = MAX_RAW // 4
_MARGIN = 1_024
_MARKED = lazy(r"(?:<|^\[)([A-Za-z][\w-]*)(?:[\s,|][^<\[\]\n]*)?[>\]].*?[<\[]/\1[>\]]", re.DOTALL | re.MULTILINE)
_QUOTATION = listed("speech", "shapes", "quotation")
_CITED = lazy(r"[\"“„«][^\"”“»\n]+[\"”“»]")
_SENTENCE = listed("speech", "shapes", "sentence")
_POINT = lazy(r"\s*(?:[-*•+–]|[(\[]?\d[\d.]{0,3}[.)\]]|\w[\w /()-]{0,40}:)\s")
_QUOTED_LINE = lazy(r"\s*[>|]")
_RULED = lazy(r"(?:-{3,}|={3,}|\*{3,}|_{3,}|#{3,}|<{3,}|>{3,}|\"{3})(?:\s|$)")
_STAMPED_BEHIND = listed("speech", "shapes", "stamped_behind")
_NAMED = listed("speech", "shapes", "named")
_WORDS = lazy(r"\w+")
_BULLET = lazy(r"\s*(?:[-*•+–]|\d{1,3}[.)])\s|[`~]{3}")
_MARKS = lazy(r"^[`~]{3,}\w*\n|\n?[`~]{3,}$")
_STAMP = "\0"
_FEW = 2
_SHORT = 4
"""Words of a line that names nothing of its own: what it asks for is asked of what stands beside it."""
_BARE = 25
"""Words of a line that may be a request without the form of one."""
_ONESELF = frozenset(["me", "i", "ich", "moi", "yo", "eu", "io"])
_ARROW = lazy(r"\s*(?:<-+|->|→|←|\^+)")


@dataclass(frozen=True, slots=True)
class Span:
    """A part of a message."""

    author: Author
    text: Clean


@dataclass(frozen=True, slots=True)
class Spoken:
    """What somebody typed, part by part."""

    spans: tuple[Span, ...]  # in order; together they are all of it but for white space
    secrets: tuple[str, ...]  # the kinds of the secrets that were taken out
    text: Clean  # all of it, as it was written

    @property
    def plain(self) -> Clean:
        """Return what the user says for themselves."""
        return self.by(Author.USER)

    def by(self, author: Author) -> Clean:
        """Return what is somebody's, in order."""
        return Clean("\n".join(each.text for each in self.spans if each.author is author))


def spoken(text: str) -> Spoken:
    """Return the parts of what somebody typed (`perdure.speech.typed`), redacted; of a very long text head and end."""
    text, secrets = _redacted(clean(text))
    return Spoken(tuple(_joined(_judged(_units(text)))), secrets, text)


def _redacted(text: str) -> tuple[Clean, tuple[str, ...]]:
    if len(text) <= MAX_RAW:
        redaction = redact(text)
        return Clean(redaction.text), redaction.kinds
    # A secret that lies across a cut is seen whole, and taken out whole.
    head, tail = redact(text[: MAX_RAW - _TAIL + _MARGIN]), redact(text[-_TAIL - _MARGIN :])
    ends = tail.text[-_TAIL:].partition(" ")[2]
    return Clean(f"{clip(head.text, MAX_RAW - _TAIL)}\n{ends}"), tuple(dict.fromkeys((*head.kinds, *tail.kinds)))


def is_label(word: str) -> bool:
    """Return whether a word in front of a colon announces what is the user's own, as "Note" does."""
    return bool(_P.label.fullmatch(fold(word)))


@dataclass(slots=True)
class _Unit:
    """A sentence or line, or a part that is closed off."""

    text: str
    begins: int  # how many line ends stand before it: 2 and more begin a paragraph
    author: Author = Author.USER
    closed: bool = False  # what follows is not a part of it
    folded: str = ""


def _units(text: str) -> list[_Unit]:
    """Cut a text into sentences and lines, and into what is fenced, quoted or marked up."""
    found: list[_Unit] = []
    at = 0
    for start, end in _closed(text):
        found += _sentences(text[at:start], text[max(0, at - 2) : at])
        found.append(_Unit(text[start:end], _breaks(text[:start]), Author.PASTED, closed=True))
        at = end
    return found + _sentences(text[at:], text[max(0, at - 2) : at])


def _closed(text: str) -> Iterator[tuple[int, int]]:
    """Yield where what is fenced, quoted at some length, or marked up, begins and ends."""
    at = 0
    while at < len(text):
        found = [match.span() for each in (_QUOTATION, _MARKED) if (match := each.search(text, at))]
        first = min([*islice(fenced(text, at), 1), *found], default=None)
        if first is None:
            return
        start, at = first
        if text[start] in "`~<[" or _is_speech_of_others(text[start:at]):
            yield first


def _is_speech_of_others(quotation: str) -> bool:
    """Return whether a quotation is more than a name, a title or a term."""
    said = quotation[1:-1]
    words = _WORDS.findall(said)
    titled = sum(word[0].isupper() for word in words) * 2 > len(words) and not _P.own.search(fold(said))
    return bool(re.search(r"[.!?…。]\s|\n|[.…。]$", said)) or (len(words) > _FEW and not titled)


def _breaks(before: str) -> int:
    tail = before[len(before.rstrip()) :]
    return tail.count("\n") if before.strip() else 2


def _sentences(text: str, before: str) -> list[_Unit]:
    units: list[_Unit] = []
    at = 0
    ruled = False
    for cut in [*_SENTENCE.finditer(text), None]:
        end = len(text) if cut is None else cut.end() if cut[0] in "。！？" else cut.start()
        part = text[at:end]
        if part.strip():
            lead = part[: len(part) - len(part.lstrip())]
            broken = 2 if ruled else ((text[max(0, at - 3) : at] or before) + lead).count("\n")
            units.append(_Unit(part.strip(), broken if units or before else 2, folded=fold(part.strip())))
        at = cut.end() if cut is not None else end
        ruled = cut is not None and cut[0].strip()[:1] in ("-", "—") and not cut[0].strip().endswith(">")
    return units


def _judged(units: list[_Unit]) -> list[_Unit]:
    """Give each part its author."""
    _mark_lists_of_memories(units)
    _mark_quoted_lines(units)
    _mark_between_rules(units)
    _mark_mails(units)
    _mark_conversations(units)
    _mark_letters(units)
    _mark_tasks(units)
    _mark_beside_requests(units)
    for at, unit in enumerate(units):
        if unit.text.endswith(":") and asks_to_remember(unit.text):
            for point in takewhile(lambda each: _BULLET.match(each.text), units[at + 1 :]):
                point.author, point.text = Author.USER, _MARKS.sub("", point.text)
    return units


def _open(unit: _Unit) -> bool:
    return unit.author is Author.USER


def _mark(units: Sequence[_Unit], author: Author = Author.PASTED) -> None:
    for unit in units:
        if unit.author is Author.USER:
            unit.author = author


def _close(units: Sequence[_Unit]) -> None:
    """Mark a part that is closed off: what follows it may be the user's."""
    _mark(units)
    for unit in units:
        unit.closed = True


def _mark_lists_of_memories(units: list[_Unit]) -> None:
    for at, unit in enumerate(units):
        if _open(unit) and unit.begins and _P.memories.match(unit.folded):
            end = at + 1
            while end < len(units) and (
                units[end].begins <= (unit.text[0] in "#[") or _POINT.match(units[end].text + " ")
            ):
                end += 1
            _mark(units[at:end] if end > at + 1 else (), Author.MEMORY)


def _mark_quoted_lines(units: list[_Unit]) -> None:
    for start, end in _lines(units):
        if _QUOTED_LINE.match(units[start].text):
            _close(units[start:end])


def _mark_between_rules(units: list[_Unit]) -> None:
    """Mark what stands below a line of dashes, up to the next one; also what a lone one between lines divides."""
    rules = [at for at, unit in enumerate(units) if _RULED.match(unit.text)]
    if len(rules) == 1 and [each.begins for each in units[rules[0] : rules[0] + 2]] == [1, 1]:
        _close(units[: rules[0]])
    inside = False
    for unit in units:
        ruled = bool(_RULED.match(unit.text))
        inside = not inside if ruled else inside and not _resumes(unit)
        if inside or ruled:
            _close([unit])


def _lines(units: list[_Unit]) -> Iterator[tuple[int, int]]:
    """Yield the first and the last place, excluded, of the parts that stand in one line."""
    starts = [at for at, unit in enumerate(units) if unit.begins or not at]
    yield from zip(starts, [*starts[1:], len(units)][: len(starts)], strict=True)


def _mark_conversations(units: list[_Unit]) -> None:
    """Mark what was copied from a chat, an interview or subtitles: lines with a name or a time in front."""
    named: list[tuple[int, str]] = []
    for start, end in _lines(units):
        text = units[start].text
        answered = text.endswith("?") and end > start + 1 and units[start + 1].text[0] in "-–—"
        if answered or _P.stamped.match(text) or _STAMPED_BEHIND.match(text):
            named.append((start, _STAMP))
        elif (match := _NAMED.match(text)) and not is_label(name := match["name"] or match["mention"]):
            named.append((start, fold(name)))
    names = {name for _, name in named}
    if len(named) < (2 if len(names) > 1 or names == {_STAMP} else 3) or names <= _ONESELF:
        return
    first, last = named[0][0], named[-1][0] + 1
    while last < len(units) and units[last].begins < 2:
        last += 1
    _close(units[first:last])


def _mark_mails(units: list[_Unit]) -> None:
    for at in [at for at, unit in enumerate(units) if _open(unit) and unit.begins]:
        unit = units[at]
        near = [each for each in units[at : at + 8] if each.begins or each is unit][:4]
        heads = sum(bool(_P.mail_head.match(each.folded)) for each in near)
        if _P.quoted_mail.match(unit.folded) and units[at + 1 : at + 2] and units[at + 1].closed:
            _close([unit])
        elif _P.quoted_mail.match(unit.folded) or (heads > 1 and _P.mail_head.match(unit.folded)):
            _mark_until_resumed(units, at)
            return


def _mark_letters(units: list[_Unit]) -> None:
    """Mark a letter from its salutation to its end; a greeting alone may be meant for the assistant."""
    lines = [(start, end) for start, end in _lines(units)]
    begins = [start for start, _ in lines if _P.salutation.match(units[start].folded.partition(",")[0] + ",")]
    greets = [start for start, end in lines if end == start + 1 and _P.greeting.match(units[start].folded)]
    ends = [start for start, end in lines if end == start + 1 and _P.sign_off.fullmatch(units[start].folded)]
    for start in begins or (greets if ends else ()):
        end = next((each for each in ends if each > start), None)
        if end is None:
            _mark_until_resumed(units, start)
        else:
            name = end + 1 < len(units) and len(_WORDS.findall(units[end + 1].text)) < 5
            _close(units[start : end + 1 + name])


def _mark_until_resumed(units: list[_Unit], at: int) -> int:
    """Mark what follows until the user speaks for themselves again; return where that is."""
    for place in range(at, len(units)):
        unit = units[place]
        if place > at and unit.begins and (_resumes(unit) or _RULED.match(unit.text)):
            return place
        _mark([unit])
    return len(units)


def _resumes(unit: _Unit) -> bool:
    return bool(unit.begins > 1 or unit.text.startswith("(")) and bool(_P.resume.match(unit.folded.lstrip("(")))


def _mark_tasks(units: list[_Unit]) -> None:
    """Mark what a request works on, what is made up, and what is announced as somebody else's words."""
    after = 0
    while after < len(units):
        place, after = after, after + 1
        unit = units[place]
        head, rest, lead = _headed(unit)
        if not _open(unit) or asks_to_remember(unit.text) or is_order_to_forget(head if lead else unit.text):
            continue
        if _ARROW.match(unit.folded) and not (place and asks_to_remember(units[place - 1].text)):
            _mark(units[:after])
        elif _P.supposed.match(unit.folded) and _asks(unit):
            _mark([unit])
        elif _P.fiction.match(head) and not _P.own_text.match(head):
            unit.closed = not _P.work.match(head)
            after = _mark_until_resumed(units, place)
        elif _P.own_text.match(head):
            unit.closed = True
        elif _works_on(unit, head, first=not place, last=after == len(units)):
            after = _works(units, place, head, rest, lead)
        elif _announces(head, rest, units[after : after + 1], lead):
            after = _mark_until_resumed(units, place)


def _headed(unit: _Unit) -> tuple[str, str, bool]:
    """Return what a request says, what stands behind its colon, and whether there is one."""
    told = _P.polite.sub("", _ARROW.sub("", unit.folded, count=1).lstrip(), count=1)
    lead = _P.lead_in.match(told)
    return (lead["lead"].strip("*_#[]() "), lead["rest"], True) if lead else (told, "", False)


def _works_on(unit: _Unit, head: str, *, first: bool, last: bool) -> bool:
    """Return whether a sentence asks for work on a text.

    Where a message begins or ends it is enough to name a text, or to point at what nobody has named before.
    """
    asks, own = _asks(unit), _speaks_of_user(head)
    frames = (first != last or not unit.folded.endswith(head)) and not own and not _BULLET.match(unit.text)
    genre, quality = _P.genre.search(unit.folded), _P.quality.search(unit.folded)
    works = (asks or not unit.folded.endswith(head)) and not own and _P.work.search(unit.folded)
    if works or _P.work.match(head) or _P.anywhere.search(unit.folded) or (genre and frames):
        return True
    named = genre or quality or _P.object.search(head) or (first and _P.pointing.search(head))
    within = any(map(_P.command.match, re.split(r"[,;:] ", head))) or _P.theirs.search(head)
    return bool((asks and (genre or quality)) or (frames and named and (asks or within)))


def _speaks_of_user(folded: str) -> bool:
    return bool(_P.own.search(_P.borrowed.sub(" ", folded)))


def _asks(unit: _Unit) -> bool:
    asks = unit.folded.rstrip(")\"' ").endswith("?") or _P.question.match(unit.folded)
    return bool(asks and not _P.rhetorical.match(unit.folded))


def _announces(head: str, rest: str, following: Sequence[_Unit], lead: bool) -> bool:
    """Return whether a sentence says that somebody else's words follow it or its colon."""
    if _P.label.match(head) or not (rest or (following and not following[0].closed)):
        return False
    told = bool(_P.report.search(head)) and not re.match(r"(?:i|we|ich|wir|je|nous|yo|eu|io|noi)\b", head)
    if not lead:
        apart = following[0].begins > 1 and not _P.command.match(head)
        return told and not _speaks_of_user(head) and (apart or bool(_P.pointing.search(head.rpartition(" ")[2])))
    asks = _P.question.match(head) or _P.command.match(head) or _P.object.search(head)
    named = _P.quality.search(head) or _P.genre.search(head) or (asks and not _speaks_of_user(head))
    named = named or (" " in head and not _speaks_of_user(head) and not _P.resume.match(head))
    return (
        told or bool(_P.speaks.match(rest or following[0].folded) and named) or (not rest and following[0].begins > 1)
    )


def _works(units: list[_Unit], place: int, head: str, rest: str, lead: bool) -> int:
    """Mark a request and what it works on: what follows, unless that is closed off beside it, or what stands before."""
    units[place].author = Author.PASTED
    if lead and (rest or (place + 1 < len(units) and not units[place + 1].closed)):
        return _mark_until_resumed(units, place)
    runs_on = [each.begins for each in units[place + 1 : place + 3]] == [2, 0]
    beside = [*units[max(0, place - 1) : place], *units[place + 1 : place + 3 - 2 * runs_on]]
    apart = len(units) > place + 1 and units[place + 1].begins and not _P.command.match(head)
    closed = any(each.closed for each in beside) or _P.elsewhere.search(head) or _CITED.search(head)
    if closed or not (apart or _ARROW.match(units[place].folded) or _names_no_other(units[place])):
        units[place].closed = bool(closed)
        units[place].author = Author.USER if closed and _speaks_of_user(head) else Author.PASTED
        return place + 1
    units[place].closed = True
    before, follows = (list(filter(_open, each)) for each in (units[:place], units[place + 1 :]))
    if follows and not _P.resume.match(follows[0].folded) and _words(follows) >= _words(before):
        return _mark_until_resumed(units, place)
    _mark(units[:place])
    return place + 1


def _mark_beside_requests(units: list[_Unit]) -> None:
    """Mark lines beside a request that does not speak of the user and may be about them, and any list beside one."""
    lines = [units[start:end] for start, end in _lines(units)]
    listed = [1 in (line[0].begins, after[0].begins) for line, after in pairwise([*lines, [_Unit("", 2)]])]
    asking = [_is_request(line, bare=not inside) for line, inside in zip(lines, listed, strict=True)]
    vague = any(asks and any(map(_names_no_other, line)) for line, asks in zip(lines, asking, strict=True))
    own = False  # below a line that announces what is the user's
    for line, inside, asks in zip(lines, listed, asking, strict=True):
        own = own and line[0].begins < 2
        if asks or own or not (vague or (inside and any(asking))):
            continue
        told = line[-1].folded
        own = (told.endswith(":") or _words(line) <= _FEW) and bool(_P.own.search(told) or is_label(told.rstrip(": ")))
        _mark(line[: len(line) - own] if _words(line) > _FEW else ())


def _is_request(line: Sequence[_Unit], *, bare: bool) -> bool:
    """Return whether a line asks for something, and not of the user's own; a bare one need not have the form."""
    if any(unit.closed or _speaks_of_user(unit.folded) or asks_to_remember(unit.folded) for unit in line):
        return False
    bare &= _words(line) <= _BARE and not any(each.match(line[0].folded) for each in (_P.resume, _P.greeting, _P.code))
    asks = any(map(_asks, line)) or bool(_P.command.match(_headed(line[0])[0]))
    return asks or (bare and any(map(_names_no_other, line)))


def _names_no_other(unit: _Unit) -> bool:
    """Return whether a request names a text, or nothing: what stands beside it is what it is about."""
    named = any(
        each.search(unit.folded) for each in (_P.pointing, _P.persons, _P.object, _P.quality, _P.genre, _P.anywhere)
    )
    whole = _P.command.match(unit.folded) or _P.interrogative.match(unit.folded)
    return named or 0 < _words([unit]) <= (_FEW if whole else _SHORT)


def _words(units: Sequence[_Unit]) -> int:
    return sum(len(_WORDS.findall(unit.text)) for unit in units)


def _joined(units: Sequence[_Unit]) -> Iterator[Span]:
    """Join neighbours of one author; line ends stay."""
    for author, group in groupby(units, key=lambda unit: unit.author):
        text = ""
        for unit in group:
            text += ("\n" * min(unit.begins, 2) if unit.begins else " ") + unit.text if text else unit.text
        yield Span(author, Clean(text))


class _Patterns:
    """The patterns of the data file, each compiled when it is first used."""

    def __getattr__(self, name: str) -> re.Pattern[str]:
        pattern = lazy("".join(table("speech", "others")[name]))
        setattr(self, name, pattern)
        return pattern


_P = _Patterns()
