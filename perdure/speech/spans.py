"""The parts of what a person typed, each with its author: what is said plainly is told from what a task works on.

In doubt a part is not the user's: what is not kept can be said again, what is kept wrongly speaks for them unasked.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import NewType

from perdure.regex import lazy
from perdure.secrets.redact import redact
from perdure.speech.author import Author
from perdure.speech.forgetting import is_order_to_forget
from perdure.speech.orders import asks_to_remember
from perdure.text.clean import clean, clip
from perdure.text.history import MAX_RAW
from perdure.text.lexicon import table
from perdure.text.normalise import fold

Clean = NewType("Clean", str)
"""Text without secrets, half characters and NULs."""

_TAIL = MAX_RAW // 4
_MARGIN = 1_024
_FENCE = lazy(r"```.*?(?:```|\Z)", re.DOTALL)
_MARKED = lazy(r"<([A-Za-z][\w-]*)(?:\s[^<>]*)?>.*?</\1>", re.DOTALL)
# From three words on: shorter ones are names and terms.
_QUOTATION = lazy(
    r"(?<!\w)(?:\"[^\s\"][^\"]{8,2000}\"|“[^”]{8,2000}”|„[^“”]{8,2000}[“”]|«[^»]{8,2000}»|「[^」]{4,2000}」"
    r"|\u2018[^’]{8,2000}’(?!\w)|(?<![\w'])'(?=[^\W\d_])[^\n]{8,2000}?(?<=[\w.!?…,])'(?![\w']))"
)
_SENTENCE = lazy(r"(?<=[.!?…。！？])[\"'”»)\]]*\s+|[。！？]|\n+|\s+(?=<-|->|→|←)|\s+(?:-{2,}|—{2,})\s+")
_POINT = lazy(r"\s*(?:[-*•+–]|\d{1,3}[.)]|\w[\w /()-]{0,40}:)\s")
_QUOTED_LINE = lazy(r"\s*[>|]")
_RULED = lazy(r"(?:-{3,}|={3,}|\*{3,}|_{3,}|#{3,}|<{3,}|>{3,}|\"{3})(?:\s|$)")
_STAMPED = lazy(
    r"\s*(?:\[?\(?(?:\d{1,4}[./-]\d{1,2}[./-]\d{1,4},? )?\d{1,2}:\d{2}(?::\d{2})?(?: ?[AaPp][Mm])?\)?\]?,?"
    r"|\d{2}:\d{2}:\d{2},\d{3} -->)\s*(?:[-–|]\s*)?\S"
)
_STAMPED_BEHIND = lazy(
    r"\s*[^\W\d_][\w .'-]{0,40} ?[,|·—–-]? ?[(\[]?"
    r"(?:(?:today|yesterday),? (?:at )?|\d{1,4}[./-]\d{1,2}[./-]\d{1,4},? )?"
    r"\d{1,2}:\d{2}(?::\d{2})?(?: ?[AaPp][Mm])?[)\]]?:?\s*$",
    re.IGNORECASE,
)
_NAMED = lazy(
    r"\s*(?:\*\*)?(?:<@?(?P<mention>\w[\w .-]{0,30})>:?"
    r"|[\[@]?(?P<name>[^\W\d_][\w.'-]{0,20}(?: [^\W\d_][\w.'-]{0,20}){0,2})\]?"
    r"(?: \([^)]{1,30}\)| ?[^\w\s:,;.!?()-]{1,3})?(?:\*\*)?\s?[:\uff1a])\s*\S"
)
_LEAD_IN = lazy(r"^(?P<lead>[^:\n]{1,300}?)\s?(?::(?![/\d)(])|\uff1a|<?-+>|→)\s*(?P<rest>.*)$", re.DOTALL)
_OWN = lazy(
    r"\b(?:i|i'm|i've|my|me|we|we're|we've|our|us|ich|mein\w*|wir|unser\w*|je|j'|mon|ma|mes|nous|notre|nos|yo|mi|mis|nosotros|nuestr\w+|eu|meu|minha|nos|noss\w+|io|mio|mia|noi|nostr\w+)\b"
)
_WORDS = lazy(r"\w+")
_STAMP = "\0"
_FEW = 2
_BARE = 25
"""Words of a line beside a paragraph that is taken for a request about it, if it does not speak of the user."""
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
        found = [match for each in (_FENCE, _QUOTATION, _MARKED) if (match := each.search(text, at))]
        first = min(found, key=lambda match: match.start(), default=None)
        if first is None:
            return
        if first[0][0] in "`<" or _is_speech_of_others(first[0]):
            yield first.span()
        at = first.end()


def _is_speech_of_others(quotation: str) -> bool:
    """Return whether a quotation is more than a name, a title or a term."""
    said = quotation[1:-1]
    return bool(re.search(r"[.!?…。]\s|\n", said)) or (
        len(_WORDS.findall(said)) > 3 and bool(_OWN.search(fold(said)) or said.rstrip().endswith((".", "!", "?")))
    )


def _breaks(before: str) -> int:
    tail = before[len(before.rstrip()) :]
    return tail.count("\n") if before.strip() else 2


def _sentences(text: str, before: str) -> list[_Unit]:
    units: list[_Unit] = []
    at = 0
    ruled = False
    for cut in [*_SENTENCE.finditer(text), None]:
        end = cut.start() if cut is not None else len(text)
        if cut is not None and cut[0] and cut[0] in "。！？":
            end = cut.end()
        part = text[at:end]
        if part.strip():
            lead = part[: len(part) - len(part.lstrip())]
            broken = (text[:at] if at else before)[-3:].count("\n") + lead.count("\n")
            broken = 2 if ruled else broken
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
    _mark_beside_questions(units)
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
            while end < len(units) and _POINT.match(units[end].text + " "):
                end += 1
            if end > at + 1:
                _mark(units[at:end], Author.MEMORY)


def _mark_quoted_lines(units: list[_Unit]) -> None:
    quoted = False
    for unit in units:
        if unit.begins:
            quoted = bool(_QUOTED_LINE.match(unit.text))
        if quoted:
            unit.author, unit.closed = Author.PASTED, True


def _mark_between_rules(units: list[_Unit]) -> None:
    """Mark what stands below a line of dashes, up to the next one."""
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
    for start, _ in _lines(units):
        text = units[start].text
        if _STAMPED.match(text) or _STAMPED_BEHIND.match(text):
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
    for at, unit in enumerate(units):
        if not (_open(unit) and unit.begins):
            continue
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
    place = 0
    while place < len(units):
        unit = units[place]
        if not _open(unit) or asks_to_remember(unit.text) or is_order_to_forget(unit.text):
            place += 1
            continue
        head, rest, lead = _headed(unit)
        if _ARROW.match(unit.folded):
            _mark(units[: place + 1])
            place += 1
        elif _P.supposed.match(unit.folded) and _asks(unit):
            _mark([unit])
            place += 1
        elif _P.fiction.match(unit.folded) or (_P.fiction.match(head) and not _P.own_text.match(head)):
            place = _mark_until_resumed(units, place)
        elif _P.own_text.match(head):
            unit.closed = True
            place += 1
        elif _works_on(unit, head):
            place = _works(units, place, head, rest, lead)
        elif _announces(head, rest, units[place + 1 : place + 2], lead):
            place = _mark_until_resumed(units, place)
        else:
            place += 1


def _headed(unit: _Unit) -> tuple[str, str, bool]:
    """Return what a request says, what stands behind its colon, and whether there is one."""
    told = _ARROW.sub("", unit.folded, count=1).lstrip()
    told = _P.polite.sub("", told, count=1) if _P.polite.match(told) else told
    lead = _LEAD_IN.match(told)
    return (lead["lead"].strip("*_#[]() "), lead["rest"], True) if lead else (told, "", False)


def _works_on(unit: _Unit, head: str) -> bool:
    """Return whether a sentence asks for work on a text."""
    if _P.anywhere.search(unit.folded) or (_asks(unit) and _P.quality.search(unit.folded)):
        return True
    asked = _asks(unit) or not unit.folded.endswith(head)
    return bool(_P.work.match(head)) or (asked and bool(re.search(rf"\b{_P.work.pattern}", unit.folded)))


def _asks(unit: _Unit) -> bool:
    return unit.folded.rstrip(")\"' ").endswith("?") or bool(_P.question.match(unit.folded))


def _announces(head: str, rest: str, following: Sequence[_Unit], lead: bool) -> bool:
    """Return whether a sentence says that somebody else's words follow it or its colon."""
    if _P.label.search(head) or not (rest or following):
        return False
    if not lead and not (following and following[0].begins > 1):
        return False
    if lead and not rest and following[0].begins > 1:
        return True
    return bool(_P.report.search(head)) and not re.match(r"(?:i|we|ich|wir|je|nous|yo|eu|io|noi)\b", head)


def _works(units: list[_Unit], place: int, head: str, rest: str, lead: bool) -> int:
    """Mark a request and what it works on: what follows, unless that is closed off beside it, or what stands before."""
    units[place].author = Author.PASTED
    if lead and (rest or (place + 1 < len(units) and not units[place + 1].closed)):
        return _mark_until_resumed(units, place)
    beside = [*units[max(0, place - 1) : place], *units[place + 1 : place + 2]]
    if any(each.closed for each in beside) or _P.elsewhere.search(head):
        units[place].closed = True
        return place + 1
    arrow = bool(_ARROW.match(units[place].folded))
    apart = place + 1 < len(units) and units[place + 1].begins > 1
    about = any(each.search(units[place].folded) for each in (_P.object, _P.quality, _P.anywhere))
    if not (arrow or about or apart):
        return place + 1
    units[place].closed = True
    before, follows = (list(filter(_open, each)) for each in (units[:place], units[place + 1 :]))
    if follows and not _resumes(follows[0]) and _words(follows) >= _words(before):
        return _mark_until_resumed(units, place)
    _mark(units[:place])
    return place + 1


def _mark_beside_questions(units: list[_Unit]) -> None:
    """Mark lines beside a question or request that does not speak of the user: it is likely to be about them."""
    lines = list(_lines(units))
    if len(lines) < 2:
        return
    asking = [each for each in lines if _is_request(units[slice(*each)])]
    if not asking and _paragraphs(units) > 1:
        asking = [each for each in (lines[0], lines[-1]) if _is_bare(units[slice(*each)])][:1]
    if not asking:
        return
    own = False  # below a line that announces what is the user's
    for start, end in lines:
        last = units[end - 1]
        own = own and units[start].begins < 2
        if (start, end) not in asking and not (own or _resumes(units[start]) or _P.resume.match(units[start].folded)):
            own = last.text.endswith(":") and bool(_OWN.search(last.folded) or _P.label.search(last.folded))
            _mark(units[start : end - own] if _words(units[start:end]) > _FEW else ())


def _is_request(line: Sequence[_Unit]) -> bool:
    """Return whether a line asks for something, and not of the user's own."""
    if not any(map(_open, line)) or any(_OWN.search(_P.borrowed.sub(" ", unit.folded)) for unit in line):
        return False
    return any(map(_asks, line)) or bool(_P.command.match(_headed(line[0])[0]))


def _words(units: Sequence[_Unit]) -> int:
    return sum(len(_WORDS.findall(unit.text)) for unit in units)


def _paragraphs(units: Sequence[_Unit]) -> int:
    return sum(unit.begins > 1 for unit in units)


def _is_bare(line: Sequence[_Unit]) -> bool:
    """Return whether a line is short, and neither speaks of the user nor is closed off."""
    return _words(line) <= _BARE and all(_open(unit) and not _OWN.search(unit.folded) for unit in line)


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
        pattern = re.compile("".join(table("speech", "others")[name]))
        setattr(self, name, pattern)
        return pattern


_P = _Patterns()
