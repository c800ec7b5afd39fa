"""The heads learn what the labels say, and what they learn can be used as it stands."""

from __future__ import annotations

from perdure.capture.heads import Heads
from perdure.capture.statements import heard
from training.forms import Sentence
from training.heads import Row, Split, by_heads, by_rules, figures, fitted

KEPT = {"I keep {} bees.": "fact", "We chose the {} roof.": "decision", "I like {} tea.": "preference"}
DROPPED = ("What do {} bees cost?", "Make the {} roof shorter, please.")
WORDS = ("black", "brown", "small", "old", "quiet", "heavy", "early", "late", "green", "plain")


def rows(words: tuple[str, ...]) -> tuple[Row, ...]:
    labelled = [
        *(Sentence(text=shape.format(word), keep=True, category=category, lasting=True)  # type: ignore[arg-type]
          for shape, category in KEPT.items() for word in words),
        *(Sentence(text=shape.format(word), keep=False) for shape in DROPPED for word in words),
    ]  # fmt: skip
    return tuple(Row(each, (label,), "en", label.text) for label in labelled for each in heard(label.text))


def test_what_was_learnt_holds_for_other_words() -> None:
    weights = fitted(rows(WORDS))
    others = Split(rows(("tall", "warm", "new")), {"en": 9})
    found = figures(others, by_heads(weights))
    assert (found["precision"], found["recall"]) == (1.0, 1.0)
    assert found["f1"] >= figures(others, by_rules)["f1"]


def test_weights_are_plain_arrays() -> None:
    weights = fitted(rows(WORDS))
    assert all(array.dtype != object for array in weights.values())
    [said] = heard("I keep grey bees.")
    assert Heads(weights).log_odds(said).shape == (4,)
