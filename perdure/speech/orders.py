"""Explicit orders to remember, in any language that the data file knows."""

from __future__ import annotations

import re

from perdure.regex import lazy
from perdure.text.lexicon import listed
from perdure.text.normalise import fold

_REMEMBER = listed("speech", "orders", "remember")
_NO_ORDER = listed("speech", "orders", "no_order")
_POLITE = listed("speech", "orders", "polite")
_WORD = lazy(r"\S+")
_JOINT = lazy(
    r"[^:.!?]{0,24}?(?::|,? (?:that|dass|das|que|qu'|che|dat|at|att|ze|ca|hogy|rang|oti|ότι|что|що|כי|ש)(?= )) *"
    r"|(?<=:) *"
)


def asks_to_remember(sentence: str) -> bool:
    """Return whether somebody asks for something to be remembered, in a sentence that also says what."""
    return _order_in(fold(sentence)) is not None


def without_order(sentence: str) -> str:
    """Return what is to be remembered, where the order ends with a colon or a conjunction; else the sentence."""
    folded = fold(sentence)
    order = _order_in(folded)
    joint = _JOINT.match(folded, order.end()) if order else None
    if joint is None:
        return sentence
    words = _WORD.findall(sentence)
    rest = words[len(_WORD.findall(folded[: joint.end()])) :]
    return " ".join(rest) if len(rest) > 1 else sentence


def _order_in(folded: str) -> re.Match[str] | None:
    found = _REMEMBER.search(folded)
    if found is None or not any(map(str.isalnum, folded[found.end() :])) or _NO_ORDER.search(folded):
        return None
    return None if folded.rstrip().endswith(("?", "？")) and not _POLITE.search(folded) else found
