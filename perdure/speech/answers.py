"""Answers to a list: which of its places somebody names, in the languages in which orders are read."""

from __future__ import annotations

import re

from perdure.text.lexicon import listed
from perdure.text.normalise import fold

_ORDINALS = ["first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth"]
_EVERY_ONE = listed("speech", "shapes", "every_one")
_SOME = listed("speech", "shapes", "some")
_NONE = listed("speech", "shapes", "none")
_PLACE = listed("speech", "shapes", "place")


def chosen(text: str, of: int) -> list[int] | None:
    """Return the places, from 0, that an answer to a list of so many names; none for a no; None: it is no answer."""
    folded = " ".join(re.sub(r"[^\w' ]", " ", fold(text)).split())
    if _NONE.match(folded):
        return []
    if _EVERY_ONE.fullmatch(folded):
        return list(range(of))
    some = _SOME.fullmatch(folded)
    named = {_place(found[0], of) for found in _PLACE.finditer(some["named"])} if some else set()
    if some is None or not named <= set(range(of)):
        return None
    return [place for place in range(of) if (place in named) is not bool(some["but"])]


def _place(word: str, of: int) -> int:
    if word == "last":
        return of - 1
    return _ORDINALS.index(word) if word in _ORDINALS else int(word) - 1
