"""What is asked, and in which parts."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import chain

from perdure.recall.about import About, about_asked
from perdure.recall.kinds import Kind, as_question, kind_asked
from perdure.regex import lazy
from perdure.store.aliases import OtherName, Words
from perdure.text.clean import clean
from perdure.text.fenced import fenced, outside
from perdure.text.lexicon import listed, table
from perdure.text.normalise import fold, match_terms

MOST_PARTS = 6
"""Parts of a prompt at most: each costs an embedding."""
SHORT = 20
"""A prompt of up to so many words is one part."""
LONG = 28
"""A sentence of more words is cut at its clauses: dictation has no full stops."""
PASTED = 400
"""Characters that are kept of pasted material, half from its beginning and half from its end."""

_DENSE = lazy(r"[\u0e00-\u0eff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
_WORD = lazy(r"[^\W_\u0e00-\u0eff\u3040-\u30ff\u3400-\u9fff]+(?:['\u2019][^\W_]+)*")
_LOG = listed("recall", "words", "log")
_SIGNS = lazy(r"[{}\[\]()<>=;|_/\\$#*:]|\d")
_SENTENCE = listed("recall", "words", "sentence")
_CLAUSE = listed("recall", "words", "clause")
_QUESTIONS = listed("recall", "words", "questions")


def parts(text: str) -> list[str]:
    """Return the parts of a prompt in their order, one to `MOST_PARTS`; a blank prompt has none."""
    if not text.strip():
        return []
    typed, pasted = _apart(text)
    if not pasted and size(typed) <= SHORT:
        # Two questions in a sentence are two things that are asked for.
        return [" ".join(each.split()) for each in _QUESTIONS.split(typed)]
    asked = [piece for sentence in _SENTENCE.split(typed) for piece in _clauses(sentence or "") if piece.strip()]
    room = max(1, MOST_PARTS - len(pasted)) if asked else MOST_PARTS
    found = _merged(asked, room) + _merged(pasted, MOST_PARTS - min(len(asked), room))
    return [" ".join(_ends_of(part).split()) for part in found]


def size(text: str) -> int:
    """Return how many words a text has; two characters of a script without spaces count as one."""
    return len(_WORD.findall(text)) + (len(_DENSE.findall(text)) + 1) // 2


def _apart(text: str) -> tuple[str, list[str]]:
    """Return what was typed, and each block of code or log that was pasted."""
    pasted = [text[start:end].strip("`~ \n") for start, end in fenced(text)]
    typed: list[str] = []
    block: list[str] = []
    for line in [*outside(text).splitlines(), ""]:
        if _is_pasted(line):
            block.append(line)
            continue
        if len(block) > 1:
            pasted.append("\n".join(block))
        else:
            typed += block
        block = []
        typed.append(line)
    return "\n".join(typed), [block for block in pasted if block.strip()]


def _is_pasted(line: str) -> bool:
    shown = line.strip()
    return bool(_LOG.match(line)) or (len(shown) > 12 and len(_SIGNS.findall(shown)) > len(shown) / 6)


def _clauses(sentence: str) -> Iterator[str]:
    if size(sentence) <= LONG:
        yield sentence
        return
    held = ""
    for clause in _CLAUSE.split(sentence):
        if held and size(held) + size(clause) > LONG // 2:
            yield held
            held = clause
        else:
            held = f"{held}, {clause}" if held else clause
    if held:
        yield held


def _merged(pieces: Iterable[str], most: int) -> list[str]:
    """Return the pieces, neighbours put together, the shortest first, until none is tiny and `most` are left."""
    left = list(pieces)
    sizes = [size(piece) for piece in left]
    while len(left) > 1:
        at = min(range(len(left) - 1), key=lambda index: sizes[index] + sizes[index + 1])
        if len(left) <= most and sizes[at] + sizes[at + 1] > SHORT:
            break
        left[at : at + 2] = [f"{left[at]} {left[at + 1]}"]
        sizes[at : at + 2] = [sizes[at] + sizes[at + 1]]
    return left if most > 0 else []


def _ends_of(part: str) -> str:
    if len(part) <= 2 * PASTED:
        return part
    return part[:PASTED] + " ... " + part[-PASTED:]


MAX_CHARACTERS = 2000
"""Longer prompts are asked by their beginning and their end: in between is mostly pasted material."""

_LONGEST_PHRASE = 4
_COMMAND = lazy(r"[/!][\w-]+(\s|$)")
_SYSTEM = lazy(r"\[system\b|heartbeat(?:_ok)?\b|read heartbeat\.md\b", re.IGNORECASE)
_WORDS = lazy(r"[\w']+")


@cache
def _small_talk() -> tuple[frozenset[str], frozenset[str]]:
    """Return the words and phrases of prompts that want nothing, and the words that may stand between them."""
    lists = {name: fold(words).split() for name, words in table("recall", "words")["small_talk"].items()}
    fillers = frozenset(lists.pop("fillers"))
    return frozenset(chain.from_iterable(lists.values())), fillers


Added = tuple[tuple[Words, OtherName], ...]
"""The words of each name that was found, folded, with another one that was put behind it."""


@dataclass(frozen=True, slots=True)
class Query:
    """A prompt as the legs ask it."""

    text: str  # what the vector leg embeds
    terms: tuple[str, ...]  # what the lexical leg looks for
    # Why nothing should be recalled for it, or None. Of a trivial prompt nothing more is read.
    trivial: str | None = None
    parts: tuple[str, ...] = ()  # the prompt in the parts that it is asked in
    kind: Kind | None = None  # of which all is asked for
    about: About | None = None  # what is asked of memory itself
    aliases: Added = ()  # names in the prompt, each with another one that is asked for as well


def understand(prompt: str) -> Query:
    """Read a prompt, of any length and with any characters in it."""
    text = clean(_shortened(prompt)).strip()
    if not text:
        return Query("", (), "empty")
    if _COMMAND.match(text):
        return Query(text, (), "command")
    if _SYSTEM.match(text):
        return Query(text, (), "system message")
    terms = match_terms(text)
    if not terms and not any(char.isalnum() for char in text):
        return Query(text, (), "no words")
    words = [word.replace("'", "") for word in _WORDS.findall(fold(text))]
    if _is_small_talk(words):
        return Query(text, terms, "small talk")
    kind = kind_asked(text)
    asked = text if kind is None else as_question(text)
    return Query(asked, terms, parts=tuple(parts(asked)), kind=kind, about=about_asked(text))


def respelled(query: Query, text: str, added: Added) -> Query:
    """Return a query that asks more words than were written: other names of what is in it."""
    return Query(text, match_terms(text), query.trivial, tuple(parts(text)), query.kind, query.about, added)


def _is_small_talk(words: Sequence[str]) -> bool:
    if not words or len(words) > 8:
        return not words
    trivial, fillers = _small_talk()
    position = 0
    while position < len(words):
        lengths = range(_LONGEST_PHRASE, 0, -1)
        taken = next((n for n in lengths if "-".join(words[position : position + n]) in trivial), 0)
        if not taken and words[position] not in fillers:
            return False
        position += max(1, taken)
    return True


def _shortened(prompt: str) -> str:
    if len(prompt) <= MAX_CHARACTERS:
        return prompt
    half = MAX_CHARACTERS // 2
    return f"{prompt[:half]}\n{prompt[-half:]}"
