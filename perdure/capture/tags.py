"""Topic labels found in a text."""

from __future__ import annotations

import re

PATTERNS: tuple[tuple[str, re.Pattern[str]], ...] = tuple(
    (tag, re.compile(pattern, re.IGNORECASE))
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


def extract_tags(text: str, entity: str | None = None) -> tuple[str, ...]:
    """Return the tags whose patterns occur in the text or the entity's name."""
    searched = f"{text}\n{entity}" if entity else text
    return tuple(tag for tag, pattern in PATTERNS if pattern.search(searched))
