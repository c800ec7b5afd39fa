"""A store in memory, as the features need it: what the vector index and the full-text index know of a real one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from perdure.recall.gate import NEAR, SHARED, Lexicon, Near, Prompt, rows
from perdure.recall.triggered import AIMED, Triggered
from perdure.store.vocabulary import may_be_misspelt, meant, terms

Floats = NDArray[np.float32]


@dataclass(slots=True)
class View:
    """The memories of a store as one caller sees them.

    Attributes:
        vectors: of shape (texts, dims).
        triggers: of each text, the most telling first; empty: none has any.
        aims: vectors of all of these, one behind the other, of shape (triggers, dims).
    """

    texts: Sequence[str]
    vectors: Floats
    triggers: Sequence[Sequence[str]] = ()
    aims: Floats = field(default_factory=lambda: np.zeros((0, 1), dtype=np.float32))
    owners: NDArray[np.int_] = field(init=False)  # of each trigger the place of its text
    words: list[frozenset[str]] = field(init=False)
    documents: Counter[str] = field(init=False)

    def __post_init__(self) -> None:
        self.owners = np.repeat(np.arange(len(self.triggers)), [len(each) for each in self.triggers]).astype(int)
        self.words = [terms(text) for text in self.texts]
        self.documents = Counter(word for words in self.words for word in words)

    def triggered(self, places: Sequence[int], cosines: Floats) -> Triggered:
        """Return how a prompt stands to the triggers of some memories; `cosines`: with all, of shape (triggers,)."""
        given = [np.flatnonzero(self.owners == place).tolist() for place in places]
        return Triggered.of(
            [self.triggers[place] if some else () for place, some in zip(places, given, strict=True)],
            [cosines[some].tolist() for some in given],
            float(cosines.sum()),
            float((cosines**2).sum()),
            len(cosines),
        )

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
    lexicon = view.lexicon(prompt)
    aims = (vectors @ view.aims.T).max(0) if len(view.aims) else np.zeros(0, dtype=np.float32)
    order = np.argsort(-cosines.max(0), kind="stable")[:near].tolist()
    places = list(dict.fromkeys((*order, *_sharing(view, prompt, lexicon, order, shared), *_aimed(view, aims))))
    mixed = Near.of(
        cosines[:, places],
        cosines.sum(1),
        (cosines**2).sum(1),
        len(view.texts),
        float(np.linalg.norm(vectors.mean(0))),
    )
    found = rows(prompt, lexicon, mixed, [view.texts[place] for place in places], view.triggered(places, aims))
    return np.array(places, dtype=int), found


def _sharing(view: View, prompt: Prompt, lexicon: Lexicon, near: Sequence[int], most: int) -> list[int]:
    """Return the memories that share the heaviest words, those left out that are near."""
    asked = {lexicon.meant.get(word, word) for words in prompt.words for word in words}
    scored = [
        (sum(map(lexicon.weight, asked & words)), -place)
        for place, words in enumerate(view.words)
        if place not in near and not asked.isdisjoint(words)
    ]
    return [-place for _, place in sorted(scored, reverse=True)[:most]]


def _aimed(view: View, cosines: Floats) -> list[int]:
    """Return the memories with the nearest triggers."""
    order = view.owners[np.argsort(-cosines, kind="stable")].tolist()
    return list(dict.fromkeys(order))[:AIMED]


def _alike(word: str, known: Counter[str]) -> list[str]:
    return [each for each in known if each[0] == word[0] and abs(len(each) - len(word)) < 3]
