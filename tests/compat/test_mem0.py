"""mem0's own way of working, over a store of perdure."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from perdure import Memory as Library
from perdure.compat.mem0 import Memory
from perdure.errors import InputError, NotFoundError, ScopeError
from tests.kit import for_each

QUICKSTART = """
from perdure.compat.mem0 import Memory

m = Memory()
messages = [
    {"role": "user", "content": "Hi, I'm Alex. I love basketball and gaming."},
    {"role": "assistant", "content": "Hey Alex! I'll remember your interests."},
]
m.add(messages, user_id="alex")
results = m.search("What do you know about me?", filters={"user_id": "alex"})
print(results)
"""


@pytest.fixture
def memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Memory]:
    monkeypatch.setenv("PERDURE_HOME", str(tmp_path / "home"))
    memory = Memory()
    yield memory
    memory.close()


def found(memory: Memory, **whose: str) -> set[str]:
    return {each["memory"] for each in memory.get_all(**whose)["results"]}  # type: ignore[arg-type]


def test_its_quickstart_runs_in_a_program_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PERDURE_HOME", str(tmp_path / "home"))
    done = subprocess.run([sys.executable, "-c", QUICKSTART], capture_output=True, text=True, check=True, timeout=120)
    assert "basketball and gaming" in done.stdout
    assert "'user_id': 'alex'" in done.stdout


def test_what_is_added_is_searched_listed_changed_and_deleted(memory: Memory) -> None:
    [pizza] = memory.add("I love pizza with thin crust.", user_id="alice", metadata={"topic": "food"})["results"]
    assert (pizza["memory"], pizza["event"]) == ("I love pizza with thin crust.", "ADD")
    [hit] = memory.search("What does alice eat?", user_id="alice")["results"]
    assert (hit["id"], hit["user_id"], hit["metadata"]) == (pizza["id"], "alice", {"topic": "food"})
    assert 0 <= hit["score"] <= 1
    assert memory.search("What does alice eat?", user_id="alice", threshold=1.1)["results"] == []
    assert memory.update(pizza["id"], "I love pasta.") == {"message": "Memory updated successfully!"}
    changed = memory.get(pizza["id"])
    assert changed is not None
    assert (changed["memory"], changed["metadata"]) == ("I love pasta.", {"topic": "food"})
    memory.delete(pizza["id"])
    assert memory.get(pizza["id"]) is None
    assert [(each["event"], each["old_memory"], each["new_memory"]) for each in memory.history(pizza["id"])] == [
        ("ADD", None, "I love pizza with thin crust."),
        ("UPDATE", "I love pizza with thin crust.", "I love pasta."),
        ("DELETE", "I love pasta.", None),
    ]
    assert memory.get("00000000-0000-4000-8000-000000000000") is None
    assert memory.get("nope") is None
    assert memory.history("nope") == []
    for name in (pizza["id"], "00000000-0000-4000-8000-000000000000"):
        with pytest.raises(NotFoundError):
            memory.delete(name)


def test_users_agents_and_runs_are_told_apart(memory: Memory) -> None:
    memory.add("I love pizza.", user_id="alice")
    memory.add("I love tea.", user_id="alice", agent_id="cook", run_id="r1")
    memory.add("The oven is hot.", agent_id="cook")
    memory.add("I love coffee.", user_id="bob")
    assert found(memory, user_id="alice") == {"I love pizza.", "I love tea."}
    assert found(memory, user_id="alice", agent_id="cook") == {"I love tea."}
    assert found(memory, user_id="alice", run_id="r2") == set()
    assert found(memory, agent_id="cook") == {"The oven is hot."}
    assert found(memory, user_id="bob") == {"I love coffee."}
    both = {"AND": [{"user_id": "alice"}, {"run_id": "r1"}]}
    assert [each["run_id"] for each in memory.search("tea", filters=both)["results"]] == ["r1"]
    memory.delete_all(user_id="alice", run_id="r1")
    assert found(memory, user_id="alice") == {"I love pizza."}
    memory.reset()
    assert found(memory, user_id="alice") == found(memory, user_id="bob") == set()
    with Library.open(user="alice") as library:
        library.undo()
    assert found(memory, user_id="alice") == {"I love pizza."}


def test_what_is_for_everybody_or_the_owners_is_no_users(memory: Memory) -> None:
    with Library.open() as owner:
        owner.store("Everybody deploys on Tuesdays.", scope="global")
        owner.store("My safe is behind the picture.")
    memory.add("I love tea.", user_id="zed")
    memory.add("The run was red.", run_id="r9")
    assert found(memory, user_id="zed") == {"I love tea."}
    assert found(memory, run_id="r9") == {"The run was red."}
    assert [each["memory"] for each in memory.search("deploys", user_id="zed")["results"]] == ["I love tea."]
    memory.delete_all(user_id="zed")
    memory.delete_all(run_id="r9")
    memory.add("I love tea again.", user_id="zed")
    memory.reset()
    assert found(memory, user_id="zed") == set()
    with pytest.raises(ScopeError, match="owner"):
        memory.get_all(user_id="owner")
    with Library.open() as owner:
        assert {fact.text for fact in owner.get_all()} == {
            "Everybody deploys on Tuesdays.", "My safe is behind the picture.",
        }  # fmt: skip


def test_events_tell_what_became_of_a_text(memory: Memory) -> None:
    def events(said: Any, **more: Any) -> list[tuple[str, str]]:
        return [(each["event"], each["memory"]) for each in memory.add(said, user_id="al", **more)["results"]]

    assert events("My favourite colour is red.") == [("ADD", "My favourite colour is red.")]
    assert events("My favourite colour is red.") == []
    assert events("My favourite colour is blue.") == [("UPDATE", "My favourite colour is blue.")]
    assert events("I love tea.") == [("ADD", "I love tea.")]
    assert [event for event, _ in events("I no longer love tea.")] == ["DELETE"]
    talk = [{"role": "user", "content": text} for text in ("My dog is called Fido.", "Sorry, my dog is called Rex.")]
    assert [text for _, text in events(talk, metadata={"n": 1})] == ["Sorry, my dog is called Rex."]


def test_what_is_said_in_two_runs_belongs_to_both(memory: Memory) -> None:
    for run in ("r1", "r2"):
        memory.add("I love tea.", user_id="al", run_id=run)
    assert found(memory, user_id="al", run_id="r1") == found(memory, user_id="al", run_id="r2") == {"I love tea."}
    assert len(memory.get_all(user_id="al")["results"]) == 1


def test_what_is_added_with_marks_has_one_version(memory: Memory) -> None:
    [tea] = memory.add("I love tea.", user_id="al", agent_id="cook", metadata={"topic": "drinks"})["results"]
    [dog] = memory.add(
        [{"role": "user", "content": "My dog is called Fido."}], user_id="al", run_id="r1", metadata={"n": 1}
    )["results"]
    for each, marks in ((tea, {"topic": "drinks"}), (dog, {"n": 1})):
        assert (memory.get(each["id"]) or {})["metadata"] == marks
        assert len(memory.history(each["id"])) == 1
    with Library.open(user="al") as library:
        assert [len(library.history(each["id"]).versions) for each in (tea, dog)] == [1, 1]
    assert [each["id"] for each in memory.search("What do I love?", user_id="al", filters={"n": 1})["results"]] == [
        dog["id"]
    ]


def test_a_search_by_marks_finds_one_among_many(memory: Memory) -> None:
    for number in range(150):
        memory.add(
            f"We stored crate {number} in the cellar.",
            user_id="al",
            metadata={"n": number},
            agent_id="a" if number else "b",
        )
    crates = memory.search("crate", user_id="al", agent_id="b", limit=5)["results"]
    assert [each["metadata"]["n"] for each in crates] == [0]
    assert len(memory.get_all(user_id="al", agent_id="a", limit=149)["results"]) == 149


def test_a_reset_takes_what_quotes_another_memory(memory: Memory) -> None:
    memory.add("We have a heron at the pond.", user_id="al")
    memory.add("It eats our fish every day. (after: We have a heron at the pond.)", user_id="al")
    memory.reset()
    assert found(memory, user_id="al") == set()


def test_messages_are_taken_as_they_are_without_inference(memory: Memory) -> None:
    talk: list[dict[str, Any]] = [
        {"role": "system", "content": "You are a clock."},
        {"role": "user", "content": [{"type": "text", "text": "Is it late?"}]},
        {"role": "assistant", "content": "It is nine."},
    ]
    assert memory.add(talk, user_id="alice")["results"] == []
    kept = memory.add(talk, user_id="alice", infer=False)["results"]
    assert [each["memory"] for each in kept] == ["Is it late?", "It is nine."]
    [dog] = memory.add({"role": "user", "content": "My dog is called Fido."}, user_id="bob", metadata={"n": 1})[
        "results"
    ]
    assert (memory.get(dog["id"]) or {})["metadata"] == {"n": 1}


@for_each(
    ("given", "error"),
    [
        ({}, InputError), ({"user_id": ""}, ScopeError), ({"user_id": " a"}, ScopeError),
        ({"agent_id": ""}, ScopeError), ({"user_id": "a", "filters": {"n": {"gte": 1}}}, InputError),
        ({"filters": {"OR": [{"user_id": "a"}]}}, InputError), ({"filters": {"user_id": "*"}}, InputError),
        ({"user_id": "a", "limit": 0}, InputError), ({"user_id": "a", "limit": "5"}, InputError),
        ({"user_id": "a", "filters": [1]}, InputError),
        ({"user_id": "a", "filters": {"AND": [{"run_id": "a"}, {"run_id": "b"}]}}, InputError),
    ],
)  # fmt: skip
def test_what_names_nobody_or_is_not_understood_is_refused(memory: Memory, given: dict[str, Any], error: type) -> None:
    for call in (memory.get_all, lambda **given: memory.search("tea", **given)):
        with pytest.raises(error):
            call(**given)


@for_each("said", [5, ["hi"], [("user", "hi")]])
def test_what_is_no_message_is_refused(memory: Memory, said: Any) -> None:
    for infer in (True, False):
        with pytest.raises(InputError):
            memory.add(said, user_id="a", infer=infer)
    with pytest.raises(InputError):
        memory.add("I love tea.", user_id="a", metadata=said)


def test_a_config_is_not_needed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PERDURE_HOME", str(tmp_path / "home"))
    with pytest.warns(UserWarning, match="is ignored"):
        Memory.from_config({"llm": {"provider": "openai"}}).close()
