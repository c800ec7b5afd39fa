"""A store in the words of the field: added, searched, listed and deleted, for one user of many."""

from __future__ import annotations

import datetime as dt
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest

from perdure import Fact, Memory, MemoryView
from perdure.clock import ManualClock
from perdure.errors import InputError, NotFoundError, PerdureError, ScopeError
from tests.kit import DAY, START, OpenMemory, for_each, recalled

TALK = [
    {"role": "user", "content": "My dog is called Fido. What is the weather like?"},
    {"role": "assistant", "content": "Sunny, as far as I know."},
]


def texts(view: MemoryView) -> set[str]:
    return {fact.text for fact in view.get_all()}


def test_the_words_of_the_field(open_memory: OpenMemory) -> None:
    memory = open_memory(embedder="hash")
    [tea] = memory.add("I drink tea.", tags=["drinks"])
    [dog] = memory.add(TALK)
    assert dog.text == "My dog is called Fido."
    assert [fact.id for fact in memory.get_all()] == [dog.id, tea.id]
    assert [fact.id for fact in memory.get_all(tag="drinks")] == [tea.id]
    # Who asks gets what there is, the nearest first.
    assert [hit.fact.id for hit in memory.search("What is my dog called?")] == [dog.id, tea.id]
    assert [hit.fact.id for hit in memory.search("What is my dog called?", limit=1)] == [dog.id]
    newer = memory.update(tea.id, text="I drink green tea.")
    assert [fact.text for fact in memory.history(newer.id).versions] == ["I drink tea.", "I drink green tea."]
    memory.delete(newer.id)
    assert texts(memory) == {dog.text}


def test_memory_without_arguments_opens_the_store_of_this_machines_user(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PERDURE_HOME", str(tmp_path / "home"))
    with Memory() as memory:
        memory.add("I drink tea.")
    with Memory.open() as memory:
        assert texts(memory) == {"I drink tea."}


def test_each_user_has_memories_of_their_own(open_memory: OpenMemory) -> None:
    memory = open_memory()
    ada, bob = memory.for_user("ada"), memory.for_user("bob")
    [tea] = ada.add("I drink tea.")
    assert ada.add(TALK)
    assert texts(ada) == {"I drink tea.", "My dog is called Fido."}
    assert texts(bob) == texts(memory) == set()
    for call in (bob.get, bob.delete, bob.history, lambda name: bob.update(name, importance=0.9)):
        with pytest.raises(NotFoundError) as foreign:
            call(tea.id)
        with pytest.raises(NotFoundError) as unknown:
            call("0" * 36)
        assert str(foreign.value).replace(tea.id, "0" * 36) == str(unknown.value)
    assert bob.search("What do I drink?") == []
    assert not {"admin", "vault", "close", "undo"} & set(dir(bob))


def test_an_agent_a_project_and_a_session_are_told_apart(open_memory: OpenMemory) -> None:
    memory = open_memory()
    memory.for_user("ada", agent="cook").add("I like it hot.")
    memory.for_user("ada", project="heron").store("We deploy on Tuesdays.", scope="project:heron")
    memory.for_user("ada", session="s1").store("We cook for six.", scope="session:s1")
    assert texts(memory.for_user("ada")) == set()
    assert texts(memory.for_user("ada", agent="cook")) == {"I like it hot."}
    assert texts(memory.for_user("ada", project="heron")) == {"We deploy on Tuesdays."}
    assert texts(memory.for_user("ada", session="s1")) == {"We cook for six."}
    assert texts(memory.for_user("bob", agent="cook", session="s1")) == set()


@for_each(
    "ids",
    [
        {"user": ""}, {"user": None}, {"user": " ada"}, {"user": 5}, {"user": "*"}, {"user": "a\nb"}, {"user": "owner"},
        {"user": "ada", "agent": ""}, {"user": "ada", "project": " "}, {"user": "ada", "session": ""},
    ],
)  # fmt: skip
def test_an_id_that_names_nobody_is_refused(open_memory: OpenMemory, ids: dict[str, str]) -> None:
    with pytest.raises(ScopeError, match=r"id"):
        open_memory().for_user(**ids)


def test_what_cannot_be_added_is_refused_in_words(open_memory: OpenMemory) -> None:
    memory = open_memory()
    for said in (None, 5, {"role": "user", "content": "I own a boat."}):
        with pytest.raises(InputError, match="give a string, or a list of messages"):
            memory.add(cast(Any, said))
    with pytest.raises(InputError, match="tags cannot be given for messages"):
        memory.add(TALK, tags=["pets"])
    limits: tuple[Any, ...] = (0, "5", 2.5)
    for limit in limits:
        for call in (lambda most: memory.search("boat", limit=most), lambda most: memory.get_all(limit=most)):
            with pytest.raises(InputError):
                call(limit)
    with pytest.raises(InputError):
        memory.search(cast(Any, None))
    assert texts(memory) == set()


@for_each(
    ("call", "says"),
    [
        (lambda memory: memory.store("I own a boat.", scope=5), "scope"),
        (lambda memory: memory.store("I own a boat.", channel="foo"), "channel: 'foo' is not accepted; give one of"),
        (lambda memory: memory.store("I own a boat.", category=5), "category: 5 is not accepted; give a text"),
        (lambda memory: memory.store("I own a boat.", importance="high"), "importance is 'high'; it must be"),
        (lambda memory: memory.store("I own a boat.", decay_class=["short"]), r"decay_class: \['short'\] .* permanent"),
        (lambda memory: memory.store("I own a boat.", tags=5), "5 is not accepted; give a list of strings"),
        (lambda memory: memory.store("I own a boat.", metadata=5), "metadata: 5 is not accepted"),
        (lambda memory: memory.store("I own a boat.", supersedes=5), "id: 5 is not accepted"),
        (lambda memory: memory.store(5), "text: 5 is not accepted; give a text"),
        (lambda memory: memory.update("12345678", importance="high"), "no memory has the id"),
        (lambda memory: memory.recall("boat", as_of="x"), "'x' is not accepted; give a time, such as 2026-01-15"),
        (lambda memory: memory.recall("boat", as_of=[5]), r"\[5\] is not accepted; give a time"),
        (lambda memory: memory.recall("boat", tag=5), "5 is not accepted; give a list of strings"),
        (lambda memory: memory.recall(5), "prompt: 5 is not accepted; give a text"),
        (lambda memory: memory.search("boat", category=5), "category: 5 is not accepted; give a text"),
        (lambda memory: memory.search("boat", as_of="x"), "'x' is not accepted; give a time"),
        (lambda memory: memory.search("boat", tag=5), "5 is not accepted; give a list of strings"),
        (lambda memory: memory.search(5), "query: 5 is not accepted; give a text"),
        (lambda memory: memory.search("boat", limit="x"), "limit"),
        (lambda memory: memory.get_all(category=5), "category: 5 is not accepted; give a text"),
        (lambda memory: memory.get_all(tag=5), "5 is not accepted; give a list of strings"),
        (lambda memory: memory.get_all(limit="x"), "limit"),
        (lambda memory: memory.get_all(offset="x"), "offset"),
        (lambda memory: memory.lookup(5), "5 is not accepted; give a text"),
        (lambda memory: memory.lookup("boat", 5), "5 is not accepted; give a text"),
        (lambda memory: memory.lookup("boat", as_of="x"), "'x' is not accepted; give a time"),
        (lambda memory: memory.get(5), "id: 5 is not accepted"),
        (lambda memory: memory.history(5), "id: 5 is not accepted"),
        (lambda memory: memory.forget(5), "id: 5 is not accepted"),
        (lambda memory: memory.delete(5), "id: 5 is not accepted"),
        (lambda memory: memory.admin.list(as_of="x"), "'x' is not accepted; give a time"),
        (lambda memory: memory.admin.replaced("x"), "'x' is not accepted; give a time"),
    ],
)  # fmt: skip
def test_a_value_of_a_wrong_type_is_refused_and_named(open_memory: OpenMemory, call: Any, says: str) -> None:
    memory = open_memory(embedder="none")
    with pytest.raises((InputError, ScopeError, NotFoundError), match=says):
        call(memory)


def test_a_time_may_be_given_in_every_usual_form(open_memory: OpenMemory, clock: ManualClock) -> None:
    memory = open_memory(embedder="none")
    old = memory.store("The boat is called Albatross.", entity="boat")
    clock.advance(3 * DAY)
    memory.update(old.id, text="The boat is called Heron.")
    then = START + DAY
    day = dt.datetime.fromtimestamp(then, dt.UTC)
    for when in (then, int(then), str(then), day, day.date(), day.isoformat(), "2027-01-16", "2027-01-16T08:00:00Z"):
        assert [fact.id for fact in memory.lookup("boat", as_of=when)] == [old.id], when
        assert [hit.fact.id for hit in memory.search("boat", as_of=when)] == [old.id], when
        assert recalled(memory, "What is the boat called?", as_of=when) == [old.text], when


BOAT = "I own a boat called Heron."
IMAGE = {"type": "image_url", "image_url": {"url": "https://example.org/a.png"}}


class Plain:
    """What frameworks make of a message: an object that tells what it holds."""

    def __init__(self, **held: Any) -> None:
        self.held = held

    def model_dump(self) -> dict[str, Any]:
        return self.held


@for_each(
    "said",
    [
        {"role": "user", "content": BOAT}, {"role": "human", "content": (BOAT,)},
        {"role": "user", "content": [{"type": "text", "text": BOAT}, IMAGE]},
        {"role": "user", "content": [{"type": "input_text", "text": BOAT}]},
        {"role": "user", "parts": [{"text": BOAT}, {"inline_data": {"mime_type": "image/png"}}]},
        {"type": "human", "content": BOAT}, Plain(type="human", content=BOAT, additional_kwargs={}),
        {"role": "user", "content": [Plain(type="text", text=BOAT)]},
    ],
)  # fmt: skip
def test_messages_of_every_framework_are_understood(open_memory: OpenMemory, home: Path, said: Any) -> None:
    others: list[Any] = [
        {"role": "system", "content": "You like tea."}, {"role": "developer", "content": "You like milk."},
        {"role": "assistant", "content": None, "tool_calls": [{"id": "1", "function": {"name": "f"}}]},
        {"role": "tool", "tool_call_id": "1", "content": "My name is Tool."},
        {"role": "assistant", "content": [{"type": "tool_use", "id": "2", "name": "f", "input": {}}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "2", "content": "My name is Result."}]},
        {"type": "function_call", "name": "f", "arguments": "{}"}, {"type": "function_call_output", "output": "x"},
        {"role": "model", "parts": [{"function_call": {"name": "f"}}]}, Plain(type="ai", content=""),
    ]  # fmt: skip
    with open_memory(home) as memory:
        ada = memory.for_user(f"ada{id(said)}")
        assert [fact.text for fact in ada.add([*others, said])] == [BOAT]


@for_each(
    ("said", "names"),
    [
        ([{"role": "alien"}], "message 1 has the role 'alien'; use one of user"),
        ([{"role": "user", "content": BOAT}, {"role": None, "content": "x"}], "message 2 has the role None"),
        ([{"content": BOAT}], "message 1 has the role None"), ([BOAT], "message 1 is of type str"),
        ([None], "type NoneType"), ([{"role": ["user"], "content": "x"}], "role"),
        ([{"role": "user"}], "content of type NoneType"), ([{"role": "user", "content": 5}], "content of type int"),
        ([{"role": "user", "content": [5]}], "content of type list"),
        ([{"role": "user", "content": {"text": BOAT}}], "content of type dict"),
    ],
)  # fmt: skip
def test_messages_that_are_not_understood_are_refused_by_name(open_memory: OpenMemory, said: Any, names: str) -> None:
    memory = open_memory()
    with pytest.raises(InputError, match=re.escape(names)):
        memory.add(said)
    assert texts(memory) == set()
    memory.close()


def test_what_is_added_has_its_metadata_from_the_beginning(open_memory: OpenMemory) -> None:
    memory = open_memory()
    secret = "ghp_" + "aB3dE5gH7jK9mN1pQ3sT5vW7yZ9bC1dE3fG5"
    [tea] = memory.add("I drink tea.", metadata={"topic": "drinks", "n": 1})
    [dog] = memory.add(TALK, metadata={"topic": "pets", "from": ["chat", "phone"], "token": secret})
    [cat] = memory.add([{"role": "user", "content": "My cat is called Tom."}])
    assert [fact.metadata for fact in memory.history(dog.id).versions] == [
        {"topic": "pets", "from": ["chat", "phone"], "token": "[redacted token]"}
    ]
    for wanted, found in (
        ({"topic": "pets"}, {dog.id}), ({"from": "phone"}, {dog.id}), ({"n": 1}, {tea.id}), ({"n": 2}, set()),
        ({"topic": "drinks", "n": 1}, {tea.id}), ({"topic": "drinks", "from": "phone"}, set()),
        ({}, {tea.id, dog.id, cat.id}),
    ):  # fmt: skip
        assert {fact.id for fact in memory.get_all(metadata=cast(Any, wanted))} == found
        assert {hit.id for hit in memory.search("What is called?", metadata=cast(Any, wanted))} == found
    wrong: list[Any] = [5, [1], {"n": [1]}, {"n": {}}]
    for metadata in wrong:
        for call in (memory.get_all, lambda **asked: memory.search("tea", **asked)):
            with pytest.raises(InputError, match="metadata"):
                call(metadata=metadata)
    wrong = [5, [1], {"n": object()}, {"n": float("inf")}]
    for metadata in wrong:
        for said in (TALK, "I own a boat."):
            with pytest.raises(InputError, match="metadata"):
                memory.add(said, metadata=metadata)
    assert len(texts(memory)) == 3


def test_a_scope_leaves_out_what_is_for_everybody(open_memory: OpenMemory) -> None:
    memory = open_memory()
    ada = memory.for_user("ada")
    ada.store("The office is closed on Fridays.", scope="global")
    ada.store("I drink tea.")
    assert texts(memory.for_user("bob")) == {"The office is closed on Fridays."}
    assert len(texts(ada)) == 2
    assert [fact.text for fact in ada.get_all(scope="user:ada")] == ["I drink tea."]
    assert [hit.fact.text for hit in ada.search("office", scope="user:ada")] == ["I drink tea."]
    assert ada.get_all(scope="user:bob") == []
    with pytest.raises(ScopeError):
        ada.get_all(scope="")


def test_what_was_found_stands_for_its_memory(open_memory: OpenMemory) -> None:
    memory = open_memory(embedder="hash")
    memory.store("The staging database is called heron.")
    [hit] = memory.search("heron")
    recall = memory.recall("What is the staging database called?")
    assert recall is not None
    for found in (hit, recall.items[0], hit.fact, hit.id[:8]):
        assert memory.get(found).id == hit.id
    assert memory.forget(hit).id == hit.id
    assert texts(memory) == set()


@for_each(
    ("call", "names"),
    [
        (lambda memory, fact: memory.store(None), "text: None is not accepted"),
        (lambda memory, fact: memory.store(["I own a boat."]), "text: ['I own a boat.'] is not accepted"),
        (lambda memory, fact: memory.store("I sail.", scope=""), "scope kind ''"),
        (lambda memory, fact: memory.store("I sail.", metadata={"n": float("nan")}), "nan"),
        (lambda memory, fact: memory.update(fact, category=None), "category: None is not accepted"),
        (lambda memory, fact: memory.update(fact, metadata=None), "metadata: None is not accepted"),
        (lambda memory, fact: memory.update(fact, valid_from="today"), "valid_from: 'today' is not accepted"),
        (lambda memory, fact: memory.forget([fact]), "is not accepted; give a memory, or its id"),
        (lambda memory, fact: memory.undo(5), "5 is not accepted"),
        (lambda memory, fact: memory.undo(""), "no change"),
        (lambda memory, fact: memory.related(fact, depth="far"), "depth is far"),
        (lambda memory, fact: memory.why(5), "5 is not accepted"),
    ],
)  # fmt: skip
def test_a_value_of_another_kind_is_refused_by_name(
    open_memory: OpenMemory, call: Callable[..., Any], names: str
) -> None:
    with open_memory(embedder="hash") as memory:
        fact = memory.store("I own a boat.")
        with pytest.raises(PerdureError, match=re.escape(names)):
            call(memory, fact)
        assert texts(memory) == {"I own a boat."}


def test_people_see_times_as_texts_and_programs_as_numbers(open_memory: OpenMemory) -> None:
    memory = open_memory(embedder="hash")
    tea = memory.store("I drink tea.", metadata={"at": START, "n": [1.5]}, decay_class="short")
    [hit] = memory.search("tea")
    assert (tea.created_at, tea.created) == (START, dt.datetime(2027, 1, 15, 8, tzinfo=dt.UTC))
    newer = memory.update(tea, text="I drink green tea.")
    history = memory.history(newer)
    told = json.loads(json.dumps([hit.to_dict(), history.to_dict(), newer.to_dict()]))
    assert told[0]["fact"]["created_at"] == "2027-01-15T08:00:00+00:00"
    assert told[0]["fact"]["metadata"] == {"at": START, "n": [1.5]}
    assert told[0]["fact"]["expires_at"] > told[0]["fact"]["created_at"]
    assert (told[0]["score"], told[0]["fact"]["superseded_at"]) == (hit.score, None)
    assert [each["superseded_at"] is None for each in told[1]["versions"]] == [False, True]
    assert {each["at"] for each in told[1]["changes"]} == {"2027-01-15T08:00:00+00:00"}
    assert (told[2]["outcome"], told[2]["gone"][0]["text"]) == ("replaced", "I drink tea.")
    for shown in map(repr, (tea, hit, history, history.changes[0])):
        assert "created_at='2027-01-15T08:00:00+00:00'" in shown
        assert not {"forgotten_at", "pinned", str(START)[:6]} & set(re.findall(r"\w+", shown.partition("metadata")[0]))
    # What no calendar has stays a number.
    assert Fact("x", valid_until=1e18).to_dict()["valid_until"] == 1e18


def test_a_view_explains_its_own_turns(open_memory: OpenMemory) -> None:
    memory = open_memory()
    ada, bob = memory.for_user("ada"), memory.for_user("bob")
    [heron] = ada.add("The staging database is called heron.")
    recall = ada.recall("What is the staging database called?")
    assert recall is not None
    assert [each.id for each in ada.why().considered] == [heron.id] == [item.id for item in recall.items]
    assert ada.why(recall.receipt_id).turn == recall.receipt_id
    assert "it did come up" in ada.why_not(heron.id)
    for other in (bob, memory):
        with pytest.raises(NotFoundError):
            other.why(recall.receipt_id)
