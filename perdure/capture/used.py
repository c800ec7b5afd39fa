"""Which of the memories in a prompt did a reply make use of?

A memory was used if the reply contains what only the memory held: its name, its number, or several of its
words together. What the prompt said as well proves nothing. A doubtful case is no use: strength that was not
earned is worse than strength that comes a turn later.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from perdure.regex import lazy
from perdure.text.clean import clean
from perdure.text.lexicon import FUNCTION_CHARS
from perdure.text.normalise import cut_ending, fold, match_terms
from perdure.text.scripts import DENSE_CLASS, dense_script

WORDS = 2
WORDS_PER_FURTHER = 12
"""So many words must be shared, and one more for every 12 words of the memory: a long one meets any reply in a few."""
_LETTER = rf"[^\W{DENSE_CLASS}]"
_TOKEN = lazy(rf"{_LETTER}+(?:[.:/@+-]{_LETTER}+)*")
_SENTENCE_END = lazy(r"(?<=[.!?…])\s+|[。！？\n]+")
_GERMAN = frozenset(["der", "und", "ist", "nicht", "ein", "eine", "im", "ich", "wir"])
"""Where these are, every noun begins with a capital."""


def used_in(reply: str, injected: Sequence[tuple[str, str]], prompt: str) -> list[str]:
    """Return the ids of the injected memories (id, text) that a reply used, in order. Takes linear time."""
    asked, asked_tokens = _words(prompt), {fold(token) for token in _TOKEN.findall(clean(prompt))}
    own = [_words(text) - asked for _, text in injected]
    marks = [{mark for mark in _marks(text) if fold(mark) not in asked_tokens} for _, text in injected]
    shared = Counter(mark for found in marks for mark in found)
    tokens = _TOKEN.findall(clean(reply))
    said = {*tokens, *map(fold, tokens)}
    together = _together(reply, own)
    return [
        fact_id
        for (fact_id, _), words, found, most in zip(injected, own, marks, together, strict=True)
        # A name in several of the memories does not tell which of them it came from.
        if any(mark in said and shared[mark] == 1 for mark in found) or (words and most >= _needed(len(words)))
    ]


def _needed(words: int) -> int:
    # A memory with a single word that is new to the prompt can be shown by that word alone.
    return min(words, WORDS + words // WORDS_PER_FURTHER)


def _together(reply: str, own: Sequence[set[str]]) -> list[int]:
    """Return, for each set of words, how many of them stand in one sentence of the reply at the most."""
    holders: dict[str, list[int]] = {}
    for index, words in enumerate(own):
        for word in words:
            holders.setdefault(word, []).append(index)
    most = [0] * len(own)
    # Common words that are scattered over a long reply meet there by chance.
    for sentence in _SENTENCE_END.split(reply):
        counts = Counter(index for word in _words(sentence) for index in holders.get(word, ()))
        for index, count in counts.items():
            most[index] = max(most[index], count)
    return most


def _words(text: str) -> set[str]:
    """Return the stems of a text's content words; of dense scripts, groups of characters.

    Such a group counts if there is no grammar in it and it is no single character: these are in every text.
    """
    found = set()
    for term in match_terms(text, max(1, len(text))):
        if not dense_script(term[0]):
            found.add(cut_ending(term))
        elif len(term) > 1 and FUNCTION_CHARS.isdisjoint(term):
            found.add(term)
    return found


def _marks(text: str) -> set[str]:
    """Return the names, numbers and identifiers of a text: names as they are written, the others folded."""
    text = clean(text)
    nouns_are_large = not _GERMAN.isdisjoint(fold(text).split())
    found = set()
    for sentence in _SENTENCE_END.split(text):
        first = re.search(r"\w", sentence)
        for match in _TOKEN.finditer(sentence):
            token = match.group()
            if not match_terms(token):
                continue
            # The first word of a sentence, and in German any noun, is large without being a name.
            plain = nouns_are_large or (first is not None and first.start() == match.start())
            if _is_identifier(token):
                found.add(fold(token))
            elif len(token) > 1 and token[0].isupper() and (token.isupper() or not plain):
                found.add(token)
    return found


def _is_identifier(token: str) -> bool:
    if any(map(str.isdigit, token)):
        # "7" is in many a text; "17" and "v2" are not.
        return len(token) > 1
    inner_capital = any(map(str.isupper, token[1:])) and not token.isupper()
    return inner_capital or any(char in "._:/@" for char in token)
