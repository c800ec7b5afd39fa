"""Category, slot, reason and tags of a statement; patterns that the user supplies for them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache

from perdure.capture.language import CODES, foreign_category, foreign_slot, language, language_of
from perdure.capture.moments import is_of_replies
from perdure.capture.slots import CONVENTION, USER, Slot, base_forms, find_slot
from perdure.capture.statements import Statement
from perdure.errors import SettingsError, refused
from perdure.regex import lazy
from perdure.store.fact import CATEGORIES
from perdure.text.lexicon import listed, table, word_set
from perdure.text.normalise import fold

MAX_FIELD = 100
MAX_CATEGORY = 40


@dataclass(frozen=True, slots=True)
class Description:
    """What is known about a statement from its words."""

    category: str  # one of the five, or a configured one
    slot: Slot | None  # what it fills, if that can be made out
    why: str | None  # the reason that was given


IMPORTANCE = {"decision": 0.8, "preference": 0.7, "entity": 0.7, "fact": 0.6}
"""How important a captured statement is, by its category; 0.5 for others."""
ASKED_FOR = 0.9
"""How important it is if it was asked to be remembered."""

TagPatterns = tuple[tuple[str, re.Pattern[str]], ...]
PATTERNS: TagPatterns = tuple((tag, lazy(pattern, re.IGNORECASE)) for tag, pattern in table("capture", "tags").items())
CategoryPatterns = tuple[tuple[str, re.Pattern[str]], ...]


def compile_categories(own: Mapping[str, str]) -> CategoryPatterns:
    """Return one's own categories; the first whose pattern occurs in a statement wins, before the built-in ones."""
    compiled = []
    for name, pattern in own.items():
        if not name.strip() or len(name) > MAX_CATEGORY:
            raise SettingsError(f"category {name[:60]!r} must have 1 to {MAX_CATEGORY} characters; give another name")
        try:
            compiled.append((name.strip(), re.compile(pattern, re.IGNORECASE)))
        except re.error as error:
            raise SettingsError(f"category {name!r} = {pattern!r} is not a regular expression: {error}") from None
    return tuple(compiled)


def check_category(name: str, own: CategoryPatterns) -> None:
    """Raise InputError if a category is neither one of the five nor one's own."""
    known = (*CATEGORIES, *(each for each, _ in own))
    if name not in known:
        raise refused(name, f"one of {', '.join(known)}; the setting categories adds your own", "category")


def compile_tags(own: Mapping[str, str]) -> TagPatterns:
    """Return the built-in patterns and one's own; an own pattern replaces the built-in one of its tag."""
    compiled = []
    for tag, pattern in own.items():
        try:
            compiled.append((tag, re.compile(pattern, re.IGNORECASE)))
        except re.error as error:
            raise SettingsError(f"tag pattern {tag!r} = {pattern!r} is not a regular expression: {error}") from None
    return (*(item for item in PATTERNS if item[0] not in own), *compiled)


def extract_tags(text: str, entity: str | None = None, patterns: TagPatterns = PATTERNS) -> tuple[str, ...]:
    """Return the tags whose patterns occur in the text or the entity's name."""
    searched = f"{text}\n{entity}" if entity else text
    return tuple(tag for tag, pattern in patterns if pattern.search(searched))


def describe(statement: Statement, own: CategoryPatterns = ()) -> Description:
    """Describe a statement, with one's own categories first."""
    if statement.cue == "convention" and _BEFALLS.match(fold(statement.text)):
        statement = replace(statement, cue="factual")
    text = statement.text.rstrip(" .!")
    code = language_of(statement.text)
    slot = slot_of(statement.text, code)
    if slot is None and is_of_replies(text):
        slot = Slot(CONVENTION, text[:MAX_FIELD], "always")
    reason = _REASON.search(text)
    configured = (name for name, pattern in own if pattern.search(statement.text))
    rule = "decision" if slot and slot.entity == CONVENTION else None
    told = statement.category or rule or foreign_category(statement.cue, code)
    category = next(configured, None) or told or _category(statement, slot)
    return Description(category, slot, _clipped(reason[1]) if reason else None)


@lru_cache(maxsize=256)
def slot_of(text: str, code: str) -> Slot | None:
    """Return the slot that the words of a statement in a language fill, or None."""
    return foreign_slot(text, code) if code in CODES else find_slot(text)


def importance(category: str, statement: Statement) -> float:
    """Return how important a statement is, 0.5 to 0.9: by its category, less where it is hardly worth keeping."""
    most = ASKED_FOR if statement.cue == "remember" else IMPORTANCE.get(category, 0.5)
    return round(0.5 + (most - 0.5) * statement.confidence, 2)


def is_own(text: str, slot: Slot | None) -> bool:
    """Return whether a statement is the user's wherever it is said; any other belongs to the repository it is said in.

    It is if it is plainly personal (`data/slots.toml` and `personal` of the language), if it says how answers are to
    look, or if it is said for all projects.
    """
    speaks, folded = language(language_of(text)), fold(text)
    if speaks.personal.search(folded) or is_of_replies(text):
        return True
    if slot is None:
        return False
    keys, first = table("capture", "slots")["personal"], slot.key.split(" ")[0]
    if slot.entity != USER:
        return slot.key in word_set(keys["of_anybody"])
    # "We moved to GitHub Actions" fills the slot of where somebody lives; "the user" may be a table's.
    speaker = speaks.oneself if slot.key == "location" else speaks.own
    return first in word_set(keys["of_the_user"]) and speaker.search(folded) is not None


def _category(statement: Statement, slot: Slot | None) -> str:
    # The order of the hybrid-memory system: a decision is often worded as a preference, not the other way round.
    if slot is not None:
        return "decision" if slot.entity == "decision" else _of_slot(slot)
    if statement.cue == "convention":
        return "decision"
    folded = fold(statement.text)
    for category, pattern in _CATEGORIES:
        if pattern.search(folded):
            return category
    return "other" if statement.cue == "remember" else "fact"


def _of_slot(slot: Slot) -> str:
    key = slot.key.casefold()
    if key in _PREFERENCES or key.startswith(("favourite", "favorite")):
        return "preference"
    called = _NAMES.fullmatch(slot.value) and slot.key not in {*_NAMED_OTHERWISE, *base_forms().values()}
    return "entity" if key in _IDENTITY or called else "fact"


_REASON = listed("capture", "grammar", "reason")
_BEFALLS = listed("capture", "grammar", "befalls")
_BEHIND = listed("capture", "grammar", "behind_name")
_CATEGORIES = tuple((kind, listed("capture", "grammar", kind)) for kind in ("decision", "preference", "entity"))
_IDENTITY = word_set("name nickname alias email phone username handle website")
_NAMES = listed("capture", "grammar", "name")
_NAMED_OTHERWISE = word_set("location hometown employer job language allergy birthday")
_PREFERENCES = word_set("prefer preference preferences like love hate dislike enjoy want avoid diet")


def _clipped(text: str) -> str:
    return text.strip(" ,.;:!\"'")[:MAX_FIELD]
