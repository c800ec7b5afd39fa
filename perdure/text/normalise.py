"""From text to what the full-text index holds, and from a question to what it is asked.

Both sides go through `fold`, so a change here needs a new `NORMALISER_VERSION` and an index built anew.
The index is an FTS5 table with the tokenizer `porter unicode61`, which splits at everything that is not
a letter, a digit or a private-use character (https://www.sqlite.org/fts5.html#unicode61_tokenizer).
"""

from __future__ import annotations

import hashlib
import unicodedata
from collections.abc import Iterable, Iterator
from functools import lru_cache
from itertools import groupby

from perdure.errors import InputError
from perdure.regex import lazy
from perdure.text.clean import clean
from perdure.text.lexicon import FUNCTION_CHARS, PARTICLES, stop_words
from perdure.text.scripts import DENSE_CLASS, dense_script

NORMALISER_VERSION = 1
"""Stored beside the index; another number means that the index must be built anew."""

# Marks of Latin, Greek and Cyrillic, Hebrew points, Arabic vowel signs; then what has no width.
_UNSEEN = (
    *((0x0300, 0x036F), (0x0483, 0x0489), (0x0591, 0x05BD), (0x064B, 0x065F), (0x0670, 0x0670)),
    *((0x1AB0, 0x1AFF), (0x1DC0, 0x1DFF), (0x20D0, 0x20FF), (0xFE20, 0xFE2F)),
    *((0x00AD, 0x00AD), (0x061C, 0x061C), (0x180B, 0x180E), (0x200B, 0x200F), (0x202A, 0x202E)),
    *((0x2060, 0x206F), (0xFE00, 0xFE0F), (0xFEFF, 0xFEFF), (0xE0000, 0xE01EF)),
)
UNSEEN_CLASS = "".join(f"{chr(start)}-{chr(end)}" for start, end in _UNSEEN)
"""What `fold` drops, for a character class of a pattern."""
# Letters that have no decomposition, but are typed without their stroke or as two letters.
_LETTERS: dict[str, str | None] = {**dict(zip("\u0131łøđħŧð", "ilodhtd", strict=True)), "æ": "ae", "œ": "oe", "þ": "th"}
_APOSTROPHES: dict[str, str | None] = dict.fromkeys("\u2018\u2019\u201b\u02bc\u02b9\u2032", "'")
_FOLD: dict[int, str | None] = {
    **{code: None for start, end in _UNSEEN for code in range(start, end + 1)},
    **str.maketrans(_LETTERS | _APOSTROPHES),
}

# unicode61 drops the vowel signs of Thai, Lao, Khmer and Burmese. Moved to the private use area they stay.
_SIGNS: dict[int, int] = {
    code: code + 0xD200
    for code in range(0x0E00, 0x1800)
    if unicodedata.category(chr(code)).startswith("M") and dense_script(chr(code))
}

_DENSE = lazy(f"[{DENSE_CLASS}]")
# Indic vowel signs are no word characters to `re`, but words are not to be cut at them.
_TERM = lazy(
    rf"(?P<dense>[{DENSE_CLASS}]+)"
    rf"|(?P<word>(?:[^\W_{DENSE_CLASS}]|[\u0900-\u0963\u0966-\u0dff])+)"
    r"(?:'(?P<ending>s|t|re|ve|ll|d|m)(?![^\W_]))?"
)
# Letters between others are no word: "IT" is none of "IT2".
_CAPITALS = lazy(rf"(?<![^\W_])[^\W\d_{DENSE_CLASS}]{{2,}}(?![^\W_{DENSE_CLASS}])")
_TRAILING = " .!?,;:\u3001\u3002"


def fold(text: str) -> str:
    """Bring spellings of the same words together: NFKD, marks removed, case-folded, NFC (Unicode Standard Annex 15).

    Case, accents, compatibility forms (full-width letters, ligatures), zero-width characters and typographic
    apostrophes no longer tell two texts apart. Kana keep their sound marks and Hangul syllables stay whole. Folding
    twice is the same as folding once.
    """
    return _folded_once(text) if len(text) <= _SHORT else _folded(text)


def _folded(text: str) -> str:
    text = clean(text)
    if text.isascii():
        return text.lower()
    decomposed = unicodedata.normalize("NFKD", text).casefold()
    return unicodedata.normalize("NFC", decomposed.translate(_FOLD))


_SHORT = 2_000
_folded_once = lru_cache(maxsize=512)(_folded)
"""Each step of a turn folds the same sentences."""


def fold_letters(text: str) -> str:
    """Fold a text letter by letter: what stands somewhere in the result stands there in the text."""
    if text.isascii():
        return text.lower()
    return "".join(one if len(one := _folded(char)) == 1 else char for char in text)


def fts_text(text: str) -> str:
    """Return the folded text for the full-text index, each character of a script without spaces as its own token."""
    folded = fold(text)
    if folded.isascii():
        return folded
    return _DENSE.sub(r" \g<0> ", folded).translate(_SIGNS)


def acronyms(text: str) -> frozenset[str]:
    """Return the words of two or more letters that a text writes in capitals, folded; none if it is all capitals."""
    if text.isupper():
        return frozenset()
    return frozenset(fold(word) for word in _CAPITALS.findall(text) if word.isupper())


def match_terms(text: str, limit: int = 64) -> tuple[str, ...]:
    """Return at most `limit` distinct full-text terms of a question, in its order.

    A term is a folded word or, where the script has no spaces, a phrase of characters with spaces between them.
    Function words, single ASCII letters and contractions with "not" are left out; a word in capitals, such as "IT" or
    "WHO", is no function word.
    """
    if limit < 1:
        raise InputError(f"limit is {limit}; give 1 or more terms")
    terms: dict[str, None] = {}
    left_out = stop_words() - acronyms(text)
    for match in _TERM.finditer(fold(text)):
        word = match["word"]
        if word is None:
            terms.update(dict.fromkeys(_dense_terms(match["dense"])))
        elif match["ending"] != "t" and word not in left_out and (len(word) > 1 or not _is_letter(word)):
            terms[word] = None
        if len(terms) >= limit:
            break
    return tuple(terms)[:limit]


def cut_ending(word: str) -> str:
    """Cut the commonest endings of English words off a folded one, so that "started" meets "starts"."""
    for ending in ("ly", "ies", "ing", "ed", "es", "s", "e", "y"):
        if word.endswith(ending) and len(word) - len(ending) >= 3 and not word.endswith("ss"):
            cut = word.removesuffix(ending)
            if ending in ("s", "ing", "ly"):
                cut = cut_ending(cut)
            return cut[:-1] if len(cut) > 3 and cut[-1] == cut[-2] and cut[-1] not in "aeiouls" else cut
    return word


def match_query(terms: Iterable[str]) -> str:
    """Return the FTS5 query for rows with any of the terms, each quoted as a phrase; "" if there is no term."""
    phrases = (clean(term).translate(_SIGNS).replace('"', '""') for term in terms)
    return " OR ".join(f'"{phrase}"' for phrase in phrases if phrase.strip())


def fingerprint(text: str) -> str:
    """Return the sha256 of the folded text with its white space collapsed and its final punctuation removed.

    Texts that differ only in spelling details share it. A text of nothing but punctuation keeps its punctuation.
    """
    folded = " ".join(fold(text).split())
    return hashlib.sha256((folded.rstrip(_TRAILING) or folded).encode()).hexdigest()


def _is_letter(char: str) -> bool:
    return "a" <= char <= "z"


def _dense_terms(run: str) -> Iterator[str]:
    for script, chars in groupby(run, _writing):
        part = "".join(chars)
        if script == "hangul":
            yield from _hangul_terms(part)
        elif script == "east":
            yield from _grams(part, 2)
            yield from _single_han(part)
        else:
            yield from _grams(part, 3)


def _writing(char: str) -> str | None:
    """Return the script, with Han and kana as one: Japanese words are written in both."""
    script = dense_script(char)
    return "east" if script in ("han", "kana") else script


def _hangul_terms(word: str) -> Iterator[str]:
    if word in stop_words():
        return
    stem = next((word.removesuffix(end) for end in PARTICLES if word.endswith(end)), "")
    if stem in stop_words():
        return
    if stem:
        yield " ".join(stem)
    yield from _grams(word, 2)


def _grams(run: str, size: int) -> Iterator[str]:
    if len(run) <= 2:
        if run not in FUNCTION_CHARS:
            yield " ".join(run)
        return
    for at in range(max(1, len(run) - size + 1)):
        gram = run[at : at + size]
        if not FUNCTION_CHARS.issuperset(gram):
            yield " ".join(gram)


def _single_han(run: str) -> Iterator[str]:
    # A run of two without a function character is one word already; its halves would only add noise.
    if len(run) > 2 or not FUNCTION_CHARS.isdisjoint(run):
        yield from (char for char in run if char not in FUNCTION_CHARS and dense_script(char) == "han")
