"""How likely a statement makes an older one out of date, by a head that learnt it from labelled pairs.

It proposes and decides nothing: half of what it finds would be wrong to replace. What it finds is shown to somebody who
looks through the memories (`perdure audit`). How it was made and what it reaches: training/README.md.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Final

from perdure.capture import evidence
from perdure.capture.reading import END, FORGET, FORMER, FRAMING, KIN, LIMITED, NOW_SO, read, same_people
from perdure.errors import ModelError
from perdure.hooks.types import Channel
from perdure.ranking.trees import Trees
from perdure.regex import lazy
from perdure.store.fact import Fact
from perdure.store.vocabulary import terms
from perdure.text.lexicon import table
from perdure.text.normalise import fold

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float32]

FILE: Final = Path(__file__).with_name("data") / "relations.json"
CUES: Final[Mapping[str, re.Pattern[str]]] = {
    "end": END,
    "forget": FORGET,
    "former": FORMER,
    "framing": FRAMING,
    "limited": LIMITED,
    "now so": NOW_SO,
    **{name: lazy("".join(pattern)) for name, pattern in table("capture", "changes")["cues"].items()},
}
"""Words that say what has become of something, or of whom and how surely it is said."""
NAMES: Final = (
    "cosine", "rank", "ahead", "others",
    "shared", "share old", "share new", "old words", "new words",
    "figures in both", "figures gone", "figures new", "names in both", "names gone", "names new",
    "subject in both", "subject gone", "subject new", "times in both", "times in one",
    "same people", "same owner", "old denied", "new denied", "old kin", "new kin",
    "says the same", "replaces", "ends", "denies", "speaks of change",
    *(f"new {name}" for name in CUES), *(f"old {name}" for name in CUES),
)  # fmt: skip
"""What is looked at of a pair."""


def rows(new: str, known: Sequence[str], cosines: Sequence[float]) -> Floats:
    """Return the features of a statement and each of the known ones near to it, of shape (known, len(NAMES)).

    Args:
        new: what was said later.
        known: what was said before, all that the new one is compared with.
        cosines: of the new one's vector with that of each known one.
    """
    import numpy as np

    order = sorted(range(len(known)), key=lambda at: -cosines[at])
    found = np.zeros((len(known), len(NAMES)), dtype=np.float32)
    for at, old in enumerate(known):
        rest = max((cosine for other, cosine in enumerate(cosines) if other != at), default=0.0)
        standing = (cosines[at], order.index(at), cosines[at] - rest, math.log(len(known)))
        found[at] = (*standing, *_words(old, new), *_said(old, new), *_cues(new), *_cues(old))
    return found


def _words(old: str, new: str) -> tuple[float, ...]:
    before, after = read(old), read(new)
    said, told = terms(old), terms(new)
    both = len(said & told)
    return (
        both, both / max(1, len(said)), both / max(1, len(told)), math.log1p(len(said)), math.log1p(len(told)),
        *_overlap(before.figures, after.figures), *_overlap(before.names, after.names),
        *_overlap(before.subject, after.subject),
        len(before.times & after.times), len(before.times ^ after.times),
    )  # fmt: skip


def _overlap(before: frozenset[str], after: frozenset[str]) -> tuple[int, int, int]:
    return len(before & after), len(before - after), len(after - before)


def _said(old: str, new: str) -> tuple[bool, ...]:
    before, after = read(old), read(new)
    one, other = (Fact(text, channel=Channel.USER) for text in (old, new))
    return (
        same_people(before, after), before.owner == after.owner, before.denied, after.denied,
        bool(before.words & KIN), bool(after.words & KIN),
        evidence.same(one, other), evidence.replaces(one, other) is not None, evidence.over(one, other) is not None,
        evidence.denies(one, other), evidence.speaks_of_change(one, other),
    )  # fmt: skip


def _cues(text: str) -> tuple[bool, ...]:
    folded = fold(text)
    return tuple(bool(cue.search(folded)) for cue in CUES.values())


@dataclass(frozen=True, slots=True)
class PairHead:
    """What tells whether a statement makes an older one out of date.

    Attributes:
        encoder: sha256 of the encoder whose cosines it was fitted on.
        point: the probability from which a pair is shown.
        trees: tell it.
    """

    encoder: str
    point: float
    trees: Trees

    def outdated(self, new: str, known: Sequence[str], cosines: Sequence[float]) -> list[float]:
        """Return of each known statement how likely the new one makes it out of date, 0 to 1; see `rows`."""
        return self.trees.probabilities(rows(new, known, cosines)) if known else []


@cache
def shipped() -> PairHead:
    """Return the head that comes with perdure.

    Raises:
        ModelError: its file is missing, damaged or of another version.
    """
    try:
        plain = json.loads(FILE.read_text(encoding="utf-8"))
        return PairHead(plain["encoder"], plain["point"], Trees.of(plain, NAMES))
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ModelError(f"{FILE} cannot be used ({type(error).__name__}: {error}); reinstall perdure") from error
