"""What a pronoun at the head of a sentence stands for, where the sentence or the message before tells."""

from __future__ import annotations

import re

from perdure.regex import lazy

_PRONOUN = lazy(r"(?P<word>it|he|she|its|his|her)(?P<short>'s|'ll|'d)?\b ?", re.IGNORECASE)
_QUOTED = lazy(r'["“«][^"”»]{0,200}["”»]')
_SHORT = {"'s": " is", "'ll": " will", "'d": " would"}
_POSSESSIVE = frozenset(["its", "his", "her"])
_PEOPLE = frozenset(["he", "she", "his", "her"])
# A name is a run of capitalised words behind the first one, which every sentence begins with.
_NAME = lazy(r"(?<=\s)(?:[A-Z][\w-]*\.? ?)*[A-Z][\w-]+")
_HEAD = lazy(r"([A-Z][\w-]+)(?:'s)? (?:is|was|has|lives|works|will|leads|runs)\b|([A-Z][\w-]+)'s ")
_OF_PLACE = lazy(r"\b(?:in|at|to|from|near|of|on|for)\s$")
_NO_NAMES = frozenset({
    "I", "The", "This", "That", "It", "He", "She", "They", "We", "You", "My", "Our",
    "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday",
    "January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November",
    "December",
})  # fmt: skip


_FILLERS = "yes|yeah|yep|no|nope|nah|oh|well|and|but|so|also|aye|ok|okay|actually|wait"
_LEAD = rf"(?:[\w .()]{{1,24}}: )?(?:(?:{_FILLERS})\b[,.!]* ?){{0,3}}"
_DANGLING = lazy(rf"{_LEAD}(?:its?|he|she|his|her|they|their)(?:'s|'ll|'d|'re|'ve)?\b", re.IGNORECASE)
MAX_BEFORE = 160
"""Characters of a message that may be quoted to explain the next one."""


def explained(sentence: str, before: str) -> str:
    """Return the user's own message before, in a bracket, for a sentence that says nothing without it; "" else.

    Which word of it is meant would be a guess; what was said is none.

    Args:
        sentence: the first one of a message.
        before: what the user said before it, redacted.
    """
    told = " ".join(before.split())
    if not told or len(told) > MAX_BEFORE or not _DANGLING.match(sentence):
        return ""
    return f" (after: {told})"


def resolve(sentence: str, before: str) -> str | None:
    """Return the sentence with what its pronoun stands for, or None if that is not certain.

    Args:
        sentence: begins with "it", "he", "she", "its", "his" or "her".
        before: the sentence before it. Exactly one name in it can be meant; names of places are not people.
    """
    match = _PRONOUN.match(sentence)
    if match is None:
        return None
    names = _names(_QUOTED.sub("", before), people=match["word"].lower() in _PEOPLE)
    if len(names) != 1:
        return None
    name = names.pop()
    if match["word"].lower() in _POSSESSIVE:
        name += "'s"
    return f"{name}{_SHORT.get((match['short'] or '').lower(), '')} {sentence[match.end() :]}"


def _names(text: str, *, people: bool) -> set[str]:
    found: set[str] = set()
    if head := _HEAD.match(text):
        found.add(head[1] or head[2])
    for match in _NAME.finditer(text):
        place = bool(_OF_PLACE.search(text[: match.start()][-8:]))
        if not (people and place):
            found.add(match[0].rstrip(". "))
    return found - _NO_NAMES
