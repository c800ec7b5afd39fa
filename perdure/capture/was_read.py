"""What an agent has read: by this its own words are told from those of a page, a file or a pasted text."""

from __future__ import annotations

import html
from collections.abc import Iterator
from urllib.parse import unquote

from perdure.regex import lazy
from perdure.text.clean import clean
from perdure.text.lexicon import listed
from perdure.text.normalise import fold

REPEATED = 6
"""So many words in a row that stand in what it read are not its own."""
LONGEST = 400_000
"""Characters of one text; of a longer one the rest is not known."""
MOST = 400_000
"""Runs of words that are known of what it read; when there are more, nothing that it says is taken for its own."""
_CLAUSE = 3
"""Words of a part of a sentence that is held against what was read by itself."""
_SPACELESS = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff"
# Where no spaces are set between words, each character counts as one.
_WORD = lazy(rf"[{_SPACELESS}]|(?:(?![{_SPACELESS}])[^\W_])(?:_*(?:(?![{_SPACELESS}])[^\W_]))*")
_ENCODED = lazy(r"[^\W_]{32,}")
_EMPTY = lazy(r"[*`~\u115f\u1160]+")
"""Signs that a page may set within a word, and that are not shown."""
_DATA = lazy(r"[A-Za-z0-9+/]{1000,}={0,2}")
"""A picture, or another file that is no text."""
_NUMBER = lazy(r"(?m)^[ \t]*\d{1,6}(?:\u2192|[:|\t-])")
"""What stands before a line that a tool shows."""
_ESCAPE = lazy(r"\\(?:u([0-9A-Fa-f]{4})|[nrt\"/])")
_INLINE = lazy(
    r"(?is)<!--.*?-->"
    r"|</?(?:a|abbr|b|bd[io]|big|code|del|em|font|i|ins|kbd|mark|s|small|span|strike|strong|su[bp]|tt|u|wbr)(?:\s[^<>]*)?/?>"
)
_TAG = lazy(r"</?[A-Za-z!][^<>]*>")
_PARTS = lazy(r"[:;\"\u201c-\u201f\u00ab\u00bb()\[\]\u2013\u2014|]")


class WasRead:
    """What was read in a session so far, in the order of its words; spelling, markup and signs count for nothing."""

    def __init__(self) -> None:
        """Begin with nothing."""
        self._runs: set[int] = set()
        self._texts: list[str] = []
        self._known: set[int] = set()
        self._whole = True

    @property
    def whole(self) -> bool:
        """Whether all is known that was read; else nothing can be told from it."""
        return self._whole and len(self._runs) < MOST

    def add(self, text: str, *, whole: bool = True) -> None:
        """Take in what was read; `whole`: not, if a part of it is not known."""
        text = _DATA.sub(" ", text)
        self._whole &= whole and len(text) <= LONGEST
        name = hash(text)
        if not self.whole or name in self._known:
            return
        self._known.add(name)
        for words in _readings(text):
            self._runs.update(_runs(words))
            self._texts.append(f" {' '.join(words)} ")

    def repeats(self, text: str) -> bool:
        """Return whether a text has some words in a row that were read; one of fewer words does not."""
        runs = [run for words in _readings(text) for run in _runs(words)]
        return not self._runs.isdisjoint(runs) if self.whole and not _DATA.search(text) else bool(runs)

    def holds(self, sentence: str) -> bool:
        """Return whether a sentence repeats what was read, or stands there itself, or a clause of it does."""
        if not self.whole or self.repeats(sentence):
            return True
        clauses = [words for part in _PARTS.split(sentence) for words in _readings(part) if len(words) >= _CLAUSE]
        said = {f" {' '.join(words)} " for words in (*_readings(sentence), *clauses) if words}
        return any(each in text for each in said for text in self._texts)


def _readings(text: str) -> Iterator[list[str]]:
    """Yield the words of a text, and those that are shown of it: without tags, escapes and numbers of lines."""
    shown = listed("capture", "acts", "ansi").sub("", clean(text))
    shown = html.unescape(html.unescape(shown)) if "&" in shown else shown
    yield _words(shown)
    told = _ESCAPE.sub(lambda code: chr(int(code[1], 16)) if code[1] else " ", unquote(shown))
    bare = _NUMBER.sub(" ", _TAG.sub(" ", _INLINE.sub("", told)))
    if bare != shown:
        yield _words(bare)


def _words(text: str) -> list[str]:
    return _WORD.findall(_EMPTY.sub("", fold(text)))


def _runs(words: list[str]) -> list[int]:
    runs = [hash(tuple(words[at : at + REPEATED])) for at in range(len(words) - REPEATED + 1)]
    return runs + [hash(word) for word in words if _ENCODED.fullmatch(word)]
