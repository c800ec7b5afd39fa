"""Do two texts say the same? Told by their words, for what vectors hardly show: figures, names, a "not", who did it."""

from __future__ import annotations

from dataclasses import dataclass
from difflib import SequenceMatcher

from perdure.regex import lazy
from perdure.text.lexicon import kin, named, stop_words, table, word_set
from perdure.text.normalise import fold

LONG, MOST = 6, 0.6
"""Texts that share so many words, and this part of all their words, may be worded differently."""
MAX_WORDS = 400
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
    return _WORD.findall(fold(text).replace("no matter what", " "))[:MAX_WORDS]


def _singular(word: str) -> str:
    # No more than that is cut: whoever worked somewhere need not work there now.
    return word[:-1] if len(word) > 3 and word.endswith("s") and not word.endswith(("ss", "us", "is")) else word
