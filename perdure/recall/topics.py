"""What a memory is about, as its vector tells: it decides who may hear of it unasked, and how much it matters."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from perdure.errors import ModelError
from perdure.index.vector_index import all_cosines
from perdure.recall.gate import MARKS, said
from perdure.recall.unasked import instructs
from perdure.store.fact import Fact, folded_slot
from perdure.store.store import Store
from perdure.text.lexicon import listed

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float32]

FILE: Final = Path(__file__).with_name("data") / "topics.json"
TOPICS: Final = (
    "rule", "identity", "people", "relations", "children", "health", "diet", "money", "faith", "work", "project",
    "tools", "plans", "home", "life",
)  # fmt: skip
PRIVATE: Final = frozenset({"relations", "children", "health", "money", "faith"})
"""What is nobody's business: a memory that may be of one of these counts as such."""
AT_HOME: Final = frozenset({"diet", "home", "life"})
"""What has no place at work, though it is no secret."""
_BODY: Final = MARKS.index("body")
LASTING: Final = frozenset({"rule", "identity", "people", "relations", "children", "health", "diet"})
"""What stays where it is however seldom a reply makes use of it."""
SHOWN: Final = 8
"""So often shown to no use, a memory moves down in order."""
MAY_BE: Final = 0.1
"""The probability from which on a memory may be private: of twenty that are, one or two fall below it."""


@dataclass(frozen=True, slots=True)
class Topics:
    """A linear softmax on vectors of the shipped encoder."""

    encoder: str  # its sha256; vectors of another mean nothing here
    weights: Floats  # of shape (topics, dims)
    bias: Floats  # of shape (topics,)

    @property
    def at_work(self) -> Floats:
        """Where the vectors of memories lie that are withheld from nobody, of shape (dims,) and length one."""
        import numpy as np

        kept = np.isin(TOPICS, sorted(PRIVATE | AT_HOME), invert=True)
        apart = self.weights[kept].mean(axis=0) - self.weights[~kept].mean(axis=0)
        direction: Floats = apart / np.linalg.norm(apart)
        return direction

    def chances(self, products: Floats) -> Floats:
        """Return the probability of each topic; `products`: of vectors with the weights, shape (memories, topics)."""
        import numpy as np

        raised = np.exp((powers := products + self.bias) - powers.max(axis=1, keepdims=True))
        chances: Floats = raised / raised.sum(axis=1, keepdims=True)
        return chances

    def private(self, chances: Floats) -> NDArray[np.bool_]:
        """Return which memories may be private, of shape (memories,)."""
        of_them: NDArray[np.bool_] = (
            chances[:, [TOPICS.index(topic) for topic in sorted(PRIVATE)]].sum(axis=1) >= MAY_BE
        )
        return of_them

    def withheld(self, chances: Floats, plain: NDArray[np.bool_] | bool = False) -> NDArray[np.bool_]:
        """Return which memories a host at work is not told by itself, of shape (memories,).

        Those that are `plain` by other signs, only if they are likeliest of what it is not told.
        """
        import numpy as np

        likeliest = np.isin(np.array(TOPICS)[chances.argmax(axis=1)], sorted(PRIVATE | AT_HOME))
        return likeliest | (self.private(chances) & np.logical_not(plain))


@cache
def topics() -> Topics:
    """Return the reading that training/topics.py has fitted.

    Raises ModelError if its file cannot be used.
    """
    import numpy as np

    try:
        told: dict[str, Any] = json.loads(FILE.read_text(encoding="utf-8"))
        rows = [told["weights"][topic] for topic in TOPICS]
        return Topics(told["encoder"], np.array(rows, dtype=np.float32), np.array(told["bias"], dtype=np.float32))
    except (OSError, ValueError, KeyError) as error:
        raise ModelError(f"{FILE} cannot be used ({type(error).__name__}: {error}); reinstall perdure") from error


def plainly(fact: Fact, *, standing: bool) -> str:
    """Return what a memory is about where no vector tells: "rule" or "project" if that is plain, else "".

    `standing`: whether it is a standing instruction; one that speaks of a body, food or what is private is no plain
    rule.
    """
    if (standing or folded_slot(fact.entity) == "convention") and not _is_of_life(fact.text):
        return "rule"
    return "project" if fact.scope == "project" else ""


def _is_of_life(text: str) -> bool:
    return said(text).marks[_BODY] or bool(listed("recall", "private", "words").search(text))


def idle(store: Store, facts: Iterable[Fact]) -> Collection[str]:
    """Return the ids of facts that were shown time and again, and no reply has used.

    What is pinned or a rule, or may be about somebody, a body or food, is none of them. Nor is any where no vectors of
    the shipped encoder tell what it is about.

    Raises StoreError if the store cannot be read.
    """
    found = [fact.id for fact in facts if _is_unused(fact) and not instructs(fact) and not _is_of_life(fact.text)]
    lasting = [TOPICS.index(topic) for topic in sorted(LASTING)]
    return {name for name, chances in _read(store, found).items() if chances[lasting].sum() < MAY_BE}


def private(store: Store, facts: Iterable[Fact]) -> set[str]:
    """Return the ids of facts of a project that a host at work is not told, as their words or vectors tell.

    Raises StoreError if the store cannot be read.
    """
    every = {fact.id: fact for fact in facts}
    read = _read(store, every)
    plainly_so = {name for name, fact in every.items() if _is_of_life(fact.text)}
    return plainly_so | {name for name, chances in read.items() if topics().withheld(chances[None], plain=True)[0]}


def _read(store: Store, ids: Collection[str]) -> dict[str, Floats]:
    """Return how likely each fact is of each topic; of none where no vectors of the shipped encoder tell."""
    space = store.space() if ids else None
    if space is None or space.description.get("digest") != topics().encoder:
        return {}
    import numpy as np

    told = all_cosines(store.database, topics().weights, ids, space.id)
    chances = topics().chances(np.array(list(told.values()), dtype=np.float32).reshape(len(told), len(TOPICS)))
    return dict(zip(told, chances, strict=True))


def _is_unused(fact: Fact) -> bool:
    return fact.injected_count >= SHOWN and not fact.access_count and not fact.reinforced_count
