"""Step two: sentences, and the clauses of a sentence that can stand alone."""

from __future__ import annotations

import re

import sentencex

from perdure.regex import lazy

# Where chat ends a sentence although the library, which is made for edited text, goes on: runs of marks, and "ok.",
# which it takes for an abbreviation.
_ALSO_END = lazy(r"(?:(?<![.!?…])[.!?…]{2,}+|(?<!\w)(?:ok|no|lol)\.)(?=\s)", re.IGNORECASE)
_NO_END = lazy(r"\b(?:approx|min|max|ca|tel|incl)\.$", re.IGNORECASE)
_BULLET = lazy(r"^\s*(?:[-*•+]|\d{1,3}[.)])\s+")
_LEAD_IN = lazy(
    r"^[^:;.!?]{2,200}: (?=(?:(?:in|on|at|for|after|before|since) [^,:]{1,60} )?(?:I|my|we|our)\b)", re.IGNORECASE
)
_OWN = r"(?:I(?:'m|'ve)? |my |we(?:'re|'ve)? |our )(?!think|mean|guess|hope|know)"
_NAME = r"(?-i:[A-Z][\w-]+ (?:is|was|has|\w{2,}s)\b)"
_JOIN = lazy(rf"(?:,|;|,? and|,? but) (?={_OWN}|{_NAME})|(?::| [–—-]) (?={_OWN})", re.IGNORECASE)
_TAG = lazy(r",? (?:ok|okay|right|yeah|yes|alright|please|deal|got it|understood)\?+$", re.IGNORECASE)


def sentences(text: str, code: str = "en") -> list[str]:
    """Split prose into sentences, in order; lines and bullets count as sentences.

    Args:
        text: prose.
        code: its language; of one that the library does not know, it takes the nearest.
    """
    found: list[str] = []
    # The library refuses half a surrogate pair, which JSON from a host may hold.
    whole = text.encode("utf-8", "replace").decode("utf-8")
    for line in filter(None, map(str.strip, whole.split("\n"))):
        open_end = False
        for sentence in sentencex.segment(code, _BULLET.sub("", line)):
            for part in _split(sentence):
                if open_end:
                    found[-1] += f" {part}"
                else:
                    found.append(part)
                open_end = bool(_NO_END.search(part))
    return [sentence for sentence in found if any(map(str.isalnum, sentence))]


def _split(sentence: str) -> list[str]:
    ends = [match.end() for match in _ALSO_END.finditer(sentence)]
    parts = (sentence[start:end] for start, end in zip([0, *ends], [*ends, None], strict=True))
    return [" ".join(part.split()) for part in parts if part.strip()]


def clauses(sentence: str) -> list[str]:
    """Split a sentence where a second statement about oneself or a named person begins: one idea per fact."""
    return [part for part in _JOIN.split(sentence) if part]


def without_lead_in(sentence: str) -> str:
    """Return a sentence without what only announces it, as "background:" before "I work nights"."""
    return _LEAD_IN.sub("", sentence)


def without_tag(sentence: str) -> str:
    """Return a sentence without a tag that asks for assent, as "ok?"."""
    return _TAG.sub(".", sentence)
