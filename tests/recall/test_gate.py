"""The learned gate: its trees, what it names as its reasons, and that a store asks it what it was fitted on."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from perdure.embed.base import Embedder
from perdure.embed.catalogue import RECALL
from perdure.errors import ModelError
from perdure.recall.gate import (
    ALL_NAMES,
    FILE,
    NAMES,
    POINTS,
    RISING,
    LearnedGate,
    Prompt,
    rescaled,
    shipped,
    triggered_gate,
)
from perdure.recall.query import parts
from tests.kit import for_each
from tests.recall.conftest import Desk, OpenDesk
from training.views import View, features

TEXTS = [
    "I am allergic to peanuts.",
    "We use GitHub Actions for our pipelines.",
    "My sister Ines turns 28 in May.",
    "The boiler loses pressure, top it up to 1.5 bar.",
    "Kieran's motorbike insurance renews in May.",
]


def plain(**more: Any) -> dict[str, Any]:
    """Return one tree that asks for the first feature."""
    return {
        "encoder": "e", "features": list(NAMES), "points": {}, "base": 0.0, "slope": 1.0, "shift": 0.0, "roots": [0],
        "feature": [0, -1, -1], "threshold": [0.5, 0, 0], "left": [1, 0, 0], "right": [2, 0, 0], "value": [0.5, -1, 2],
    } | more  # fmt: skip


def test_trees_send_a_row_left_up_to_the_threshold() -> None:
    rows = np.zeros((2, len(NAMES)), dtype=np.float32)
    rows[:, 0] = 0.5, 0.6
    expected = [1 / (1 + math.e), 1 / (1 + math.exp(-2))]
    assert LearnedGate.of(plain()).probabilities(rows) == pytest.approx(expected)


def test_a_reason_is_what_a_step_changed() -> None:
    rows = np.zeros((2, len(NAMES)), dtype=np.float32)
    rows[:, 0] = 0.6, 0.5
    assert LearnedGate.of(plain(slope=2.0)).reasons(rows) == [{"cosine": 3.0}, {"cosine": -3.0}]


def test_a_gate_of_other_features_is_refused() -> None:
    with pytest.raises(ModelError, match="different features"):
        LearnedGate.of(plain(features=["cosine"]))


@for_each("gate", [shipped(), triggered_gate()])
def test_the_shipped_gates_were_fitted_on_the_shipped_encoder(gate: LearnedGate) -> None:
    assert gate.encoder == RECALL.sha256
    assert tuple(gate.points) == POINTS
    assert 1 > gate.points["strict"] > gate.points["balanced"] > gate.points["generous"] > 0


def test_a_gate_is_brought_to_the_points_of_another() -> None:
    own, other = triggered_gate().points, shipped().points
    assert rescaled([own[name] for name in POINTS], own, other) == pytest.approx([other[name] for name in POINTS])
    told = rescaled([0.0, 0.05, own["generous"], 0.3, 0.6, own["strict"], 0.9, 1.0], own, other)
    assert told == sorted(set(told))
    assert 0 < told[0] < told[-1] < 1
    assert rescaled([0.0, 0.2, 0.7], own, own) == pytest.approx([0.0, 0.2, 0.7], abs=1e-3)


def test_the_reasons_and_the_base_are_all_that_there_is(encoder: Embedder) -> None:
    gate = LearnedGate.of(json.loads(Path(FILE).read_text(encoding="utf-8")))
    _, rows = features(View(TEXTS, encoder.embed(TEXTS)), Prompt("boiler?", ["boiler?"]), encoder.embed(["boiler?"]))
    reasons = gate.reasons(rows)
    assert len(reasons) == len(rows)
    assert all(len(each) == 3 and set(each) < set(NAMES) for each in reasons)


def test_more_of_what_speaks_for_a_memory_never_counts_against_it(encoder: Embedder) -> None:
    aims = ["the heating is cold", "a plumber comes"]
    view = View(TEXTS, encoder.embed(TEXTS), [[], [], [], aims, []], encoder.embed(aims))
    prompts = ["boiler?", "the heating is cold again", "who comes on Monday"]
    rows = np.concatenate([features(view, Prompt(each, [each]), encoder.embed([each]))[1] for each in prompts])
    for gate in (shipped(), triggered_gate()):
        before = np.array(gate.probabilities(rows))
        for name in RISING:
            more = rows.copy()
            more[:, ALL_NAMES.index(name)] += 0.15
            assert (np.array(gate.probabilities(more)) >= before - 1e-9).all(), name


@pytest.mark.parametrize(
    "prompt",
    [
        "How old is my sister?",
        "is the boilr loosing pressure again",
        "Can I put peanuts into the sauce?",
        "Write to Kieran about the insurance, please, and be firm, because the garage has not answered for two weeks.\n"
        "Then tell me which pipelines we use, and what we should do about the boiler before the winter comes.",
    ],
)
def test_a_store_is_asked_what_the_gate_was_fitted_on(open_desk: OpenDesk, encoder: Embedder, prompt: str) -> None:
    """A turn's features are those of the training, to the rounding of a vector."""
    desk = open_desk(encoder)
    ids = {desk.put(text).id: text for text in TEXTS}
    _, receipt = desk.ask(prompt)
    asked = Prompt(prompt, parts(prompt))
    places, rows = features(View(TEXTS, encoder.embed(TEXTS)), asked, encoder.embed(list(asked.parts)))
    trained = {TEXTS[place]: row[: len(NAMES)] for place, row in zip(places.tolist(), rows, strict=True)}
    assert receipt.verdicts.keys() == ids.keys()
    for each in receipt.candidates:
        assert each.features == pytest.approx(trained[ids[each.id]], rel=1e-2, abs=2e-3)


def test_vectors_of_another_embedder_go_by_their_cosines(desk: Desk) -> None:
    desk.put("The heron database is in staging.")
    _, receipt = desk.ask("heron database")
    assert receipt.judge is not None
    assert receipt.judge.threshold is None
    assert receipt.judge.floor is not None
