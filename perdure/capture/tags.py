"""Topic labels found in a text."""

from __future__ import annotations

import re
from collections.abc import Mapping

from perdure.errors import SettingsError
from perdure.regex import lazy

PATTERNS: tuple[tuple[str, re.Pattern[str]], ...] = tuple(
    (tag, lazy(pattern, re.IGNORECASE))
    for tag, pattern in (
        ("nibe", r"\bnibe\b"),
        ("homeassistant", r"\bhome[ -]?assistant\b"),
        ("zigbee", r"\bzigbee\b"),
        ("z-wave", r"\bz-?wave\b"),
        ("auth", r"\b(?:auth|oauth2?|authentication|authori[sz]ation|login)\b"),
        ("openclaw", r"\bopenclaw\b"),
        ("postgres", r"\bpostgres(?:ql)?\b"),
        ("sqlite", r"\bsqlite\b"),
        ("lancedb", r"\blancedb\b"),
        ("api", r"\bapi (?:keys?|endpoints?|urls?)\b"),
        ("docker", r"\bdocker\b"),
        ("kubernetes", r"\b(?:kubernetes|k8s)\b"),
        ("ha", r"\bha\b"),
    )
)


TagPatterns = tuple[tuple[str, re.Pattern[str]], ...]


def compile_tags(own: Mapping[str, str]) -> TagPatterns:
    """Return the built-in patterns and one's own; an own pattern replaces the built-in one of its tag.

    Args:
        own: regular expressions by tag, matched in any case.

    Raises:
        SettingsError: a pattern is no regular expression.
    """
    compiled = []
    for tag, pattern in own.items():
        try:
            compiled.append((tag, re.compile(pattern, re.IGNORECASE)))
        except re.error as error:
            raise SettingsError(f"tag pattern {tag!r} = {pattern!r} is no regular expression: {error}") from None
    return (*(item for item in PATTERNS if item[0] not in own), *compiled)


def extract_tags(text: str, entity: str | None = None, patterns: TagPatterns = PATTERNS) -> tuple[str, ...]:
    """Return the tags whose patterns occur in the text or the entity's name."""
    searched = f"{text}\n{entity}" if entity else text
    return tuple(tag for tag, pattern in patterns if pattern.search(searched))
