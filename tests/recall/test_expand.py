"""Other wordings of a query: what they bring, that they come once, and that nothing waits or breaks without them."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from perdure.errors import ModelError
from perdure.hooks.types import Channel, Recall
from perdure.index.vector_index import Survey
from perdure.maintenance.purge import purge
from perdure.recall.expand import MAX_WORDINGS, Expand, Expander, wordings_of
from perdure.recall.judge import Blend, merge
from perdure.recall.options import RecallOptions
from perdure.recall.pipeline import Asked, Recaller
from perdure.recall.query import understand
from perdure.recall.receipt import Receipt
from perdure.recall.turn import Candidate, Judge, Passage, Turn
from perdure.store import llm
from perdure.store.fact import Fact
from perdure.store.scope import Audience
from perdure.store.search import View
from perdure.store.sql import run
from perdure.store.transaction import Author
from tests.recall.conftest import Desk, OpenDesk

QUERY = "Which automobile belongs to me?"
FACT = "The heron car is parked in the yard"
OTHER = "The heron car is parked"


class Answering:
    """A language model that gives always the same answer, or fails."""

    def __init__(self, answer: Any) -> None:
        self.answer = answer
        self.asked: list[str] = []
        self.timeouts: list[float | None] = []
        self.hold = threading.Event()
        self.hold.set()

    def ask_json(self, prompt: str, *, timeout: float | None = None, **given: Any) -> Any | None:
        self.asked.append(prompt)
        self.timeouts.append(timeout)
        self.hold.wait(30)
        if isinstance(self.answer, ModelError):
            raise self.answer
        return self.answer

    def interrupt(self) -> None:
        self.hold.set()


Ask = Callable[..., tuple[Recall | None, Receipt]]


@pytest.fixture
def ask(desk: Desk) -> Iterator[Ask]:
    """Ask with a language model, after a fact was stored that has no word of the query."""
    desk.put(FACT)
    recallers: list[Recaller] = []

    def run_(model: Answering | None, expand: Expand = "wait", **options: Any) -> tuple[Recall | None, Receipt]:
        expander = Expander(desk.store, model)
        chosen = replace(desk.options, **options)
        recaller = Recaller(desk.store, chosen, lambda: desk.leg, desk.clock, expander=expander)
        recallers.append(recaller)
        return recaller.recall(QUERY, Audience.of(), asked=Asked(expand=expand))

    yield run_
    for recaller in recallers:
        recaller.close()


def test_another_wording_finds_what_the_query_does_not(ask: Ask) -> None:
    assert ask(None)[0] is None
    recall, receipt = ask(Answering({"wordings": [OTHER]}))
    assert recall is not None
    assert [item.text for item in recall.items] == [FACT]
    assert receipt.expansion.wordings == (OTHER,)
    assert receipt.body(RecallOptions())["expansion"]["wordings"] == [OTHER]


def test_the_model_is_asked_once_and_the_answer_outlives_a_restart(ask: Ask, desk: Desk) -> None:
    first, second = Answering({"wordings": [OTHER]}), Answering({"wordings": ["nothing"]})
    ask(first)
    recall, receipt = ask(second)
    assert recall is not None
    assert receipt.expansion.state == "known"
    assert (first.asked, second.asked) == ([QUERY], [])
    with desk.store.database.read() as connection:
        kept = run(connection, "SELECT key FROM meta WHERE key LIKE 'expansion:%'")
    assert len(kept) == 1
    assert "automobile" not in kept[0][0]


@pytest.mark.parametrize(
    "answer", [None, {}, [], {"wordings": "text"}, {"wordings": [1, None, "", QUERY]}, 7, ModelError("down")]
)
def test_without_a_good_answer_the_query_stands_alone(ask: Ask, answer: Any) -> None:
    model = Answering(answer)
    recall, receipt = ask(model)
    assert recall is None
    assert receipt.expansion.wordings == ()
    assert receipt.expansion.state not in ("ok", "off")
    ask(model)
    assert len(model.asked) == 2, "what brought nothing is asked again"


def test_nothing_is_asked_unless_wanted(ask: Ask) -> None:
    model = Answering({"wordings": [OTHER]})
    _, receipt = ask(model, expand="no")
    assert model.asked == []
    assert "expansion" not in receipt.body(RecallOptions())


def test_in_a_turn_what_comes_too_late_is_dropped(ask: Ask) -> None:
    model = Answering({"wordings": [OTHER]})
    model.hold.clear()
    recall, receipt = ask(model, expand="turn", deadline=0.3)
    assert recall is None
    assert receipt.expansion.state == "late"
    assert receipt.expansion.wordings == ()
    assert model.timeouts[0] is not None
    assert model.timeouts[0] <= 0.3


def test_in_a_turn_what_is_there_in_time_is_used(ask: Ask) -> None:
    recall, receipt = ask(Answering({"wordings": [OTHER]}), expand="turn", deadline=30.0)
    assert recall is not None
    assert receipt.expansion.state == "ok"


def test_a_slow_model_does_not_take_the_time_of_the_search(ask: Ask) -> None:
    class Slow(Answering):
        """Answers when the deadline, counted from the prompt, is over."""

        def ask_json(self, prompt: str, *, timeout: float | None = None, **given: Any) -> Any | None:
            over = time.monotonic() + 0.5
            while time.monotonic() <= over:
                threading.Event().wait(0.02)
            return super().ask_json(prompt, timeout=timeout)

    model = Slow({"wordings": [OTHER]})
    recall, receipt = ask(model, deadline=0.5)
    assert recall is not None
    assert model.timeouts == [None]
    assert "late" not in receipt.states.values()


def test_words_alone_are_enough(open_desk: OpenDesk) -> None:
    wordy = open_desk()
    wordy.put(FACT)
    expander = Expander(wordy.store, Answering({"wordings": [OTHER]}))
    recaller = Recaller(wordy.store, wordy.options, lambda: None, wordy.clock, expander=expander)
    recall, _ = recaller.recall(QUERY, Audience.of(), asked=Asked(expand="wait"))
    recaller.close()
    assert recall is not None
    assert recall.items[0].text == FACT


def test_the_memory_of_wordings_is_bounded_and_redacted(desk: Desk) -> None:
    secret = "sk-proj-abcdefghijklmnopqrstuvwx1234"
    with desk.store.database.write() as connection:
        for number in range(llm.MAX_ENTRIES + 10):
            llm.put_wordings(connection, f"{number:04}", float(number), [f"{number} {secret}"])
        kept = run(connection, "SELECT key, value FROM meta WHERE key LIKE 'expansion:%' ORDER BY key")
        assert len(kept) == llm.MAX_ENTRIES
        assert kept[0][0] == "expansion:0010"
        assert not any(secret in value for _, value in kept)
        llm.clear_said(connection)
        assert llm.wordings_of(connection, "0100") is None


def found(desk: Desk, floor: float, *facts: Candidate) -> tuple[Turn, Judge]:
    """Return a search that has found these, by their cosines."""
    view = View(Audience.of(), desk.clock.now())
    turn = Turn(desk.store, desk.options, understand(QUERY), view, desk.leg, time.monotonic() + 30.0)
    none = np.zeros((1, 0), dtype=np.float32)
    turn.survey = Survey((), none, none.sum(1), none.sum(1), 0, 0)
    passages = [Passage(f"p{floor}", "files", "text", "", floor), Passage("same", "files", "t", "", floor)]
    turn.take("lance", lambda turn: [*facts, *(Candidate(each, each.leg, each.score) for each in passages)])
    return turn, Blend(desk.options, floor)


def near(name: str, cosine: float, coverage: float = 0.0) -> Candidate:
    return Candidate(Fact(name, id=name), cosine=cosine, coverage=coverage, scores={"lance": cosine})


def test_cosines_are_measured_against_one_floor(desk: Desk) -> None:
    turn, judge = found(desk, 0.4, near("a", 0.3))
    assert merge(turn, judge, [found(desk, 0.6, near("a", 0.65), near("b", 0.5))]).floor == 0.4
    assert turn.found["a"].cosine == pytest.approx(0.45)
    assert turn.found["b"].cosine == pytest.approx(0.3)
    assert {each.id: each.scores["lance"] for each in turn.facts} == {"a": 0.65, "b": 0.5}
    assert [(each.id, each.score) for each in turn.passages] == [("p0.6", 0.6), ("same", 0.6), ("p0.4", 0.4)]


def test_the_evidence_of_the_query_goes_before_that_of_its_wordings(desk: Desk) -> None:
    own = near("a", 0.5, coverage=0.8)
    turn, judge = found(desk, 0.4, own)
    merge(turn, judge, [found(desk, 0.4, near("a", 0.9))])
    assert turn.found["a"] is own
    assert (own.cosine, own.coverage) == (0.5, 0.8)


def test_where_the_query_had_no_vectors_its_wordings_are_judged_by_theirs(desk: Desk) -> None:
    turn, judge = found(desk, 0.4)
    turn.survey = None
    other, own = found(desk, 0.6, near("a", 0.5))
    assert merge(turn, judge, [(other, own)]) is own
    assert not own.passes(turn.found["a"])


JSON = st.recursive(
    st.none() | st.integers() | st.text(), lambda each: st.lists(each) | st.dictionaries(st.text(), each)
)


@given(JSON)
def test_any_answer_becomes_a_few_short_lines(answer: Any) -> None:
    for given_ in (answer, {"wordings": answer}, {"wordings": [answer]}):
        wordings = wordings_of(given_, QUERY)
        assert len(wordings) <= MAX_WORDINGS
        assert all(text and len(text) <= 300 and "\n" not in text for text in wordings)


def test_the_wordings_are_forgotten_with_a_purge(desk: Desk) -> None:
    doomed = desk.put("The kestrel nests on the roof")
    with desk.store.database.write() as connection:
        llm.put_wordings(connection, "k", 1.0, ["kestrel roof"])
    purge(desk.store, [doomed.id], Author(Channel.CLI))
    with desk.store.database.read() as connection:
        assert llm.wordings_of(connection, "k") is None
