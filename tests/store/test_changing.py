"""Changing a fact: in place or as a new version, forgetting, pinning, replacing by hand."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from perdure.api.memory import Memory
from perdure.clock import ManualClock
from perdure.errors import InputError, NotFoundError
from perdure.store.fact import Fact
from perdure.store.safe import safe_values
from tests.kit import DAY, START, OpenMemory, recalled, say

TEXT = "The staging database is called heron."
LONG = "The plan of the harbour says: " + "each berth has a number of its own, " * 10


@pytest.mark.parametrize(
    ("values", "kept"),
    [
        ({"category": "decision"}, {}),
        ({"importance": 0.9}, {}),
        ({"confidence": 0.3}, {}),
        ({"tags": ("harbour", "plan")}, {"preserve_tags": True}),
        ({"decay_class": "permanent"}, {"expires_at": None}),
        ({"decay_class": "short"}, {"expires_at": START + 2 * DAY}),
        ({"valid_from": START - DAY}, {}),
        ({"valid_until": START + DAY}, {}),
    ],
)
def test_fields_are_changed_in_place(memory: Memory, values: dict[str, Any], kept: dict[str, Any]) -> None:
    fact = memory.store(TEXT)
    changed = memory.update(fact.id[:8], **values)
    assert changed.id == fact.id
    assert changed == memory.get(fact.id)
    for name, value in (values | kept).items():
        assert getattr(changed, name) == value
    assert (changed.text, changed.superseded_at) == (TEXT, None)


def test_an_updated_category_is_what_words_find(memory: Memory) -> None:
    fact = memory.store(TEXT, category="fact")
    memory.update(fact.id, category="decision")
    [hit] = memory.admin.search("decision")
    assert hit.fact.id == fact.id


@pytest.mark.parametrize(
    "values",
    [
        {"text": "The staging database is called ibis."},
        {"why": "the old one was slow"},
        {"entity": "staging"},
        {"key": "name"},
        {"value": "ibis"},
        {"summary": "Short."},
        {"metadata": {"page": 3}},
    ],
    ids=lambda values: next(iter(values)),
)
def test_new_words_make_a_new_version(memory: Memory, clock: ManualClock, values: dict[str, Any]) -> None:
    old = memory.store(TEXT, importance=0.9, tags=["birds"])
    clock.advance(DAY)
    new = memory.update(old.id, **values)
    before = memory.get(old.id)
    assert new.id != old.id
    assert new == memory.get(new.id)
    for name, value in values.items():
        assert getattr(new, name) == value
    assert (new.importance, new.tags, new.scope, new.channel) == (0.9, ("birds",), old.scope, old.channel)
    assert (before.superseded_by, new.supersedes_id) == (new.id, old.id)
    assert before.superseded_at == before.valid_until == new.valid_from == new.last_confirmed_at == START + DAY
    assert new.created_at == old.created_at == START
    assert before.text == TEXT
    assert memory.admin.live_ids() == {new.id}


def test_a_chain_of_versions_tells_what_was_true_when(memory: Memory, clock: ManualClock) -> None:
    chain = [memory.store("Release 0 is out.")]
    for number in range(1, 4):
        clock.advance(DAY)
        chain.append(memory.update(chain[-1].id, text=f"Release {number} is out."))
    for number, version in enumerate(chain):
        for moment in (START + number * DAY, START + (number + 1) * DAY - 1):
            assert [fact.id for fact in memory.admin.list(as_of=moment)] == [version.id]
    assert [fact.id for fact in memory.admin.list(include_superseded=True)] == [fact.id for fact in chain[::-1]]


def test_only_the_newest_version_can_be_rewritten(memory: Memory) -> None:
    old = memory.store(TEXT)
    memory.update(old.id, text="The staging database is called ibis.")
    with pytest.raises(NotFoundError, match="already superseded"):
        memory.update(old.id, text="The staging database is called egret.")
    assert len(memory.admin.list(include_superseded=True)) == 2


def test_a_new_text_gets_its_own_summary(memory: Memory) -> None:
    old = memory.store(LONG)
    assert memory.update(old.id, text="The plan of the harbour is gone.").summary is None


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"scope": "global"}, "scope cannot be updated"),
        ({"id": "x"}, "id cannot be updated"),
        ({"colour": "red"}, "colour cannot be updated"),
        ({"importance": 1.5}, r"importance is 1\.5"),
        ({"confidence": -0.1}, r"confidence is -0\.1"),
        ({"decay_class": "eternal"}, "'eternal'"),
        ({"text": " "}, "empty"),
        ({"text": "x" * 100_001}, "100001"),
    ],
)
def test_what_cannot_be_changed_is_refused_and_changes_nothing(
    memory: Memory, values: dict[str, Any], message: str
) -> None:
    fact = memory.store(TEXT)
    with pytest.raises(InputError, match=message) as raised:
        memory.update(fact.id, **values)
    assert TEXT not in str(raised.value)
    assert memory.admin.list(include_superseded=True) == [fact]


def test_forgetting_and_bringing_back(memory: Memory, clock: ManualClock) -> None:
    fact = memory.store(TEXT)
    clock.advance(60.0)
    assert memory.forget(fact.id[:8]).forgotten_at == START + 60.0
    assert memory.admin.live_ids() == set()
    with pytest.raises(InputError, match="already forgotten"):
        memory.forget(fact.id)
    assert memory.unforget(fact.id[:8]).forgotten_at is None
    assert recalled(memory, "staging database") == [TEXT]
    with pytest.raises(InputError, match="neither forgotten"):
        memory.unforget(fact.id)


def test_what_was_forgotten_can_be_said_anew(memory: Memory) -> None:
    old = memory.store(TEXT)
    memory.forget(old.id)
    new = memory.store(TEXT)
    assert new.id != old.id
    assert memory.admin.live_ids() == {new.id}


def test_a_pin_is_put_and_taken_away(memory: Memory) -> None:
    fact = memory.store(TEXT)
    assert not fact.pinned
    assert memory.pin(fact.id).pinned
    assert memory.get(fact.id).pinned
    assert not memory.pin(fact.id, False).pinned


def test_one_memory_can_take_the_place_of_another_by_hand(memory: Memory, clock: ManualClock) -> None:
    old = memory.store(TEXT)
    clock.advance(DAY)
    new = memory.store("Staging has moved to a managed service.", supersedes=old.id[:8])
    assert (new.supersedes_id, new.valid_from) == (old.id, START + DAY)
    assert (memory.get(old.id).superseded_by, memory.get(old.id).valid_until) == (new.id, START + DAY)
    assert memory.admin.live_ids() == {new.id}
    with pytest.raises(NotFoundError, match="already superseded"):
        memory.store("Staging has moved once more.", supersedes=old.id)
    assert len(memory.admin.list(include_superseded=True)) == 2


LETTERS = st.characters(exclude_categories=["Cs"], exclude_characters="\0")
WORDS = st.text(LETTERS, max_size=12).filter(lambda text: "=" not in text and ":" not in text)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(allow_nan=False, allow_infinity=False) | WORDS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=3),
    max_leaves=8,
)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    metadata=st.dictionaries(WORDS, JSON, max_size=4).filter(lambda each: safe_values(each) == each)
)  # names no secret
def test_metadata_comes_out_as_it_went_in(memory: Memory, metadata: dict[str, Any]) -> None:
    fact = memory.store(TEXT, metadata=metadata)
    if fact.reinforced_count:
        memory.forget(fact.id)
        fact = memory.store(TEXT, metadata=metadata)
    assert memory.get(fact.id).metadata == metadata
    memory.forget(fact.id)


@pytest.mark.parametrize("value", [object(), {1, 2}, b"bytes"])
def test_metadata_that_json_cannot_hold_is_refused(memory: Memory, value: object) -> None:
    with pytest.raises(InputError, match=f"type {type(value).__name__}"):
        memory.store(TEXT, metadata={"deep": [value]})
    assert memory.admin.list() == []


def by_store(memory: Memory, text: str) -> Fact:
    return memory.store(text)


def by_update(memory: Memory, text: str) -> Fact:
    return memory.update(memory.store(TEXT).id, text=text)


def by_supersession(memory: Memory, text: str) -> Fact:
    return memory.store(text, supersedes=memory.store(TEXT).id)


def by_capture(memory: Memory, text: str) -> Fact:
    say(memory, text)
    [fact] = memory.admin.list()
    return fact


WAYS = (by_store, by_update, by_supersession, by_capture)
Way = Callable[[Memory, str], Fact]


@pytest.mark.parametrize("way", WAYS)
def test_a_text_over_300_characters_gets_a_summary_on_every_way_in(memory: Memory, way: Way) -> None:
    long = ("My harbour plan: " + "each berth has a number of its own, " * 9)[:300].ljust(300, "x") + "."
    fact = way(memory, long)
    assert len(fact.text) == 301
    assert fact.summary == f"{long[:80].rstrip()}…"


@pytest.mark.parametrize("way", WAYS)
def test_a_text_of_300_characters_stands_for_itself(memory: Memory, way: Way) -> None:
    long = ("My harbour plan: " + "each berth has a number of its own, " * 9)[:299].ljust(299, "x") + "."
    fact = way(memory, long)
    assert len(fact.text) == 300
    assert fact.summary is None


def test_what_was_asked_for_weighs_half_and_what_was_said_more(memory: Memory) -> None:
    assert memory.store("The berth numbers are painted in white.").importance == 0.5
    say(memory, "My dog is called Fido.")
    [fact] = memory.lookup("dog", "name")
    assert fact.importance == 0.7


def test_a_block_holds_the_summary_and_get_the_text(open_memory: OpenMemory) -> None:
    memory = open_memory()
    fact = memory.store(LONG)
    assert recalled(memory, "What does the plan of the harbour say?") == [fact.summary]
    assert memory.get(fact.id).text == LONG.strip()


def test_settings_say_which_text_is_long(open_memory: OpenMemory) -> None:
    with open_memory() as memory:
        before = memory.store(LONG)
    memory = open_memory(summary_threshold=150)
    text = ("My shipyard plan: " + "each berth has a number of its own, " * 9)[:151].rstrip(", ")
    fact = memory.store(text.ljust(151, "x"))
    assert fact.summary == f"{text[:80].rstrip()}…"
    assert memory.store(("My jetty plan: " + "each berth " * 20)[:150].strip()).summary is None
    assert recalled(memory, "What does the plan of the shipyard say?") == [fact.summary]
    # What was stored before is shown by the settings of now, without being written anew.
    memory = open_memory(summary_threshold=100_000)
    assert recalled(memory, "What does the plan of the shipyard say?") == [fact.text]
    assert recalled(memory, "What does the plan of the harbour say?") == [LONG.strip()]
    assert memory.get(before.id).summary == before.summary


def test_a_summary_that_was_given_is_not_cut_again(open_memory: OpenMemory) -> None:
    memory = open_memory()
    given = f"The plan of the harbour, which is long, in one line{' of some length' * 4}."
    assert len(given) > 80
    fact = memory.update(memory.store(LONG).id, summary=given)
    assert recalled(memory, "What does the plan of the harbour say?") == [given]
    assert fact.summary == given


def test_a_forgotten_fact_is_not_updated(memory: Memory) -> None:
    fact = memory.store(TEXT)
    memory.forget(fact.id)
    with pytest.raises(InputError, match="restore it first"):
        memory.update(fact.id, text="The staging database is called ibis.")
