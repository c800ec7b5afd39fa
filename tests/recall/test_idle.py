"""What is shown time and again to no use moves down in order, and goes on coming up."""

from __future__ import annotations

from typing import Any

import pytest

from perdure.embed.base import Embedder
from perdure.embed.deterministic import HashEmbedder
from perdure.recall.judge import IDLE
from perdure.recall.topics import SHOWN, idle
from tests.recall.conftest import OpenDesk

QUESTION = "Which database is the staging one?"
TWINS = ("The staging database Heron is for tests.", "The staging database Ibis is for tests.")
SEEN: dict[str, Any] = {"injected_count": SHOWN}


def test_it_moves_behind_what_fits_as_well_and_still_comes_up(open_desk: OpenDesk, encoder: Embedder) -> None:
    for shown, text in enumerate(TWINS):
        desk = open_desk(encoder, f"home {shown}")
        for each in TWINS:
            desk.put(each, injected_count=50 if each == text else SHOWN - 1)
        first, last = sorted(desk.ask(QUESTION)[1].candidates, key=lambda each: -each.score)
        assert {first.verdict, last.verdict} == {"injected"}
        assert (last.fact.text, IDLE in last.factors, IDLE in first.factors) == (text, True, False)
        assert not any(each.factors for each in desk.ask(QUESTION, adjustments=())[1].candidates)


@pytest.mark.parametrize(
    ("text", "fields", "moves"),
    [
        (TWINS[0], SEEN, True),
        (TWINS[0], {"injected_count": SHOWN - 1}, False),
        (TWINS[0], SEEN | {"access_count": 1}, False),
        (TWINS[0], SEEN | {"reinforced_count": 1}, False),
        (TWINS[0], SEEN | {"pinned": True}, False),
        ("Always use uv for Python.", SEEN | {"category": "decision", "decay_class": "permanent"}, False),
        ("Commit messages are written in the imperative.", SEEN | {"entity": "convention"}, False),
        ("I'm allergic to penicillin.", SEEN, False),
        ("I take ten units of insulin in the evening.", SEEN, False),
        ("I don't eat meat.", SEEN, False),
        ("We eat vegan at home.", SEEN, False),
        ("My sister Ada lives in Graz.", SEEN, False),
        ("My daughter Mila is afraid of dogs.", SEEN, False),
        ("Kieran is my neighbour.", SEEN, False),
    ],
)
def test_what_matters_however_seldom_it_is_used_stays(
    open_desk: OpenDesk, encoder: Embedder, text: str, fields: dict[str, Any], moves: bool
) -> None:
    desk = open_desk(encoder)
    fact = desk.put(text, **fields)
    assert list(idle(desk.store, [fact])) == [fact.id] * moves


def test_what_no_vector_tells_about_stays(open_desk: OpenDesk) -> None:
    for number, embedder in enumerate((None, HashEmbedder())):
        desk = open_desk(embedder, f"home {number}")
        assert not idle(desk.store, [desk.put(TWINS[0], **SEEN)])
