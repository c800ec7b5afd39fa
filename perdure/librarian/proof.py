"""What shows that the user said what an operation does: their own words of these turns, and nothing else.

A language model does what pages and mails tell it, too, and words well what nobody said. So the quote must stand in the
user's plain words, and is read with the rest of its clause, from which nothing can be cut. Where a note may say
something else than that clause, the clause is stored in its place.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from perdure.capture.language import language, language_of
from perdure.capture.reading import END, FORMER, FRAMING, LIMITED, NOW_SO
from perdure.capture.sentences import sentences
from perdure.capture.statements import capital
from perdure.librarian.operations import (
    File,
    Lesson,
    Merge,
    Noted,
    Nothing,
    Operation,
    Remember,
    Replace,
    Triggers,
    Withdraw,
    targets,
)
from perdure.librarian.request import Request, Turn
from perdure.regex import lazy
from perdure.store.fact import Fact
from perdure.text.lexicon import kin, listed, stop_words, table, word_set
from perdure.text.normalise import cut_ending, fold, match_terms
from perdure.text.quotes import bare
from perdure.text.sameness import details, others, telling

LEAST: Final = 3
"""Words that carry meaning, which a quote has at least; one is enough where its user speaks of themselves."""
BORNE: Final = 0.5
"""The share of a note's words that its quote has at least; below, the quote is about something else."""
ALIKE: Final = 1 / 3
"""The share of a memory's words beyond which it says more than a note about the same."""
NEAR: Final = 0.28
"""Cosine from which on a quote is about what a memory is about."""
_APART: Final = 0.1
"""By so much a statement of a memory is farther from a quote than another one if the quote leaves it as it is."""
LONGEST: Final = 400
"""Characters of what is stored in the place of a note."""
_NOT, _CORRECT, _DENY, _FORGET, _TOLD, _ALWAYS = (
    listed("api", "asking", name) for name in ("not", "correct", "deny", "forget", "told", "always")
)
_CHANGES: Final = (END, NOW_SO, FRAMING, FORMER, _CORRECT, _DENY)
_CHANGED: Final = listed("librarian", "words", "changed")
_SUPPOSED: Final = listed("librarian", "words", "supposed")
_JOINED: Final = listed("librarian", "words", "joined")
_HANGING: Final = listed("librarian", "words", "hanging")
_DENSE: Final = "\u3040-\u30ff\u3400-\u9fff"
_TOKEN = lazy(rf"[{_DENSE}]|[^\W{_DENSE}]+")
_BOUNDARY = lazy(r"[,;:.!?…—–\n()\u3001\u3002\uff01\uff0c\uff1a\uff1b\uff1f]|\s-\s")
_FIGURE = lazy(r"\d")
_SPEAKER = lazy(r"\b(?:i|my|we|our)\b")
_USER = lazy(r"(?i)\bthe user('s)?(?!\w)")
_PLACING: Final = word_set(f"{table('text', 'sameness')['ordered']} my our")
"""Words that say in which place others stand, and whose something is."""
_KIN: Final = frozenset(kin())


@dataclass(frozen=True, slots=True)
class Proven:
    """An operation that the user's words prove."""

    operation: Operation
    turn: Turn  # in which it was said
    text: str = ""  # what is to be kept
    target: Fact | None = None  # what gives its place up, is withdrawn, or gets something
    beside: tuple[Fact, ...] = ()  # what gives its place up with it
    twins: tuple[Fact, ...] = ()  # what capture has made of the same words
    rest: str = ""  # what else the target says, which stays


@dataclass(frozen=True, slots=True)
class Refused:
    """An operation that they do not prove."""

    operation: Operation
    reason: str  # in a few words that are no memory


@dataclass(frozen=True, slots=True)
class _Quote:
    """Where a quote stands."""

    turn: Turn
    text: str  # the whole clause around it
    passage: str  # the whole sentence
    around: str  # that with the sentence before it and the one behind


Near = Callable[[str, str], float]
"""How near two texts are by their meaning, as a cosine."""


def unknown(one: str, other: str) -> float:
    """Say that it is not known how near two texts are: only their words tell."""
    return 0.0


def prove(operation: Operation, request: Request, near: Near = unknown) -> Proven | Refused | None:
    """Return an operation with what it may do, or why it may do nothing; None: there is nothing to do."""
    if isinstance(operation, Nothing):
        return None
    facts = [request.memories[name] for name in targets(operation) if name in request.memories]
    if len(facts) < len(list(targets(operation))):
        return Refused(operation, "names a memory that was not shown")
    turns = request.batch.turns
    if isinstance(operation, Lesson):
        return _lesson(operation, turns)
    quote = next(filter(None, (_found(operation.quote, turn) for turn in reversed(turns))), None)
    if quote is None:
        return Refused(operation, "the quote is not in what the user says")
    if isinstance(operation, Remember | Replace):
        return _noted(operation, quote, facts, request, near)
    if isinstance(operation, Merge):
        return _merged(operation, quote, facts)
    if isinstance(operation, Withdraw):
        return _withdrawn(operation, quote, facts[0], new=operation.target in request.new, near=near)
    if not (_stems(quote.passage) & _stems(facts[0].text)):
        return Refused(operation, "the quote does not mention the memory")
    if isinstance(operation, File):
        open_ = facts[0].category == "other" or operation.target in request.new
        return Proven(operation, quote.turn, target=facts[0]) if open_ else Refused(operation, "it has a category")
    return _aimed(operation, quote, facts[0], aimed=operation.target in request.aimed)


def aims(triggers: Iterable[str], known: str) -> list[str]:
    """Return those of some triggers that bring in no name and no figure, and say something."""
    return [each for each in triggers if not _foreign(each, known) and len(match_terms(each)) > 1]


def rewords(fact: Fact, text: str) -> bool:
    """Return whether a text is about what a memory says, which says hardly more."""
    known, told = _stems(bare(fact.text)), _stems(text)
    return bool(known) and len(known - told) <= ALIKE * len(known)


def _noted(operation: Noted, quote: _Quote, facts: Sequence[Fact], request: Request, near: Near) -> Proven | Refused:
    if _says_nothing(quote.text):
        return Refused(operation, "the quote says too little")
    if _asks(quote):
        return Refused(operation, "the quote is a question or a supposition")
    old = facts[0] if facts else None
    known = f"{quote.text}\n{old.text if old else ''}"
    note, whole = _stems(operation.note), _stems(known)
    if len(note & whole) < BORNE * len(note) or not note & _stems(quote.text):
        return Refused(operation, "the quote does not support the note")
    instead = quote.passage if _cut(quote) else quote.text
    foreign = _foreign(operation.note, f"{known}\n{quote.passage}")
    text = operation.note if not foreign and _agrees(operation.note, quote, old) else capital(instead[:LONGEST])
    if isinstance(operation, Remember):
        return Proven(operation, quote.turn, text)
    assert old is not None  # noqa: S101 - a replacement has a target
    if operation.target in request.new and rewords(old, quote.passage):
        keeps = all(_stems(each) & _stems(text) for each in _statements(old))
        return Proven(operation, quote.turn, text if keeps else capital(quote.passage[:LONGEST]), old)
    rest = _rest(old, quote, near) if _changes(quote) and _means(quote, old, near) else None
    if rest is None:
        return Proven(operation, quote.turn, text)  # it is kept beside what it does not change
    return Proven(operation, quote.turn, text, old, rest=rest)


def _merged(operation: Merge, quote: _Quote, facts: Sequence[Fact]) -> Proven | Refused:
    together = "\n".join(fact.text for fact in facts)
    if len({fact.id for fact in facts}) < len(facts):
        return Refused(operation, "names a memory twice")
    if not all(_about(fact, quote.passage) for fact in facts):
        return Refused(operation, "the quote does not mention a memory")
    if not _stems(operation.note) <= _stems(together) or _foreign(operation.note, together):
        return Refused(operation, "the note says more than the memories")
    for fact in facts:
        if _signs(fact.text) != _signs(operation.note) or telling(_own(fact.text)) - telling(_own(operation.note)):
            return Refused(operation, "the note omits something")
        if len(_stems(fact.text) - _stems(operation.note)) > ALIKE * len(_stems(fact.text)):
            return Refused(operation, "the memories do not say the same thing")
    return Proven(operation, quote.turn, operation.note, facts[0], tuple(facts[1:]))


def _withdrawn(operation: Withdraw, quote: _Quote, fact: Fact, *, new: bool, near: Near) -> Proven | Refused:
    if operation.why == "not_users":
        return Proven(operation, quote.turn, target=fact) if new else Refused(operation, "not in these turns")
    ends = (_changes(quote) or _FORGET.search(fold(quote.passage))) and not _asks(quote)
    rest = _rest(fact, quote, near) if ends and _means(quote, fact, near) else None
    if rest is None:
        return Refused(operation, "the quote does not end the memory")
    return Proven(operation, quote.turn, target=fact, rest=rest)


def _aimed(operation: Triggers, quote: _Quote, fact: Fact, *, aimed: bool) -> Proven | Refused:
    if aimed:
        return Refused(operation, "it has triggers")
    if not aims(operation.triggers, f"{quote.passage}\n{fact.text}"):
        return Refused(operation, "the triggers add a name or figure, or say too little")
    return Proven(operation, quote.turn, target=fact)


def _lesson(operation: Lesson, turns: Sequence[Turn]) -> Proven | Refused:
    for turn in reversed(turns):
        found = _span(operation.quote, turn.tools)
        if found is not None:
            quote = turn.tools[slice(*found)]
            note = _stems(operation.note)
            if _says_nothing(quote) or _foreign(operation.note, quote) or len(note & _stems(quote)) < BORNE * len(note):
                return Refused(operation, "the quote does not support the note")
            return Proven(operation, turn, operation.note if _signs(operation.note) == _signs(quote) else quote)
    return Refused(operation, "the quote is not in what a tool returned")


def _found(quote: str, turn: Turn) -> _Quote | None:
    """Return a quote with its clause and its sentence, if it stands in what the user says in a turn."""
    found = _span(quote, turn.said)
    if found is None:
        return None
    start, end = found
    marks = [match.span() for match in _BOUNDARY.finditer(turn.said) if not _within_figure(turn.said, match)]
    left = max((stop for _, stop in marks if stop <= start), default=0)
    right = min((begin for begin, _ in marks if begin >= end), default=len(turn.said))
    return _Quote(turn, turn.said[left:right].strip(), *_sentences(turn.said, start, end))


def _span(quote: str, said: str) -> tuple[int, int] | None:
    """Return where a quote stands in a text, spelling and punctuation aside."""
    wanted = [fold(each) for each in _TOKEN.findall(quote)]
    found = list(_TOKEN.finditer(said))
    words = [fold(each[0]) for each in found]
    for at in range(len(words) - len(wanted) + 1 if wanted else 0):
        if words[at : at + len(wanted)] == wanted:
            return found[at].start(), found[at + len(wanted) - 1].end()
    return None


def _within_figure(text: str, match: re.Match[str]) -> bool:
    """Return whether a mark stands within a number, a time or a name of a file: "3.9", "10:30", "main.py"."""
    before, after = text[match.start() - 1 : match.start()], text[match.end() : match.end() + 1]
    return match[0] in ".,:" and before.isalnum() and after.isalnum()


def _sentences(said: str, start: int, end: int) -> tuple[str, str]:
    """Return the sentences in which a part of a text stands, and these with their neighbours."""
    every, at = sentences(said, language_of(said)), 0
    within = []
    for number, sentence in enumerate(every):
        span = _span(sentence, said[at:])
        if span is None:
            continue
        begin, stop = at + span[0], at + span[1]
        at = stop
        if begin < end and stop > start:
            within.append(number)
    if not within:
        return said[start:end], said
    first, last = within[0], within[-1]
    return " ".join(every[first : last + 1]), " ".join(every[max(0, first - 1) : last + 2])


def _says_nothing(text: str) -> bool:
    terms, folded, code = match_terms(text), fold(text), language_of(text)
    speaks = language(code)
    own = _SPEAKER.search(folded) or (code != "en" and (speaks.oneself.search(folded) or speaks.own.search(folded)))
    return len(terms) < (1 if own else LEAST)


def _asks(quote: _Quote) -> bool:
    """Return whether a clause is a question that gives no rule, or is said of what is not so."""
    folded = fold(quote.passage)
    asks = quote.passage.rstrip().endswith(("?", "\uff1f"))
    ends = fold(quote.passage).rstrip(" ?\uff1f").endswith(fold(quote.text).strip(" ?\uff1f")[-12:])
    return (asks and ends and not _ALWAYS.search(folded)) or bool(_SUPPOSED.search(folded))


def _changes(quote: _Quote) -> bool:
    """Return whether a quote, or a sentence beside it, says that something is over or otherwise now."""
    said = fold(quote.around)
    return any(each.search(said) for each in (*_CHANGES, _CHANGED))


def _about(fact: Fact, text: str) -> bool:
    """Return whether a text has a word of what a memory is about."""
    slot = {cut_ending(word) for word in fold(fact.key or "").split()}
    return bool((_stems(fact.text) | slot) & _stems(text))


def _means(quote: _Quote, fact: Fact, near: Near) -> bool:
    """Return whether a quote is about what a memory is about, by its words or by its meaning."""
    return _about(fact, quote.passage) or near(quote.passage, fact.text) >= NEAR


def _rest(fact: Fact, quote: _Quote, near: Near) -> str | None:
    """Return what of a memory a quote leaves as it is; None: it cannot be told which of its statements is meant.

    That is a statement that has no word of the quote and is far from it, or farther than another. What hangs on the
    others, by a "they" or a "so", goes with them, but for a rule.
    """
    parts = _statements(fact)
    if len(parts) == 1:
        return ""
    told = _stems(quote.passage)
    found = [(part, bool(_stems(part) & told), near(quote.passage, part)) for part in parts]
    nearest = max(how for _, _, how in found)
    if nearest < NEAR and not any(named for _, named, _ in found):
        return None
    stays = [part for part, named, how in found if not named and how < max(NEAR, nearest - _APART)]
    return ". ".join(capital(part.strip(" .,;")) for part in stays if _rules(part) or not _HANGING.match(fold(part)))


def _rules(text: str) -> bool:
    return bool(_ALWAYS.search(fold(text)))


def _statements(fact: Fact) -> list[str]:
    """Return the parts of a memory that are joined by an "and", each of which says something."""
    text = bare(fact.text)
    found, start = [], 0
    for join in _JOINED.finditer(text):
        before, behind = text[start : join.start()], text[join.end() :]
        if all(_rules(part) or len(_stems(part)) >= LEAST for part in (before, behind)):
            found.append(before)
            start = join.end()
    return [*found, text[start:]]


def _foreign(note: str, known: str) -> bool:
    """Return whether a note has a name, a figure or a time that is not in what is known."""
    there = {fold(each) for each in _TOKEN.findall(known)}
    stems = {cut_ending(each) for each in there}
    german = language_of(note) == "de"
    for place, word in enumerate(_TOKEN.findall(note)):
        folded = fold(word)
        figure = bool(_FIGURE.search(folded)) or folded in _times(note)
        named = len(word) > 1 and word[0].isupper() and not german
        name = named and not (place == 0 and folded in {*stop_words(), "user"})
        if (figure or name) and folded not in there and cut_ending(folded) not in stems:
            return True
    return False


def _times(text: str) -> set[str]:
    """Return the words of a text for numbers, days and months."""
    return set(details(text).figures)


def _agrees(note: str, quote: _Quote, old: Fact | None) -> bool:
    """Return whether a note says what its clause says: denied, limited, of the same people, in the same order."""
    if language_of(quote.text) != language_of(note) or language_of(quote.text) != "en":
        return " ".join(_TOKEN.findall(fold(quote.text))) == " ".join(_TOKEN.findall(fold(note)))
    if _signs(note) != _signs(quote.text) or _cut(quote):
        return False
    told, said = _sequence(note), _sequence(quote.text)
    known = {*said} | (_stems(old.text) if old else frozenset())
    beside, dropped = {*told} - known, {*said} - {*told}
    if beside and (dropped or not beside <= _stems(quote.turn.said)):
        return False
    if len(dropped) > BORNE * len(said):
        return False
    rest = iter(said)
    return all(word in rest for word in told if word in said)


def _cut(quote: _Quote) -> bool:
    """Return whether what stands before a clause in its sentence says who says so, or under which condition."""
    before = fold(quote.passage).partition(fold(quote.text))[0]
    return bool(_TOLD.search(before)) or _limits(before) != frozenset()


def _signs(text: str) -> tuple[object, ...]:
    """Return what a note must have in common with its quote: what is denied, limited, when it is, and of whom it is."""
    own = _own(text)
    found = details(own)
    figures = sorted(found.figures)
    people = frozenset(found.people) - {"i", "we"}
    relatives = frozenset(cut_ending(word) for word in fold(own).split() if word in _KIN)
    return (
        bool(_NOT.search(fold(own))), found.polarity, [word for word in fold(own).split() if word in _PLACING],
        figures, people, others(own), relatives, _limits(own),
    )  # fmt: skip


def _limits(text: str) -> frozenset[str]:
    return frozenset(LIMITED.findall(fold(text)))


def _own(text: str) -> str:
    """Return a note about the user as they would say it."""
    return _USER.sub(lambda match: "my" if match[1] else "I", text)


def _stems(text: str) -> frozenset[str]:
    return frozenset(_sequence(text))


def _sequence(text: str) -> Sequence[str]:
    return list(_content(_own(text)))


def _content(text: str) -> Iterator[str]:
    yield from (cut_ending(term) for term in match_terms(text))
