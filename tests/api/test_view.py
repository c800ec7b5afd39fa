"""A store in the words of the field: added, searched, listed and deleted, for one user of many."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any, cast

import pytest

from perdure import Memory, MemoryView
from perdure.clock import ManualClock
from perdure.errors import InputError, NotFoundError, ScopeError
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
    for said in (None, 5, {"role": "user", "content": "I own a boat."}, ["I own a boat."]):
        with pytest.raises(InputError):
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
        (lambda memory: memory.store("I own a boat.", tags=5), "5 is not accepted; give a list of texts"),
        (lambda memory: memory.store("I own a boat.", metadata=5), "metadata: 5 is not accepted"),
        (lambda memory: memory.store("I own a boat.", supersedes=5), "id: 5 is not accepted"),
        (lambda memory: memory.store(5), "text: 5 is not accepted; give a text"),
        (lambda memory: memory.update("12345678", importance="high"), "no fact has the id"),
        (lambda memory: memory.recall("boat", as_of="x"), "'x' is not accepted; give a time, as 2026-01-15"),
        (lambda memory: memory.recall("boat", as_of=[5]), r"\[5\] is not accepted; give a time"),
        (lambda memory: memory.recall("boat", tag=5), "5 is not accepted; give a list of texts"),
        (lambda memory: memory.recall(5), "prompt: 5 is not accepted; give a text"),
        (lambda memory: memory.search("boat", category=5), "category: 5 is not accepted; give a text"),
        (lambda memory: memory.search("boat", as_of="x"), "'x' is not accepted; give a time"),
        (lambda memory: memory.search("boat", tag=5), "5 is not accepted; give a list of texts"),
        (lambda memory: memory.search(5), "query: 5 is not accepted; give a text"),
        (lambda memory: memory.search("boat", limit="x"), "limit"),
        (lambda memory: memory.get_all(category=5), "category: 5 is not accepted; give a text"),
        (lambda memory: memory.get_all(tag=5), "5 is not accepted; give a list of texts"),
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
