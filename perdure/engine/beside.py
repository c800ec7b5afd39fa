"""What a host's own memory files say: it is in the model's context already, and need not be said again.

Anybody may have written such a file, as of a repository that was cloned. So it takes the place of no memory and is kept
nowhere: a memory that it says as well is left out, and one that says otherwise says so. What is pinned,
and standing instructions, only the user's own files may leave out.
"""

from __future__ import annotations

import heapq
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import date, tzinfo
from functools import cached_property, lru_cache
from itertools import islice, product
from threading import Lock

from perdure.capture.describe import slot_of
from perdure.capture.evidence import replaces
from perdure.capture.figures import values
from perdure.capture.language import language_of
from perdure.regex import lazy
from perdure.store.fact import Fact
from perdure.store.trust import SUPERSEDES
from perdure.text.clean import clean, clip
from perdure.text.lexicon import listed
from perdure.text.normalise import cut_ending, match_terms
from perdure.text.sameness import Trace, echoes, trace
from perdure.text.timestamps import day_of
from perdure.text.tokens import estimate_tokens

_IN_COMMON = 2
"""Words that a sentence which says the same or otherwise shares with a memory: such sentences are compared first."""
_SENTENCES, _CHARS, _WORDS = 2_000, 400, 64
"""Sentences of a file that are read, and characters and words of each."""
_NEAREST, _PLACES = 8, 200
"""Sentences that a memory is compared with, and places in a file at which they are looked for: those of rare words."""
_VALUE = 60
"""Characters that a remark shows of what a memory says."""
_SIGNS = r"[A-Za-z0-9\u00c0-\u024f_.-]"
_NAME, _VALUES = lazy(rf"{_SIGNS}{{1,40}}"), lazy(rf"(?=.{{1,40}}\Z){_SIGNS}+(?: {_SIGNS}+)?")
"""The names of files, and what these say, that a remark shows: it is no place to write something else. In scripts that
set no spaces one word could."""
_KEY = b"compared here, kept nowhere"
_LINE = lazy(r"[^\n]+")
_END = lazy(r"(?<=[.!?])\s+")
_MARKUP = lazy(r"^(?:\s|[-*+>#|]|\d+[.)]\s|\[[ xX]\])+|[*`|]|__")
_LABELLED = listed("capture", "grammar", "labelled")


@dataclass(frozen=True)
class Beside:
    """The files of one turn."""

    files: tuple[tuple[str, str], ...]  # name and text of each
    today: date
    zone: tzinfo | None
    yours: tuple[tuple[str, str], ...]  # those of `files` that nobody but the user has written

    @cached_property
    def tokens(self) -> int:
        """Of the user's own files, about."""
        return sum(estimate_tokens(text) for _, text in self.yours)

    @cached_property
    def own(self) -> Beside:
        """The user's own files alone."""
        return replace(self, files=self.yours)

    def says(self, text: str, until: float) -> str:
        """Return the name of a file that says what a memory says; empty: none does, as far as there was time to look.

        `until`: seconds of `time.thread_time`.
        """
        for name, said in self._near(text, until):
            if any(echoes(one, other) for one, other in product(_traces(text), _traces(said))):
                return name
        return ""

    def otherwise(self, fact: Fact, until: float) -> str:
        """Return a remark on a file that has another value for what a memory is about; empty: none is found in time.

        `until`: seconds of `time.thread_time`.
        """
        told = _valued(fact.text) if len(fact.text) <= _CHARS else ()
        for name, said in self._near(fact.text, until) if told else ():
            for ours, theirs in product(told, _valued(said)):
                if time.thread_time() >= until:
                    return ""
                here, there = _values(ours, theirs)
                if here and there:
                    verb = "you said" if fact.channel in SUPERSEDES else "a note says"
                    mine = f"{verb} {clip(here, _VALUE)}{_on(fact, self.today, self.zone)}"
                    return f"{name} says {_plain(there)}; {mine}"
        return ""

    def _near(self, text: str, until: float) -> Iterator[tuple[str, str]]:
        """Yield the sentences nearest to a memory, each with its file's name."""
        found: list[tuple[tuple[int, float], str, str]] = []
        for name, said in self.files:
            if time.thread_time() >= until:
                break
            file = _file(said)
            file.read(until)
            found += ((nearness, name, sentence) for nearness, sentence in file.near(text))
        for _, name, sentence in heapq.nlargest(_NEAREST, found, key=lambda each: each[0]):
            yield _named(name), sentence


class _File:
    """The sentences of a file, as far as there was time to read them; the next memory has it read on."""

    def __init__(self, text: str) -> None:
        self._sentences: list[str] = []
        self._sizes: list[int] = []  # words of each
        self._places: dict[str, list[int]] = defaultdict(list)
        self._left = islice(_sentences(text), _SENTENCES)
        self._lock = Lock()
        self.near = lru_cache(maxsize=1_024)(self._nearest)

    def read(self, until: float) -> None:
        """Read on."""
        with self._lock:
            while time.thread_time() < until and (sentence := next(self._left, None)) is not None:
                words = _words(sentence)
                self._sentences.append(sentence)
                self._sizes.append(len(words))
                for word in words:
                    self._places[word].append(len(self._sentences) - 1)
                self.near.cache_clear()

    def _nearest(self, text: str) -> list[tuple[tuple[int, float], str]]:
        """Return the sentences nearest to a text by the words that they share, and how near: rare ones weigh more."""
        words = {word for form in _forms(text) for word in _words(form)}
        shared: Counter[int] = Counter()
        weights: dict[int, float] = defaultdict(float)
        looked = 0
        rarest = sorted(filter(None, (self._places.get(word) for word in words)), key=len)
        for number, places in enumerate(rarest):
            if number >= _IN_COMMON and looked > _PLACES:
                break
            looked += len(places)
            shared.update(places)
            for at in places:
                weights[at] += 1 / (len(places) * self._sizes[at])
        nearness = {at: (min(shared[at], _IN_COMMON), weights[at]) for at in shared}
        return [
            (nearness[at], self._sentences[at]) for at in heapq.nlargest(_NEAREST, nearness, key=nearness.__getitem__)
        ]


@lru_cache(maxsize=64)
def _file(text: str) -> _File:
    return _File(text)


def _sentences(text: str) -> Iterator[str]:
    for line in _LINE.finditer(text):
        pieces = (" ".join(_MARKUP.sub(" ", piece).split()) for piece in _END.split(clean(line[0])))
        yield from (clip(piece, _CHARS) for piece in pieces if piece)


def _words(text: str) -> set[str]:
    return {cut_ending(term) for term in match_terms(text, _WORDS)}


@lru_cache(maxsize=4_096)
def _forms(text: str) -> tuple[str, ...]:
    """Return a text as it stands there, and with what it sets as a sentence of its own."""
    return tuple(dict.fromkeys([text, *_as_sentences(text)]))


@lru_cache(maxsize=4_096)
def _traces(text: str) -> tuple[Trace, ...]:
    return tuple(trace(form, _KEY) for form in _forms(text))


@lru_cache(maxsize=4_096)
def _valued(text: str) -> tuple[str, ...]:
    """Return the forms of a text that have a value, which could be another."""
    return tuple(form for form in _forms(text) if values(form) or _fact(form).value)


@lru_cache(maxsize=16_384)
def _values(one: str, other: str) -> tuple[str, str]:
    """Return the value of each of two texts that have different ones of the same; empty: they have not."""
    here = replaces(_fact(one), _fact(other))
    there = replaces(_fact(other), _fact(one)) if here else None
    return (here.stale, there.stale) if here and there else ("", "")


def _named(name: str) -> str:
    return name if _NAME.fullmatch(name) else "a file here"


def _plain(value: str) -> str:
    return value if _VALUES.fullmatch(value) else "otherwise"


def _as_sentences(text: str) -> Iterator[str]:
    """Yield what a text sets, as a slot is filled: "Package manager: npm" as "The package manager is called npm."."""
    found = _LABELLED.search(text.strip())
    if found:
        label, value = (next(filter(None, found.group(*names))) for names in ("abc", "uvw"))
        yield f"The {label.lower()} is called {value.rstrip('.')}."


@lru_cache(maxsize=4_096)
def _fact(text: str) -> Fact:
    slot = slot_of(text, language_of(text))
    return Fact(text, entity=slot.entity, key=slot.key, value=slot.value) if slot else Fact(text)


def _on(fact: Fact, today: date, zone: tzinfo | None) -> str:
    try:
        day = day_of(fact.effective_date, zone)
    except (ValueError, OverflowError, OSError):
        return ""
    return f" on {day.day} {day:%B}" + (f" {day.year}" if day.year != today.year else "")
