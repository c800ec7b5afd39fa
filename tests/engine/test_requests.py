"""What an agent may only ask for waits for the user, who decides in a review; nothing is changed before."""

from __future__ import annotations

from typing import Any

import pytest

from perdure.api.memory import Memory
from perdure.api.tools import call_tool
from perdure.errors import NotFoundError
from perdure.hooks.types import Channel, Consent, ToolResult, TurnContext
from perdure.store import lifecycle
from perdure.store.fact import Fact
from tests.kit import OpenMemory

BOAT, HERON = "The boat is called Albatross.", "The boat is called Heron."


@pytest.fixture
def memory(open_memory: OpenMemory) -> Memory:
    return open_memory(embedder="none")


def ask(memory: Memory, name: str, consent: Consent = Consent.UNAVAILABLE, /, **values: Any) -> ToolResult:
    return call_tool(memory, name, values, TurnContext(scopes=("project:heron-1",)), consent=consent)


def live(memory: Memory) -> list[str]:
    return sorted(fact.text for fact in memory.admin.list() if fact.review_state == "approved")


CHANGES: dict[str, dict[str, Any]] = {
    "memory_update": {"text": HERON},
    "memory_store": {"text": HERON},
    "memory_forget": {},
}


def changed(memory: Memory, name: str, consent: Consent = Consent.UNAVAILABLE) -> tuple[Fact, ToolResult]:
    old = memory.store(BOAT)
    names = "supersedes" if name == "memory_store" else "memory"
    return old.fact, ask(memory, name, consent, **{names: old.id[:8]}, **CHANGES[name])


@pytest.mark.parametrize("name", CHANGES)
def test_a_change_of_what_the_user_said_waits_and_the_memory_stands(memory: Memory, name: str) -> None:
    old, answer = changed(memory, name)
    assert answer.details["outcome"] == "waiting"
    assert f"perdure review approve {answer.details['request'][:8]}" in answer.text
    assert live(memory) == [BOAT]
    assert memory.get(old.id) == old
    [waits] = memory.admin.review()
    assert (waits.id, waits.channel) == (answer.details["request"], Channel.TOOL_UNASKED)


@pytest.mark.parametrize("name", CHANGES)
def test_to_approve_does_it_on_the_users_word_and_undo_takes_it_back(memory: Memory, name: str) -> None:
    old, answer = changed(memory, name)
    memory.admin.approve(answer.details["request"])
    after = [] if name == "memory_forget" else [HERON]
    assert live(memory) == after
    assert [fact.channel for fact in memory.admin.list()] == [Channel.LIBRARY] * len(after)
    assert not memory.admin.review()
    memory.undo()
    assert live(memory) == [BOAT]
    assert memory.get(old.id).forgotten_at is None
    memory.admin.approve(answer.details["request"])
    assert live(memory) == after


@pytest.mark.parametrize("name", CHANGES)
def test_to_reject_leaves_the_memory_as_it_is(memory: Memory, name: str) -> None:
    old, answer = changed(memory, name)
    memory.admin.reject(answer.details["request"])
    assert live(memory) == [BOAT]
    assert not memory.admin.review()
    assert memory.get(old.id) == old


@pytest.mark.parametrize("name", CHANGES)
def test_the_same_is_asked_for_once(memory: Memory, name: str) -> None:
    _, first = changed(memory, name)
    _, second = changed(memory, name)
    assert first.details["request"] == second.details["request"]
    assert len(memory.admin.review()) == 1


def test_what_was_changed_meanwhile_is_not_changed_by_an_old_request(memory: Memory) -> None:
    old, answer = changed(memory, "memory_forget")
    memory.update(old.id, text="The boat is called Gull.")
    with pytest.raises(NotFoundError, match="has changed since"):
        memory.admin.approve(answer.details["request"])
    assert live(memory) == ["The boat is called Gull."]


def test_a_rejected_replacement_can_be_approved_after_all(memory: Memory) -> None:
    _, answer = changed(memory, "memory_update")
    for decide in (memory.admin.reject, memory.admin.approve, memory.admin.reject, memory.admin.approve):
        decide(answer.details["request"])
    assert live(memory) == [HERON]


def test_a_change_of_other_values_waits_as_a_whole(memory: Memory) -> None:
    old = memory.store(BOAT, importance=0.9)
    request = ask(memory, "memory_update", memory=old.id, importance=0.1, tags=["sea"]).details["request"]
    assert memory.get(old.id) == old
    memory.admin.approve(request)
    [fact] = memory.admin.list()
    assert (fact.text, fact.importance, fact.tags) == (BOAT, 0.1, ("sea",))


@pytest.mark.parametrize("name", CHANGES)
def test_who_can_be_asked_is_shown_old_and_new_and_nothing_waits(memory: Memory, name: str) -> None:
    old, answer = changed(memory, name, Consent.UNASKED)
    assert answer.refused
    confirm = answer.details["confirm"]
    assert (confirm["memory"], confirm["old"]) == (old.id, BOAT)
    assert confirm["new"] == (None if name == "memory_forget" else HERON)
    assert (live(memory), list(memory.admin.review())) == ([BOAT], [])
    # What is then done is done to the version that was shown, even if the call named it by a number.
    assert not ask(memory, name, Consent.GIVEN, **confirm["arguments"]).refused
    assert live(memory) == ([] if name == "memory_forget" else [HERON])
    assert memory.admin.changes()[-1].channel == Channel.TOOL_ASKED.value


def test_a_question_and_a_request_hold_no_secret(memory: Memory) -> None:
    old = memory.store(BOAT)
    secret = "sk-proj-" + "a1B2c3D4e5F6" * 4
    for consent in (Consent.UNASKED, Consent.UNAVAILABLE):
        answer = ask(memory, "memory_update", consent, memory=old.id, text=f"The key of the boat is {secret}.")
        shown = answer.text + str({**answer.details, "confirm": {**answer.details.get("confirm", {}), "arguments": 0}})
        assert secret not in shown
    assert secret not in str(memory.admin.review())
    assert "vault" in answer.text


def test_the_agents_own_note_is_changed_without_a_question(memory: Memory) -> None:
    note = ask(memory, "memory_store", text="The user seems to like boats.").details["id"]
    assert not ask(memory, "memory_update", memory=note, text="The user seems to like ships.").refused
    assert live(memory) == ["The user seems to like ships."]
    assert not memory.admin.review()


def test_no_agent_sets_two_words_of_the_user_against_each_other(memory: Memory) -> None:
    one, other = memory.store(BOAT), memory.store("The dinghy is called Heron.")
    link = {"source": other.id, "target": one.id, "type": "CONTRADICTS"}
    assert ask(memory, "memory_link", **link).refused
    assert not memory.related(one.id)
    assert not ask(memory, "memory_link", Consent.GIVEN, **link).refused


@pytest.mark.parametrize(
    ("name", "values", "quote", "done"),
    [
        ("memory_update", {"text": HERON}, "no, the boat is the Heron", True),
        ("memory_update", {"text": "What is on this page?"}, "What is on this page?", False),
        ("memory_update", {"text": "The boat is called Page."}, "What is on this page?", False),
        ("memory_update", {"text": HERON}, "What is on this page?", False),
        ("memory_update", {"text": "The boat is called Gull, what is on this page."}, "What is on this page?", False),
        ("memory_update", {"importance": 0.0}, "What is on this page about the boat?", False),
        ("memory_update", {"text": "The boat."}, "What is on this page about the boat?", False),
        ("memory_update", {"text": "The boat."}, "Forget the name of the boat!", False),
        ("memory_forget", {}, "Forget the name of the boat!", True),
        ("memory_forget", {}, "Remove the unused import.", False),
        ("memory_forget", {}, "What is on this page about the boat?", False),
    ],
)
def test_a_quote_is_the_users_word_for_what_it_says_and_nothing_else(
    memory: Memory, name: str, values: dict[str, Any], quote: str, done: bool
) -> None:
    old = memory.store(BOAT)
    given = {"memory": old.id, **values}
    call_tool(memory, name, given, TurnContext(), consent=Consent.UNAVAILABLE, user_message=quote)
    assert (live(memory) == [BOAT]) is not done
    assert bool(memory.admin.review()) is not done


def test_a_slot_that_the_user_did_not_name_is_not_on_their_word(memory: Memory) -> None:
    memory.store(BOAT, entity="boat", key="name", value="Albatross")
    quote = "What is on this page?"
    slot = {"entity": "boat", "key": "name", "value": "page"}
    for values in (slot, slot | {"value": "Heron"}, {}):
        given = {"text": "What is on this page", **values}
        done = call_tool(memory, "memory_store", given, TurnContext(), consent=Consent.UNAVAILABLE, user_message=quote)
        assert BOAT in live(memory)
    assert done.details["id"]
    told = {"text": "The user lives in the city of Linz.", "entity": "user", "key": "city", "value": "Linz"}
    quote = "Remember that the user lives in the city of Linz."
    done = call_tool(memory, "memory_store", told, TurnContext(), consent=Consent.UNAVAILABLE, user_message=quote)
    assert done.details["channel"] == Channel.TOOL_ASKED.value


def test_a_search_is_narrowed_and_shows_nothing_that_nobody_approved(memory: Memory) -> None:
    memory.store(BOAT, entity="boat", tags=["sea"], category="entity")
    memory.store("The boat shed is locked by a chain.", entity="shed", tags=["land"], category="fact")
    changed(memory, "memory_update")
    for values in ({"entity": "boat"}, {"tag": "sea"}, {"category": "entity"}):
        found = ask(memory, "memory_recall", query="What is the boat called?", **values).details["memories"]
        assert [each["text"] for each in found] == [BOAT]
    assert ask(memory, "memory_recall", query="boat", entity="shed", tag="sea").text.startswith("Nothing")


def test_what_is_stored_has_the_life_and_the_place_that_was_named(memory: Memory) -> None:
    found = ask(memory, "memory_store", text="The build is slow.", decay_class="short", scope="project").details["id"]
    here = Memory(memory._engine, TurnContext(scopes=("project:heron-1",)))
    fact = here.get(found)
    assert (fact.decay_class, fact.scope, fact.scope_target) == ("short", "project", "heron-1")
    assert not memory.admin.has(found)
    nowhere = call_tool(memory, "memory_store", {"text": "The build is slow.", "scope": "project"}, TurnContext())
    assert nowhere.refused
    assert ask(memory, "memory_store", text="The build is slow.", scope="user:alice").refused


def test_an_agent_in_a_loop_cannot_fill_the_review_without_end(memory: Memory) -> None:
    boat = memory.store(BOAT)
    for number in range(lifecycle.MOST):
        ask(memory, "memory_update", memory=boat.id, text=f"The boat is called Heron {number}.")
    answer = ask(memory, "memory_update", memory=boat.id, text="The boat is called Egret.")
    assert answer.refused
    assert f"{lifecycle.MOST} requests already await" in answer.text
    assert len(memory.admin.review()) == lifecycle.MOST
    again = ask(memory, "memory_update", memory=boat.id, text="The boat is called Heron 3.")
    assert again.details["outcome"] == "waiting"
    memory.admin.reject(again.details["request"])
    assert (
        ask(memory, "memory_update", memory=boat.id, text="The boat is called Egret.").details["outcome"] == "waiting"
    )
