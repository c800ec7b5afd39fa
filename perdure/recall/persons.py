"""Whose thing is asked for: Tom's is no answer for Jonah's, nor a sister's for the user's own."""

from __future__ import annotations

from collections.abc import Iterator

from perdure.regex import lazy
from perdure.text.normalise import fold
from perdure.text.sameness import others

_OWNED = lazy(r"\b(?:([Mm]y)|([\w-]+)['\u2019]s) (?=([\w-]+)\b(?!['\u2019]s))")
MINE = "my"


def anothers(prompt: str, text: str) -> bool:
    """Return whether a memory tells of the very thing that a prompt asks for, but of another person's."""
    for owner, thing in _owned(prompt):
        owners = {each for each, other in _owned(text) if other == thing}
        if owner == MINE:
            # A name may be the user's own.
            owners = {each for each in owners if each == MINE or others(f"my {each}")}
        if owners and owners.isdisjoint((owner, MINE)) and (owner == MINE or owner not in fold(text)):
            return True
    return False


def _owned(text: str) -> Iterator[tuple[str, str]]:
    """Yield who owns what in a text, persons alone: the user as "my"."""
    for mine, name, thing in _OWNED.findall(text):
        if mine:
            yield MINE, fold(thing)
        elif name[0].isupper() or others(f"my {name}"):
            yield fold(name), fold(thing)
