"""Secrets that are lists: the seed phrase of a wallet, the recovery codes of an account."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from perdure.regex import lazy
from perdure.secrets.shapes import seed_words
from perdure.secrets.views import Span, View
from perdure.text.lexicon import listed

SHORTEST = 12
"""Words of the shortest seed phrase (BIP 39)."""
_STEP = 11
"""Every eleventh word is looked up: one of them is in each phrase of twelve."""
_MARKS = ".,;:|\"'"
_WORD = lazy(r"[a-z]{3,8}(?![^\W\d_])")
_BETWEEN = lazy(r"[\s,;.|\"'\-]{1,6}(?:\d{1,2}[.):\s]{0,3})?(?:[\"'])?", re.ASCII)

_CUE = listed("secrets", "phrases", "cue")
_STEMS = ("code", "digo")
_CUE_REACH = 32
_OPENING = listed("secrets", "phrases", "opening")
_CODE = listed("secrets", "phrases", "code")
_NEXT = listed("secrets", "phrases", "next")


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
