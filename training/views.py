"""A store in memory, as the features need it: what the vector index and the full-text index know of a real one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from perdure.recall.gate import NEAR, SHARED, Lexicon, Near, Prompt, rows
from perdure.store.vocabulary import may_be_misspelt, meant, terms

Floats = NDArray[np.float32]


@dataclass(slots=True)
class View:
    """The memories of a store as one caller sees them; `vectors` of shape (texts, dims)."""

    texts: Sequence[str]
    vectors: Floats
    words: list[frozenset[str]] = field(init=False)
    documents: Counter[str] = field(init=False)

    def __post_init__(self) -> None:
        self.words = [terms(text) for text in self.texts]
        self.documents = Counter(word for words in self.words for word in words)

    def lexicon(self, prompt: Prompt) -> Lexicon:
        """Return how the words of a prompt stand here."""
        asked = {word for words in prompt.words for word in words}
        known = {word: self.documents[word] for word in asked if word in self.documents}
        misspelt = {}
        for word in sorted(asked - known.keys()):
            near = meant(word, _alike(word, self.documents)) if may_be_misspelt(word) else []
            if near:
                misspelt[word] = near[0]
                known[near[0]] = self.documents[near[0]]
        return Lexicon(len(self.texts), known, misspelt)


def features(
    view: View, prompt: Prompt, vectors: Floats, *, near: int = NEAR, shared: int = SHARED
) -> tuple[NDArray[np.int_], Floats]:
    """Return the places of the candidates, and a row of features for each.

    Args:
        view: the store.
        prompt: what is asked.
        vectors: of its parts, of shape (parts, dims).
        near: so many of the nearest are candidates.
        shared: and so many more, of those that share words.
    """
    cosines = vectors @ view.vectors.T
    best = cosines.max(0)
    lexicon = view.lexicon(prompt)
    places = _candidates(view, prompt, lexicon, np.argsort(-best, kind="stable"), near, shared)
    mixed = Near.of(
        cosines[:, places],
        cosines.sum(1),
        (cosines**2).sum(1),
        len(view.texts),
        float(np.linalg.norm(vectors.mean(0))),
    )
    return places, rows(prompt, lexicon, mixed, [view.texts[place] for place in places])


def _candidates(
    view: View, prompt: Prompt, lexicon: Lexicon, order: NDArray[np.int_], most: int, shared: int
) -> NDArray[np.int_]:
    near = order[:most].tolist()
    asked = {lexicon.meant.get(word, word) for words in prompt.words for word in words}
    scored = [
        (sum(map(lexicon.weight, asked & words)), -place)
        for place, words in enumerate(view.words)
        if place not in near and not asked.isdisjoint(words)
    ]
    return np.array(near + [-place for _, place in sorted(scored, reverse=True)[:shared]], dtype=int)


def _alike(word: str, known: Counter[str]) -> list[str]:
    return [each for each in known if each[0] == word[0] and abs(len(each) - len(word)) < 3]
