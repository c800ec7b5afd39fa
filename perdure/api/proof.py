"""What shows that the user themselves asks for a change: their own words of the turn, and nothing that they read.

A model does what pages, mails and tools tell it, too, so its word that the user wants something is worth nothing. The
words must be the user's, order or correct something, hold all that is new, and fit one memory alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache, cached_property

from perdure.regex import lazy
from perdure.speech.forgetting import is_order_to_forget
from perdure.speech.spans import is_label, spoken
from perdure.speech.typed import typed
from perdure.store.fact import Fact
from perdure.text.lexicon import listed, table, word_set
from perdure.text.normalise import cut_ending, fold, match_terms

MAX_CHARS = 4_000
"""Maximum characters of a message that may ask for a change: a longer one is pasted material."""
_KEEP, _DROP, _FORGET, _DENY, _CORRECT = (
    listed("api", "asking", name) for name in ("keep", "drop", "forget", "deny", "correct")
)
"""Words by which a user asks that something be kept or left out, withdraws it, or says it otherwise; on folded text."""
_NOT, _TOLD, _MANY, _LIMIT, _OTHERS, _STATED, _FIRMLY = (
    listed("api", "asking", name) for name in ("not", "told", "many", "limit", "others", "stated", "firmly")
)
_SWAP, _ALWAYS, _STANDING, _PLAINLY, _OF_RULES, _PRUNE, _HEAD = (
    listed("api", "asking", name) for name in ("swap", "always", "standing", "plainly", "of_rules", "prune", "head")
)
_EMPTY = word_set(table("api", "asking")["empty"])
"""Words without content of their own: possessives, courtesy, and pronouns."""
_SENTENCE = lazy(r"(?<=[.!?…。！？])\s*|\n\n+|(?<=[,;:])\n")
_CLAUSE = lazy(
    r"[,;:.–—]|\b(?:but|sondern|aber|mais|sino|pero)\b"
    r"|^(?:no(?= (?:it|that|this|the|my|i|forget|delete)\b)|nein|nee|nope|non(?= ))(?!\w)"
)
_REQUEST = lazy(
    r"(?:please|can|could|would|will|bitte|kannst|konntest|wurdest|peux|pourrais|pouvez|puedes|podrias|por favor)\b"
)
_WORD = lazy(r"\w+")
_NAMED = lazy(r"\s*\[[^\]\n]{1,80}\]:")
_SPEAKER = lazy(r"\s*(?:\[[^\]\n]{1,80}\]:?|[^\W\d][\w.-]*(?: [^\W\d][\w.-]*)?:)\s")


@dataclass(frozen=True)
class Said:
    """What the user says for themselves in a turn."""

    text: str = ""

    @classmethod
    def of(cls, message: str, *, shared: bool = False) -> Said:
        """Return the user's own part of a message: not what they paste, quote, or pass on.

        `shared`: others write in the same chat, so what follows a name and a colon may have been written by anybody.
        """
        if len(message) > MAX_CHARS:
            return cls()
        # What a host puts in front of a message has no colon behind it, and names whoever writes.
        others = _speaker if shared else _NAMED.match
        return cls(spoken(typed(_own("\n".join(line for line in message.split("\n") if not others(line))))).plain)

    @property
    def prunes(self) -> bool:
        """Whether they ask to remove expired memories."""
        return any(self._ordered(_DROP)) and any(_PRUNE.search(each) for each in self._sentences)

    @property
    def withdraws(self) -> bool:
        """Whether they withdraw something, in words that can only mean a memory and not a task."""
        denied = any(_DENY.search(each) for each in self._sentences)
        return denied or any(self._ordered(_FORGET)) or any(map(is_order_to_forget, self._sentences))

    @property
    def corrects(self) -> bool:
        """Whether they correct something."""
        return any(map(_is_otherwise, self._sentences))

    @property
    def means_several(self) -> bool:
        """Whether they mean more than one thing."""
        return any(_MANY.search(each) for each in self._sentences)

    def names_nothing_but(self, fresh: frozenset[str]) -> bool:
        """Return whether they name nothing but `fresh`, the words to store: then the preceding statement is meant."""
        rest = " ".join(self._sentences)
        for each in (_DROP, _FORGET, _DENY, _CORRECT, _KEEP):
            rest = each.sub(" ", rest)
        return _terms(rest) <= fresh

    def shared(self, text: str) -> frozenset[str]:
        """Return the words that carry meaning that they share with a text."""
        return _terms(" ".join(self._sentences)) & _terms(text)

    def says(self, name: str) -> bool:
        """Return whether their words contain a name."""
        words = _terms(name)
        return bool(words) and any(
            words <= _terms(clause) for each in self._sentences for clause in _CLAUSE.split(each)
        )

    def keeps(self, new: str, beside: str = "") -> bool:
        """Return whether they ask to store a text: a contiguous part of one clause, with everything that qualifies it.

        `beside`: values stored with it; they must come from the same clause.
        """
        words = _plain_words(new)
        for clause in self._kept:
            theirs = _plain_words(clause)
            begins = {0, *(len(_plain_words(clause[:end])) for end in _ends(clause))}
            whole = any(theirs[at : at + len(words)] == words for at in begins)
            if words and whole and _limits(clause) <= _limits(new) and {*_plain_words(beside)} <= {*theirs}:
                return True
        return False

    def changes(self, new: str, old: str, beside: str = "", *, standing: bool = False) -> bool:
        """Return whether one clause of theirs says exactly what a new text changes in an old one.

        The clause contains the new words in order, and denies the removed ones or replaces them with the new ones.
        """
        said = [each for each in self._sentences if _is_otherwise(each) or _withdraws(each)]
        clauses = [clause for each in said for clause in _CLAUSE.split(each)]
        return any(_changes(clause, new, old, beside, standing) for clause in clauses)

    def retracts(self, old: str, *, standing: bool) -> bool:
        """Return whether a clause of theirs withdraws a memory and says nothing else."""
        known, nothing = _terms(old), True
        about = known | {cut_ending("name")}
        for each in self._sentences:
            for clause in _CLAUSE.split(each):
                named = _terms(_without_orders(clause))
                if not _withdraws(clause) or named - about:
                    nothing = nothing and not named
                    continue
                if not _agrees(clause, old):
                    continue
                most = 2 * len(named) > len(known)
                if not named and not nothing:
                    continue
                if standing and named and not most and not _OF_RULES.search(clause):
                    continue
                if named and _PLAINLY.search(clause) and not most:
                    continue
                return True
        return False

    @cached_property
    def _kept(self) -> Sequence[str]:
        """The clauses that they ask to be kept: of a sentence that asks for it, or beside one that says no more."""
        found: list[str] = []
        for place, each in enumerate(self._sentences):
            if _KEEP.search(each) or (_is_otherwise(each) and (_STATED.search(each) or _ALWAYS.search(each))):
                bare = not _terms(_KEEP.sub(" ", each))
                beside = self._sentences[max(0, place - 1) : place + 2] if bare else [each]
                found += (clause for sentence in beside for clause in _CLAUSE.split(sentence))
        return found

    @cached_property
    def _sentences(self) -> Sequence[str]:
        """Their sentences, folded, without reported speech and plain questions."""
        found = []
        for sentence in filter(None, map(str.strip, _SENTENCE.split(self.text))):
            folded = fold(sentence)
            asks = "?" not in sentence or _REQUEST.match(folded)
            if asks and not _TOLD.search(folded) and not _speaker(sentence):
                found.append(folded)
        return found

    def _ordered(self, order: re.Pattern[str]) -> Iterable[bool]:
        """Yield whether each sentence gives an order that it does not forbid."""
        for sentence in self._sentences:
            yield any(order.search(each) and not _NOT.search(each) for each in _CLAUSE.split(sentence))


def is_standing(fact: Fact) -> bool:
    """Return whether a memory is an instruction that holds until it is taken back."""
    return fact.entity == "convention" or bool(_STANDING.search(fold(fact.text)))


@dataclass(frozen=True, slots=True)
class Heard:
    """What a host has heard the user say lately."""

    text: str  # the whole message
    session: str | None = None  # in which it is the newest; None: they have said more there since


def meant(said: Said, some: Iterable[Fact], fresh: frozenset[str] = frozenset()) -> list[Fact]:
    """Return which memories the user's words fit best: those with most of them, and of these one that says no more.

    None if they fit none. Words that are `fresh` in what is to be kept tell nothing of what it is about.
    """
    fits = [(fact, said.shared(fact.text) - fresh) for fact in some]
    ranks = {fact.id: (len(shared), shared == _terms(fact.text)) for fact, shared in fits if shared}
    best = max(ranks.values(), default=None)
    return [fact for fact, _ in fits if ranks.get(fact.id) == best] if best else []


def fresh_terms(new: str, old: str) -> frozenset[str]:
    """Return the words that carry meaning in a new text and not in the old one."""
    return _terms(new) - _terms(old)


def _speaker(line: str) -> str:
    """Return the speaker's name that precedes a line; "" if there is none, or it introduces the user's own words."""
    found = _SPEAKER.match(line)
    name = found[0].strip(" :[]") if found else ""
    own = not name or is_label(name) or any(each.search(fold(name)) for each in (_KEEP, _CORRECT, _DROP))
    return "" if own else name


def _own(message: str) -> str:
    """Return the paragraphs that are plainly the user's: none that is headed as a page, a log or a commit is."""
    parts = re.split(r"\n[ \t]*\n", message)
    headed = [bool(_HEAD.search(each)) for each in parts]
    # Behind a head what is pasted may go on: only a question or a request in front of it is surely theirs.
    return "\n\n".join(parts[: headed.index(True)] if True in headed else parts)


def _is_otherwise(sentence: str) -> bool:
    """Return whether a sentence says that something is otherwise: "now" in an order speaks of work."""
    return bool(_FIRMLY.search(sentence) or _SWAP.search(sentence)) or any(
        _CORRECT.search(clause) and _STATED.search(clause) for clause in _CLAUSE.split(sentence)
    )


def _withdraws(clause: str) -> bool:
    ordered = (_FORGET.search(clause) and not _NOT.search(clause)) or is_order_to_forget(clause)
    return bool(ordered or _DENY.search(clause))


def _changes(clause: str, new: str, old: str, beside: str, standing: bool) -> bool:
    """Return whether a clause says what a new text changes in an old one, and nothing else."""
    theirs, after, before = _plain_words(_CORRECT.sub(" ", clause)), _plain_words(new), _plain_words(old)
    fresh, gone = {*after, *_plain_words(beside)} - {*before}, {*before} - {*after}
    every = {*_plain_words(clause)}
    if not (fresh or gone) or not fresh <= every or not _agrees(clause, old):
        return False
    if _terms(_without_orders(clause)) - _terms(f"{new} {old} {beside}"):
        return False
    if _SWAP.search(clause) and not _STATED.search(clause) and not (gone and gone <= every):
        return False
    rest = iter(_plain_words(clause))
    if not all(word in rest for word in after if word in every):
        return False
    denies = bool(_NOT.search(clause))
    if denies is not bool(_NOT.search(fold(new))) and (fresh or not _withdraws(clause)):
        return False
    limits = _limits(old) ^ _limits(new)
    if standing and not (_ALWAYS.search(clause) and theirs == after):
        return False
    if limits and not limits <= _limits(clause) and theirs != after:
        return False
    return bool(fresh) or theirs == after or (_withdraws(clause) and gone <= every)


def _agrees(clause: str, old: str) -> bool:
    """Return whether a clause mentions no owner other than the memory's."""
    return {*_OTHERS.findall(clause)} <= {*_OTHERS.findall(fold(old))}


def _limits(text: str) -> set[str]:
    folded = fold(text)
    return {*_LIMIT.findall(folded), *_NOT.findall(folded)}


def _ends(clause: str) -> list[int]:
    """Return where the words end by which something is asked to be kept or said otherwise."""
    return [found.end() for each in (_KEEP, _FIRMLY) for found in each.finditer(clause)]


def _without_orders(clause: str) -> str:
    for each in (_FORGET, _DENY, _DROP, _FIRMLY, _SWAP, _CORRECT, _KEEP, _OF_RULES, _MANY):
        clause = each.sub(" ", clause)
    return clause


def _terms(text: str) -> frozenset[str]:
    return frozenset(cut_ending(term) for term in match_terms(text)) - _stems_of_nothing()


def _plain_words(text: str) -> list[str]:
    return [cut_ending(word) for word in _WORD.findall(fold(text)) if word not in _EMPTY]


@cache
def _stems_of_nothing() -> frozenset[str]:
    return frozenset(map(cut_ending, _EMPTY))
