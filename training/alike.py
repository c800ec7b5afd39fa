"""When a memory counts as a labelled sentence: by the words that both have."""

from __future__ import annotations

import re

SAME = 0.6
"""From which share of the shorter one's words in common on two texts are taken for one."""
_WORD = re.compile(r"\w+(?:['’]\w+)*")


def overlap(one: str, other: str) -> float:
    """Return the share of the shorter text's words, or signs where a script has no spaces, that both have."""
    first, second = _words(one), _words(other)
    return len(first & second) / min(len(first), len(second)) if first and second else 0.0


def _words(text: str) -> frozenset[str]:
    words = _WORD.findall(text.casefold())
    return frozenset(words if len(words) > 2 else [sign for sign in text if sign.isalnum()])
