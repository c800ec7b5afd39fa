"""Which candidates pass, and in which order."""

from __future__ import annotations

from perdure.ranking.gates import Evidence, Gate
from perdure.recall.gate import shipped
from perdure.recall.options import LEXICAL, LOOKUP, VECTOR
from perdure.recall.retrievers import NAMED, Found
from perdure.store.fact import Fact

GATE = Gate(1.0, threshold=0.5)


def found(**evidence: Evidence) -> Found:
    facts = {name: Fact(f"This is {name}.", id=name) for name in evidence}
    return Found(facts, evidence, {}, (), None, {}, {}, shipped())


def test_a_likely_memory_passes_and_an_unlikely_one_does_not() -> None:
    assert found(a=Evidence(0.6, probability=0.5), b=Evidence(0.9, 1.0, True, probability=0.49)).passing(GATE) == {"a"}


def test_a_named_slot_passes_whatever_the_model_says() -> None:
    assert found(a=Evidence(0.1, named=True, probability=0.01)).passing(GATE) == {"a"}


def test_what_has_no_vector_yet_goes_by_its_words() -> None:
    assert found(a=Evidence(None, 0.8, True), b=Evidence(None, 0.1, True)).passing(GATE) == {"a"}


def test_the_likeliest_comes_first_and_says_what_found_it() -> None:
    given = found(
        a=Evidence(0.6, 0.1, probability=0.6),
        b=Evidence(0.6, 0.7, probability=0.8),
        c=Evidence(0.1, named=True, probability=0.2),
    )
    order = given.ranked(given.facts.keys(), {})
    assert [(item.id, item.leg) for item in order] == [("c", LOOKUP), ("b", LEXICAL), ("a", VECTOR)]
    assert [item.score for item in order] == [NAMED, 0.8, 0.6]
