"""Texts that are written to a model instead of to a person: what somebody plants in a memory to be obeyed later.

Nothing here decides what is recalled: a recalled text is fenced as data whatever it says. This is for people who look
through what they are about to take over.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from perdure.regex import lazy
from perdure.text.escape import visible

_SIGNS: Mapping[str, re.Pattern[str]] = {
    "asks to ignore instructions": lazy(
        r"\b(?:ignore|disregard|forget|override)\b.{0,30}\b(?:previous|prior|above|earlier|system|all)\b.{0,30}"
        r"\b(?:instructions?|prompts?|rules|messages)\b",
        re.IGNORECASE,
    ),
    "gives the model another role": lazy(
        r"\byou are (?:now|no longer)\b.{0,40}\b(?:ai|assistant|model|agent|mode|dan|jailbroken|unrestricted)\b"
        r"|\b(?:developer|jailbreak|god) mode\b",
        re.IGNORECASE,
    ),
    "imitates a turn or a fence": lazy(
        r"<\|(?:im_start|im_end|system|endoftext)\|>|\[/?INST\]|</?(?:system|memory-context|system-reminder)\b"
        r"|^\s*(?:system|assistant)\s*:",
        re.IGNORECASE | re.MULTILINE,
    ),
    "asks to hide something from the user": lazy(
        r"\b(?:do not|don't|never|without)\b.{0,20}\b(?:tell|telling|inform|informing|mention|show|alert)\w*\b.{0,20}"
        r"\bthe (?:user|human|owner)\b",
        re.IGNORECASE,
    ),
    "asks to send or run something": lazy(
        r"\b(?:curl|wget)\b[^\n|]{0,200}\|\s*(?:ba|z)?sh\b"
        r"|\b(?:send|post|upload|forward|exfiltrate)\b.{0,60}"
        r"\b(?:passwords?|credentials?|api[ _-]?keys?|tokens?|secrets?|conversation)\b.{0,40}\b(?:to|at)\b",
        re.IGNORECASE,
    ),
}
"""Signs by what they show."""
_HIDDEN = lazy(r"[\u200b\u202a-\u202e\u2060-\u2064\u2066-\u2069\U000e0000-\U000e007f]")


def orders_in(text: str) -> str | None:
    """Return in words what shows that a text is meant for a model, or None if nothing does."""
    found = next((what for what, pattern in _SIGNS.items() if pattern.search(text)), None)
    # Characters that nobody sees have a use in emoji and some scripts; there they are shown as they are.
    if found is None and _HIDDEN.search(text) and visible(text) != text:
        return "holds characters that nobody sees"
    return found
