"""The head that proposes what may be out of date: its file, and what it makes of pairs."""

from __future__ import annotations

import numpy as np
import pytest

from perdure.capture.relations import NAMES, rows, shipped
from perdure.embed.base import Embedder
from perdure.embed.catalogue import RECALL
from perdure.embed.load import load_default

KNOWN = ["Sewing machine is a Juki DDL", "The handball team trains on Mondays", "Nika is vegetarian"]


@pytest.fixture(scope="module")
def encoder() -> Embedder:
    return load_default()


def outdated(encoder: Embedder, new: str) -> list[float]:
    cosines = encoder.embed(KNOWN) @ encoder.embed([new])[0]
    return shipped().outdated(new, KNOWN, cosines.tolist())


def test_it_was_fitted_on_the_shipped_encoder() -> None:
    assert shipped().encoder == RECALL.sha256
    assert 0 < shipped().point < 1


@pytest.mark.parametrize(
    ("new", "target"),
    [
        ("I sold the Juki, the sewing machine is a Bernina now", 0),
        ("The handball team doesn't train on Mondays any more, it's Thursdays now", 1),
        ("Nika isn't vegetarian anymore", 2),
    ],
)
def test_what_says_otherwise_of_a_known_thing_is_the_likeliest(encoder: Embedder, new: str, target: int) -> None:
    likely = outdated(encoder, new)
    assert int(np.argmax(likely)) == target
    assert likely[target] >= shipped().point


@pytest.mark.parametrize("new", ["The piano tuner comes in May", "Handball needs new balls", "Nika likes lentils"])
def test_what_stands_beside_makes_nothing_out_of_date(encoder: Embedder, new: str) -> None:
    assert max(outdated(encoder, new)) < shipped().point


def test_a_row_holds_all_that_is_named() -> None:
    found = rows("It is so", KNOWN, [0.1, 0.5, 0.3])
    assert found.shape == (3, len(NAMES))
    assert found[:, NAMES.index("rank")].tolist() == [2, 0, 1]
    assert shipped().outdated("It is so", [], []) == []
