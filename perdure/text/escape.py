"""Make text inert before it is shown: to a model inside a block of data, or to a person on a terminal.

What is written to a model instead of to a person is told as well (`orders_in`), for people who look through what they
are about to take over. It decides nothing: a recalled text is fenced as data whatever it says.
"""

from __future__ import annotations

import re

from perdure.regex import lazy
from perdure.text.clean import clean
from perdure.text.lexicon import listed, table

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
_SUSPECT = lazy(f"[&<>`~{_BLANK}{_HIDDEN}]")
_KEPT = (
    rf"(?P<kept>(?<=[{_DRAWN}])[\ufe0e\ufe0f]|(?<=[{_PICTURE}\ufe0f])\u200d(?=[{_PICTURE}])"
    rf"|(?<=[{_JOINED}])[\u200c\u200d](?=[{_JOINED}]))"
)
_SPECIAL = lazy(rf"(?P<entity>[&<>])|(?P<blank>[{_BLANK}]+)|(?P<fence>`{{3,}}|~{{3,}})|{_KEPT}|(?P<hidden>[{_HIDDEN}])")
_OBEYED = lazy(rf"[{_BLANK}{_HIDDEN}]")
_SIGNS = lazy(rf"(?P<blank>[\t-\r\x85\u2028\u2029]+)|{_KEPT}|(?P<hidden>[{_BLANK}{_HIDDEN}])")
_UNSAID = lazy(rf"[\x7f\u2028\u2029\ud800-\udfff{_HIDDEN}]")
"""What JSON may hold as it is, and a terminal obeys or does not show."""


def escape(text: str) -> str:
    r"""Escape a text so that it can neither end the block it stands in nor hide anything.

    `&`, `<` and `>` become entities. Line breaks and other control characters become one space, so
    that a role marker cannot stand at the start of a line. Characters that are invisible or change
    the direction of writing become visible, as in `\u202e`; joiners stay where emoji or a script
    need them. Runs of three or more backticks or tildes are set apart, so that no fence opens.
    """
    text = clean(text)
    return _SPECIAL.sub(_escape_match, text) if _SUSPECT.search(text) else text


def visible(text: str) -> str:
    r"""Return a text as one line that a terminal shows and does not obey.

    Line breaks and tabs become one space, so that a text cannot fake a line or a cell of its own. Other control
    characters, and what is invisible or changes the direction of writing, become visible, as in `\x1b` and `\u202e`;
    joiners stay where emoji or a script need them.
    """
    text = clean(text)
    return _SIGNS.sub(_escape_match, text) if _OBEYED.search(text) else text


def visible_json(text: str) -> str:
    r"""Return JSON of the same meaning in which a terminal obeys and hides nothing: `\u009b` is spelled out."""
    return _UNSAID.sub(_json_match, text)


def _json_match(match: re.Match[str]) -> str:
    units = match[0].encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[at : at + 2].hex()}" for at in range(0, len(units), 2))


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
            return _sign(ord(found))


def _sign(code: int) -> str:
    if code < 0x80:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"


_UNSEEN = lazy(r"[\u200b\u202a-\u202e\u2060-\u2064\u2066-\u2069\U000e0000-\U000e007f]")


def orders_in(text: str) -> str | None:
    """Return in words what shows that a text is meant for a model, or None if nothing does."""
    names = table("text", "injections")
    found = next((what for what in names if listed("text", "injections", what).search(text)), None)
    # Characters that nobody sees have a use in emoji and some scripts; there they are shown as they are.
    if found is None and _UNSEEN.search(text) and visible(text) != text:
        return "contains invisible characters"
    return found
