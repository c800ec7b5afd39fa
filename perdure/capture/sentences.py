"""The sentences of a message, without code, logs, markup and other pasted text.

Also the clauses of a sentence that can stand alone, and what a pronoun at its head stands for where that is told.
"""

from __future__ import annotations

import re

import sentencex

from perdure.capture.intake import MAX_BEFORE
from perdure.regex import lazy
from perdure.secrets.redact import redact
from perdure.speech.forgetting import speaks_of_forgetting
from perdure.speech.orders import asks_to_remember
from perdure.text.fenced import outside
from perdure.text.lexicon import MONTHS, WEEKDAYS, listed, word_set
from perdure.text.normalise import fold
from perdure.text.quotes import bracket

# Where chat ends a sentence although the library, which is made for edited text, goes on: runs of marks, and "ok.",
# which it takes for an abbreviation.
_ALSO_END = lazy(r"(?:(?<![.!?…])[.!?…]{2,}+|(?<!\w)(?:ok|no|lol)\.)(?=\s)", re.IGNORECASE)
_NO_END = lazy(r"\b(?:approx|min|max|ca|tel|incl)\.$", re.IGNORECASE)
_BULLET = lazy(r"^\s*(?:[-*•+]|\d{1,3}[.)])\s+")
_LEAD_IN = listed("capture", "grammar", "lead_in")
_OWN = r"(?:I(?:'m|'ve)? |my |we(?:'re|'ve)? |our )(?!think|mean|guess|hope|know)"
_SUBJECT = r"(?-i:[A-Z][\w-]+ (?:is|was|has|\w{2,}s)\b)"
_JOIN = lazy(rf"(?:,|;|,? and|,? but) (?={_OWN}|{_SUBJECT})|(?::| [–—-]) (?={_OWN})", re.IGNORECASE)
_BRACKETED = lazy(r"^\(([^()]*)\)[.!]?$")
_TAG = lazy(r",? (?:ok|okay|alright|please|deal|got it|understood)\?+$", re.IGNORECASE)
_IS_IT_SO = listed("capture", "grammar", "is_it_so")


def sentences(text: str, code: str = "en") -> list[str]:
    """Split prose into sentences, in order; lines and bullets count as sentences.

    Of a language that the library does not know, it takes the nearest.
    """
    found: list[str] = []
    # The library refuses half a surrogate pair, which JSON from a host may hold.
    whole = text.encode("utf-8", "replace").decode("utf-8")
    for line in filter(None, map(str.strip, whole.split("\n"))):
        open_end = False
        for sentence in sentencex.segment(code, _BULLET.sub("", line)):
            for part in _split(sentence):
                if open_end:
                    found[-1] += f" {part}"
                else:
                    found.append(part)
                open_end = bool(_NO_END.search(part))
    return [_BRACKETED.sub(r"\1", sentence) for sentence in found if any(map(str.isalnum, sentence))]


def _split(sentence: str) -> list[str]:
    ends = [match.end() for match in _ALSO_END.finditer(sentence)]
    parts = (sentence[start:end] for start, end in zip([0, *ends], [*ends, None], strict=True))
    return [" ".join(part.split()) for part in parts if part.strip()]


def clauses(sentence: str) -> list[str]:
    """Split a sentence where a second statement about oneself or a named person begins: one idea per fact."""
    return [part for part in _JOIN.split(sentence) if part]


def without_lead_in(sentence: str) -> str:
    """Return a sentence without what only announces it, as "background:" before "I work nights"."""
    return _LEAD_IN.sub("", sentence)


def is_tag_question(sentence: str) -> bool:
    """Return whether a sentence states something only to ask whether it is so: "I'm not allergic to nuts, am I?"."""
    return bool(_IS_IT_SO.search(fold(sentence)))


def without_tag(sentence: str) -> str:
    """Return a sentence without a tag that asks for assent, as "ok?"."""
    return _TAG.sub(".", sentence)


MAX_EMOJI = 3
_QUOTED = lazy(r"\s*[>|]")
_PAIR = lazy(r"\s*[\"']?[\w.-]{1,60}[\"']?\s?[:=](?:\s|$)")
# In a group a host may put the speaker's name in front. A key of a file is written small, and its value is short.
_SPOKEN = lazy(r"\s*(?![a-z])[^\W\d_][\w'-]{0,20}(?: [^\W\d_][\w'-]{0,20})?\s?[:\uff1a] ?(?:\S+\s+){3}\S")
_LOG = listed("capture", "grammar", "log")
_FAULT = lazy(r"\s*\w*(?:Error|Exception):")
_CODE = listed("capture", "grammar", "code")
_MARKS = listed("capture", "grammar", "marks")
_OPENING = ("<", "{", "[", "$", "#", "}", "@@", "//", "/*", "*/")


def prose(text: str) -> str:
    """Return the text without fenced code, quoted lines and lines of logs, code and structured data."""
    lines = outside(text).split("\n")
    pairs = [bool(_PAIR.match(line)) and not _SPOKEN.match(line) for line in lines]
    kept: list[str] = []
    ahead = False  # below an order to remember that ends with a colon
    for place, line in enumerate(lines):
        # One "name: value" may be speech, two in a row are a file.
        listed = pairs[place] and (pairs[place - 1 : place] == [True] or pairs[place + 1 : place + 2] == [True])
        speech = not listed and not _QUOTED.match(line) and not is_noise(line)
        asked = asks_to_remember(line)
        if speech or ((asked or ahead) and not is_log(line)):
            kept.append(line)
        ahead = line.rstrip().endswith(":") if asked else ahead and bool(line.strip())
    return "\n".join(kept)


def is_noise(line: str) -> bool:
    """Return whether a line or sentence is code, a log or markup, or holds more symbols than words should."""
    if line.lstrip().startswith(_OPENING) or _LOG.match(line) or _CODE.match(line) or _MARKS.search(line):
        return True
    emoji = sum(0x1F300 <= ord(char) <= 0x1FAFF for char in line)
    symbols = sum(char in "{}[]();=<>|\\_`$#" for char in line)
    return emoji > MAX_EMOJI or symbols > 3 + len(line) // 15


def is_log(line: str) -> bool:
    """Return whether a line is one of a log."""
    return bool(_LOG.match(line))


def is_fault(sentence: str) -> bool:
    """Return whether a sentence is the last line of a stack trace; what follows it may be speech."""
    return bool(_FAULT.match(sentence))


def is_secret(sentence: str) -> bool:
    """Return whether a sentence holds a secret, or held one."""
    return "[redacted" in sentence or bool(redact(sentence).kinds)


_PRONOUN = lazy(r"(?P<word>it|he|she|its|his|her)(?P<short>'s|'ll|'d)?\b ?", re.IGNORECASE)
_QUOTATION = lazy(r'["“«][^"”»]{0,200}["”»]')
_SHORT = {"'s": " is", "'ll": " will", "'d": " would"}
_POSSESSIVE = frozenset(["its", "his", "her"])
_PEOPLE = frozenset(["he", "she", "his", "her"])
# A name is a run of capitalised words behind the first one, which every sentence begins with.
_NAME = lazy(r"(?<=\s)(?:[A-Z][\w-]*\.? ?)*[A-Z][\w-]+")
_HEAD = lazy(r"([A-Z][\w-]+)(?:'s)? (?:is|was|has|lives|works|will|leads|runs)\b|([A-Z][\w-]+)'s ")
_OF_PLACE = lazy(r"\b(?:in|at|to|from|near|of|on|for)\s$")
_NO_NAMES = word_set(f"I The This That It He She They We You My Our {' '.join(map(str.title, [*WEEKDAYS, *MONTHS]))}")


_DANGLING = listed("capture", "grammar", "dangling")
_ANSWER = listed("capture", "grammar", "answer")
_TOLD = lazy(r"\b(?:i|i'?m|i've|my|me|we|our|us)\b", re.IGNORECASE)
_NAMED = lazy(r"\b(?:name|called)\b")


def explained(sentence: str, before: str, asked: str = "") -> str | None:
    """Return what a sentence leans on, in a bracket: what the user said before, and what the assistant had asked.

    "" for a sentence that stands for itself, None for one that says nothing without them, where there are none. Which
    word of them is meant would be a guess; what was said is none. Both are redacted.
    """
    leans = _DANGLING.match(sentence)
    if _NAMED.search(sentence) or not (leans or _ANSWER.match(sentence)):
        return ""
    said = [" ".join(text.split()) for text in (before if _tells(before) else "", asked)]
    if any(said) and max(map(len, said)) <= 2 * MAX_BEFORE:
        return bracket(*said)
    return None if leans and not _TOLD.search(sentence) else ""


def _tells(before: str) -> bool:
    """Return whether something that was said may stand beside what leans on it: no greeting, secret or order."""
    return len(before.split()) > 2 and not (is_secret(before) or speaks_of_forgetting(before))


def resolve(sentence: str, before: str) -> str | None:
    """Return the sentence with what the pronoun at its head stands for, or None if that is not certain.

    Exactly one name in the sentence before it can be meant; names of places are not people.
    """
    match = _PRONOUN.match(sentence)
    if match is None:
        return None
    names = _names(_QUOTATION.sub("", before), people=match["word"].lower() in _PEOPLE)
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
