"""What earlier rules chose, so that it can be told from what somebody chose."""

from __future__ import annotations

from perdure.regex import lazy
from perdure.text.normalise import fold

TOO_UNCERTAIN = "too uncertain"
"""What the journal says of a memory that expired because its confidence had fallen."""
GUESSES = frozenset(
    ["slot holds one value", "names another time", "says otherwise of the same", "says that it is over"]
)
"""What it says of those that capture replaced or withdrew by itself."""
_BY_WORDS = (
    ("permanent", lazy(r"\b(?:decided|architecture|always use|never use|birthday|allergic)\b")),
    ("session", lazy(r"\b(?:currently debugging|right now|this session)\b")),
    ("active", lazy(r"\b(?:working on|need to|to-?do|blocker|sprint|this week)\b")),
    ("checkpoint", lazy(r"\b(?:checkpoint|preflight)\b")),
)


def class_by_words(text: str) -> str:
    """Return the decay class that a memory got where nobody named one, and its slot did not make it permanent."""
    folded = fold(text)
    return next((decay_class for decay_class, pattern in _BY_WORDS if pattern.search(folded)), "stable")
