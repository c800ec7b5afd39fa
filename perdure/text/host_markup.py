"""What a person typed, in a prompt as coding agents hand it over: much in it may be of the host, not of the person."""

from __future__ import annotations

import re

from perdure.regex import lazy

_REMINDER = lazy(r"<system-reminder>.*?(?:</system-reminder>|\Z)", re.DOTALL)
_ENVELOPE = lazy(r"\s*<([A-Za-z][\w.:-]*)(?:\s[^<>]*)?>")
_NOT_SAID = lazy(
    r"/[\w:-]+(?:\s|\Z)|\[Request interrupted|Caveat: The messages below|This session is being continued from a "
    r"previous|# AGENTS\.md instructions"
)
"""How a command begins, and what a host writes in the user's place."""


def said(prompt: str) -> str:
    """Return what the user says in a prompt: nothing of what stands in envelopes before it, known or not."""
    text = _REMINDER.sub(" ", prompt)
    while (begins := _ENVELOPE.match(text)) is not None:
        _, closed, rest = text[begins.end() :].partition(f"</{begins[1]}>")
        if not closed:
            # A tag without an end, as somebody may type one; no word of a language has these.
            return "" if re.search(r"[_:-]", begins[1]) else text.strip()
        text = rest
    text = text.strip()
    return "" if _NOT_SAID.match(text) else text
