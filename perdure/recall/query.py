"""Step one: what is asked."""

from __future__ import annotations

import re
from dataclasses import dataclass

from perdure.text.clean import clean
from perdure.text.normalise import fold, match_terms

MAX_CHARACTERS = 2000
"""Longer prompts are asked by their beginning and their end: in between is mostly pasted material."""

_TRIVIAL = frozenset(
    [
        "hi",
        "hello",
        "hey",
        "yo",
        "hiya",
        "howdy",
        "morning",
        "good-morning",
        "good-evening",
        "good-night",
        "goodnight",
        "bye",
        "goodbye",
        "see-you",
        "thanks",
        "thank-you",
        "thx",
        "ty",
        "cheers",
        "ok",
        "okay",
        "k",
        "kk",
        "yes",
        "no",
        "yep",
        "nope",
        "yeah",
        "nah",
        "sure",
        "fine",
        "great",
        "cool",
        "nice",
        "perfect",
        "awesome",
        "wow",
        "lol",
        "haha",
        "done",
        "stop",
        "go-on",
        "go-ahead",
        "continue",
        "next",
        "please-continue",
        "got-it",
        "sounds-good",
        "makes-sense",
        "i-see",
        "right",
        "no-problem",
        "np",
        "never-mind",
        "nevermind",
        "good",
        "hmm",
        "ping",
        "heartbeat",
        "how-are-you",
        "whats-up",
        "what-is-up",
    ]
)
_FILLERS = frozenset(
    [
        "so",
        "well",
        "oh",
        "ah",
        "and",
        "there",
        "again",
        "very",
        "much",
        "a",
        "lot",
        "for",
        "that",
        "it",
        "is",
        "all",
        "so",
        "you",
        "too",
        "to",
        "everyone",
        "all",
    ]
)
_COMMAND = re.compile(r"[/!][\w-]+(\s|$)")
_SYSTEM = re.compile(r"\[system\b|heartbeat\b", re.IGNORECASE)
_WORDS = re.compile(r"[\w']+")


@dataclass(frozen=True, slots=True)
class Query:
    """A prompt as the legs ask it.

    Attributes:
        text: what the vector leg embeds.
        terms: what the lexical leg looks for.
        trivial: why nothing should be recalled for it, or None.
    """

    text: str
    terms: tuple[str, ...]
    trivial: str | None = None


def understand(prompt: str) -> Query:
    """Read a prompt, of any length and with any characters in it."""
    text = clean(_shortened(prompt)).strip()
    if not text:
        return Query("", (), "empty")
    if _COMMAND.match(text):
        return Query(text, (), "command")
    if _SYSTEM.match(text):
        return Query(text, (), "system message")
    terms = match_terms(text)
    if not terms and not any(char.isalnum() for char in text):
        return Query(text, (), "no words")
    if _is_small_talk(text):
        return Query(text, terms, "small talk")
    return Query(text, terms)


def _is_small_talk(text: str) -> bool:
    words = [word.replace("'", "") for word in _WORDS.findall(fold(text))]
    if not words or len(words) > 8:
        return not words
    position = 0
    while position < len(words):
        taken = next((n for n in (3, 2, 1) if "-".join(words[position : position + n]) in _TRIVIAL), 0)
        if not taken and words[position] not in _FILLERS:
            return False
        position += max(1, taken)
    return True


def _shortened(prompt: str) -> str:
    if len(prompt) <= MAX_CHARACTERS:
        return prompt
    half = MAX_CHARACTERS // 2
    return f"{prompt[:half]}\n{prompt[-half:]}"
