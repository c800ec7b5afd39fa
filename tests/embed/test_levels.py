"""Where the cosines of an embedder lie."""

from __future__ import annotations

from dataclasses import astuple

import pytest

from perdure.embed.deterministic import HashEmbedder
from perdure.embed.load import load_default
from perdure.index.calibrate import levels_of
from perdure.ranking.calibration import DEFAULT
from perdure.text.normalise import match_terms
from perdure.text.questions import PAIRS
from tests.faulty import ShiftedEmbedder


def test_what_is_known_of_the_shipped_model_is_what_is_measured() -> None:
    assert astuple(levels_of(load_default())) == pytest.approx(astuple(DEFAULT), abs=0.01)


@pytest.mark.parametrize("share", [0.0, 0.7, 0.9])
def test_a_shift_shifts_the_levels(share: float) -> None:
    plain, shifted = (astuple(levels_of(each)) for each in (HashEmbedder(), ShiftedEmbedder(HashEmbedder(), share)))
    assert shifted == pytest.approx([share + (1.0 - share) * level for level in plain], abs=2e-4)


def test_turns_may_go_first_between_the_two_calls() -> None:
    pauses: list[int] = []
    levels_of(HashEmbedder(), lambda: pauses.append(1))
    assert len(pauses) == 2


def test_the_pairs_differ_and_nearly_all_share_no_word() -> None:
    assert len(PAIRS) == 60
    assert len({question for question, _ in PAIRS}) == len({memory for _, memory in PAIRS}) == 60
    apart = [pair for pair in PAIRS if set(match_terms(pair[0])).isdisjoint(match_terms(pair[1]))]
    assert len(apart) >= 50
