"""Which sentences give a thing another name: "GHA stands for GitHub Actions", "we call the staging server heron".

English, by the rules of `data/naming.toml`. A word of naming is not enough, as people are called on the phone and flags
stand for freedom: the short form must be made of the long one's letters, or the name must stand where only a name can.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import NamedTuple

from perdure.capture.clauses import trimmed
from perdure.regex import lazy
from perdure.store.aliases import words_of
from perdure.text.lexicon import filled, listed, table, word_set

MAX_READ = 300
"""Characters of a statement that are read."""
QUALIFIERS = lazy(r"^(?:(?:new|current|own|actual|real|present|the|my|our)\b ?)+", re.IGNORECASE)
"""What stands before a noun and does not belong to it."""


class Naming(NamedTuple):
    """A thing, and what else it is called."""

    thing: str
    other: str


def find_naming(text: str) -> Naming | None:
    """Return which thing a statement gives another name, or None."""
    text = " ".join(text[:MAX_READ].split()).replace("\u2019", "'")
    for pattern, read in _rules():
        for match in pattern.finditer(text):
            found = read(match)
            if found is not None and _are_names(found):
                return found
    return None


def abbreviates(short: str, long: str) -> bool:
    """Return whether a short form is made of a long one's letters, in their order and from the first on."""
    letters, whole = _letters(short), _letters(long)
    if not 2 <= len(letters) < len(whole):
        return False
    rest = iter(whole)
    return letters in whole or (letters[0] == whole[0] and all(letter in rest for letter in letters))


def _letters(text: str) -> str:
    return "".join(filter(str.isalpha, text)).casefold()


def _are_names(found: Naming) -> bool:
    """Return whether both are short enough for names, and neither a pronoun, a particle nor a time."""
    thing, other = words_of(found.thing), words_of(found.other)
    return bool(thing and other and thing != other) and not (
        (len(thing) == 1 and thing[0] in nobody()) or other[0] in nobody() or is_no_name(found.other)
    )


def is_no_name(text: str) -> bool:
    """Return whether what stands behind "call" or "is called" begins with a particle or a time: "off", "every day"."""
    first = text.split(" ", 1)[0].casefold()
    return first in _no_names() or bool(_TIME.match(first))


def _letters_of(words: Sequence[str], *, inner: bool) -> str:
    """Return the initials of words, with `inner` also the capitals inside of them: "GitHub Actions" as GHA."""
    initials = ("".join(filter(str.isupper, word)) if inner else "" for word in words)
    return "".join(found or word[:1] for found, word in zip(initials, words, strict=True)).casefold()


def _initialled(before: str, short: str) -> str | None:
    """Return the last words of a text if their initials are the short form; "of" and the like may count or not."""
    words, letters = _WORD.findall(before), _letters(short)
    for count in range(1, min(len(words), 2 * len(letters)) + 1):
        taken = words[-count:]
        large = [word for word in taken if word.casefold() not in _SMALL]
        spelled = {_letters_of(kind, inner=inner) for kind in (taken, large) for inner in (False, True)}
        if taken[0] == (large or [""])[0] and len(letters) > 1 and letters in spelled:
            return " ".join(taken)
    return None


def _thing_before(before: str, short: str) -> str | None:
    """Return the thing at the end of a text: what the short form spells, a proper name, or a noun with an article."""
    before = before.rstrip(" ,(-\"'")
    named = _PROPER_END.search(before) or _NOUN_END.search(before)
    return _initialled(before, short) or (named["thing"] if named else None)


def _spelled(match: re.Match[str]) -> Naming | None:
    """Read a pair of which one must be made of the other's letters."""
    thing, other = _bare(match["thing"]), _bare(match["other"])
    return Naming(thing, other) if abbreviates(other, thing) else None


def _told(match: re.Match[str]) -> Naming | None:
    """Read a pair that the sentence itself calls names."""
    return Naming(_bare(match["thing"]), _bare(match["other"]))


def _behind(match: re.Match[str]) -> Naming | None:
    """Read a name behind the thing that has it."""
    thing = _thing_before(match.string[: match.start()], match["other"])
    return Naming(thing, _bare(match["other"])) if thing else None


def _short_behind(match: re.Match[str]) -> Naming | None:
    found = _behind(match)
    return found if found and abbreviates(found.other, found.thing) else None


def _initials_behind(match: re.Match[str]) -> Naming | None:
    thing = _initialled(match.string[: match.start()], match["other"])
    return Naming(thing, match["other"]) if thing else None


def _initials_before(match: re.Match[str]) -> Naming | None:
    thing = match["thing"]
    return Naming(thing, match["other"]) if _initialled(thing, match["other"]) == thing else None


def _called(match: re.Match[str]) -> Naming | None:
    """Read "we call the storage room the bunker"; a pet or person of one's own has a name, which other rules read."""
    thing, other = _bare(match["noun"] or match["proper"]), match["other"]
    if match["own"] and other[:1].isupper():
        return None
    if other.islower() and other[0].isalpha() and not match["article"]:
        # Of "we call the payment service" a word would be the name of the rest.
        kinds = _kinds().intersection(other.split()) or not (" " in thing or thing in _kinds())
        if kinds or _JUDGING.search(other):
            return None
    return Naming(thing, _bare(other))


def _bare(name: str) -> str:
    return QUALIFIERS.sub("", _where_end().sub("", trimmed(name.strip(f" {_QUOTES}"), bare=True)))


@cache
def _rules() -> tuple[tuple[re.Pattern[str], _Read], ...]:
    """Return the rules: what a sentence of naming looks like, and who reads it."""
    rules, parts = table("capture", "naming")["rules"], _parts()
    return tuple((lazy(filled(rule["pattern"], parts), re.IGNORECASE), _READERS[rule["read"]]) for rule in rules)


@cache
def _parts() -> Mapping[str, str | Sequence[str]]:
    return {**table("capture", "naming")["parts"], "no_names": "|".join(sorted(_no_names()))}


@cache
def _where_end() -> re.Pattern[str]:
    return re.compile(filled(r"(?<=\w){where}$", _parts()), re.IGNORECASE)


@cache
def _no_names() -> frozenset[str]:
    """Return what stands behind "call" or "known as" and is no name."""
    return word_set(table("capture", "naming")["no_names"])


@cache
def _kinds() -> frozenset[str]:
    """Return nouns for kinds of things: these get names and are none."""
    return word_set(table("capture", "naming")["kinds"])


@cache
def nobody() -> frozenset[str]:
    """Return words with a capital at the beginning of a sentence that are nobody's name."""
    return word_set(table("capture", "slots")["nobody"])


_Read = Callable[[re.Match[str]], Naming | None]
_READERS: Mapping[str, _Read] = {
    "behind": _behind, "called": _called, "initials_before": _initials_before, "initials_behind": _initials_behind,
    "short_behind": _short_behind, "spelled": _spelled, "told": _told,
}  # fmt: skip
_QUOTES = "\"'\u201c\u201d\u201e\u2018\u00ab\u00bb"
_WORD = lazy(r"[^\W_][\w+#-]*(?:[.'&][\w+#-]+)*")
_SMALL = frozenset(["of", "for", "and", "the", "in", "on", "de", "to", "a"])
_TIME = listed("capture", "grammar", "no_name")
# What a thing is thought of rather than called: "painful", "ridiculous".
_JUDGING = lazy(r"^[a-z]+(?:ly|less|ful|able|ible|ous|ing|ish|ic)$")
_PROPER_END = lazy(r"(?P<thing>[A-ZÀ-Þ0-9][\w+#-]*(?:\.\w+)?(?: [A-ZÀ-Þ0-9][\w+#-]*){0,4})(?: is| are)?$")
_NOUN_END = lazy(r"\b(?:[Mm]y|[Oo]ur|[Tt]he) (?P<thing>(?:[\w-]+ ){0,3}?[\w-]+)(?: is| are)?$")
