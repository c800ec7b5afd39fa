"""Secrets that are lists: the seed phrase of a wallet, the recovery codes of an account."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from perdure.regex import lazy
from perdure.secrets.shapes import seed_words
from perdure.secrets.views import Span, View

SHORTEST = 12
"""Words of the shortest seed phrase (BIP 39)."""
_STEP = 11
"""Every eleventh word is looked up: one of them is in each phrase of twelve."""
_MARKS = ".,;:|\"'"
_WORD = lazy(r"[a-z]{3,8}(?![^\W\d_])")
_BETWEEN = lazy(r"[\s,;.|\"'\-]{1,6}(?:\d{1,2}[.):\s]{0,3})?(?:[\"'])?", re.ASCII)

_CUE = lazy(
    r"(?:recovery|backup|back-up|one[- ]time|emergency|scratch|rescue|2fa|mfa)[ _-](?:recovery[ _-]|backup[ _-])?codes?"
    r"|wiederherstellungscodes?|codes? de (?:secours|r\u00e9cup\u00e9ration|recuperaci\u00f3n|respaldo)"
    r"|c[\u00f3o]digos? de (?:recuperaci\u00f3n|respaldo)",
    re.IGNORECASE,
)
_STEMS = ("code", "digo")
_CUE_REACH = 32
_OPENING = lazy(
    r"[\"']?(?:[^\n:=\d]{0,60}(?:[:=]|\bis\b|\bare\b|\bsind\b|\bist\b|\bsont\b|\bson\b)|\s{0,3}\n)"
    r"[\s\[\"']{0,8}(?:\d{1,2}[.):]\s{0,3})?"
)
_CODE = lazy(
    r"(?:(?=[A-Za-z-]{0,20}\d)(?:[A-Za-z0-9]{4,8}(?:-[A-Za-z0-9]{4,8}){1,5}|[A-Za-z0-9]{8,20})|\d{6,10}"
    r"|[0-9]{3,4} [0-9]{3,4})(?![\w-])"
)
_NEXT = lazy(r"(?:[\s,;|\"'*\u2022\[\]-]{1,8}|\s{0,3}(?:and|und|et|y)\s{1,3})(?:\d{1,2}[.):]\s{0,3})?[\"'`]?")


def phrases(text: str, words: Sequence[str]) -> Iterator[Span]:
    """Yield seed phrases: twelve or more words of the list one after another, as no sentence has them.

    `words` stand in the text between white space.
    """
    if "12" in text:
        words = [word for word in words if not word[0].isdigit()]
    if not _in_a_row(words):
        return
    at = 0
    while (match := _WORD.search(text, at)) is not None:
        at = match.end()
        if match[0] not in seed_words() or (match.start() and text[match.start() - 1].isalnum()):
            continue
        count = 1
        while (between := _BETWEEN.match(text, at)) is not None:
            following = _WORD.match(text, between.end())
            if following is None or following[0] not in seed_words():
                break
            at = following.end()
            count += 1
        if count >= SHORTEST:
            yield Span(match.start(), at, "seed-phrase")


def recovery_codes(page: View) -> Iterator[Span]:
    """Yield the codes behind words such as "recovery codes:", as many as follow each other."""
    text, lower = page.text, page.lower
    for stem in _STEMS:
        at = lower.find(stem)
        while at >= 0:
            cue = _CUE.search(text, max(0, at - _CUE_REACH), at + _CUE_REACH)
            if cue is not None and cue.end() > at:
                at = cue.end()
                yield from _codes(text, at)
            at = lower.find(stem, at + 1)


def _codes(text: str, at: int) -> Iterator[Span]:
    opening = _OPENING.match(text, at)
    if opening is None:
        return
    code = _CODE.match(text, opening.end())
    while code is not None:
        yield Span(*code.span(), "recovery-code")
        between = _NEXT.match(text, code.end())
        code = _CODE.match(text, between.end()) if between is not None else None


def _in_a_row(words: Sequence[str]) -> bool:
    """Return whether half a seed phrase stands before or behind one of the words that are looked at."""

    def listed(place: int) -> bool:
        return 0 <= place < len(words) and words[place].strip(_MARKS) in seed_words()

    for at, word in enumerate(words[::_STEP]):
        if word.strip(_MARKS) in seed_words():
            place = at * _STEP
            if all(map(listed, range(place + 1, place + 6))) or all(map(listed, range(place - 5, place))):
                return True
    return False
