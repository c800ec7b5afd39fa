"""Whose thing is asked for: Tom's is no answer for Jonah's, nor a sister's for the user's own."""

from __future__ import annotations

from collections.abc import Collection
from functools import cache

from perdure.regex import lazy
from perdure.text.lexicon import kin, table
from perdure.text.normalise import fold
from perdure.text.sameness import others

_OWNED = lazy(r"\b(?:([Mm]y)|([\w-]{1,40})['\u2019]s) (?=([\w-]{1,40})\b(?!['\u2019]s))")
_INCLUDED = lazy(r"\b(?:I|I'\w+|[Mm]e|[Mm]ine|[Mm]yself|[Ww]e|[Uu]s|[Oo]urs?|[Bb]oth)\b")
MINE = "my"
Owned = tuple[str, str]


def anothers(asked: Collection[Owned], text: str) -> bool:
    """Return whether a memory tells of the very thing that is asked for, but of another person's.

    `asked`: what `owned` reads of the prompt.
    """
    told = owned(text) if asked else ()
    for owner, thing in asked:
        owners = {each for each, other in told if other == thing}
        named = _INCLUDED.search(text) if owner == MINE else owner in fold(text)
        if owners and not named and all(_differ(owner, each) for each in owners):
            return True
    return False


def _differ(asked: str, told: str) -> bool:
    """Return whether two owners are two persons for certain.

    A name may be the user's own or a sister's, and "Kate" may be Katherine.
    """
    one, other = _role(asked), _role(told)
    if asked == MINE or told == MINE:
        return asked == MINE and other is not None
    if one is None and other is None:
        return asked[0] != told[0]
    return one is not None and other is not None and one != other


def owned(text: str) -> frozenset[Owned]:
    """Return who owns what in a text, persons alone: the user as "my"."""
    found = _OWNED.findall(text)
    people = others(text) if found else ()
    owners = [(MINE if mine else fold(name), mine, name, fold(thing)) for mine, name, thing in found]
    return frozenset(
        (owner, thing)
        for owner, mine, name, thing in owners
        if mine or (owner in people and (name[0].isupper() or owner in kin()))
    )


@cache
def _role(owner: str) -> str | None:
    """Return what a relative is to the user, one word for all that may be one person; None: that is not known."""
    roles = {word: group for group, words in table("recall", "words")["roles"].items() for word in words.split()}
    return roles.get(kin().get(owner, owner))
