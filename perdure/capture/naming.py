"""Which sentences give a thing another name: "GHA stands for GitHub Actions", "we call the staging server heron".

English. A word of naming is not enough, as people are called on the phone and flags stand for freedom: the short form
must be made of the long one's letters, or the name must stand where only a name can.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import NamedTuple

from perdure.capture.clauses import trimmed
from perdure.capture.slot_words import NOBODY, QUALIFIERS
from perdure.regex import lazy
from perdure.store.aliases import words_of

MAX_READ = 300
"""Characters of a statement that are read."""


class Naming(NamedTuple):
    """A thing, and what else it is called."""

    thing: str
    other: str


def find_naming(text: str) -> Naming | None:
    """Return which thing a statement gives another name, or None."""
    text = " ".join(text[:MAX_READ].split()).replace("\u2019", "'")
    for pattern, read in _PATTERNS:
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
        (len(thing) == 1 and thing[0] in NOBODY) or other[0] in NOBODY or is_no_name(found.other)
    )


def is_no_name(text: str) -> bool:
    """Return whether what stands behind "call" or "is called" begins with a particle or a time: "off", "every day"."""
    first = text.split(" ", 1)[0].casefold()
    return first in _NO_NAMES or bool(_TIME.match(first))


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
        kinds = _KINDS.intersection(other.split()) or not (" " in thing or thing in _KINDS)
        if kinds or _JUDGING.search(other):
            return None
    return Naming(thing, _bare(other))


def _bare(name: str) -> str:
    return QUALIFIERS.sub("", _WHERE_END.sub("", trimmed(name.strip(f" {_QUOTES}"), bare=True)))


_QUOTES = "\"'\u201c\u201d\u201e\u2018\u00ab\u00bb"
_WORD = lazy(r"[^\W_][\w+#-]*(?:[.'&][\w+#-]+)*")
_SMALL = frozenset(["of", "for", "and", "the", "in", "on", "de", "to", "a"])
_NO_NAME_WORDS = """
off out back up down in on at for by to from as of with over about around again away along together me us him them her
myself mine yours ours hers theirs someone every each most more less least often sometimes seldom rarely regularly
daily weekly monthly yearly twice once first last next later soon early late now then today tonight tomorrow yesterday
always never ever home names morning mornings evening evenings night nights noon weekend weekends week weeks month
months year years hour hours when whenever if because since before after until while during instead anyway too well
good bad great stupid silly crazy useless fun names done enough something nothing anything everything any
"""
_NO_NAMES = frozenset(_NO_NAME_WORDS.split())
"""What stands behind "call" or "known as" and is no name."""
_TIME = lazy(
    r"(?:(?:mon|tues|wednes|thurs|fri|satur|sun)days?|january|february|march|april|may|june|july|august|september|"
    r"october|november|december)$"
)
_KIND_WORDS = """
server service machine box cluster host database system app site api endpoint function method gateway job queue
project team office shop company bank clinic helpline hotline line number desk support centre center school
house flat cabin room garden shed boat bike car van dog cat printer router laptop phone meeting channel
"""
_KINDS = frozenset(_KIND_WORDS.split())
"""Nouns for kinds of things: these get names and are none."""
# What a thing is thought of rather than called: "painful", "ridiculous".
_JUDGING = lazy(r"^[a-z]+(?:ly|less|ful|able|ible|ous|ing|ish|ic)$")
_PROPER = r"(?-i:[A-ZÀ-Þ0-9][\w+#-]*(?:\.\w+)?(?: [A-ZÀ-Þ0-9][\w+#-]*){0,4})"
_OTHER = rf"(?P<article>the )?(?P<other>[{_QUOTES}][^{_QUOTES}]{{1,50}}[{_QUOTES}]|{_PROPER}|[\w+#-]+(?:\.\w+)?)"
_NOUN_WORD = rf"(?!(?:is|are|was|and|or|the|an?|two|three|{'|'.join(sorted(_NO_NAMES))})\b)[\w-]+"
_NOUN = rf"{_NOUN_WORD}(?: {_NOUN_WORD}){{0,3}}?"
_THING = rf"(?:(?:(?P<own>my|our)|the|this|that) (?P<noun>{_NOUN})|(?P<proper>{_PROPER}))"
_PROPER_END = lazy(r"(?P<thing>[A-ZÀ-Þ0-9][\w+#-]*(?:\.\w+)?(?: [A-ZÀ-Þ0-9][\w+#-]*){0,4})(?: is| are)?$")
_NOUN_END = lazy(r"\b(?:[Mm]y|[Oo]ur|[Tt]he) (?P<thing>(?:[\w-]+ ){0,3}?[\w-]+)(?: is| are)?$")
_REST = r"(?P<thing>[^,;:.!?()]{2,60})"
_WHO = r"\b(?:we|i|they|people|everyone|everybody|everyone else|(?:the|my|our) (?:team|family|kids|colleagues|office))"
_HOW = r"(?: (?:all|both|always|usually|mostly|just|also|simply|only|sometimes|often|internally|tend to|like to))*"
_ALSO = r"(?:also|otherwise|better|sometimes|often|internally|commonly|usually|locally)"
_WHERE = r"(?:,? (?:internally|for short|(?:around |over )?here|at (?:home|work)|among ourselves|in (?:the|our) team))?"
_WHERE_END = lazy(rf"(?<=\w){_WHERE}$", re.IGNORECASE)
_KIND = (
    r"(?:(?:code|short|pet|other|internal|nick)[ -]?)?(?:name|nickname|alias|abbreviation|acronym|shorthand|initialism)"
)

_PATTERNS: tuple[tuple[re.Pattern[str], Callable[[re.Match[str]], Naming | None]], ...] = tuple(
    (lazy(pattern, re.IGNORECASE), read)
    for pattern, read in (
        # "GHA stands for GitHub Actions", "k8s is short for Kubernetes"
        (rf"(?<![\w-]){_OTHER} (?:stands for|(?:is|'s|=) (?:just |only |simply )?(?:short(?:hand)? for|"
         rf"an? (?:abbreviation|acronym|initialism|short form) (?:of|for))) {_REST}", _spelled),
        # "Home Assistant, HA for short"
        (rf"(?:,|\(| or| just| -|(?<=\w)),? ?(?:or |just |called )?{_OTHER} for short\b", _short_behind),
        # "Kubernetes, also known as k8s", "the staging server (aka heron)", "the swamp" as a nickname
        (rf"(?:(?:,| is| are| \(|'s) ?{_ALSO} (?:known as|called|named|referred to as)|, known(?: {_ALSO})? as"
         rf"| (?:is|are)(?: {_ALSO})? (?:nicknamed|dubbed|known {_ALSO} as)|[, (]+(?:aka|a\.k\.a\.?)) {_OTHER}",
         _behind),
        # "we call the staging server heron", "everyone refers to Bridge Street as the depot"
        (rf"(?<!what ){_WHO}{_HOW} (?:calls?|refers? to(?=.* as )) {_THING}(?: as)? {_OTHER}{_WHERE}\W*$", _called),
        # "heron is what we call the staging server", "heron is our name for the staging server"
        (rf"(?:^|[,;:] )\W*{_OTHER} is (?:what {_WHO}{_HOW} calls?|(?:our|my|the|an?|the team's) {_KIND} (?:for|of)) "
         rf"{_REST}\W*$", _told),
        # "when I say HA I mean Home Assistant"
        (rf"\b(?:by|when(?:ever)? (?:i|we) (?:say|write|type|mention)) {_OTHER},? (?:i|we){_HOW} mean {_REST}", _told),
        # "Continuous integration is abbreviated to CI", "we shorten it to"
        (rf" (?:is |are |gets )?{_HOW} ?(?:abbreviated|shortened)(?: as| to)? {_OTHER}", _short_behind),
        (rf"\b(?:abbreviate|shorten) {_REST} (?:as|to) {_OTHER}", _spelled),
        (rf"{_WHO}{_HOW} (?:say|write) {_OTHER} for {_REST}", _spelled),
        # "Home Assistant (HA)", "HA (Home Assistant)"
        (r" \(\W{0,2}(?P<other>(?-i:[A-Z])[A-Za-z0-9&]{1,7})\W{0,2}\)", _initials_behind),
        (r"\b(?P<other>(?-i:[A-Z])[A-Za-z0-9&]{1,7}) \((?P<thing>[^()]{3,60})\)", _initials_before),
    )
)  # fmt: skip
