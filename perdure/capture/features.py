"""What the fitted judge is told of a known and a new statement: a couple of dozen figures between -1 and 1."""

from __future__ import annotations

import math
from dataclasses import dataclass

from perdure.capture.change_words import ALSO, CHANGE, END, FORGET, REPEAT
from perdure.capture.likeness import ended, focus, other_subject, other_value, paraphrase, same_entity, same_people
from perdure.capture.reading import Reading, read
from perdure.store.fact import Fact
from perdure.text.normalise import fold


@dataclass(frozen=True, slots=True)
class Pair:
    """A known and a new statement, with what tells them apart.

    Attributes:
        old, new: the facts.
        cosine: of their vectors.
        nearest: whether nothing known is nearer to the new one.
        before: the known text.
        whole: the new text.
        after: the clause of the new text that has most to do with the known one.
        slot: whether both fill the same slot.
        disjoint: whether they fill it with values that have no word in common.
    """

    old: Fact
    new: Fact
    cosine: float
    nearest: bool
    before: Reading
    whole: Reading
    after: Reading
    slot: bool
    disjoint: bool

    @classmethod
    def of(cls, old: Fact, new: Fact, cosine: float, nearest: bool) -> Pair:
        """Read both statements."""
        before, whole = read(old.text), read(new.text)
        slot = same_slot(old, new)
        values = read(old.value or "").terms, read(new.value or "").terms
        disjoint = slot and all(values) and values[0].isdisjoint(values[1])
        return cls(old, new, cosine, nearest, before, whole, focus(new.text, before), slot, disjoint)

    @property
    def shared(self) -> frozenset[str]:
        """Stems that both have."""
        return self.before.terms & self.whole.terms

    @property
    def moved(self) -> bool:
        """Whether their relative times were resolved to different days."""
        return bool(self.before.dates and self.whole.dates and self.before.dates != self.whole.dates)


def same_slot(old: Fact, new: Fact) -> bool:
    """Return whether two facts fill the same slot, in whatever case it is written."""
    return bool(old.key and new.key) and fold(f"{old.entity}\0{old.key}") == fold(f"{new.entity}\0{new.key}")


def features(pair: Pair) -> dict[str, float]:
    """Return the figures of a pair by name; the weights in data/judge.toml go by the same names."""
    before, after, text = pair.before, pair.whole, fold(pair.new.text)
    return {
        "nearest": float(pair.nearest),
        "cosine": pair.cosine,
        "known_words_kept": _share(before.terms, after.terms),
        "new_words_known": _share(after.terms, before.terms),
        "clause_known": _share(pair.after.terms, before.terms),
        "subject_kept": _share(before.subject, after.terms),
        "other_subject": float(other_subject(before, pair.after)),
        "same_people": float(same_people(before, pair.after)),
        "same_entity": float(same_entity(pair.old, pair.new)),
        "same_key": float(bool(pair.old.key) and pair.old.key == pair.new.key),
        "same_slot": float(pair.slot),
        "other_slot_value": float(pair.disjoint),
        "other_figure": float(bool(before.figures - after.figures and after.figures - before.figures)),
        "new_figure": float(bool(after.figures - before.figures)),
        "only_figure_differs": float(other_value(before, pair.after, pair.cosine)),
        "new_name": float(bool(after.names - before.terms)),
        "lost_name": float(bool(before.names - after.terms)),
        "new_time": float(bool(after.times - before.times)),
        "lost_time": float(bool(before.times - after.times)),
        "denied": float(after.denied and not before.denied),
        "no_longer_denied": float(before.denied and not after.denied),
        "end_word": float(bool(END.search(text))),
        "ended": float(ended(pair.new.text, before)),
        "asked_to_forget": float(bool(FORGET.search(text))),
        "change_word": float(bool(CHANGE.search(text))),
        "repeat_word": float(bool(REPEAT.search(text))),
        "also_word": float(bool(ALSO.search(text))),
        "paraphrase": float(paraphrase(before, after, pair.cosine)),
        "longer": math.tanh(math.log(max(1, len(after.sequence)) / max(1, len(before.sequence)))),
    }


def _share(some: frozenset[str], of: frozenset[str]) -> float:
    return len(some & of) / len(some) if some else 0.5
