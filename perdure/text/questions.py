"""Questions by which recall and models are measured: written once, or made from memories. No model writes them."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Protocol

from perdure.text.lexicon import table
from perdure.text.normalise import match_terms

FOREIGN_QUESTIONS = tuple(table("text", "questions")["foreign"].splitlines())
"""Each must bring up nothing, whatever a store holds; one that does may be about something in that store."""
QUIET = (*FOREIGN_QUESTIONS, *table("text", "questions")["everyday"].splitlines())
"""Prompts that need no memory, a hundred of them."""
PAIRS = tuple(tuple(line.split(" | ")) for line in table("text", "questions")["pairs"].splitlines())
"""Question and the memory that answers it, 60 of them."""
WORDS = 24
"""A question of so many words is as good as one of the whole memory."""
_USER = "user"


class Slotted(Protocol):
    """What a question is made from: a memory and the slot that it fills."""

    @property
    def text(self) -> str: ...  # noqa: D102
    @property
    def entity(self) -> str | None: ...  # noqa: D102
    @property
    def key(self) -> str | None: ...  # noqa: D102
    @property
    def value(self) -> str | None: ...  # noqa: D102


def exact(memory: Slotted) -> str:
    """Return a question of a memory's own words; "" if it has none that says anything."""
    return _question(_content(memory.text)[:WORDS])


def paraphrase(memory: Slotted, dice: random.Random) -> str:
    """Return the words of a memory's slot, or half of its words, in another order; "" if there are too few.

    Function words are left out. No word is replaced by another one: that would take a model.
    """
    if memory.entity and memory.key and memory.value:
        # Nobody calls themselves the user.
        entity = "" if memory.entity.casefold() == _USER else memory.entity
        slot = _content(f"{memory.value} {memory.key} {entity}")
        return _question(slot) if len(slot) > 1 else ""
    words = _content(memory.text)[:WORDS]
    if len(words) < 2:
        return ""
    kept = dice.sample(words, -(-len(words) // 2))
    return _question(kept)


def temporal(memory: Slotted) -> str:
    """Return a question for the slot of a memory."""
    if (memory.entity or "").casefold() == _USER:
        return f"What is my {memory.key}?"
    return f"What is the {memory.key} of {memory.entity}?"


def _content(text: str) -> list[str]:
    # A term of a script without spaces is a phrase of single characters.
    return [term.replace(" ", "") for term in match_terms(text)]


def _question(words: Sequence[str]) -> str:
    return f"{' '.join(words)}?" if words else ""
