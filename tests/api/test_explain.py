"""Why a memory came up in a turn, and why another one did not."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from perdure.api.explain import INJECTED, Considered, silence
from perdure.api.memory import Memory
from perdure.clock import ManualClock
from perdure.errors import InputError, NotFoundError
from perdure.hooks.types import TurnContext
from perdure.ranking.decay import DAY
from perdure.recall.judge import BLIND_COVERAGE, COVERAGE, SUPPORT, SUPPORTED_COVERAGE
from perdure.recall.options import RecallOptions
from perdure.recall.receipt import Receipt
from perdure.store.fact import Fact
from tests.kit import OpenMemory

TEXT = "The staging database is called heron."
QUESTION = "What is the staging database called?"


@pytest.fixture
def memory(open_memory: OpenMemory) -> Memory:
    """A memory that goes by words alone, so that each verdict can be brought about."""
    return open_memory(embedder="none", record_sessions=False, compare={"normalised": False, "classify": False})


def turn(memory: Memory, prompt: str = QUESTION, keeps_block: bool = False) -> str:
    """Play a turn and return the id of its receipt; "" if nothing came up."""
    recall = memory.turns.before(prompt, TurnContext(session_id="s", keeps_block=keeps_block))
    memory.settle()
    return recall.receipt_id if recall else ""


def verdict_of(memory: Memory, fact: Fact) -> Considered:
    [found] = [each for each in memory.why().considered if each.id == fact.id]
    return found


def test_what_came_up_is_explained_by_what_found_it(open_memory: OpenMemory) -> None:
    memory = open_memory()
    fact = memory.store(TEXT)
    memory.store("The cat sleeps on the sofa.")
    receipt_id = turn(memory)
    explained = memory.why()
    assert (explained.turn, explained.query, explained.silence) == (receipt_id, QUESTION, None)
    assert explained.tokens > 0
    assert {explained.legs[leg]["state"] for leg in ("sqlite", "lance", "lookup")} == {"ok"}
    best = explained.considered[0]
    assert (best.id, best.text, best.verdict, best.gone) == (fact.id, TEXT, INJECTED, False)
    assert best.cosine is not None
    assert explained.floor is not None
    assert best.cosine >= explained.floor
    assert best.legs is not None
    assert best.legs.keys() == {"sqlite", "lance"}
    assert silence(explained) is None
    assert memory.why_not(fact.id[:8]) == f"it did come up, with a score of {best.score:.2f}"


def test_a_turn_is_named_by_the_beginning_of_its_id(memory: Memory) -> None:
    fact = memory.store(TEXT)
    first = turn(memory)
    turn(memory, "Where does the submarine anchor?")
    assert memory.why(first[:8]).turn == first
    assert memory.why().turn != first
    assert "did come up" in memory.why_not(fact.id, first[:8])
    with pytest.raises(NotFoundError, match="ffffffff"):
        memory.why("ffffffff")


def test_no_evidence_names_what_was_measured(open_memory: OpenMemory) -> None:
    memory = open_memory()
    memory.store(TEXT)
    other = memory.store("The cat sleeps on the sofa.")
    turn(memory)
    found = verdict_of(memory, other)
    assert found.verdict == "no evidence"
    said = memory.why_not(other.id)
    floor = memory.why().floor
    assert said == (
        f"no evidence: word coverage of the prompt {found.coverage:.2f};"
        f" cosine {found.cosine:.2f}, threshold {floor:.2f}"
    )
    turn(memory, "Xylophora")
    assert "none with evidence; the closest: word coverage of the prompt 0.00" in (silence(memory.why()) or "")


def test_far_below_the_best(memory: Memory) -> None:
    best = memory.store("Heron Ibis Egret Stork nest here.")
    weak = memory.store("Heron and Ibis are birds of the water that people in many countries like to look at.")
    turn(memory, "heron ibis egret stork")
    assert verdict_of(memory, weak).verdict == "far below the best"
    scores = verdict_of(memory, weak).score, verdict_of(memory, best).score
    assert memory.why_not(weak.id) == "far below the best: its score is {:.2f}, the best has {:.2f}".format(*scores)


def test_a_near_duplicate_names_its_twin(memory: Memory) -> None:
    # Without a slot: of two values of one slot the older would give way for that reason.
    twins = [memory.store(text, entity="", key="") for text in (TEXT, "The staging database is called heron!")]
    assert twins[0].id != twins[1].id
    turn(memory)
    gone = next(fact for fact in twins if verdict_of(memory, fact).verdict != INJECTED)
    kept = next(fact for fact in twins if fact.id != gone.id)
    assert memory.why_not(gone.id) == f"near-duplicate of {kept.id}"


def test_over_the_budget(open_memory: OpenMemory) -> None:
    memory = open_memory(embedder="none", recall_limit=1)
    facts = [memory.store(f"The staging database {name} is for tests.") for name in ("Heron", "Ibis", "Stork")]
    turn(memory, "Which staging database is for tests?")
    verdicts = {fact.id: verdict_of(memory, fact).verdict for fact in facts}
    assert sorted(verdicts.values()) == [INJECTED, "over the budget", "over the budget"]
    out = next(fact_id for fact_id, verdict in verdicts.items() if verdict != INJECTED)
    assert memory.why_not(out).startswith("over the budget: better memories used up the")


def test_already_shown(memory: Memory) -> None:
    fact = memory.store(TEXT)
    turn(memory, keeps_block=True)
    assert turn(memory, keeps_block=True) == ""
    assert memory.why_not(fact.id).startswith("already shown in this conversation")
    assert silence(memory.why()) == "matching memories were rejected: already shown"


def test_forgotten_says_how_to_bring_it_back(memory: Memory) -> None:
    fact = memory.store(TEXT)
    before = turn(memory)
    memory.forget(fact.id)
    assert turn(memory) == ""
    assert memory.why_not(fact.id) == f"it is forgotten; restore it: perdure unforget {fact.id[:8]}"
    assert "did come up" in memory.why_not(fact.id, before)


def test_forgotten_after_a_turn_is_not_why_it_stayed_away(memory: Memory, clock: ManualClock) -> None:
    fact = memory.store(TEXT)
    turn(memory, "Where does the submarine anchor?")
    clock.advance(60.0)
    memory.forget(fact.id)
    assert "not a candidate" in memory.why_not(fact.id)


def test_superseded_names_what_took_its_place(memory: Memory) -> None:
    old = memory.store("My birthday is on May 3rd.")
    new = memory.store("Actually, my birthday is on May 4th.", supersedes=old.id)
    turn(memory, "When is my birthday?")
    assert memory.why_not(old.id) == f"it was superseded by {new.id}"
    assert "did come up" in memory.why_not(new.id)


def test_expired(memory: Memory, clock: ManualClock) -> None:
    fact = memory.store(TEXT, decay_class="short")
    clock.advance(3 * DAY)
    assert turn(memory) == ""
    assert memory.why_not(fact.id) == "it had expired"


def test_stored_after_the_turn(memory: Memory, clock: ManualClock) -> None:
    turn(memory)
    clock.advance(60.0)
    assert memory.why_not(memory.store(TEXT).id) == "it was stored after that turn"


def test_nothing_was_looked_for(memory: Memory) -> None:
    fact = memory.store(TEXT)
    turn(memory, "hello there")
    assert memory.why_not(fact.id) == silence(memory.why()) == "nothing was searched for (small talk)"


def test_nothing_near(memory: Memory) -> None:
    memory.store(TEXT)
    turn(memory, "Where does the submarine anchor?")
    assert silence(memory.why()) == "no memory shares a word with the prompt or is close to its meaning"


def test_another_scope_is_as_if_it_were_not_there(open_memory: OpenMemory) -> None:
    fact = open_memory(user="eva", embedder="none").store(TEXT)
    other = open_memory(user="max", embedder="none")
    with pytest.raises(NotFoundError, match="no turn has been recorded for this caller"):
        other.why()
    other.recall(QUESTION)
    other.settle()
    assert other.why().considered == ()
    with pytest.raises(NotFoundError, match=fact.id):
        other.why_not(fact.id)


def test_after_a_purge_the_text_is_gone_and_it_says_so(memory: Memory) -> None:
    fact = memory.store(TEXT)
    turn(memory)
    assert "heron" in json.dumps(memory.why().to_dict())
    memory.admin.purge(fact.id)
    explained = memory.why()
    [gone] = explained.considered
    assert (gone.id, gone.text, gone.verdict, gone.gone) == (fact.id, "", INJECTED, True)
    assert explained.query == ""
    assert "heron" not in json.dumps(explained.to_dict())
    assert memory.why_not(fact.id[:8]) == (
        "its text is purged or not visible to the caller; its verdict in that turn was: injected"
    )
    with pytest.raises(InputError, match="at least 8"):
        memory.why_not(fact.id[:3])


def test_a_receipt_that_was_never_written_explains_too(memory: Memory) -> None:
    fact = memory.store(TEXT)
    kept: list[Receipt] = []
    recall = memory.recall(QUESTION, receipt_to=kept.append)
    memory.settle()
    assert recall is not None
    explained = memory.why(kept[0])
    assert [(each.id, each.verdict) for each in explained.considered] == [(fact.id, INJECTED)]
    assert "did come up" in memory.why_not(fact.id, kept[0])
    assert memory.get(fact.id).injected_count == 0
    with pytest.raises(NotFoundError, match="no turn has been recorded for this caller"):
        memory.why()


def test_the_docs_name_the_thresholds_that_hold() -> None:
    document = (Path(__file__).parents[2] / "docs" / "recall.md").read_text(encoding="utf-8")
    wanted = [COVERAGE, SUPPORTED_COVERAGE, SUPPORT, COVERAGE, BLIND_COVERAGE]
    [section] = re.findall(r"^### Gate$(.*?)^### ", document, re.DOTALL | re.MULTILINE)
    assert [int(share) for share in re.findall(r"(\d+)%", section)] == [round(100 * share) for share in wanted]
    assert f"below {RecallOptions().relative_cut:.0%} of the best score" in " ".join(document.split())
