"""What a conversation with an agent of a framework leaves for the contract to look at, and what such an agent does."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from perdure.api.memory import Memory
from perdure.engine.repository import project_of
from perdure.hooks.types import Channel
from perdure.store.fact import Fact
from tests.kit import OpenMemory


@dataclass
class Played:
    """A conversation.

    Attributes:
        wires: what each call of the model was sent, as text.
        answers: what the agent answered to each message.
        history: what the framework has stored of it, as text.
    """

    wires: list[str] = field(default_factory=list)
    answers: list[str] = field(default_factory=list)
    history: str = ""


ASKED = "Mend the sum, please."
WORK: list[tuple[str, dict[str, Any]]] = [
    ("run", {"command": "make test"}), ("write_file", {"path": "sum.py", "content": "return 4"}),
    ("run", {"command": "make test"}),
]  # fmt: skip
"""Tools that the agent calls one after the other, with what it gives them."""


class Tools:
    """The tools of an agent: a command that fails once, and a file that is written."""

    def __init__(self) -> None:
        self.runs = 0

    def run(self, command: str) -> dict[str, Any]:
        """Run a command."""
        self.runs += 1
        failed = self.runs == 1
        return {"stdout": "E   AssertionError: 3 != 4" if failed else "4 passed", "exit_code": int(failed)}

    def write_file(self, path: str, content: str) -> str:
        """Write a file."""
        return "written"


def worked(open_memory: OpenMemory, folder: Path) -> tuple[Memory, str]:
    """Return a memory for an agent that works in a folder, which becomes a repository, and that project's scope."""
    (folder / ".git").mkdir(parents=True)
    project = str(project_of(folder))
    return open_memory(scopes=[project]), project


def check_work(memory: Memory, project: str) -> None:
    """See that what the agent did is kept, as its own note, in its project alone, and nothing as the user's word."""
    assert memory.settle()
    kept = log_of(memory)
    assert {fact.channel for fact in kept} == {Channel.TOOL_UNASKED}
    assert {f"{fact.scope}:{fact.scope_target}" for fact in kept} == {project}
    assert [fact.text for fact in kept if "AssertionError" in fact.text] == [
        "`make test` failed: E AssertionError: 3 != 4. It then passed after sum.py (return 4)"
    ]
    assert [fact.text for fact in memory.admin.list(limit=100) if fact not in kept] == []


def log_of(memory: Memory) -> list[Fact]:
    """Return what is kept of sessions."""
    return [fact for fact in memory.admin.list(limit=100) if fact.extraction_method == "agent_log"]
