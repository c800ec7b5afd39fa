"""Events of a command-line agent over a real store: what it is shown, and what is kept of what it is told."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from perdure import Memory
from perdure.engine.repository import project_of
from perdure.hosts.command import hooks as module
from perdure.hosts.command.dialects import DIALECTS
from perdure.hosts.command.hooks import CommandHooks
from tests.kit import for_each

FOLDER = "/home/me/repo"
PROJECT = str(project_of(FOLDER))
_turns = itertools.count()


class Agent:
    """A session of a command-line agent."""

    def __init__(self, hooks: CommandHooks, session: str, folder: str = FOLDER, way: str = "cli") -> None:
        self.hooks, self.session, self.folder, self.way = hooks, session, folder, way

    def tell(self, name: str, **values: Any) -> str:
        """Deliver an event; return the block that the model is shown."""
        payload = {
            "session_id": self.session,
            "cwd": self.folder,
            "hook_event_name": DIALECTS["claude-code"].names[name],
            **values,
        }
        done = self.hooks.handle(name, "claude-code", payload, None, self.way)
        return done["hookSpecificOutput"]["additionalContext"] if done else ""

    def turn(self, prompt: str, reply: str = "Fine.") -> str:
        """Go through a turn; return the block that the model is shown."""
        turn = f"p{next(_turns)}"
        shown = self.tell("prompt", prompt=prompt, prompt_id=turn)
        self.tell("stop", last_assistant_message=reply, prompt_id=turn)
        return shown


@pytest.fixture
def hooks(tmp_path: Path) -> Iterator[CommandHooks]:
    made = CommandHooks(tmp_path / "memory")
    made.open()
    made.store().ready()
    yield made
    made.close()


def texts(hooks: CommandHooks) -> list[str]:
    hooks.close()
    with Memory.open(hooks.home, scopes=[PROJECT]) as memory:
        return [fact.text for fact in memory.admin.list()]


def settle(hooks: CommandHooks) -> None:
    hooks.close()
    hooks.open()
    hooks.store().ready()


def test_a_new_session_knows_what_another_was_told(hooks: CommandHooks) -> None:
    Agent(hooks, "s1").turn("My favourite editor is Helix.")
    settle(hooks)
    assert "Helix" in Agent(hooks, "s2").turn("Which editor is my favourite?")


def test_a_secret_that_was_to_be_remembered_is_answered_once(hooks: CommandHooks) -> None:
    Agent(hooks, "s1").turn("Remember that the alarm code is 2580.")
    settle(hooks)
    agent = Agent(hooks, "s2")
    told = agent.turn("How do I sort a list in Python?")
    assert "perdure vault" in told
    assert "2580" not in told
    assert "perdure vault" not in agent.turn("How do I sort it backwards?")


def test_what_was_shown_is_not_shown_again_before_a_compaction(hooks: CommandHooks) -> None:
    Agent(hooks, "s1").turn("My favourite editor is Helix.")
    settle(hooks)
    agent = Agent(hooks, "s2")
    question = "Which editor is my favourite?"
    assert "Helix" in agent.turn(question)
    assert agent.turn(f"{question} Say it again.") == ""
    agent.tell("compact", trigger="manual")
    assert "Helix" in agent.turn(f"{question} Once more.")


def test_gemini_compacts_where_it_says_so_and_drops_its_opening_where_a_session_goes_on(hooks: CommandHooks) -> None:
    hooks.store().store("Always write tests first.")

    def tell(name: str, session: str = "g", **more: str) -> str:
        payload = {"session_id": session, "cwd": FOLDER, "hook_event_name": DIALECTS["gemini"].names[name], **more}
        done = hooks.handle(name, "gemini", payload, None)
        return done["hookSpecificOutput"]["additionalContext"] if done else ""

    assert "tests first" in tell("session-start", source="startup")
    # Before each turn it tells that it looks whether it must compact.
    for number in range(2):
        assert "tests first" not in tell("prompt", prompt=f"Good morning. {number}")
        tell("compact", trigger="auto")
    tell("compact", trigger="manual")
    assert "tests first" in tell("prompt", prompt="Good day.")
    assert "tests first" not in tell("prompt", prompt="Good night.")
    assert "tests first" in tell("session-start", source="resume")


def test_a_conversation_is_given_so_much_and_no_more(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "SESSION_TOKENS", 150)
    hooks = CommandHooks(tmp_path / "memory", opening_tokens=0)
    teller = Agent(hooks, "s1")
    things = ("editor", "colour", "sport", "composer", "cheese", "season")
    for thing in things:
        teller.turn(f"My favourite {thing} is number {thing[:2]}{len(thing)}.")
    settle(hooks)
    agent = Agent(hooks, "s2")
    shown = [agent.turn(f"Which {thing} is my favourite?") for thing in things]
    assert shown[0]
    assert not shown[-1]
    agent.tell("compact", trigger="auto")
    assert agent.turn(f"Which {things[-1]} is my favourite?")
    hooks.close()


def test_one_event_delivered_twice_at_once_is_one(hooks: CommandHooks) -> None:
    Agent(hooks, "s1").turn("My favourite editor is Helix.")
    settle(hooks)
    agent = Agent(hooks, "s2")
    with ThreadPoolExecutor(2) as pool:
        told = [
            pool.submit(agent.tell, "prompt", prompt="Which editor is my favourite?", prompt_id="p") for _ in range(2)
        ]
        assert sorted(bool(each.result()) for each in told) == [False, True]


def test_the_hooks_of_two_hosts_for_one_prompt_count_once(hooks: CommandHooks) -> None:
    said = {"prompt": "My favourite editor is Helix."}
    mine = {"session_id": "s1", "cwd": FOLDER, "hook_event_name": "UserPromptSubmit", **said}
    cursor = {"conversation_id": "s1", "generation_id": "g1", "workspace_roots": [FOLDER], **said}
    hooks.handle("prompt", "claude-code", mine, None)
    hooks.handle("prompt", "cursor", {"hook_event_name": "beforeSubmitPrompt", **cursor}, None)
    hooks.close()
    with Memory.open(hooks.home, scopes=[PROJECT]) as memory:
        [fact] = memory.admin.list()
    assert (fact.text, fact.reinforced_count) == (said["prompt"], 0)


@pytest.mark.parametrize("host", ["cursor", "vscode"])
def test_a_host_that_takes_nothing_with_a_prompt_is_shown_what_stands_at_the_start(
    hooks: CommandHooks, host: str
) -> None:
    with Memory.open(hooks.home, scopes=[PROJECT]) as memory:
        memory.pin(memory.store("My favourite editor is Helix.").id)
        memory.store("I always write tests first.", category="preference")
        memory.store("My parrot is called Otto.")
    dialect = DIALECTS[host]

    def tell(name: str, **values: Any) -> Any:
        payload = {dialect.session[0]: "s1", dialect.event[0]: dialect.names[name], "cwd": FOLDER, **values}
        return hooks.handle(name, host, payload, None)

    begun = str(tell("session-start"))
    assert "Helix" in begun
    assert "tests first" in begun
    assert "Otto" not in begun  # which is of the home, and was told elsewhere
    assert tell("session-start") is None
    assert tell("prompt", prompt="What is my parrot called?") is None


@pytest.mark.parametrize(
    "values",
    [
        {"prompt": "<task-notification><summary>My name is Task.</summary></task-notification>"},
        {"prompt": "My name is Sub.", "agent_id": "a1"},
        {"prompt": "<system-reminder>My name is Reminder.</system-reminder>"},
        {"prompt": "/greet My name is Command."},
    ],
)
def test_what_is_not_the_user_leaves_nothing(hooks: CommandHooks, values: dict[str, Any]) -> None:
    assert Agent(hooks, "s1").tell("prompt", **values) == ""
    assert texts(hooks) == []


def test_what_the_user_says_is_kept_though_the_turn_never_ends(hooks: CommandHooks) -> None:
    Agent(hooks, "s1").tell("prompt", prompt="My favourite editor is Helix.", prompt_id="p")
    assert texts(hooks) == ["My favourite editor is Helix."]


def test_our_own_block_is_not_kept_again(hooks: CommandHooks) -> None:
    Agent(hooks, "s1").turn("My favourite editor is Helix.")
    settle(hooks)
    agent = Agent(hooks, "s2")
    block = agent.turn("Which editor is my favourite?")
    agent.turn(f"{block}\nwhat do you make of it?")
    assert texts(hooks) == ["My favourite editor is Helix."]


def test_the_reply_makes_it_known_that_a_memory_was_used(hooks: CommandHooks) -> None:
    Agent(hooks, "s1").turn("My favourite editor is Helix.")
    settle(hooks)
    Agent(hooks, "s2").turn("Which editor is my favourite?", "Your favourite editor is Helix.")
    hooks.close()
    with Memory.open(hooks.home, scopes=[PROJECT]) as memory:
        [fact] = memory.admin.list()
    assert fact.access_count


def test_a_correction_takes_the_place_of_what_was_said(hooks: CommandHooks) -> None:
    Agent(hooks, "s1").turn("My favourite editor is Helix.")
    settle(hooks)
    Agent(hooks, "s2").turn("My favourite editor is Zed now, not Helix.")
    settle(hooks)
    shown = Agent(hooks, "s3").turn("Which editor is my favourite?")
    assert "Zed" in shown


def test_a_store_that_cannot_be_opened_costs_the_turn_nothing(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no folder")
    hooks = CommandHooks(tmp_path / "file")
    assert Agent(hooks, "s1").turn("My favourite editor is Helix.") == ""
    hooks.close()


def test_a_session_that_goes_on_after_a_restart_is_not_shown_the_same_again(hooks: CommandHooks) -> None:
    Agent(hooks, "s1").turn("My favourite editor is Helix.")
    settle(hooks)
    question = "Which editor is my favourite?"
    assert "Helix" in Agent(hooks, "s2").turn(question)
    again = CommandHooks(hooks.home)
    settle(hooks)
    again.open()
    agent = Agent(again, "s2")
    assert agent.turn(f"{question} Say it again.") == ""
    agent.tell("compact", trigger="auto")
    again.close()
    third = CommandHooks(hooks.home)
    third.open()
    assert "Helix" in Agent(third, "s2").turn(f"{question} Once more.")
    third.close()


def test_a_prompt_that_the_agent_has_scheduled_is_not_the_user_s(hooks: CommandHooks) -> None:
    agent = Agent(hooks, "s1")
    agent.tell("stop", prompt_id="p", session_crons=[{"id": "b", "prompt": "Wake up now, my name is Wakey."}])
    assert agent.tell("prompt", prompt="Wake up now, my name is Wakey.", prompt_id="q") == ""
    assert texts(hooks) == []


def test_what_a_machine_is_answered_is_not_recorded(hooks: CommandHooks) -> None:
    agent = Agent(hooks, "s1")
    agent.turn("My favourite editor is Helix.", "I shall remember Helix.")
    agent.tell("prompt", prompt="<task-notification>done</task-notification>", prompt_id="n")
    agent.tell("stop", last_assistant_message="The zebra task has ended.", prompt_id="n")
    agent.tell("session-end", reason="other")
    hooks.close()
    with Memory.open(hooks.home, scopes=[PROJECT]) as memory:
        assert memory.files.search("Helix").results
        assert not any("zebra" in each.snippet for each in memory.files.search("the zebra task").results)


@for_each("session", ["s1 ", " ", "a\tb", "x" * 500, "s user:eve", "half \ud83d"])
def test_whatever_a_session_is_called_its_prompts_are_kept(tmp_path: Path, session: str) -> None:
    hooks = CommandHooks(tmp_path / str(len(session)) / str(hash(session)), embedder="none")
    Agent(hooks, session).turn("My doctor is called Ruiz \ud83d and I live in Ghent.", reply="Fine \ud83d.")
    assert any("Ghent" in text for text in texts(hooks))


def test_what_a_program_asks_is_recalled_for_and_leaves_nothing(hooks: CommandHooks) -> None:
    Agent(hooks, "s1").turn("My favourite editor is Helix.")
    settle(hooks)
    program = Agent(hooks, "s2", way="sdk-ts")
    assert "Helix" in program.turn(
        "My favourite zebra is Zoe. Which editor is my favourite?", "Zoe the zebra is noted."
    )
    assert not hooks.said("claude-code", "My favourite zebra is Zoe.")
    # A person goes on with the same conversation.
    Agent(hooks, "s2", way="claude-vscode").turn("My favourite cheese is Comté.")
    assert hooks.said("claude-code", "My favourite cheese is Comté.")
    program.turn("Forget my favourite editor.")
    program.tell("session-end", reason="other")
    assert sorted(texts(hooks)) == ["My favourite cheese is Comté.", "My favourite editor is Helix."]
    with Memory.open(hooks.home, scopes=[PROJECT]) as memory:
        assert not any("Zoe" in each.snippet for each in memory.files.search("the zebra Zoe").results)


def test_what_a_program_asks_is_kept_where_the_user_wants_it(tmp_path: Path) -> None:
    hooks = CommandHooks(tmp_path, capture_headless=True)
    Agent(hooks, "s1", way="sdk-ts").turn("My favourite editor is Helix.")
    assert hooks.said("claude-code", "My favourite editor is Helix.")
    assert texts(hooks) == ["My favourite editor is Helix."]


def test_the_hosts_own_memory_is_not_repeated_and_its_other_values_are_named(
    hooks: CommandHooks, tmp_path: Path
) -> None:
    repo = tmp_path / "repo"
    (repo / ".git").mkdir(parents=True)
    (repo / "CLAUDE.md").write_text("# Rules\n- Package manager: npm\n- My boat is called Wanda.\n")
    told = Agent(hooks, "s1", str(repo))
    told.turn("Remember that our package manager is pnpm.")
    told.turn("My boat is called Wanda.")
    settle(hooks)
    agent = Agent(hooks, "s2", str(repo))
    shown = agent.tell("session-start", source="startup") + agent.turn("Which package manager do we use?")
    assert "CLAUDE.md says npm; you said pnpm on" in shown
    assert "Wanda" not in shown
    assert agent.turn("What is my boat called?") == ""
