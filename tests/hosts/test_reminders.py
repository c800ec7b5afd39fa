"""Before a tool runs, its model is told what mended a failure that was met with the very same: once, else nothing."""

from __future__ import annotations

import itertools
import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from bench.coding import claude_lines, codex_lines
from perdure.errors import InputError
from perdure.hooks.types import TurnContext
from perdure.hosts.command import hooks as module
from tests.hosts.test_agent_log import ERROR, ROUNDING, Agent, edited, made, ran
from tests.kit import for_each

AGENTS = Path(__file__).parent / "data" / "agents"
TEST = "pytest tests/test_round.py -q"
FIX = "It then passed after round.py (return quantized + 0"
_calls = itertools.count()


def reminding(folder: Path, host: str = "claude-code", **settings: Any) -> Agent:
    return made(folder, host, **{"agent_log": "remind", **settings})


def told(agent: Agent, session: str, given: Any, **values: Any) -> dict[str, Any] | None:
    """Have a tool about to run, told as the host does; return what the host reads."""
    payload = json.loads((AGENTS / f"{agent.host}-pre-tool-use.json").read_text())
    payload |= {"session_id": session, "cwd": str(agent.folder / "work"), "tool_input": given,
                "tool_use_id": f"call_{next(_calls)}", "transcript_path": "", **values}  # fmt: skip
    return agent.hooks.handle("tool", agent.host, payload, None, agent.way)


def before(agent: Agent, session: str, given: Any, **values: Any) -> str:
    """Return what the model is shown before a tool runs."""
    done = told(agent, session, given, **values)
    return done["hookSpecificOutput"]["additionalContext"] if done else ""


def runs(agent: Agent, session: str, command: str, **values: Any) -> str:
    return before(agent, session, {"command": command, "description": "As said"}, **values)


def edits(agent: Agent, session: str, path: str, **values: Any) -> str:
    """Return what the model is shown before it edits a file of the repository."""
    if agent.host == "codex":
        patch = f"*** Begin Patch\n*** Update File: {path}\n-x\n+y\n*** End Patch"
        return before(agent, session, {"command": patch}, **values)
    whole = path if path.startswith("/") else str(agent.folder / "work" / path)
    return before(agent, session, {"file_path": whole, "old_string": "x", "new_string": "y"}, **values)


@for_each("host", ["claude-code", "codex"])
def test_the_command_that_failed_and_the_file_that_was_changed_bring_up_the_fix(tmp_path: Path, host: str) -> None:
    agent = reminding(tmp_path / host, host)
    agent.works("one", ROUNDING)
    by_command, by_file = runs(agent, "two", TEST), edits(agent, "three", "teller/round.py")
    for shown in (by_command, by_file):
        assert shown.startswith("<memory-context")
        assert f"agent's note] `{TEST}` failed: E {ERROR}" in shown
        assert FIX in shown
    agent.hooks.close()


def test_nothing_but_context_is_said_so_that_the_host_decides_as_it_would(tmp_path: Path) -> None:
    agent = reminding(tmp_path)
    agent.works("one", ROUNDING)
    found = told(agent, "two", {"command": TEST})
    assert found is not None
    assert found.keys() == {"hookSpecificOutput"}
    assert found["hookSpecificOutput"].keys() == {"hookEventName", "additionalContext"}
    assert found["hookSpecificOutput"]["hookEventName"] == "PreToolUse"
    assert told(agent, "two", {"command": "cargo build"}) is None
    agent.hooks.close()


def test_what_only_wraps_a_command_makes_no_other_of_it(tmp_path: Path) -> None:
    agent = reminding(tmp_path)
    agent.works("one", ROUNDING)
    assert FIX in runs(agent, "two", f"cd teller && {TEST} 2>&1 | tail -20")
    agent.hooks.close()


@for_each(
    "given",
    [
        {"command": "pytest -q"},
        {"command": "pytest tests/test_cash.py -q"},
        {"command": "cat teller/round.py"},
        {"file_path": "teller/round.py"},
        {"file_path": "/elsewhere/teller/round.py", "new_string": "y"},
        {"file_path": "other/round.py", "new_string": "y"},
        {"file_path": "teller/cash.py", "content": "y"},
        {"pattern": "round", "path": "teller"},
        {},
        [],
        "pytest",
        None,
        {"command": {"deep": [1]}},
        {"file_path": 7, "edits": "all"},
    ],
)
def test_other_commands_and_files_bring_up_nothing(tmp_path: Path, given: Any) -> None:
    agent = reminding(tmp_path / str(next(_calls)))
    agent.works("one", ROUNDING)
    if isinstance(given, dict) and "teller" in str(given.get("file_path")) and not given["file_path"].startswith("/"):
        given = {**given, "file_path": str(agent.folder / "work" / given["file_path"])}
    assert before(agent, "two", given) == ""
    agent.hooks.close()


def test_a_file_or_command_is_told_of_once_in_a_session(tmp_path: Path) -> None:
    agent = reminding(tmp_path)
    agent.works("one", ROUNDING)
    for session, error, name in (
        ("two", "TypeError: no decimal here", "round"),
        ("three", "KeyError: no cents", "cash"),
    ):
        change = edited(f"/src/teller/teller/{name}.py", "import decimal")
        agent.works(session, [ran(TEST, 1, f"E   {error}"), change, ran(TEST)])
    shown = runs(agent, "four", TEST)
    # The latest two. What is left is not told of the same command later.
    assert ("KeyError" in shown, "TypeError" in shown, "AssertionError" in shown) == (True, True, False)
    assert runs(agent, "four", TEST) == ""
    assert edits(agent, "four", "teller/cash.py") == ""
    assert "AssertionError" in edits(agent, "four", "teller/round.py")
    assert edits(agent, "four", "teller/round.py") == ""
    # Another process knows it, too, and a compaction begins no new session.
    agent.hooks.store().settle(20)
    agent.hooks.close()
    again = reminding(tmp_path)
    again.tell("four", "compact", trigger="auto")
    assert runs(again, "four", TEST) == ""
    assert "KeyError" in runs(again, "five", TEST)
    again.hooks.close()


def test_tools_side_by_side_and_an_event_that_comes_twice_are_told_once(tmp_path: Path) -> None:
    agent = reminding(tmp_path)
    agent.works("one", ROUNDING)
    with ThreadPoolExecutor(4) as pool:
        shown = list(pool.map(lambda number: runs(agent, "two", TEST, tool_use_id=f"side_{number % 2}"), range(8)))
    assert sum(FIX in each for each in shown) == 1
    assert sum(map(bool, shown)) == 1
    agent.hooks.close()


@for_each(
    "events",
    [
        [ran(TEST, 1, f"E   {ERROR}"), edited("/src/teller/teller/round.py", "y")],
        [ran(TEST, 1, f"E   {ERROR}"), edited("/src/teller/teller/round.py", "y"), ran(TEST, 1, f"E   {ERROR}")],
        [
            ran(TEST, 1, f"E   {ERROR}"),
            edited("/src/teller/teller/round.py", "y"),
            ran(TEST, 1, "E   TypeError: no decimal here"),
        ],
        [ran(TEST, 1, f"E   {ERROR}"), ran(TEST)],
        [
            ran(TEST, 1, f"E   {ERROR}"),
            edited("/src/teller/teller/round.py", "y"),
            ran(TEST),
            ran("git checkout -- teller/round.py"),
        ],
    ],
)
def test_what_nothing_mended_is_not_told(tmp_path: Path, events: list[dict[str, Any]]) -> None:
    agent = reminding(tmp_path / str(next(_calls)))
    agent.works("one", events)
    assert runs(agent, "two", TEST) == ""
    assert edits(agent, "two", "teller/round.py") == ""
    agent.hooks.close()


def test_another_form_of_the_command_that_passed_is_what_mended_it(tmp_path: Path) -> None:
    agent = reminding(tmp_path)
    failed = ran("cargo add chrono-tz --offline", 101, "error: the crate `chrono-tz` could not be found in the index")
    agent.works("one", [failed, ran("cargo add chrono-tz@0.9 --features serde")])
    assert runs(agent, "two", "cargo add chrono-tz@0.9 --features serde") == ""
    shown = runs(agent, "two", "cargo add chrono-tz --offline")
    assert "It then passed as `cargo add chrono-tz@0.9 --features serde`" in shown
    agent.hooks.close()


@for_each("host", ["claude-code", "codex"])
def test_an_error_that_the_session_has_just_met_is_told_before_its_next_step(tmp_path: Path, host: str) -> None:
    agent = reminding(tmp_path / host, host)
    agent.works("one", ROUNDING)
    lines = codex_lines if host == "codex" else claude_lines

    def transcript(*events: dict[str, Any]) -> str:
        script = {"project": str(agent.folder / "work"), "branch": "main", "events": events}
        return agent.write("two", [json.dumps(line) for line in lines(script, "two")])

    met = ran("make check", 2, f"E   {ERROR}")
    for path in (transcript(met, ran("make check")), transcript(ran("make check", 2, "error: no rule for it"))):
        assert edits(agent, "two", "teller/cash.py", transcript_path=path) == ""
    shown = edits(agent, "two", "teller/cash.py", transcript_path=transcript(met))
    assert FIX in shown
    assert edits(agent, "two", "teller/tax.py", transcript_path=transcript(met)) == ""
    agent.hooks.close()


def test_it_is_off_unless_it_is_asked_for(tmp_path: Path) -> None:
    agent = made(tmp_path)
    agent.works("one", ROUNDING)
    assert runs(agent, "two", TEST) == ""
    agent.hooks.close()


def test_the_session_itself_sub_agents_and_other_projects_are_told_nothing(tmp_path: Path) -> None:
    agent = reminding(tmp_path)
    agent.works("one", ROUNDING)
    assert runs(agent, "one", TEST) == ""
    assert runs(agent, "two", TEST, agent_id="a1") == ""
    elsewhere = Agent(agent.hooks, tmp_path / "elsewhere")
    assert runs(elsewhere, "two", TEST) == ""
    assert runs(agent, "two", TEST, cwd=str(Path.home())) == ""
    agent.hooks.close()


def test_what_the_conversation_has_seen_is_not_shown_again(tmp_path: Path) -> None:
    agent = reminding(tmp_path)
    agent.works("one", ROUNDING)
    trouble = f"CI says {ERROR} once more"
    assert FIX in agent.asks("two", trouble)
    assert runs(agent, "two", TEST) == ""
    assert FIX in runs(agent, "three", TEST)
    assert FIX not in agent.asks("three", trouble)
    agent.hooks.close()


def test_a_conversation_is_given_so_much_and_no_more(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    agent = reminding(tmp_path)
    agent.works("one", ROUNDING)
    monkeypatch.setattr(module, "SESSION_TOKENS", 0)
    assert runs(agent, "two", TEST) == ""
    agent.hooks.close()


def test_a_reminder_leaves_a_receipt_which_a_purge_empties(tmp_path: Path) -> None:
    agent = reminding(tmp_path)
    agent.works("one", ROUNDING)
    runs(agent, "two", TEST)
    memory = agent.hooks.store()
    assert memory.settle()
    why = memory.why()
    assert why.query == TEST
    assert [(each.verdict, ERROR in each.text) for each in why.considered] == [("injected", True)]
    with pytest.raises(InputError, match="reminder before a tool ran"):
        memory.turns.replay(why.turn)
    [fact] = [each for each in agent.known() if ERROR in each.text]
    memory.admin.purge(fact.id)
    assert memory.why(why.turn).query == ""
    assert runs(agent, "three", TEST) == ""
    agent.hooks.close()


def test_what_was_forgotten_is_not_told(tmp_path: Path) -> None:
    agent = reminding(tmp_path)
    agent.works("one", ROUNDING)
    [fact] = [each for each in agent.known() if ERROR in each.text]
    agent.hooks.store().forget(fact.id)
    assert runs(agent, "two", TEST) == ""
    agent.hooks.close()


def test_a_program_asks_before_its_own_tools(tmp_path: Path) -> None:
    agent = reminding(tmp_path)
    agent.works("one", ROUNDING)
    memory, context = agent.hooks.store(), TurnContext(session_id="mine", project=agent.project)
    found = memory.turns.before_tool({"command": TEST}, context)
    assert found is not None
    assert FIX in found.items[0].text
    assert found.block.count("<memory-context") == 1
    for other in (
        TurnContext(session_id="n"), TurnContext(project=agent.project),
        TurnContext(session_id="g", project=agent.project, chat="group"),
        TurnContext(session_id="t", project=agent.project, trigger="cron"),
        TurnContext(session_id="a", project=agent.project, agent_id=""),
    ):  # fmt: skip
        assert memory.turns.before_tool({"command": TEST}, other) is None
    agent.hooks.close()


def test_a_failure_of_another_host_in_the_same_repository_is_told(tmp_path: Path) -> None:
    agent = reminding(tmp_path)
    agent.works("one", ROUNDING)
    codex = Agent(agent.hooks, tmp_path, "codex")
    assert FIX in edits(codex, "two", "teller/round.py")
    agent.hooks.close()


def test_a_store_that_fails_costs_the_tool_nothing(tmp_path: Path) -> None:
    agent = reminding(tmp_path)
    agent.works("one", ROUNDING)
    agent.hooks.store().close()
    assert runs(agent, "two", TEST) == ""
    agent.hooks.close()
