"""Evidence before order."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from perdure.ranking.gates import Evidence, Gate

GATE = Gate(0.4, coverage=0.75, supported_coverage=0.3, support=0.75, blind_coverage=0.34)


@pytest.mark.parametrize(
    ("cosine", "coverage", "rare", "verdict"),
    [
        (0.4, 0.0, False, "meaning"),
        (0.9, 1.0, True, "meaning"),
        (0.39, 0.0, False, None),
        (0.0, 0.75, True, "words"),
        (-0.3, 1.0, True, "words"),
        (0.0, 0.74, True, None),
        (0.0, 1.0, False, None),
        (0.31, 0.3, False, "both"),
        (0.31, 0.29, False, None),
        (0.29, 0.3, False, None),
        (None, 0.34, True, "words"),
        (None, 1.0, True, "words"),
        (None, 0.33, True, None),
        (None, 1.0, False, "words"),
        (None, 0.5, False, None),
        (None, 0.0, False, None),
    ],
)
def test_what_passes_and_why(cosine: float | None, coverage: float, rare: bool, verdict: str | None) -> None:
    assert GATE.verdict(Evidence(cosine, coverage, rare)) == verdict


@settings(max_examples=100)
@given(st.floats(-1, 1), st.floats(0, 1), st.booleans(), st.floats(0, 1), st.floats(0, 1))
def test_more_evidence_never_shuts_the_gate(
    cosine: float, coverage: float, rare: bool, nearer: float, further: float
) -> None:
    if GATE.verdict(Evidence(cosine, coverage, rare)) is not None:
        assert GATE.verdict(Evidence(min(1.0, cosine + nearer), coverage, rare)) is not None
        assert GATE.verdict(Evidence(cosine, min(1.0, coverage + further), True)) is not None


def test_no_evidence_never_passes() -> None:
    assert GATE.verdict(Evidence()) is None
