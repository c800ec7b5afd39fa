"""Make text inert before it is shown to a model inside a block of data."""

from __future__ import annotations

import re

from perdure.text.clean import clean

_ENTITIES = {"&": "&amp;", "<": "&lt;", ">": "&gt;"}
_PICTURE = "\u2190-\u2bff\u3030\u303d\u3297\u3299\U0001f000-\U0001faff"
# Emoji have a selector behind them that asks for colour, also those made of a digit or of an old sign.
_DRAWN = rf"#*0-9\u00a9\u00ae\u203c\u2049\u2122\u2139{_PICTURE}"
# Persian and the Indic scripts spell words with joiners.
_JOINED = "\u0600-\u06ff\u0750-\u077f\u0900-\u0dff"

# Controls, joiners, directions, fillers and selectors: one variation selector after the other can spell any text.
_HIDDEN = (
    r"\x80-\x9f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f"
    r"\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
_BLANK = r"\x00-\x1f\x7f\u2028\u2029"
# One class is many times faster to look for than alternatives, and most texts have nothing special.
_SUSPECT = re.compile(f"[&<>`~{_BLANK}{_HIDDEN}]")
_SPECIAL = re.compile(
    r"(?P<entity>[&<>])"
    rf"|(?P<blank>[{_BLANK}]+)"
    r"|(?P<fence>`{3,}|~{3,})"
    rf"|(?P<kept>(?<=[{_DRAWN}])[\ufe0e\ufe0f]|(?<=[{_PICTURE}\ufe0f])\u200d(?=[{_PICTURE}])"
    rf"|(?<=[{_JOINED}])[\u200c\u200d](?=[{_JOINED}]))"
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
