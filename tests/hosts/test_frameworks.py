"""What holds in every framework, each with a model that only answers OK.

All of them, in environments of their own: python -m tests.e2e.frameworks --dir DIR
"""

from __future__ import annotations

import ast
import importlib
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from perdure import hosts
from perdure.text.fence import TAG
from tests.hosts.frameworks.played import Played, check_work, log_of, worked
from tests.kit import OpenMemory, kept

FACT = "The staging database is called heron."
QUESTION = "What is the staging database called?"
NEEDS = {
    "openai_agents": "agents", "google_adk": "google.adk", "agno": "agno", "strands": "strands",
    "agent_framework": "agent_framework", "claude_agent_sdk": "claude_agent_sdk",
}  # fmt: skip
Play = Callable[..., Played]


PAGE = (Path(__file__).resolve().parents[2] / "docs" / "frameworks.md").read_text(encoding="utf-8")


@pytest.fixture(params=NEEDS)
def play(request: pytest.FixtureRequest) -> Play:
    pytest.importorskip(NEEDS[request.param], reason=f"the extra `{request.param.replace('_', '-')}` is not installed")
    made: Play = importlib.import_module(f"tests.hosts.frameworks.{request.param}").play
    return made


@pytest.mark.parametrize("sync", [True, False], ids=["sync", "async"])
def test_what_is_said_in_one_conversation_is_known_in_the_next(
    play: Play, open_memory: OpenMemory, home: Path, sync: bool
) -> None:
    memory = open_memory()
    first = play([f"Hi! {FACT} Can you fix the tests?"], memory=memory, sync=sync)
    assert memory.settle()
    assert (first.answers, TAG in first.wires[0]) == (["OK."], False)
    second = play([QUESTION, "Thanks, and what is seven times eight?"], memory=memory, sync=sync)
    assert memory.settle()
    assert FACT in second.wires[0]
    assert TAG not in second.history
    assert kept(home) == [FACT]


@pytest.mark.parametrize("placement", ["head", "tail", "system"])
def test_the_block_is_in_no_history_and_is_never_captured(
    play: Play, open_memory: OpenMemory, home: Path, placement: str
) -> None:
    memory = open_memory(recall_placement=placement)
    memory.store(FACT)
    played = play([QUESTION, f"{QUESTION} I forgot."], memory=memory, sync=True)
    assert memory.settle()
    assert FACT in played.wires[0]
    assert QUESTION in played.wires[0]
    assert TAG not in played.history
    assert kept(home) == [FACT]


def test_users_do_not_see_each_others_memories(play: Play, open_memory: OpenMemory) -> None:
    memory = open_memory()
    play([FACT], memory=memory, sync=True, user="ann")
    assert memory.settle()
    assert FACT not in play([QUESTION], memory=memory, sync=True, user="bob").wires[0]
    assert FACT in play([QUESTION], memory=memory, sync=True, user="ann").wires[0]


def test_a_store_that_cannot_be_opened_stops_no_run(play: Play, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    assert play([QUESTION], home=tmp_path / "file" / "home", sync=True).answers == ["OK."]


@pytest.mark.parametrize("name", ["openai_agents", "google_adk", "strands"])
def test_what_the_agent_did_is_kept_in_the_repository_that_it_works_in(
    open_memory: OpenMemory, tmp_path: Path, name: str
) -> None:
    pytest.importorskip(NEEDS[name], reason=f"the extra `{name.replace('_', '-')}` is not installed")
    work: Callable[..., None] = importlib.import_module(f"tests.hosts.frameworks.{name}").work
    memory, project = worked(open_memory, tmp_path / "work")
    work(memory=memory)
    assert memory.settle()
    assert log_of(memory) == [], "it works in no repository"
    work(memory=memory, folder=tmp_path / "work")
    check_work(memory, project)


@pytest.mark.parametrize("name", ["google_adk", "strands"])
def test_a_framework_s_own_memory_finds_what_was_said(open_memory: OpenMemory, home: Path, name: str) -> None:
    pytest.importorskip(NEEDS[name], reason=f"the extra `{name.replace('_', '-')}` is not installed")
    play: Play = importlib.import_module(f"tests.hosts.frameworks.{name}").by_store
    memory = open_memory()
    assert play([f"Hi! {FACT}", "Thanks."], "ann", memory=memory).answers == ["OK."] * 2
    assert memory.settle()
    again = play([QUESTION], "ann", memory=memory)
    assert FACT in again.wires[0]
    assert FACT not in again.history
    assert FACT not in play([QUESTION], "bob", memory=memory).wires[0]
    assert memory.settle()
    assert kept(home) == [FACT]


def test_the_page_shows_each_framework_as_its_module_does() -> None:
    shown = dict(re.findall(r"^from perdure\.hosts\.(\w+) import (\w+)$", PAGE, re.MULTILINE))
    # What LangGraph has is a store, without turns of its own.
    assert shown.keys() == NEEDS.keys() | {"langgraph"}
    for module, name in shown.items():
        source = (Path(hosts.__file__).parent / f"{module}.py").read_text(encoding="utf-8")
        [made] = [node for node in ast.parse(source).body if isinstance(node, ast.ClassDef) and node.name == name]
        [example] = re.findall(r"Example:\n((?: {8}.*\n)+)", (ast.get_docstring(made, clean=False) or "") + "\n")
        assert all(line.strip() in PAGE.replace("(model=model)", "(model=...)") for line in example.splitlines())
