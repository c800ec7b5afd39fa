"""What the events of command-line agents say, and who says it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perdure.hosts.command.dialects import DIALECTS, EVENTS
from perdure.hosts.command.events import output, read
from perdure.service.client import OPENED
from perdure.speech.typed import typed as said
from tests.kit import for_each

AGENTS = Path(__file__).parent / "data" / "agents"
SESSIONS = {"gemini": "gs1", "cursor": "cs1", "vscode": "vs1"}
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
    assert said(prompt) in (prompt.strip(), "") or "<" in prompt or "[" in prompt


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


def test_a_block_is_printed_as_the_host_takes_it() -> None:
    assert printed("codex", "prompt") == hooked("UserPromptSubmit")
    assert printed("gemini", "prompt") == hooked("BeforeAgent")
    assert printed("vscode", "session-start") == hooked("SessionStart")
    assert printed("cursor", "session-start") == {"additional_context": "block"}


@pytest.mark.parametrize("host", DIALECTS)
def test_nothing_is_printed_at_events_whose_output_no_host_shows(host: str) -> None:
    shown = DIALECTS[host].shown
    assert ("prompt" not in shown) == (host in OPENED)
    assert {name for name in DIALECTS[host].names if printed(host, name)} == set(shown)
    assert output(told(host, shown[0]), "") is None


@pytest.mark.parametrize(("file", "name"), [
    ("gemini-prompt", "prompt"), ("gemini-stop", "stop"), ("gemini-session-start", "session-start"),
    ("gemini-compact", "compact"), ("gemini-session-end", "session-end"), ("cursor-session-start", "session-start"),
    ("cursor-prompt", "prompt"), ("cursor-stop", "stop"), ("cursor-compact", "compact"),
    ("cursor-session-end", "session-end"), ("vscode-session-start", "session-start"), ("vscode-prompt", "prompt"),
    ("vscode-compact", "compact"),
])  # fmt: skip
def test_the_events_of_each_host_are_read_from_its_own_form(file: str, name: str) -> None:
    host = file.partition("-")[0]
    found = read(name, host, fixture(file))
    assert found is not None
    assert found.context.session_id == SESSIONS[host]
    assert (found.context.project or "").startswith("project:repo-")
    assert found.prompt == ("I live in Lisbon." if "prompt" in file or file == "gemini-stop" else "")
    assert found.reply == ("Noted." if name == "stop" else "")
    assert (found.turn == "g1") == (host == "cursor" and name in ("prompt", "stop"))


@for_each("host", ["claude-code", "codex"])
def test_a_tool_that_is_about_to_run_is_read_from_what_its_host_sends(host: str) -> None:
    payload = fixture(f"{host}-pre-tool-use")
    found, odd = (read("tool", host, {**payload, **more}, "/home/me") for more in ({}, {"tool_input": ["ls"]}))
    assert found is not None
    assert odd is not None
    assert (found.given, odd.given) == (payload["tool_input"], {})
    assert (found.folder, found.began) == ("/home/me/repo", "/home/me")
    assert found.turn == payload["tool_use_id"]
    assert (found.prompt, found.reply) == ("", "")
    # What the model sees in any case is no concern here, and to read it would keep the tool waiting.
    assert (found.context.in_context, found.context.in_project) == ((), ())


def test_what_a_hook_put_before_a_prompt_is_not_the_user() -> None:
    found = read("prompt", "gemini", fixture("gemini-prompt-hook-context"))
    assert found is not None
    assert found.prompt == "I live in Lisbon."


def test_what_a_machine_was_answered_is_not_for_memory() -> None:
    found = read("stop", "gemini", {**fixture("gemini-stop"), "prompt": NOTIFICATION})
    assert found is not None
    assert found.reply == ""


@pytest.mark.parametrize("host", ["cursor", "vscode"])
def test_an_event_in_another_form_of_name_is_not_for_memory(host: str) -> None:
    assert read("prompt", "claude-code", fixture(f"{host}-prompt")) is None


def test_events_are_named_as_the_hosts_name_them() -> None:
    for dialect in DIALECTS.values():
        assert set(dialect.names) <= set(EVENTS)
        assert set(dialect.shown) <= set(dialect.names)


@for_each(("way", "trigger"), [
    ("sdk-cli", "headless"), ("sdk-ts", "headless"), ("sdk-py", "headless"), ("mcp", "headless"),
    ("claude-code-github-action", "headless"), ("cli", "user"), ("claude-vscode", "user"), ("claude-desktop", "user"),
    ("local-agent", "user"), ("unheard-of", "user"), ("", "user"),
])  # fmt: skip
def test_who_begins_a_session_of_claude_code_stands_in_its_environment(way: str, trigger: str) -> None:
    found = read("prompt", "claude-code", PROMPT, None, way)
    assert found is not None
    assert found.context.trigger == trigger


@for_each(("source", "trigger"), [
    ("exec", "headless"), ("mcp", "headless"), ("cli", "user"), ("vscode", "user"), ({"custom": "exec"}, "user"),
])  # fmt: skip
def test_who_begins_a_session_of_codex_stands_at_the_head_of_its_record(
    tmp_path: Path, source: Any, trigger: str
) -> None:
    head = {"type": "session_meta", "payload": {"id": "s1", "cwd": "/exec", "source": source}}
    (tmp_path / "rollout.jsonl").write_text(json.dumps(head) + '\n{"payload": {"source": "exec"}}\n')
    assert codex(transcript_path=str(tmp_path / "rollout.jsonl")).context.trigger == trigger


def test_a_session_of_codex_is_a_person_s_unless_its_record_says_otherwise(tmp_path: Path) -> None:
    (tmp_path / "broken.jsonl").write_text("{")
    for path in (str(tmp_path / "absent.jsonl"), str(tmp_path / "broken.jsonl"), str(tmp_path), "a\0b", 7):
        assert codex(transcript_path=path).context.trigger == "user"
    assert codex().context.trigger == "user"
    # What Codex itself is to keep nothing of.
    assert codex(transcript_path=None).context.trigger == "headless"


def codex(**values: Any) -> Any:
    found = read("prompt", "codex", {**PROMPT, **values}, None, "sdk-ts")
    assert found is not None
    return found


def told(host: str, name: str) -> Any:
    dialect = DIALECTS[host]
    payload = {dialect.session[0]: "s1", dialect.event[0]: dialect.names[name], "trigger": "manual"}
    found = read(name, host, payload)
    assert found is not None
    return found


def printed(host: str, name: str) -> Any:
    return output(told(host, name), "block")


def hooked(name: str) -> dict[str, Any]:
    return {"hookSpecificOutput": {"hookEventName": name, "additionalContext": "block"}}


def fixture(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((AGENTS / f"{name}.json").read_text())
    return found
