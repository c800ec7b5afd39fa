"""Answers to a list: which of its places somebody names, in the languages in which orders are read."""

from __future__ import annotations

import re

from perdure.regex import lazy
from perdure.text.normalise import fold

_ORDINALS = ["first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth"]
_ALL = r"(?:all|both|everything|alle|beide|tous|toutes|tod[oa]s|tutt[ie])(?: of (?:them|those|these))?"
_PLACES = rf"(?:{'|'.join(_ORDINALS)}|last|\d\d?)"
_ONE = rf"(?:(?:the|number|no|only|just|die|der|das|nur|le|la|el|il|o|a) )*{_PLACES}(?: one)?"
_PLEASE = r"(?: ?(?:please|pls|thanks|bitte|stp|por favor|per favore))*"
_EVERY_ONE = lazy(
    rf"(?:(?:yes|yeah|yep|sure|ok|okay|ja|oui|si|sim|{_ALL})(?: |$))+"
    rf"(?:(?:forget|delete|remove|do|go ahead|them|it|that|those|{_ALL})(?: |$))*{_PLEASE}"
)
_SOME = lazy(
    rf"(?:yes )?(?P<but>{_ALL} (?:but|except|ausser|sauf|excepto|menos|exceto|tranne)(?: for)? )?"
    rf"(?P<named>{_ONE}(?: (?:and |und |et |y |e )?{_ONE})*){_PLEASE}"
)
_NONE = lazy(
    r"(?:no|none|neither|nope|nothing|keep|never ?mind|nein|keine[rs]?|non|aucun\w*|ningun\w*|nao|nenhum\w*|nessuno)\b"
)
_PLACE = lazy(rf"\b{_PLACES}\b")


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
