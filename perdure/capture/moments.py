"""Orders of the moment: what a person wants of the answer at hand, or of a part that the assistant is to play.

They end with the session. Where words leave open whether they do, they last: what goes too soon cannot be asked for.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache

from perdure.regex import lazy
from perdure.text.lexicon import table
from perdure.text.normalise import fold

_OF_CODE = lazy(r"\b(?:returns?|output|api|endpoint|handler|http|null|none|status|[1-5]\d\d)\b")


def moments(sentences: Sequence[str]) -> list[bool]:
    """Return of each sentence of a message whether it is of the moment.

    So are those that say so ("just this once", "in this story"), those that only tell how an answer is to look ("Answer
    in JSON."), and a part to play with what follows it, but for what the speaker says of themselves.
    """
    found, plays = [], False
    for sentence in sentences:
        folded = fold(sentence)
        persona, wish = _starts("persona", folded), _starts("urges", folded) or not _holds("own", folded)
        plays |= persona
        order = (_starts("order", folded) or _starts("bounds", folded)) and not _holds("lasting", folded)
        within = (plays or _holds("within", folded)) and wish
        found.append(persona or order or within or _holds("once", folded))
    return found


def is_of_replies(text: str) -> bool:
    """Return whether a text is an order how answers are to look, for now or for good; how code answers is another."""
    before = rf"(?:{table('capture', 'moment')['openers']}|(?:{_words('lasting')}),? )*(?:"
    folded = fold(text)
    return _pattern("order", before).match(folded) is not None and not _OF_CODE.search(folded)


def _starts(kind: str, folded: str) -> bool:
    return _pattern(kind, rf"(?:{table('capture', 'moment')['openers']})*(?:").match(folded) is not None


def _holds(kind: str, folded: str) -> bool:
    return _pattern(kind, r"(?<!\w)(?:").search(folded) is not None


@cache
def _pattern(kind: str, before: str) -> re.Pattern[str]:
    return re.compile(f"{before}{_words(kind)})" + ("" if kind in ("persona", "urges") else r"(?!\w)"))


def _words(kind: str) -> str:
    """Return what the languages have of a kind, as one pattern: their words differ, and messages mix them."""
    return "|".join(
        each for of in table("capture", "moment").values() if isinstance(of, dict) for each in of.get(kind, ())
    )
