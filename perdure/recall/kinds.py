"""Questions for all of a kind, as "What are my allergies?", and for what is somebody's.

Of what answers the former, nothing is another's rival; to the latter, Tom's is no answer for Jonah's, nor a sister's
for the user's own.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass
from functools import cache

from perdure.regex import lazy
from perdure.store.fact import Fact
from perdure.store.vocabulary import stem, terms
from perdure.text.lexicon import kin, listed, table, word_set
from perdure.text.normalise import fold, match_terms
from perdure.text.sameness import others

_ASKED, _MINE, _GENERAL, _ANYBODYS, _AGAINST, _THEMSELVES = (
    listed("recall", "kinds", name) for name in ("asked", "mine", "general", "anybodys", "against", "themselves")
)
_SOMEBODY = listed("recall", "kinds", "somebody")
_SPEAKER = lazy(r"\b(?:i|i'(?:m|ve|d|ll)|me|we|we'(?:re|ve|d|ll)|us)\b")
_BARE = lazy(r"(?:my|our)(?: [\w'-]+){1,4}", re.IGNORECASE)
_MOST_WORDS = 24
"""Who asks for a kind says little else."""
_MOST_NAMED = 3
"""A query of more words looks for one thing."""


@dataclass(frozen=True, slots=True)
class Kind:
    """What is asked for all of."""

    words: tuple[frozenset[str], ...]  # for each word that it is called by, the stems of those that say the same
    own: bool = False  # whether it is the asker's
    likes: bool | None = None  # whether it is what somebody likes, or does not; None: it is neither

    def has(self, fact: Fact) -> bool:
        """Return whether a memory is one of the kind by its words, its category, its slot or its tags."""
        if not self.words or not self.may_have(fact.text):
            return False
        about = terms(" ".join(filter(None, (fact.text, fact.category, fact.entity, fact.key, *fact.tags))))
        return all(not word.isdisjoint(about) for word in self.words)

    def may_have(self, text: str) -> bool:
        """Return whether a memory may be one: a relative's is not the asker's, and a dislike is no like."""
        folded = fold(text)
        if self.own and not _SPEAKER.search(folded):
            # "Ana likes tea" is about her; of clients that are asked for each is somebody else.
            called = frozenset[str]().union(*self.words)
            named = others(_THEMSELVES.sub(" ", folded)) - {"user"}
            if _SOMEBODY.match(text) or any(stem(each) not in called for each in named):
                return False
        if self.likes is None:
            return True
        rest = _AGAINST.sub(" ", folded)
        return rest == folded or not _family("likes").isdisjoint(terms(rest)) if self.likes else rest != folded


def kind_asked(prompt: str) -> Kind | None:
    """Return the kind of which a prompt asks for all, or None."""
    folded = fold(prompt)
    if len(folded.split()) > _MOST_WORDS or _GENERAL.search(folded):
        return None
    if _MINE.search(folded) and _ASKED.search(folded):
        kind = _kind(prompt, folded, own=True)
        # "Which books does my brother own?" is about him, "Who are our clients?" about the user's.
        called = kind.words[0] if kind.words else frozenset()
        theirs = [each for each in others(_THEMSELVES.sub(" ", folded)) if stem(each) not in called]
        if not theirs or _SPEAKER.search(folded):
            return kind
    return _kind(prompt, folded, own=False) if _ANYBODYS.search(folded) else None


def as_question(prompt: str) -> str:
    """Return a prompt that only names a kind, as "my books", as the question that it stands for."""
    return f"What are {prompt}?" if _BARE.fullmatch(prompt) else prompt


def speaks_of_the_asker(text: str) -> bool:
    """Return whether a memory says "I" or "my", in one of six languages."""
    return _MINE.search(fold(text)) is not None


def kind_named(query: str) -> Kind | None:
    """Return the kind that a search names in a few words, or None."""
    found = _kind(query, fold(query), own=False)
    return found if 0 < len(found.words) <= _MOST_NAMED else None


def _kind(text: str, folded: str, *, own: bool) -> Kind:
    naming_none = word_set(table("recall", "kinds")["no_kind"])
    named = [term for term in match_terms(text) if term not in naming_none]
    # "Which books do I own?" asks for books; what else is in it may be said of them in other words.
    plural = [term for term in named if term.endswith("s") and not term.endswith(("ss", "us"))]
    plural = [term for term in plural if term == plural[0] or term not in others(folded)]
    families = {name: _family(name) for name in table("recall", "kinds")["families"]}
    words = [
        next((each for each in families.values() if stem(term) in each), frozenset((stem(term),)))
        for term in plural or named
    ]
    more = [term for term in named if plural and term not in plural]
    if more and words == [families["likes"]]:
        # "My coding preferences" are not all that is liked.
        return Kind(tuple(frozenset((stem(term),)) for term in more), own)
    if families["dislikes"] in words or (families["likes"] in words and _AGAINST.search(folded)):
        return Kind((families["dislikes"] | families["likes"],), own, likes=False)
    # Of two kinds, as "meds and supplements", each memory is one.
    kinds = (frozenset[str]().union(*words),) if plural else tuple(words)
    return Kind(kinds, own, True if families["likes"] in words else None)


@cache
def _family(name: str) -> frozenset[str]:
    """Return the stems of words that say the same."""
    return frozenset(map(stem, word_set(table("recall", "kinds")["families"][name])))


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
