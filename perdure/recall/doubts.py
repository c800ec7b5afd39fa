"""What speaks against a memory that shares words or a topic with a prompt: it need not be what is asked for.

A small embedding model puts "Who is Carla's supervisor?" as near to "Carla's birthday is 9 November" as a paraphrase
of it, and "How is a fjord formed?" near a customer with the code name Fjord. These signs tell them apart without a
model. Each asks for more cosine; none is final, so a clear hit still passes. They read English; a prompt in another
language raises no doubt.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

from perdure.recall.related_words import groups
from perdure.text.normalise import fold, match_terms

ONLY_SUBJECT = "the prompt names its subject and asks for something else"
COMMON_NOUN = "the prompt uses its name as a common noun"
GENERAL = "a general question that names nothing of it"

COST = {ONLY_SUBJECT: 0.25, COMMON_NOUN: 0.3, GENERAL: 0.15}
"""So much cosine beyond the floor each asks for. Chosen on the tuned half of bench/data/precision.json."""

STEM = 5
"""Letters that are compared. Few, so that "allergic" finds "allergy": words taken for the same lift a doubt."""

HALF = 0.5
"""What holds this share of a prompt's words, or two of them, is what it speaks of, even if nobody noted a subject."""

KEPT = 1_024
"""Texts whose words are at hand: a recall comes back to the same candidates, and the next one to many of them."""

_WORD = re.compile(r"[\w'-]+")
_WH = "what|which|who|whom|whose|when|where"
_LEAD = r"(?:(?:so|and|ok|okay|hey|by|in|on|at|for|from|to|until|since|about|of|with|into) )*"
_ADVERB = "do|does|did|can|could|should|would|is|are|was|to|about|come"
_ATTRIBUTE = re.compile(rf"{_LEAD}(?:(?:{_WH})(?:'?s)? |how (?!(?:{_ADVERB})\b)\w+ )")
_QUESTION = re.compile(rf"{_LEAD}(?:{_WH}|why|how)(?:'?s)? |(?:is|are|do|does|did|can|could|would) ")
_PERSONAL_WORDS = """
i i'm i've i'd i'll im ive me my mine myself we we're we've we'd we'll us our ours you your
mum mom dad mother father grandma grandpa family kids team office
"""
_DETERMINER_WORDS = "a an the my our your his her their its this that these those every"
_PERSONAL, _DETERMINERS = frozenset(_PERSONAL_WORDS.split()), frozenset(_DETERMINER_WORDS.split())


@dataclass(frozen=True, slots=True)
class Asking:
    """What the doubts read of a prompt.

    Attributes:
        prompt: as it was written: "Herons" at its beginning may be a name, "herons" inside is none.
        terms: stems of the words that say something.
        names: stems of what looks like a name.
        attribute: whether it asks for one attribute: what, which, who, when, where, how many.
        general: whether it is a question that speaks of neither the user nor the agent.
    """

    prompt: str
    terms: frozenset[str]
    names: frozenset[str]
    attribute: bool
    general: bool

    @classmethod
    def of(cls, prompt: str, names: Iterable[str]) -> Asking:
        """Read a prompt; `names` is what looks like a name in it, folded."""
        folded = fold(prompt)
        proper = [name for name in names if not re.search(rf"\ban? {re.escape(name)}\b", folded)]
        return cls(
            prompt,
            stems(prompt),
            stems(" ".join(proper)),
            attribute=bool(_ATTRIBUTE.match(folded)),
            general=_PERSONAL.isdisjoint(_WORD.findall(folded)) and bool(_QUESTION.match(folded)),
        )


def doubts(asking: Asking, text: str, subject: str | None, coverage: float) -> list[str]:
    """Return what speaks against a memory.

    Args:
        asking: the prompt.
        text: what the memory says, with the words of its slot.
        subject: what it is about is called so; empty for the user, None if nobody noted it.
        coverage: share of the prompt's weighted words that it holds, 0 to 1.

    Returns:
        Keys of `COST`.
    """
    held, called = stems(text), stems(subject)
    named = called & asking.terms
    common = bool(named) and any(_is_common_noun(asking.prompt, text, name) for name in _words(subject or ""))
    found = [COMMON_NOUN] if common else []
    if not common and asking.attribute and _only_names(asking, held, called if named else asking.names):
        found.append(ONLY_SUBJECT)
    # A memory without a subject can only be named by its words.
    covered = subject is None and (coverage >= HALF or len(asking.terms & held) > 1)
    names_it = (named and not common) or asking.names & held or covered
    if asking.general and not names_it:
        found.append(GENERAL)
    return found


@lru_cache(maxsize=KEPT)
def stems(text: str | None) -> frozenset[str]:
    """Return the beginnings of the words that say something, without English endings."""
    return frozenset(map(_stem, match_terms(text or "")))


def _only_names(asking: Asking, held: frozenset[str], names: frozenset[str]) -> bool:
    """Whether all that a memory shares with the prompt are names, while the prompt asks for more than these."""
    if not asking.terms & names & held:
        return False
    asked = asking.terms - names - _KIN
    return bool(asked - _SAYS_NOTHING) and not asked & held and not _related(asked) & _related(held)


@lru_cache(maxsize=KEPT)
def _words(text: str) -> tuple[str, ...]:
    return tuple(_WORD.findall(fold(text)))


def _is_common_noun(prompt: str, text: str, name: str) -> bool:
    """Whether a name that the text uses as one, without a determiner, stands in the prompt as "a name" or "names"."""
    told = _words(text)
    places = [at for at, word in enumerate(told) if word.removesuffix("'s") == name]
    if len(name) < 3 or not places or any(told[at - 1] in _DETERMINERS for at in places if at):
        return False
    plural = rf"{re.escape(name)}e?s" + (rf"|{re.escape(name[:-1])}ies" if name.endswith("y") else "")
    return bool(re.search(rf"\b(?:{plural}|(?:an?|word) {re.escape(name)})\b(?!')", prompt))


def _related(words: frozenset[str]) -> frozenset[int]:
    return frozenset().union(*(_GROUPS.get(word, ()) for word in words))


def _stem(word: str) -> str:
    for ending in ("ies", "ied", "ing", "ed", "es", "s", "e", "y"):
        if word.endswith(ending) and not word.endswith("ss") and len(word) - len(ending) >= 3:
            word = word[: -len(ending)]
            break
    if len(word) > 3 and word[-1] == word[-2] and word[-1] not in "aeiouls":
        word = word[:-1]  # swimming, swim
    return word[:STEM]


_GROUPS = groups(_stem)
_KIN = stems("brother sister son daughter mother father mum mom dad wife husband friend uncle aunt cousin")
_SAYS_NOTHING = stems("mean called happened tell know people someone one thing")
