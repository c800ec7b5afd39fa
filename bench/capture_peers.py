"""The capture rules of other memory plugins, re-expressed: each says of a whole message whether it is kept."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

_HYBRID_WORDS = (
    "remember", "prefer", "decided", "my", "is my", "i like", "i prefer", "i hate", "i love", "i want", "i need",
    "always", "never", "important", "born on", "birthday", "lives in", "works at", "password is", "api key",
    "token is", "chose", "selected", "went with", "picked", "because", "since", "for", "architecture", "stack",
    "approach",
)  # fmt: skip
_HYBRID = re.compile("|".join(_HYBRID_WORDS), re.IGNORECASE)
_HYBRID_SHAPES = re.compile(r"\+\d{10,}|[\w.-]+@[\w-]+\.\w+", re.IGNORECASE)
_PRO = re.compile(
    r"\bremember\b|\bi (?:prefer|like|hate|love|want|need)\b|\bmy \w+ is\b|\bis my\b|\b(?:always|never|important)\b"
    r"|\bwe (?:decided|will use)\b|\bdecided\b|\+\d{10,}|[\w.-]+@[\w-]+\.\w+",
    re.IGNORECASE,
)
_FIRST_PERSON = re.compile(r"\b(?:i|i'm|i've|i'd|my|mine|me|we|we're|our|us)\b", re.IGNORECASE)
_SENTENCE = re.compile(r"[^.!?\n]+[.!?]*")
HYBRID_CHARS = (10, 5000)
PRO_CHARS = (10, 500)


def hybrid_memory(text: str) -> bool:
    """Keep what holds one of the hybrid-memory plugin's trigger words, anywhere in a word."""
    low, high = HYBRID_CHARS
    return low <= len(text) <= high and bool(_HYBRID.search(text) or _HYBRID_SHAPES.search(text))


def lancedb_pro(text: str) -> bool:
    """Keep what matches one of memory-lancedb-pro's triggers, unless it is long."""
    low, high = PRO_CHARS
    return low <= len(text) <= high and bool(_PRO.search(text))


def six_words(text: str) -> bool:
    """Keep what has at least six words and is no question."""
    return len(text.split()) >= 6 and "?" not in text


def first_person(text: str) -> bool:
    """Keep what has a sentence in the first person that is no question."""
    return any(_FIRST_PERSON.search(part) and "?" not in part for part in _SENTENCE.findall(text))


PEERS: Mapping[str, Callable[[str], bool]] = {
    "hybrid_memory": hybrid_memory,
    "memory_lancedb_pro": lancedb_pro,
    "six_words_no_question": six_words,
    "first_person_sentence": first_person,
}
