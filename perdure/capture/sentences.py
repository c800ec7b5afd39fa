"""Step two: prose of a message, split into sentences."""

from __future__ import annotations

import re

_ABBREVIATIONS = frozenset(
    [
        "mr",
        "mrs",
        "ms",
        "dr",
        "prof",
        "st",
        "vs",
        "etc",
        "e.g",
        "i.e",
        "approx",
        "no",
        "inc",
        "ltd",
        "co",
        "jr",
        "sr",
        "jan",
        "feb",
        "mar",
        "apr",
        "jun",
        "jul",
        "aug",
        "sep",
        "sept",
        "oct",
        "nov",
        "dec",
        "a.m",
        "p.m",
        "u.s",
        "u.k",
    ]
)
# Possessive, and only from the first mark of a run: a long run of dots costs one look.
_END = re.compile(r"(?<![.!?…])[.!?…]++[\"')\]]*+(?=\s)|[。！？]++[」』]?|\n++")
_BULLET = re.compile(r"^\s*(?:[-*•+]|\d{1,3}[.)])\s+")
_LEAD_IN = re.compile(r"^[^:;,.!?]{2,40}: (?=(?:I|my|we|our|the)\b)", re.IGNORECASE)
_JOIN = re.compile(
    r"(?:,|;|,? and|,? but) (?=(?:I(?:'m|'ve)? |my |we(?:'re|'ve)? |our )(?!think|mean|guess|hope|know))"
)
_QUOTED = re.compile(r"^\s*(?:>|\|)")


def prose(text: str) -> str:
    """Return the text without fenced code and quoted lines."""
    parts = text.split("```")
    outside = "\n".join(parts[::2])
    return "\n".join(line for line in outside.split("\n") if not _QUOTED.match(line))


def sentences(text: str) -> list[str]:
    """Split prose into sentences, in order; bullets count as sentences."""
    found: list[str] = []
    start = 0
    for match in _END.finditer(text):
        if match.group().startswith(".") and _abbreviated(text, start, match.start()):
            continue
        found.append(text[start : match.end()])
        start = match.end()
    found.append(text[start:])
    cleaned = (" ".join(_BULLET.sub("", sentence).split()) for sentence in found)
    return [sentence for sentence in cleaned if any(char.isalnum() for char in sentence)]


def clauses(sentence: str) -> list[str]:
    """Split a sentence where a second statement about oneself begins: one idea per fact."""
    sentence = _LEAD_IN.sub("", sentence)
    return [part for part in _JOIN.split(sentence) if part]


def _abbreviated(text: str, start: int, dot: int) -> bool:
    word = text[max(start, dot - 12) : dot].rsplit(None, 1)[-1:]
    if not word:
        return False
    last = word[0].lower().lstrip("(\"'")
    return last in _ABBREVIATIONS or (len(last) == 1 and last.isalpha() and last != "i")
