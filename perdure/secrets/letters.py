"""Characters that stand for others: what has no width, full-width and styled forms, letters of another script.

`plain` reads a text without them. It costs a text in ASCII nothing, and others a look at each character.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator

from perdure.regex import lazy
from perdure.secrets.views import Edit, View
from perdure.text.normalise import UNSEEN_CLASS

# Letters of ASCII, and behind each those of other scripts that look like it: Cyrillic, Greek, Armenian, small capitals.
_LOOKS = """
AΑАᴀ BΒВʙ CϹСᴄ Dᴅ EΕЕᴇ FϜꜰ GԌɢ HΗНʜ IΙІӀɪ JͿЈᴊ KΚКKᴋ LԼʟ MΜМᴍ NΝɴ OΟОՕᴏ PΡРᴘ QԚ Rʀ SЅՏꜱ TΤТᴛ UՍᴜ VѴᴠ
WԜᴡ XΧХ YΥУҮʏ ZΖᴢ aаαɑ bЬƄ cсϲ dԁ eеҽ fϝք gɡց hһհ iіιıɩ jјϳ kкκ lӏǀ mм nոռ oоοσօ pрρ qԛզ rг sѕ tтτ
uսυ vѵν wԝωա xхχ yуγү zᴢ
"""
_LOOK_OF = {ord(look): row[0] for row in _LOOKS.split() for look in row[1:]}
_ALIEN = "".join(map(chr, _LOOK_OF))
_FOREIGN = lazy(f"[{_ALIEN}]")
_MIXED = lazy(rf"[0-9A-Za-z_](?:(?=[{_ALIEN}])|(?<=[{_ALIEN}].))")
# Only whole words that come out as ASCII: a Russian word with a digit stays what it is.
_MIXED_WORD = lazy(rf"(?<!\w)[0-9A-Za-z_]*+[{_ALIEN}][0-9A-Za-z_{_ALIEN}]*+(?!\w)")

# Forms of other characters, as Unicode's compatibility mappings have them: full-width, styled, circled, raised. Spaces,
# fractions and ellipses are not among them, and the punctuation of Chinese and Japanese only behind another form.
_FORMS = (
    "\u00aa\u00b2\u00b3\u00b9\u00ba\u02b0-\u02b8\u02e1-\u02e3\u1d2c-\u1d65\u2024\u2070-\u209c\u2100-\u2149\u2160-\u217f"
    "\u2460-\u24ea\ufb00-\ufb06\ufe50-\ufe6b\uff02-\uff07\uff0a\uff0b\uff0d-\uff19\uff1c-\uff1e\uff20-\uff60\uff66-\uff9f"
    "\U0001d400-\U0001d7ff\U0001f130-\U0001f149\U0001fbf0-\U0001fbf9"
)
_ODD = lazy(rf"[{UNSEEN_CLASS}{_FORMS}][{UNSEEN_CLASS}{_FORMS}\uff01-\uff5e]*+")
_UNSEEN = lazy(f"[{UNSEEN_CLASS}]+")
_LATIN = (
    "\\0-\u00a9\u00ab\u00ac\u00ae-\u00b1\u00b4-\u00b8\u00bb-\u0130\u0132-\u024f\u1e00-\u1eff"
    "\u2000-\u200a\u2010-\u2023\u2026-\u2029\u202f\u20a0-\u20bf"
)
# Most texts hold nothing beyond Latin letters and typographic punctuation; in most others nothing is another's form.
_BEYOND_LATIN = lazy(f"[^{_LATIN}]")
_UNCOMMON = lazy(
    f"[^{_LATIN}\u0131\u0370-\u0482\u048a-\u0590\u05c0-\u0610\u0660-\u066f\u0671-\u1809\u180f-\u1aaf\u3001-\ud7ff\uff01\uff08\uff09\uff0c\uff1a\uff1b\uff1f]"
)


def plain(text: str) -> View:
    """Return a text as it reads with ordinary characters."""
    if text.isascii() or not _BEYOND_LATIN.search(text):
        return View(text)
    view = View(text, _edits(text) if _UNCOMMON.search(text) else ())
    if _FOREIGN.search(view.text) and _MIXED.search(view.text):
        view.text = _MIXED_WORD.sub(_look, view.text)  # as long as before, so every place stays
    return view


def _edits(text: str) -> Iterator[Edit]:
    for match in _ODD.finditer(text):
        start, end = match.span()
        # A mark belongs to the letter in front of it: together they may be one character.
        start -= start > 0 and unicodedata.combining(text[start]) > 0
        read = _UNSEEN.sub("", unicodedata.normalize("NFKC", text[start:end]))
        if read != text[start:end]:
            yield start, end, read


def _look(match: re.Match[str]) -> str:
    return match[0].translate(_LOOK_OF)
