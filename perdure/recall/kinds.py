"""Questions for all of a kind, as "What are my allergies?": of what answers one, nothing is another's rival."""

from __future__ import annotations

from perdure.regex import lazy
from perdure.text.lexicon import listed
from perdure.text.normalise import fold
from perdure.text.sameness import others

_ASKED, _MINE, _GENERAL = (listed("recall", "kinds", name) for name in ("asked", "mine", "general"))
_SPEAKER = lazy(r"\b(?:i|i'(?:m|ve|d|ll)|me|we|we'(?:re|ve|d|ll)|us)\b")
MOST_WORDS = 24
"""Who asks for a kind says little else."""


def asks_for_all(prompt: str) -> bool:
    """Return whether a prompt asks for all of a kind that is the asker's."""
    folded = fold(prompt)
    if len(folded.split()) > MOST_WORDS or _GENERAL.search(folded):
        return False
    # "Which books does my brother own?" is about him.
    theirs = bool(others(prompt)) and not _SPEAKER.search(folded)
    return not theirs and bool(_MINE.search(folded) and _ASKED.search(folded))


def may_be_the_askers(text: str) -> bool:
    """Return whether a memory may be one of the asker's: what is said of a relative alone is not."""
    return not others(text) or bool(_SPEAKER.search(fold(text)))
