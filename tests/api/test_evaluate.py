"""Evaluation on somebody's own store: what it counts, and that it leaves nothing behind."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perdure.api.evaluate import MAX_SIZE, Evaluation, compare, evaluate
from perdure.api.memory import Memory
from perdure.clock import ManualClock
from perdure.engine.engine import Engine
from perdure.engine.settings import Settings
from perdure.errors import InputError
from perdure.hooks.types import Recall, RecallItem, TurnContext
from perdure.ranking.decay import DAY
from perdure.recall.pipeline import Asked
from perdure.recall.receipt import Receipt
from perdure.store.fact import Fact
from perdure.store.sql import run
from perdure.store.store import Store
from perdure.text.normalise import match_terms
from perdure.text.questions import FOREIGN_QUESTIONS, exact, paraphrase, temporal
from tests.kit import OpenMemory

TEXTS = (
    "The staging database is called heron.",
    "Ferdinand repairs bicycles in Trondheim.",
    "The invoice printer jams on thick envelopes.",
    "Marmalade the tortoise hibernates in the cellar.",
    "The choir rehearses Bruckner every Tuesday.",
)


def filled(memory: Memory, clock: ManualClock) -> Memory:
    """Store facts over a hundred days; the birthday is the newest."""
    for text in TEXTS:
        memory.store(text, decay_class="permanent")
        clock.advance(20 * DAY)
    memory.store("My birthday is on May 3rd.")
    return memory


def tables(home: Path) -> dict[str, list[Any]]:
    """Return all rows of the truth."""
    store = Store(home)
    try:
        with store.database.read() as connection:
            names = [row[0] for row in run(connection, "SELECT name FROM sqlite_master WHERE type = 'table'")]
            return {name: list(run(connection, f"SELECT * FROM {name}")) for name in names if "fts" not in name}
    finally:
        store.close()


def test_a_store_that_answers_is_measured_so(open_memory: OpenMemory, clock: ManualClock) -> None:
    result = filled(open_memory(), clock).admin.evaluate()
    assert (result.facts, result.sampled, result.leaks) == (6, 6, 0)
    assert {kind: measure.asked for kind, measure in result.kinds.items()} == {
        "exact": 6,
        "paraphrase": 6,
        "temporal": 1,
    }
    for measure in result.kinds.values():
        assert measure.in_block == measure.at_5 == measure.at_1 == 1.0
        assert (measure.tokens or 0) > 0
    assert result.model is not None
    assert result.model.startswith("hash")


def test_a_store_of_other_things_is_silent(open_memory: OpenMemory, clock: ManualClock) -> None:
    result = filled(open_memory(embedder="none"), clock).admin.evaluate()
    assert (result.foreign, result.silence, result.model) == (len(FOREIGN_QUESTIONS), 1.0, None)


def test_a_store_that_cannot_answer_is_measured_so(open_memory: OpenMemory, clock: ManualClock) -> None:
    # What frames a block takes all the tokens that it may have.
    result = filled(open_memory(embedder="none", recall_max_tokens=50), clock).admin.evaluate()
    assert {measure.in_block for measure in result.kinds.values()} == {0.0}
    assert result.tokens == 0.0


def test_places_are_told_apart(open_memory: OpenMemory) -> None:
    memory = open_memory(embedder="none")
    for name in ("heron", "ibis", "stork", "egret", "crane"):
        memory.store(f"Bread and butter for {name}.")
    exact_ones = memory.admin.evaluate().kinds["exact"]
    paraphrases = memory.admin.evaluate().kinds["paraphrase"]
    assert exact_ones.at_1 == 1.0
    # Two of the three words may leave out the only one that tells these facts apart.
    assert paraphrases.at_1 is not None
    assert paraphrases.at_5 is not None
    assert paraphrases.at_1 < paraphrases.at_5 == 1.0


def test_what_a_foreign_question_brings_up_is_no_silence(open_memory: OpenMemory) -> None:
    memory = open_memory(embedder="none")
    memory.store("Amylase is an enzyme.")
    assert memory.admin.evaluate().silence == pytest.approx(1 - 1 / len(FOREIGN_QUESTIONS))


def test_what_is_pinned_is_no_noise(open_memory: OpenMemory) -> None:
    memory = open_memory(embedder="none")
    memory.pin(memory.store(TEXTS[0]).id)
    result = memory.admin.evaluate()
    assert result.silence == 1.0
    assert result.kinds["exact"].at_1 == 1.0


@pytest.mark.sqlite
def test_nothing_is_changed_in_the_store(open_memory: OpenMemory, clock: ManualClock, home: Path) -> None:
    memory = filled(open_memory(), clock)
    memory.recall("What is the staging database called?")
    memory.settle()
    before = tables(home)
    assert len(before["receipts"]) == 1
    memory.admin.evaluate()
    memory.settle()
    assert tables(home) == before


def test_the_result_holds_no_word_of_a_memory(open_memory: OpenMemory, clock: ManualClock) -> None:
    said = json.dumps(filled(open_memory(), clock).admin.evaluate().to_dict()).casefold()
    words = {word for text in TEXTS for word in match_terms(text) if len(word) > 4}
    assert {word for word in words if word in said} == set()


def test_only_what_the_caller_may_read_is_asked_about(open_memory: OpenMemory, clock: ManualClock) -> None:
    filled(open_memory(user="eva"), clock)
    result = open_memory(user="max").admin.evaluate()
    assert (result.facts, result.sampled, result.leaks) == (0, 0, 0)
    assert {(each.asked, each.at_1, each.tokens) for each in result.kinds.values()} == {(0, None, None)}


class LeakyEngine(Engine):
    """An engine whose recall brings up one fact whoever asks."""

    leaked = ""

    def recall(
        self,
        prompt: str,
        context: TurnContext,
        asked: Asked = Asked(),  # noqa: B008 - frozen
        receipt_to: Callable[[Receipt], None] | None = None,
    ) -> Recall:
        assert receipt_to is not None
        receipt_to(Receipt("r", None, 0.0, prompt))
        return Recall("block", (RecallItem(self.leaked, "text", "other", "sqlite", 1.0),))


@pytest.mark.parametrize(("user", "leaks"), [("eva", 0), ("max", 1)])
def test_a_leak_is_counted(open_memory: OpenMemory, home: Path, user: str, leaks: int) -> None:
    fact = open_memory(user="eva", embedder="none").store(TEXTS[0])
    engine = LeakyEngine(home, Settings.load({"embedder": "none"}))
    engine.leaked = fact.id
    assert evaluate(engine, TurnContext(user_id=user)).leaks == leaks
    engine.close()


def test_the_choice_depends_on_the_seed_alone(open_memory: OpenMemory, clock: ManualClock) -> None:
    memory = filled(open_memory(), clock)
    first, again, other = (memory.admin.evaluate(2, seed) for seed in (1, 1, 2))
    assert first == again
    assert first.sampled == 2
    assert first.sample != other.sample


@pytest.mark.parametrize("size", [0, MAX_SIZE + 1])
def test_a_size_out_of_range_is_refused(open_memory: OpenMemory, size: int) -> None:
    with pytest.raises(InputError, match=f"size is {size}"):
        open_memory(embedder="none").admin.evaluate(size)


def test_results_are_compared() -> None:
    before = Evaluation(5, 5, 0, "a", None, {}, 48, 1.0, 0, 10.0).to_dict()
    after = Evaluation(5, 5, 1, "b", "hash", {}, 48, 0.75, 0, 12.5).to_dict()
    assert compare(before, after) == [("silence", 1.0, 0.75), ("tokens", 10.0, 12.5)]
    with pytest.raises(InputError, match="not a result"):
        compare({"items": []}, after)


def test_questions_of_a_fact() -> None:
    fact = Fact(TEXTS[1])
    assert exact(fact) == "ferdinand repairs bicycles trondheim?"
    assert len(paraphrase(fact, random.Random(0)).split()) == 2
    slotted = Fact("I was born on May 3rd.", entity="user", key="birthday", value="May 3rd")
    assert paraphrase(slotted, random.Random(0)) == "may 3rd birthday?"
    assert temporal(slotted) == "What is my birthday?"
    assert temporal(Fact("x", entity="heron", key="port")) == "What is the port of heron?"
    assert exact(Fact("It is what it is.")) == paraphrase(Fact("Trondheim"), random.Random(0)) == ""


@given(st.text(max_size=300), st.integers())
def test_a_paraphrase_says_less_than_the_fact(text: str, seed: int) -> None:
    fact = Fact(text)
    asked, reworded = exact(fact).rstrip("?").split(), paraphrase(fact, random.Random(seed)).rstrip("?").split()
    assert set(reworded) <= set(asked)
    assert not reworded or len(reworded) == -(-len(asked) // 2)


def test_the_foreign_questions_differ() -> None:
    assert len(set(FOREIGN_QUESTIONS)) == len(FOREIGN_QUESTIONS) >= 40
