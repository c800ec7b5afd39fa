"""A store in the words of the field: added, searched, listed and deleted, for one user of many."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import pytest

from perdure import Memory, MemoryView
from perdure.errors import InputError, NotFoundError, ScopeError
from tests.kit import OpenMemory, for_each

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
