"""What was said again and again is proposed for MEMORY.md, and written there only when somebody agrees."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perdure.api.memory import Memory
from perdure.clock import ManualClock
from perdure.errors import InputError, NotFoundError, UnsafePathError
from perdure.files.notes import BEGIN, END, add_line, with_line
from perdure.hooks.types import TurnContext
from tests.kit import OpenMemory

DAY = 86_400.0
TEXT = "I prefer tabs over spaces."


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    folder = tmp_path / "workspace"
    folder.mkdir()
    return folder


@pytest.fixture
def memory(open_memory: OpenMemory, workspace: Path) -> Memory:
    return open_memory(embedder="none", watch=False, workspace=str(workspace))


def say(memory: Memory, text: str, times: int) -> None:
    for turn in range(times):
        memory.turns.after([{"role": "user", "content": text}], True, TurnContext(session_id=f"s{text}{turn}"))
    assert memory.settle()


def test_what_was_said_three_times_is_proposed_and_nothing_is_written(memory: Memory, workspace: Path) -> None:
    say(memory, TEXT, 3)
    say(memory, "I like green tea.", 2)
    (found,) = memory.upkeep.proposals.find()
    assert (found.text, found.state, found.evidence) == (TEXT, "open", (TEXT,))
    assert memory.upkeep.proposals.list() == [found]
    assert list(workspace.iterdir()) == []


def test_accepted_it_stands_in_a_section_of_its_own(memory: Memory, workspace: Path) -> None:
    file = workspace / "MEMORY.md"
    file.write_bytes("# Mine\r\n\r\nKept as it is: é.\r\n".encode())
    before = file.read_bytes()
    say(memory, TEXT, 3)
    (found,) = memory.upkeep.proposals.find()
    assert memory.upkeep.proposals.accept(found.id[:8]).state == "accepted"
    after = file.read_bytes()
    assert after.startswith(before)
    assert f"- {TEXT}\n{END}" in after.decode()
    assert memory.upkeep.proposals.list() == []
    with pytest.raises(InputError, match="already accepted"):
        memory.upkeep.proposals.accept(found.id)


@pytest.mark.parametrize("agree", [True, False])
def test_what_was_answered_is_not_proposed_again(memory: Memory, workspace: Path, agree: bool) -> None:
    say(memory, TEXT, 3)
    (found,) = memory.upkeep.proposals.find()
    (memory.upkeep.proposals.accept if agree else memory.upkeep.proposals.refuse)(found.id)
    say(memory, TEXT, 2)
    assert memory.upkeep.proposals.find() == []
    assert (workspace / "MEMORY.md").exists() == agree
    assert [each.state for each in memory.upkeep.proposals.list(everything=True)] == [
        "accepted" if agree else "refused"
    ]


def test_without_an_answer_it_expires_and_may_come_again(memory: Memory, clock: ManualClock, workspace: Path) -> None:
    say(memory, TEXT, 3)
    (found,) = memory.upkeep.proposals.find()
    clock.advance(31 * DAY)
    assert memory.upkeep.proposals.list() == []
    with pytest.raises(InputError, match="expired"):
        memory.upkeep.proposals.accept(found.id)
    assert [each.text for each in memory.upkeep.proposals.find()] == [TEXT]
    assert list(workspace.iterdir()) == []


def test_what_contradicts_a_proposal_does_not_speak_for_it(memory: Memory) -> None:
    tabs, trains = memory.store(TEXT), memory.store("I prefer trains over planes.")
    memory.link(trains.id, tabs.id, "CONTRADICTS")
    for text in (TEXT, trains.text) * 2:
        memory.store(text)
    first, second = memory.upkeep.proposals.find()
    assert (first.evidence, second.evidence) == ((TEXT,), (trains.text,))
    memory.upkeep.proposals.refuse(first.id)
    assert [each.text for each in memory.upkeep.proposals.list()] == [trains.text]


def test_what_nobody_answered_in_time_goes_with_the_next_prune(memory: Memory, clock: ManualClock) -> None:
    for text in (TEXT, "I prefer green tea over coffee."):
        say(memory, text, 3)
    refused, unanswered = memory.upkeep.proposals.find()
    memory.upkeep.proposals.refuse(refused.id)
    clock.advance(31 * DAY)
    say(memory, "I prefer trains over planes.", 3)
    fresh = memory.upkeep.proposals.find()[-1]
    assert memory.admin.prune(dry_run=True).proposals == (unanswered.id,)
    assert unanswered.id in {each.id for each in memory.upkeep.proposals.list(everything=True)}, (
        "a dry run removes nothing"
    )
    assert "1 proposals dropped" in memory.admin.run_job("prune")
    left = {each.id for each in memory.upkeep.proposals.list(everything=True)}
    assert unanswered.id not in left
    assert {refused.id, fresh.id} <= left, "what was answered is known, so that it is not proposed again"
    assert memory.admin.prune().proposals == ()


def test_a_clock_that_may_be_wrong_drops_no_proposal(memory: Memory, clock: ManualClock) -> None:
    say(memory, TEXT, 3)
    (found,) = memory.upkeep.proposals.find()
    for number in range(20):
        memory.store(f"Berth {number} is of the colour {'abcdefghijklmnopqrst'[number] * 7}.", decay_class="short")
    clock.advance(31 * DAY)
    assert memory.admin.prune().parked is not None
    assert [each.id for each in memory.upkeep.proposals.list(everything=True)] == [found.id]
    assert memory.admin.prune(confirmed=True).proposals == (found.id,)
    assert memory.upkeep.proposals.list(everything=True) == []


def test_a_forgotten_memory_takes_its_proposal_along(memory: Memory) -> None:
    say(memory, TEXT, 3)
    (found,) = memory.upkeep.proposals.find()
    memory.forget(memory.admin.list()[0].id)
    assert memory.upkeep.proposals.list() == []
    with pytest.raises(NotFoundError):
        memory.upkeep.proposals.accept(found.id)


def test_a_purged_memory_leaves_nothing_of_its_proposal(memory: Memory) -> None:
    for _ in range(3):
        fact = memory.store(TEXT)
    assert len(memory.upkeep.proposals.find()) == 1
    assert memory.admin.purge(fact.id).state == "certified"
    assert memory.upkeep.proposals.list(everything=True) == []


def test_without_a_workspace_nothing_is_accepted(tmp_path: Path, clock: ManualClock) -> None:
    with Memory.open(tmp_path / "other", embedder="none", clock=clock, watch=False) as memory:
        say(memory, TEXT, 3)
        (found,) = memory.upkeep.proposals.find()
        with pytest.raises(InputError, match="workspace"):
            memory.upkeep.proposals.accept(found.id)
        assert len(memory.upkeep.proposals.list()) == 1


def test_a_link_is_not_written_through(memory: Memory, workspace: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere.md"
    elsewhere.write_text("not mine")
    (workspace / "MEMORY.md").symlink_to(elsewhere)
    say(memory, TEXT, 3)
    (found,) = memory.upkeep.proposals.find()
    with pytest.raises(UnsafePathError):
        memory.upkeep.proposals.accept(found.id)
    assert elsewhere.read_text() == "not mine"
    assert len(memory.upkeep.proposals.list()) == 1


@pytest.mark.parametrize("content", [f"{BEGIN}\nno end", f"{END}\n{BEGIN}", f"{BEGIN}\n{END}\n{BEGIN}\n{END}"])
def test_a_damaged_section_is_left_alone(workspace: Path, content: str) -> None:
    (workspace / "MEMORY.md").write_text(content)
    with pytest.raises(InputError, match="damaged"):
        add_line(workspace, "MEMORY.md", "new")
    assert (workspace / "MEMORY.md").read_text() == content


@given(st.text(), st.lists(st.text(), max_size=3), st.text())
def test_outside_of_the_section_nothing_ever_changes(before: str, lines: list[str], behind: str) -> None:
    content = with_line(before, "first") + behind
    for line in lines:
        content = with_line(content, line)
        assert with_line(content, line) == content
    assert content.startswith(before)
    assert content.endswith(f"{END}\n{behind}")
    assert content.count(BEGIN) == content.count(END) == 1
