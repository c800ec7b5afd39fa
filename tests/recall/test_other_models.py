"""Recall brings up the same, wherever the cosines of a model lie."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from perdure.embed.base import Embedder
from perdure.embed.deterministic import HashEmbedder
from perdure.embed.load import load_default
from perdure.ranking.calibration import Calibration
from tests.faulty import ShiftedEmbedder
from tests.recall.conftest import Desk, OpenDesk

FACTS = [
    "My dentist is Doctor Wagner in Linz.",
    "We decided to use FastAPI for the backend.",
    "My dog Fido is a beagle.",
    "I graduated from TU Wien in 2007.",
    "The printer on the second floor is called Gutenberg.",
    "My sister runs a bakery in Graz.",
    "The staging server answers on port 8443.",
    "I cannot eat shellfish.",
    "Our landlord wants the money by the third of the month.",
    "My bicycle was stolen in May.",
]
PROMPTS = [
    "What is my dog called?",
    "Which food must I stay away from?",
    "When do I have to pay for the flat?",
    "Who looks after my teeth?",
    "Where did I study?",
    "What does my sister do for a living?",
    "How tall is the Eiffel tower?",
    "Why is the sky blue?",
    "Write a poem about autumn.",
    "Set up a new project in Rust.",
    "Remind me to water the plants.",
    "Draft a letter of complaint.",
    "Sort this list by length.",
    "How do penguins stay warm?",
    "What is the capital of Mongolia?",
]


def unjudged() -> Embedder:
    """Load a real model under an identity that the gate was not fitted on."""
    return ShiftedEmbedder(load_default(), 0.0)


@pytest.mark.parametrize(("make", "share"), [(HashEmbedder, 0.5), (HashEmbedder, 0.9), (unjudged, 0.7)])
def test_a_shift_of_all_cosines_changes_nothing(
    open_desk: OpenDesk, make: Callable[[], Embedder], share: float
) -> None:
    plain = filled(open_desk, make(), "plain")
    shifted = filled(open_desk, ShiftedEmbedder(make(), share), "shifted")
    assert [shifted.texts(prompt) for prompt in PROMPTS] == [plain.texts(prompt) for prompt in PROMPTS]


def test_uncalibrated_it_would_bring_up_everything(open_desk: OpenDesk) -> None:
    desk = filled(open_desk, ShiftedEmbedder(unjudged()), "home")
    silent = [prompt for prompt in PROMPTS if not desk.texts(prompt)]
    assert desk.leg is not None
    desk.leg = replace(desk.leg, calibration=Calibration())
    loud = [prompt for prompt in silent if desk.texts(prompt)]
    assert len(silent) >= 5
    assert len(loud) >= 4


def filled(open_desk: OpenDesk, embedder: Embedder, name: str) -> Desk:
    """Return a store with the facts."""
    desk = open_desk(embedder, name)
    for text in FACTS:
        desk.put(text)
    return desk
