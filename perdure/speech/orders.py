"""Explicit orders to remember, in any language that the data file knows."""

from __future__ import annotations

import re
from collections.abc import Sequence

from perdure.regex import lazy
from perdure.text.lexicon import listed, table, word_set
from perdure.text.normalise import fold, match_terms

_REMEMBER = listed("speech", "orders", "remember")
_NO_ORDER = listed("speech", "orders", "no_order")
_DENIED = listed("speech", "orders", "denied")
_POLITE = listed("speech", "orders", "polite")
_ASIDE = listed("speech", "orders", "aside")
_NOT = lazy(r"\b(?:no|not|never|dont|nicht|nichts|nie|kein\w*|ne|pas|nunca|nao|non|mai)\b|n't\b|\bn'|\bne(?=zapom)")
_FORGET = lazy(r"forg[eo]t|verg[ei]ss|oubli|olvid|esque|dimentic|scord|felejt|zapom|\blost\b|\bperd|\bperc|verlor")
_BETWEEN = " ,;.!-–—"
_SAID_BEFORE = listed("speech", "orders", "said_before")
_JOINT = listed("speech", "shapes", "joint")


def says_again(message: str) -> bool:
    """Return whether somebody says that they have said something before, as in "I told you I'm vegetarian"."""
    return _SAID_BEFORE.search(fold(message)) is not None


def asks_to_remember(sentence: str) -> bool:
    """Return whether somebody asks for something to be remembered, be it only what stands beside the sentence."""
    return _order_in(fold(sentence)) is not None


def asked_for(told: Sequence[str], before: str = "") -> list[str | None]:
    """Return what of each sentence of a message is to be remembered; None: nothing, "": only what it points at.

    "Remember that." points at the sentence in front of it, or at the message `before`; at the head of a message, or of
    a list, at what follows.
    """
    found = [(order := _order_in(fold(sentence))) and _wanted(sentence, order) for sentence in told]
    left = [asked is None and not _asks(sentence) for asked, sentence in zip(found, told, strict=True)]
    for at in [at for at, asked in enumerate(found) if asked == ""]:
        heads = told[at].endswith(":")
        follow = [place for place in range(at + 1, len(told)) if left[place]]
        if at and left[at - 1] and _says(told[at - 1], 2) and not heads:
            found[at - 1] = told[at - 1]
        elif follow:
            found = [told[n] if n in (follow if heads else follow[:1]) else asked for n, asked in enumerate(found)]
        elif not at:
            found[at] = before if _says(before, 2) and not _asks(before) else ""
    return found


def asks_not_to_remember(sentence: str) -> bool:
    """Return whether somebody asks for something not to be remembered, in the words of an order to remember."""
    found = _REMEMBER.search(fold(sentence))
    return found is not None and _is_denied(found)


def _is_denied(order: re.Match[str]) -> bool:
    # "Don't forget:" asks for it; "Don't remember:" and "Forget:" ask for the opposite.
    return bool(_NOT.search(order[0])) is not bool(_FORGET.search(order[0]))


def _wanted(sentence: str, order: re.Match[str]) -> str:
    """Return what stands behind an order, or in front of it; "" if neither says anything."""
    if sentence.endswith(":"):
        return ""
    folded = order.string
    joint = _JOINT.match(folded, order.end())
    if joint and _says(joint["between"] or ""):
        joint = None  # what stands between is a part of it
    words, first, behind = sentence.split(), folded[: order.start()], folded[(joint or order).end() :]
    if _points_aside(order):
        behind = ""
    if _says(behind):
        return " ".join(words[len(words) - len(behind.split()) :]) if joint and len(behind.split()) > 1 else sentence
    if not _says(first):
        return ""
    return " ".join(words[: len(first.split())]).rstrip(" ,;-–—") if order[0][0] in ",;.!-–—" else sentence


def _points_aside(order: re.Match[str]) -> bool:
    """Return whether an order points at what stands beside it: nothing of its own stands before its pronoun."""
    aside = _ASIDE.fullmatch(order.string[order.start() :].lstrip(_BETWEEN))
    if aside is None:
        return False
    return not _says(aside["lead"][len(order[0].lstrip(_BETWEEN)) :])


def _says(text: str, least: int = 1) -> bool:
    """Return whether a text has at least so many words that carry meaning."""
    return len(set(match_terms(text)) - word_set(table("speech", "orders")["empty"])) >= least


def _asks(text: str) -> bool:
    return text.rstrip().endswith(("?", "？"))


def _order_in(folded: str) -> re.Match[str] | None:
    found = _REMEMBER.search(folded)
    if found is None or _NO_ORDER.search(folded) or _DENIED.search(folded[: found.start() + 1]):
        return None
    if _is_denied(found):
        return None
    return None if _asks(folded) and not _POLITE.search(folded) else found
