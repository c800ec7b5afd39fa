"""Questions for all of a kind, as "What are my allergies?": of what answers one, nothing is another's rival."""

from __future__ import annotations

from dataclasses import dataclass

from perdure.regex import lazy
from perdure.store.fact import Fact
from perdure.store.vocabulary import stem, terms
from perdure.text.lexicon import listed, table, word_set
from perdure.text.normalise import fold, match_terms
from perdure.text.sameness import others

_ASKED, _MINE, _GENERAL, _ANYBODYS, _AGAINST, _THEMSELVES = (
    listed("recall", "kinds", name) for name in ("asked", "mine", "general", "anybodys", "against", "themselves")
)
_SPEAKER = lazy(r"\b(?:i|i'(?:m|ve|d|ll)|me|we|we'(?:re|ve|d|ll)|us)\b")
_NAMED = lazy(r"[A-Z][\w-]+(?: [A-Z][\w-]+)? (?:[a-z]+ly )?(?:[a-z]+s|can't|cannot|won't)\b")
"""A sentence about somebody who is named."""
MOST_WORDS = 24
"""Who asks for a kind says little else."""
MOST_NAMED = 3
"""A query of more words looks for one thing."""


@dataclass(frozen=True, slots=True)
class Kind:
    """What is asked for all of."""

    words: tuple[frozenset[str], ...]  # for each word that it is called by, those that say the same
    own: bool = False  # whether it is the asker's
    against: bool | None = None  # of likes and dislikes, whether it is these; None: it is neither
    personal: bool = False  # whether each person has some of their own, as likes

    def has(self, fact: Fact) -> bool:
        """Return whether a memory is one of the kind by its words, its category, its slot or its tags."""
        if not self.words or not self.may_have(fact.text):
            return False
        about = terms(" ".join(filter(None, (fact.text, fact.category, fact.entity, fact.key, *fact.tags))))
        return all(not about.isdisjoint(map(stem, word)) for word in self.words)

    def may_have(self, text: str) -> bool:
        """Return whether a memory may be one: a relative's is not the asker's, and a dislike is no like."""
        folded = fold(text)
        theirs = bool(others(text)) or (self.personal and bool(_NAMED.match(text)))
        askers = not self.own or not theirs or bool(_SPEAKER.search(folded))
        return askers and self.against in (None, bool(_AGAINST.search(folded)))


def kind_asked(prompt: str) -> Kind | None:
    """Return the kind of which a prompt asks for all, or None."""
    folded = fold(prompt)
    if len(folded.split()) > MOST_WORDS or _GENERAL.search(folded):
        return None
    # "Which books does my brother own?" is about him.
    theirs = bool(others(_THEMSELVES.sub(" ", folded))) and not _SPEAKER.search(folded)
    if not theirs and _MINE.search(folded) and _ASKED.search(folded):
        return _kind(prompt, folded, own=True)
    return _kind(prompt, folded, own=False) if _ANYBODYS.search(folded) else None


def kind_named(query: str) -> Kind | None:
    """Return the kind that a search names in a few words, or None."""
    found = _kind(query, fold(query), own=False)
    return found if 0 < len(found.words) <= MOST_NAMED else None


def _kind(text: str, folded: str, *, own: bool) -> Kind:
    families = [word_set(words) for words in table("recall", "kinds")["families"].values()]
    named = [term for term in match_terms(text) if term not in word_set(table("recall", "kinds")["no_kind"])]
    # "Which books do I own?" asks for books; what else is in it may be said of them in other words.
    called = [term for term in named if term.endswith("s") and not term.endswith(("ss", "us"))] or named
    words = tuple(next((each for each in families if term in each), frozenset((term,))) for term in called)
    against = bool(_AGAINST.search(folded)) if families[0] in words else None
    return Kind(words, own, against, any(each in families for each in words))
