"""When a memory counts as a labelled sentence: by the words that both have."""

from __future__ import annotations

import re
from itertools import pairwise

SAME = 0.6
"""From which share of the shorter one's words in common on two texts are taken for one."""
_DENSE = re.compile(r"[\u3040-\u30ff\u3400-\u9fff]")
_WORD = re.compile(r"\w+(?:['’]\w+)*")


def overlap(one: str, other: str) -> float:
    """Return the share of the shorter text's words, or pairs of signs where a script has no spaces, that both have."""
    first, second = _words(one), _words(other)
    return len(first & second) / min(len(first), len(second)) if first and second else 0.0


def nearer(text: str, one: str, other: str) -> bool:
    """Return whether a text has more of its words in common with one than with another."""
    words, first, second = _words(text), _words(one), _words(other)
    return len(words & first) / len(words | first) > len(words & second) / len(words | second)


def _words(text: str) -> frozenset[str]:
    words = _WORD.findall(text.casefold())
    if len(words) > 2 and not _DENSE.search(text):
        return frozenset(words)
    signs = "".join(sign for sign in text if sign.isalnum())
    return frozenset(map("".join, pairwise(signs))) if _DENSE.search(text) else frozenset(signs)
