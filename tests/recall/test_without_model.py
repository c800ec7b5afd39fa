"""A process that has no model yet brings up what one with the model would, or nothing, and says why."""

from __future__ import annotations

import pytest

from perdure.api.explain import silence
from perdure.api.memory import Memory
from perdure.hooks.types import TurnContext
from perdure.recall.receipt import Receipt
from tests.kit import OpenMemory, for_each, recalled

HERON = "The staging database is called heron."
ALLERGY = "My daughter Ida is allergic to hazelnuts."
COLOURS = ("red", "grey", "green", "black", "white", "brown", "pink")
ONE = TurnContext(session_id="one")


@pytest.fixture
def cold(open_memory: OpenMemory) -> Memory:
    with open_memory(embedder="auto") as warm:
        for text in (HERON, "The tyres of the van are from Oslo, bought in a sale last winter."):
            warm.store(text)
        assert warm.settle()
    return open_memory(embedder="auto", load_model=False, guest=True)


@for_each(
    ("prompt", "texts"),
    [
        ("What is the staging database called?", [HERON]),
        ("Write a poem about the sea and a sale of umbrellas.", []),
        ("Which van should I rent for moving house?", []),
        ("Is Oslo worth a visit in spring?", []),
    ],
)
def test_words_bring_up_only_what_a_model_surely_would(cold: Memory, prompt: str, texts: list[str]) -> None:
    assert recalled(cold, prompt) == texts


def test_silence_says_that_the_model_was_not_there(cold: Memory) -> None:
    receipts: list[Receipt] = []
    assert cold.recall("Is Oslo worth a visit in spring?", receipt_to=receipts.append) is None
    explained = cold.why(receipts[0])
    assert explained.legs["semantic"]["state"] == "the model was not loaded"
    assert "the model was not loaded" in (silence(explained) or "")
    [van] = [fact for fact in cold.admin.list() if "Oslo" in fact.text]
    assert "the model was not loaded" in cold.why_not(van.id, receipts[0])


def test_a_store_that_is_meant_to_go_without_a_model_goes_by_a_rare_word(open_memory: OpenMemory) -> None:
    memory = open_memory(embedder="none")
    memory.store("The tyres of the van are from Oslo.")
    assert recalled(memory, "Is Oslo nice?") == ["The tyres of the van are from Oslo."]


def test_an_opening_chooses_by_the_vectors_that_are_there_already(open_memory: OpenMemory) -> None:
    with open_memory(embedder="auto") as warm:
        warm.store(ALLERGY)
        for number, colour in enumerate(COLOURS):
            warm.store(f"The {colour} folder is on shelf {number}.")
        assert warm.settle()
    cold = open_memory(embedder="auto", opening_tokens=130, load_model=False, guest=True)
    found = cold.turns.opening(ONE)
    assert found is not None
    assert found.items[0].text == ALLERGY
    assert len(found.items) < 1 + len(COLOURS)


def test_the_process_that_comes_next_knows_of_an_opening_before_this_one_has_ended(open_memory: OpenMemory) -> None:
    with open_memory(embedder="hash") as first:
        first.store(ALLERGY)
    cold = open_memory(embedder="hash", load_model=False, guest=True)
    assert cold.turns.opening(ONE) is not None
    assert open_memory(embedder="hash", load_model=False, guest=True).turns.opening(ONE) is None
