"""Do two texts say the same? Told by their words, for what vectors hardly show: figures, names, a "not", who did it.

Three questions differ. May one text stand for both, so that they are merged: `details` and `says_the_same`, and to the
letter `said`. Does a text say no more than another: `says_no_more`, and `echoes` of one of which only keyed hashes are
left, so that what a conversation was shown can be written down without its text. And does it say what was forgotten:
`Mark`, which is what is left of a forgotten sentence. Another sentence tells that if it, or one of its clauses, has all
content words of it in any order and form, denies it no more and no less, and speaks of the same person: "I" or "you"
where that one speaks of "I", and nobody further where it speaks of "my". One word alone is all of it; of a clause with
one word alone ("I think") only the same clause says the same.
"""

from __future__ import annotations

import hashlib
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from difflib import SequenceMatcher

from perdure.regex import lazy
from perdure.text.lexicon import kin, listed, named, stop_words, table, word_set
from perdure.text.normalise import cut_ending, fold, match_terms

LONG, MOST = 6, 0.6
"""Texts that share so many words, and this part of all their words, may be worded differently."""
_MAX_WORDS = 400
"""Longer texts are told apart by these words alone: nobody words a page twice in the same way."""

_WORD = lazy(r"[^\W_]+(?:[.:/'-][^\W_]+)*%?")
_NAME = lazy(r"(?<=[^\W_][,;:)] )[A-Z]\w+|(?<=[^\W_] )[A-Z]\w+")
_LISTS = table("text", "sameness")
_EMPTY, _ORDERED, _TURNING, _TIMES, _NOBODY = (
    word_set(_LISTS[name]) for name in ("empty", "ordered", "polarity", "relative", "nobody")
)
_FILLERS = _EMPTY | word_set(_LISTS["fillers"])
_AROUND = ".,;:!?\"'`*_()[]{}|\u201c\u201d\u201e\u00ab\u00bb\u2013\u2014\u3001\u3002"
"""What stands around a word and says nothing; a sign that may ("-5", "C++", "$5") is not among it."""
_KIN = {form: one for code in reversed(table("text", "words")["kin"]) for form, one in kin(code).items()}
_SYNONYM, _PERSON = (
    _KIN | {word: group.split()[0] for group in _LISTS[name].split(",") for word in group.split()}
    for name in ("synonyms", "people")
)
_CALENDAR = {name for kind in ("months", "weekdays") for names in named(kind) for name in names} - {"may"}
_MARKED = word_set(_LISTS["numbers"]) | _CALENDAR
_SPEAKERS = frozenset(["i", "we", "you"])
_TELLING = _MARKED | _TURNING | _PERSON.keys()


@dataclass(frozen=True, slots=True)
class Details:
    """What must be equal in two texts before they can mean the same."""

    figures: tuple[str, ...]  # numbers, number words, weekdays and months, sorted
    names: tuple[str, ...]  # capitalised words inside a sentence, folded, sorted
    people: tuple[str, ...]  # whom the text speaks of: the speaker, others, relatives; sorted
    polarity: tuple[str, ...]  # words that negate or limit a statement, or change its tense, sorted
    relative: bool  # whether a time in it depends on when it is said ("tomorrow")


def details(text: str) -> Details:
    """Return what a text must share with any other that means the same."""
    words = _words(text)
    figures = (word for word in words if any(char.isdigit() for char in word) or word in _MARKED)
    names = {fold(name) for name in _NAME.findall(text)} - {"i"} - _MARKED
    turning = {"not" if word.endswith("n't") else word for word in words if word in _TURNING or word.endswith("n't")}
    people = {person for word in words if (person := _PERSON.get(word.partition("'")[0]))}
    return Details(
        tuple(sorted(figures)),
        tuple(sorted(names)),
        tuple(sorted(people)),
        tuple(sorted(turning)),
        not _TIMES.isdisjoint(words),
    )


def said(text: str) -> tuple[str, ...]:
    """Return what a text says to the letter: its words in their order, but for case, punctuation and empty words.

    Two texts for which it is equal differ in no figure, name, person or negation: one may stand for both.
    """
    words = (word.strip(_AROUND) for word in fold(text).split())
    return tuple(word for word in words if word and word not in _EMPTY) or (text,)


def says_no_more(text: str, known: str) -> bool:
    """Return whether a text that is worded nearly as a known one says nothing that it does not.

    It has no detail more, and nowhere one word in the place of another.
    """
    if not telling(text) <= telling(known):
        return False
    steps = SequenceMatcher(None, said(known), said(text), autojunk=False).get_opcodes()
    return all(kind != "replace" for kind, *_ in steps)


def telling(text: str) -> frozenset[str]:
    """Return the words of a text, folded, that say how many, when, who and whether: no other may stand for them."""
    words = {word.partition("'")[0] if word.partition("'")[0] in _PERSON else word for word in _words(text)}
    found = {word for word in words if any(map(str.isdigit, word)) or word in _TELLING or word.endswith("n't")}
    return frozenset(found | {name for name in map(fold, _NAME.findall(text)) if name not in stop_words()})


def others(text: str) -> frozenset[str]:
    """Return the words of a text, folded, that name relatives, and whose something is: "my brother's salary"."""
    words = _words(text)
    owners = {word.removesuffix("'s") for word in words if word.endswith("'s")} - _NOBODY
    return frozenset(owners | {word for word in words if _PERSON.get(word, "i") not in _SPEAKERS})


def says_the_same(one: str, other: str) -> bool:
    """Return whether two texts with equal `details` mean the same, or one only goes on where the other ends.

    Fillers and synonyms aside, they must have the same words, in the same order if a word between them says who
    or what stands in which place ("tea over coffee"); or be long, share most words, and nowhere have one word in the
    place of another ("my red car", "my blue car"). What is not clear is not the same.
    """
    first, second = sorted((plain_words(one), plain_words(other)), key=lambda words: (len(words), words))
    if len(first) >= 3 and second[: len(first)] == first:
        return True
    if first == second or (sorted(first) == sorted(second) and _ORDERED.isdisjoint(first)):
        return True
    shared, either = set(first) & set(second), set(first) | set(second)
    return len(shared) >= LONG and len(shared) >= MOST * len(either) and not _exchanged(first, second)


def _exchanged(first: tuple[str, ...], second: tuple[str, ...]) -> bool:
    """Return whether somewhere as many words stand in the place of as many others, or the order turns a comparison."""
    steps = SequenceMatcher(None, first, second, autojunk=False).get_opcodes()
    swapped = any(kind == "replace" and end - at == last - start for kind, at, end, start, last in steps)
    return swapped or not _ORDERED.isdisjoint(set(first) & set(second) - {"for", "with", "to", "from", "by"})


def plain_words(text: str) -> tuple[str, ...]:
    """Return the words of a text without fillers, each synonym by one word for all, in the singular."""
    words = (_SYNONYM.get(word, word) for word in _words(text) if word not in _FILLERS)
    return tuple(_singular(word.removesuffix("'s").removesuffix("'m").removesuffix("'re")) for word in words)


def _words(text: str) -> list[str]:
    return _WORD.findall(fold(text).replace("no matter what", " "))[:_MAX_WORDS]


def _singular(word: str) -> str:
    # No more than that is cut: whoever worked somewhere need not work there now.
    return word[:-1] if len(word) > 3 and word.endswith("s") and not word.endswith(("ss", "us", "is")) else word


_TRACED = 128
"""Content words of a text that leave a trace."""
_SHARE = 0.8
"""A loose echo has at least this share of its words from one text."""
_REPORTING = word_set(_LISTS["reporting"])
_SENSES = {sense: lazy(pattern) for sense, pattern in _LISTS["senses"].items()}
_PART_END = lazy(r"(?<=[.!?…])\s+|[。！？\n]+|(?<=\w):\s")
_DETAIL = lazy(r"\d")
_QUOTED = listed("text", "sameness", "quoted")


@dataclass(frozen=True, slots=True)
class Trace:
    """What is left of a text when its words are gone."""

    words: tuple[str, ...]  # keyed hash of each distinct content word, 8 hex digits, in order of first appearance
    details: frozenset[str]  # those that hold a digit, or say when, who or whose: a name, a relative, a weekday
    senses: frozenset[str]  # what else the words say: "not", "third person", "past", "future"


def trace(text: str, key: bytes) -> Trace:
    """Return the trace of a text's first 128 content words. Person and form do not count: "I like" is "you liked"."""
    terms = [term for term in match_terms(text, _TRACED) if term not in _REPORTING]
    hashes = {term: _hash(cut_ending(term), key) for term in terms}
    named = telling(text)
    details = frozenset(hashes[term] for term in terms if term in named or _DETAIL.search(term))
    folded = fold(text)
    senses = frozenset(sense for sense, pattern in _SENSES.items() if pattern.search(folded))
    return Trace(tuple(dict.fromkeys(hashes.values())), details, senses)


def traces(text: str, key: bytes) -> tuple[Trace, ...]:
    """Return the traces of a text: of all of it, and of each of its sentences."""
    return tuple(trace(part, key) for part in dict.fromkeys([text, *parts(text)]))


def parts(text: str) -> list[str]:
    """Return the sentences of a text, those of a list or behind a colon each by itself."""
    return [part for part in _PART_END.split(text) if part.strip()]


def same(one: Trace, other: Trace) -> bool:
    """Return whether two texts say the same in other forms: the same words in the same order."""
    return len(one.words) > 1 and one.words == other.words and one.senses == other.senses


def echoes(said: Trace, shown: Trace) -> bool:
    """Return whether a text is, for the most part, a repetition of another: a paraphrase, with no new detail."""
    known = set(shown.words)
    if not said.words or "not" in said.senses ^ shown.senses or not said.details <= known:
        return False
    return sum(word in known for word in said.words) >= _SHARE * len(said.words)


def quotes(text: str) -> bool:
    """Return whether a text says of itself that it repeats what the agent said or remembers."""
    return bool(_QUOTED.search(fold(text)))


def _hash(word: str, key: bytes) -> str:
    return hashlib.blake2b(word.encode("utf-8", "replace"), digest_size=4, key=key).hexdigest()


_SENTENCE = lazy(r"((?<=[.!?…])\s+|(?<=[。！？])|\n+)")
_CLAUSE = listed("text", "sameness", "clause")
_ASIDE = lazy(r"\s*\([^()]*\)")
_USER = lazy(r"\b(?:the )?user(?P<own>'s)?\b", re.IGNORECASE)
_SPEAKS = lazy(r"\b(?:i|i'(?:m|ve|d|ll)|im|ive|we|we'(?:re|ve|d|ll)|you|you'(?:re|ve|d|ll)|me|us)\b")
_OWNER = lazy(r"\b(?:my|mine|our|ours|your|yours)\b")
_DENIED = lazy(r"\b(?:no|not|never|without|cannot|\w+n't|nicht|kein\w*|nie|ne|pas|jamais|nao|nunca|non)\b")


_Known = tuple[str, str, float]
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

    def __init__(self, marks: Iterable[tuple[str, _Known]], key: bytes) -> None:
        self._key = key
        self._by_word: dict[str, list[tuple[Mark, _Known]]] = defaultdict(list)
        for text, known in marks:
            mark = Mark.parse(text)
            if mark.words:
                self._by_word[min(mark.words)].append((mark, known))

    def telling(self, sentence: str) -> Iterator[_Known]:
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
        who = "i" if _SPEAKS.search(folded) else "my" if _OWNER.search(folded) else ""
        named = frozenset(trace(" ".join(others(part)), key).words)
        yield Mark(frozenset(trace(part, key).words), who, bool(_DENIED.search(folded)), named, number > 0)
