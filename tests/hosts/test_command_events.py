"""What the events of command-line agents say, and who says it."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perdure.hosts.command.events import NAMES, output, read
from perdure.text.typed import said

NOTIFICATION = (
    "<task-notification>\n<task-id>b1</task-id>\n<status>completed</status>\n"
    "<summary>My name is Task and I live in Oslo</summary>\n</task-notification>"
)
PROMPT = {
    "session_id": "s1",
    "cwd": "/home/me/repo",
    "hook_event_name": "UserPromptSubmit",
    "prompt_id": "p1",
    "prompt": "I live in Lisbon.",
}


def event(**changed: Any) -> Any:
    return read("prompt", "claude-code", {**PROMPT, **changed})


@pytest.mark.parametrize(
    ("prompt", "words"),
    [
        ("I live in Lisbon.", "I live in Lisbon."),
        (NOTIFICATION, ""),
        ("<system-reminder>My name is Nobody.</system-reminder>", ""),
        ("<system-reminder>be nice</system-reminder> I live in Lisbon.", "I live in Lisbon."),
        ("I live in Lisbon. <system-reminder>My name is Nobody.", "I live in Lisbon."),
        ('<cross-session-message from="a">My name is Other.</cross-session-message>', ""),
        ("<scheduled-prompt>\nWake up, my name is Wakey.", ""),
        ('<unheard_of kind="x">My name is Other.</unheard_of>', ""),
        ("<note>My name is Other.</note> I live in Lisbon.", "I live in Lisbon."),
        ("<command-name>/compact</command-name>\n<command-args>keep the cat</command-args>", ""),
        ("/compact keep the cat", ""),
        ("/greet Bob", ""),
        ("/home/me/notes.md is where my notes are", "/home/me/notes.md is where my notes are"),
        ("[Request interrupted by user]", ""),
        ("This session is being continued from a previous conversation that ran out of context.", ""),
        ("<b> is the tag I like best", "<b> is the tag I like best"),
        ("a < b and c > d, I think", "a < b and c > d, I think"),
    ],
)
def test_what_arrives_as_a_prompt_is_not_always_the_user(prompt: str, words: str) -> None:
    assert said(prompt) == words


@given(st.text())
def test_no_prompt_breaks_it(prompt: str) -> None:
    assert said(prompt) in (prompt.strip(), "") or "<" in prompt


def test_an_event_names_its_turn() -> None:
    found = event()
    assert found.prompt == "I live in Lisbon."
    assert (found.context.session_id, found.context.turn_id, found.context.host) == ("s1", "p1", "claude-code")
    assert found.context.keeps_block
    assert found.context.project.startswith("project:repo-")


def test_the_folder_where_a_session_began_is_its_project() -> None:
    gone = read("prompt", "claude-code", {**PROMPT, "cwd": "/home/me/other"}, "/home/me/repo")
    assert gone is not None
    assert gone.context.project == event().context.project


@pytest.mark.parametrize(
    "changed",
    [
        {"agent_id": "a1"},
        {"session_id": ""},
        {"session_id": 7},
        {"hook_event_name": "beforeSubmitPrompt"},
        {"hook_event_name": None},
    ],
)
def test_what_is_no_turn_of_this_host_is_nothing(changed: dict[str, Any]) -> None:
    assert event(**changed) is None


def test_an_unknown_host_is_nothing() -> None:
    assert read("prompt", "cursor", PROMPT) is None
    assert read("dance", "claude-code", PROMPT) is None


def test_a_prompt_of_another_type_is_nobody_s() -> None:
    assert event(prompt=["I live in Lisbon."]).prompt == ""


@pytest.mark.parametrize("name", NAMES)
def test_what_is_printed_is_what_the_hosts_take(name: str) -> None:
    given_event = read(name, "codex", {**PROMPT, "hook_event_name": NAMES[name]})
    assert given_event is not None
    assert output(given_event, "") is None
    assert output(given_event, "block") == {
        "hookSpecificOutput": {"hookEventName": NAMES[name], "additionalContext": "block"}
    }
