"""Make text inert before it is shown to a model inside a block of data."""

from __future__ import annotations

import re

from perdure.text.clean import clean

_ENTITIES = {"&": "&amp;", "<": "&lt;", ">": "&gt;"}
_PICTURE = "\u2190-\u2bff\u3030\u303d\u3297\u3299\ufe0f\U0001f000-\U0001faff"
# Persian and the Indic scripts spell words with joiners.
_JOINED = "\u0600-\u06ff\u0750-\u077f\u0900-\u0dff"

_HIDDEN = (
    r"\x80-\x9f\u00ad\u061c\u115f\u1160\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164\ufeff"
    r"\ufff9-\ufffb\U000e0000-\U000e0fff"
)
_BLANK = r"\x00-\x1f\x7f\u2028\u2029"
# One class is many times faster to look for than alternatives, and most texts have nothing special.
_SUSPECT = re.compile(f"[&<>`~{_BLANK}{_HIDDEN}]")
_SPECIAL = re.compile(
    r"(?P<entity>[&<>])"
    rf"|(?P<blank>[{_BLANK}]+)"
    r"|(?P<fence>`{3,}|~{3,})"
    rf"|(?P<kept>(?<=[{_PICTURE}])\u200d(?=[{_PICTURE}])|(?<=[{_JOINED}])[\u200c\u200d](?=[{_JOINED}]))"
    rf"|(?P<hidden>[{_HIDDEN}])"
)


def escape(text: str) -> str:
    r"""Escape a text so that it can neither end the block it stands in nor hide anything.

    `&`, `<` and `>` become entities. Line breaks and other control characters become one space, so
    that a role marker cannot stand at the start of a line. Characters that are invisible or change
    the direction of writing become visible, as in `\u202e`; joiners stay where emoji or a script
    need them. Runs of three or more backticks or tildes are set apart, so that no fence opens.

    Args:
        text: any string.

    Returns:
        One line; `text` itself when nothing is to be done.
    """
    text = clean(text)
    return _SPECIAL.sub(_escape_match, text) if _SUSPECT.search(text) else text


def _escape_match(match: re.Match[str]) -> str:
    found = match[0]
    match match.lastgroup:
        case "entity":
            return _ENTITIES[found]
        case "blank":
            return " "
        case "fence":
            return " ".join(found)
        case "kept":
            return found
        case _:
            code = ord(found)
            return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"
