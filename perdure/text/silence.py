"""Whether a sentence says what was forgotten, told by keyed hashes of its words.

A mark is what is left of a forgotten sentence. Another sentence says the same if it, or one of its clauses, has all
content words of it in any order and form, denies it no more and no less, and speaks of the same person: "I" or "you"
where that one speaks of "I", and nobody further where it speaks of "my". One word alone is all of it; of a clause with
one word alone ("I think") only the same clause says the same.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from perdure.regex import lazy
from perdure.text.echo import trace
from perdure.text.normalise import fold
from perdure.text.sameness import others

_SENTENCE = lazy(r"((?<=[.!?…])\s+|(?<=[。！？])|\n+)")
_CLAUSE = lazy(
    r"[,;:–—]\s|\s(?:and|but|because|since|so|und|aber|weil|et|mais|parce|y|pero|porque|e|ma|mas|perche)\s",
    re.IGNORECASE,
)
_ASIDE = lazy(r"\s*\([^()]*\)")
_USER = lazy(r"\b(?:the )?user(?P<own>'s)?\b", re.IGNORECASE)
_SPEAKER = lazy(r"\b(?:i|i'(?:m|ve|d|ll)|im|ive|we|we'(?:re|ve|d|ll)|you|you'(?:re|ve|d|ll)|me|us)\b")
_OWNER = lazy(r"\b(?:my|mine|our|ours|your|yours)\b")
_DENIED = lazy(r"\b(?:no|not|never|without|cannot|\w+n't|nicht|kein\w*|nie|ne|pas|jamais|nao|nunca|non)\b")


Known = tuple[str, str, float]
"""The scope of what was forgotten, kind and target, and when it was, epoch seconds."""


@dataclass(frozen=True, slots=True)
class Mark:
    """A sentence or clause without its words."""

    words: frozenset[str]  # keyed hashes of its content words
    who: str  # "i" if it speaks of the speaker or of "you", "my" of what is theirs, else ""
    denied: bool
    others: frozenset[str] = frozenset()  # those of the words that name relatives and owners
    part: bool = False  # whether it is a clause

    def __str__(self) -> str:
        return f"{self.who}{'-' * self.denied}{'.' * self.part}:{' '.join(sorted(self.words))}"

    @classmethod
    def parse(cls, text: str) -> Mark:
        """Return the mark that is written so."""
        who, _, words = text.partition(":")
        return cls(frozenset(words.split()), who.rstrip("-."), "-" in who, part="." in who)

    def tells(self, said: Mark) -> bool:
        """Return whether another sentence or clause says what this one did."""
        if not self.words <= said.words or self.denied != said.denied:
            return False
        alone, further = len(self.words) == 1, said.others - self.words
        if alone and self.part and self.words != said.words:
            return False
        if self.who == "i":
            return said.who == "i" and not (alone and further)
        if self.who == "my":
            return bool(said.who) and not further
        return not alone or self.words == said.words


class Marks:
    """Marks of what one may not be told any more, each with what is known of it."""

    def __init__(self, marks: Iterable[tuple[str, Known]], key: bytes) -> None:
        self._key = key
        self._by_word: dict[str, list[tuple[Mark, Known]]] = defaultdict(list)
        for text, known in marks:
            mark = Mark.parse(text)
            if mark.words:
                self._by_word[min(mark.words)].append((mark, known))

    def telling(self, sentence: str) -> Iterator[Known]:
        """Yield what is known of the marks that a sentence says again."""
        for said in _units(sentence, self._key):
            for word in said.words:
                yield from (known for mark, known in self._by_word.get(word, ()) if mark.tells(said))


def marks_of(text: str, key: bytes) -> list[str]:
    """Return the marks of a text: of its sentences, and of the clauses that speak of the speaker."""
    found: dict[str, None] = {}
    for sentence in _SENTENCE.split(_USER.sub(_speaker, _ASIDE.sub("", text)))[::2]:
        whole, *parts = _units(sentence, key)
        found |= dict.fromkeys(map(str, [whole, *(part for part in parts if part.who)]))
    return list(found)


def without(text: str, silent: Callable[[str], bool]) -> str:
    """Return a text without its silent sentences."""
    parts = _SENTENCE.split(text)
    kept = [at for at in range(0, len(parts), 2) if not silent(parts[at])]
    if len(kept) == len(parts[::2]):
        return text
    return "".join("".join(parts[at : at + 2]) for at in kept).strip()


def _speaker(match: re.Match[str]) -> str:
    return "my" if match["own"] else "I"


def _units(sentence: str, key: bytes) -> Iterator[Mark]:
    parts = _CLAUSE.split(sentence)
    for number, part in enumerate([sentence, *(parts if len(parts) > 1 else ())]):
        folded = fold(part)
        who = "i" if _SPEAKER.search(folded) else "my" if _OWNER.search(folded) else ""
        named = frozenset(trace(" ".join(others(part)), key).words)
        yield Mark(frozenset(trace(part, key).words), who, bool(_DENIED.search(folded)), named, number > 0)
