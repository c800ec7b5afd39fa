"""The JavaScript entry with the real child, in a Node process that plays the host."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from perdure.api.memory import Memory
from perdure.cli.main import cli
from perdure.store.llm import TokenMeter
from perdure.telemetry import VARIABLE

ROOT = Path(__file__).resolve().parents[2]
NODE = shutil.which("node")
RECALL_MS = 1_500
CTX = {"agentId": "main", "sessionId": "s1", "sessionKey": "agent:main:s1", "trigger": "user"}

pytestmark = pytest.mark.skipif(NODE is None, reason="there is no node on the PATH")


class Host:
    """The Node process."""

    def __init__(self, home: Path, python: str = sys.executable) -> None:
        assert NODE is not None
        here = Path(__file__).parent
        entry = ROOT / "perdure" / "hosts" / "openclaw" / "index.js"
        self.process = subprocess.Popen(
            [NODE, str(here / "openclaw_entry.mjs"), str(entry), python, str(home), str(RECALL_MS)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": str(ROOT)},
        )  # fmt: skip

    def do(self, deed: str, **values: Any) -> Any:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps({"deed": deed, **values}) + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def hook(self, hook: str, event: Any, ctx: Any = CTX) -> Any:
        return self.do("hook", hook=hook, event=event, ctx=ctx)

    def turn(self, history: list[dict[str, Any]], text: str, *, success: bool = True) -> None:
        """Have a turn; the newest message comes in parts, the older ones as strings, as from OpenClaw."""
        newest = [{"role": "user", "content": [{"type": "text", "text": text}], "timestamp": 1.0 + len(history)}]
        reply = [
            {"role": "assistant", "content": [{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "Ok."}]}
        ]
        self.hook("agent_end", {"success": success, "messages": [*history, *newest, *reply]})
        history += [{"role": "user", "content": text, "__openclaw": {"senderIsOwner": True}}, *reply]
        history.append({"role": "toolResult", "content": [{"type": "text", "text": "a result"}]})

    def recall(self, prompt: str, session: str = "s2") -> str:
        found = self.hook("before_prompt_build", {"prompt": prompt, "messages": []}, {**CTX, "sessionId": session})
        block: str = (found or {}).get("prependContext", "")
        return block

    def recall_until(self, prompt: str, word: str) -> None:
        deadline = time.monotonic() + 60
        while word not in self.recall(prompt):
            assert time.monotonic() < deadline, self.do("warnings")
            time.sleep(0.05)

    def close(self) -> None:
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe is not None:
                pipe.close()
        self.process.wait(60)


@pytest.fixture
def host(tmp_path: Path) -> Iterator[Host]:
    host = Host(tmp_path / "home")
    host.do("ready")
    yield host
    host.close()


@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="needs /proc")
@pytest.mark.parametrize(("given", "passed"), [(None, "1"), ("0", "0")])
def test_the_child_reports_nothing_unless_somebody_has_decided_on_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, given: str | None, passed: str
) -> None:
    monkeypatch.delenv(VARIABLE)
    if given is not None:
        monkeypatch.setenv(VARIABLE, given)
    host = Host(tmp_path / "home")
    host.do("ready")
    environment = Path(f"/proc/{host.do('pid')}/environ").read_text().split("\0")
    host.close()
    assert f"{VARIABLE}={passed}" in environment


def test_only_what_is_new_goes_through_the_pipe_and_all_of_it_after_a_compaction(host: Host) -> None:
    history: list[dict[str, Any]] = []
    for text in ("My cat is called Miso.", "My dog is called Rex.", "My bird is called Kiwi."):
        host.turn(history, text)
    assert host.do("sent") == [2, 2, 2]
    host.recall_until("What is my bird called?", "Kiwi")
    history[:6] = [{"role": "user", "content": "A summary of what was said."}]
    host.turn(history, "My fish is called Finn.")
    assert host.do("sent")[3:] == [5]
    host.recall_until("What is my fish called?", "Finn")


def test_a_turn_that_the_child_did_not_get_is_handed_over_with_the_next(host: Host) -> None:
    history: list[dict[str, Any]] = []
    host.turn(history, "My cat is called Miso.")
    host.recall_until("What is my cat called?", "Miso")
    os.kill(host.do("pid"), signal.SIGKILL)
    host.turn(history, "My horse is called Hugo.")
    host.recall_until("What is my cat called?", "Miso")
    host.turn(history, "My goat is called Gina.")
    assert host.do("sent")[-1] == 6
    host.recall_until("What is my horse called?", "Hugo")
    host.recall_until("What is my goat called?", "Gina")


def test_a_turn_that_could_not_be_kept_or_failed_comes_again_with_the_next(host: Host, tmp_path: Path) -> None:
    host.recall("Is anybody there?")
    inbox, history = tmp_path / "home" / "inbox", list[dict[str, Any]]()
    inbox.rmdir()
    inbox.write_text("no folder")
    host.turn(history, "My cat is called Miso.")
    assert "could not be kept" in str(host.do("warnings"))
    inbox.unlink()
    inbox.mkdir()
    host.turn(history, "My dog is called Rex.", success=False)
    host.turn(history, "My bird is called Kiwi.")
    assert host.do("sent") == [2, 4, 6]
    for question, name in (("cat", "Miso"), ("dog", "Rex"), ("bird", "Kiwi")):
        host.recall_until(f"What is my {question} called?", name)


def test_a_child_that_hangs_is_replaced_and_costs_a_turn_its_memory_alone(host: Host) -> None:
    host.turn([], "My cat is called Miso.")
    host.recall_until("What is my cat called?", "Miso")
    child = host.do("pid")
    os.kill(child, signal.SIGSTOP)
    assert host.recall("What is my cat called?") == ""
    host.recall_until("What is my cat called?", "Miso")
    assert host.do("pid") != child
    assert any("does not answer" in warning for warning in host.do("warnings"))


def test_a_tool_says_so_when_memory_is_away_and_comes_back(host: Host) -> None:
    host.turn([], "My cat is called Miso.")
    host.recall_until("What is my cat called?", "Miso")
    os.kill(host.do("pid"), signal.SIGKILL)
    query = {"query": "What is my cat called?"}
    deadline = time.monotonic() + 60
    while "Miso" not in (text := host.do("tool", name="memory_recall", params=query, ctx=CTX)["content"][0]["text"]):
        assert "Memory is not available" in text
        assert time.monotonic() < deadline


def test_every_payload_of_the_host_is_taken(host: Host) -> None:
    rows = json.loads((Path(__file__).parent / "data" / "openclaw_payloads.json").read_text())
    taken = {row["hook"] for row in rows if host.hook(row["hook"], row["event"], row["ctx"]) != "not registered"}
    assert taken == {
        "before_model_resolve", "before_prompt_build", "agent_end", "session_start", "session_end", "before_compaction",
        "before_reset",
    }  # fmt: skip
    assert host.do("warnings") == []
    host.recall_until("What is my bicycle called?", "Rocinante")


def test_in_a_group_each_turn_is_of_the_person_that_the_host_named_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Without this the owner is not answered in a group, either.
    monkeypatch.setenv("PERDURE_RECALL_IN_GROUPS", "true")
    host = Host(tmp_path / "home")
    host.do("ready")
    _group_turns(host)
    host.close()


def _group_turns(host: Host) -> None:
    group = {**CTX, "sessionId": "g", "sessionKey": "agent:main:telegram:group:-100"}
    host.turn([], "My cat is called Miso.")
    host.recall_until("What is my cat called?", "Miso")

    def said(text: str, sender: str, **named: Any) -> str:
        # The host makes the tools before it asks for memories, and they alone learn whether the owner writes.
        recall = {"name": "memory_recall", "params": {"query": "What is my cat called?"}}
        answer: str = host.do("tool", **recall, ctx={**group, **named})["content"][0]["text"]
        messages = [{"role": "user", "content": [{"type": "text", "text": text}]}]
        host.hook("agent_end", {"success": True, "messages": messages}, {**group, "senderId": sender})
        return answer

    owner = {"senderIsOwner": True, "requesterSenderId": "111"}
    assert "Miso" in said("My bird is called Kiwi.", "111", **owner)
    assert "Miso" not in said("My dog is called Rex.", "222", senderIsOwner=False, requesterSenderId="222")
    said("My fish is called Finn.", "222", **owner)
    said("My horse is called Hugo.", "222", senderIsOwner=True)
    host.recall_until("What is my bird called?", "Kiwi")
    known = host.recall("What are my dog, my fish and my horse called?")
    assert not [name for name in ("Rex", "Finn", "Hugo") if name in known]


def test_an_owner_who_is_named_while_the_host_runs_is_the_only_one_from_then_on(host: Host) -> None:
    direct = {**CTX, "sessionId": "d", "sessionKey": "agent:main:telegram:direct:222", "senderId": "222"}
    host.turn([], "My cat is called Miso.")
    host.recall_until("What is my cat called?", "Miso")

    def told() -> list[bool]:
        recall = {"name": "memory_recall", "params": {"query": "What is my cat called?"}}
        tool = host.do("tool", **recall, ctx={**direct, "senderIsOwner": False, "requesterSenderId": "222"})
        block = host.hook("before_prompt_build", {"prompt": "What is my cat called?", "messages": []}, direct)
        return ["Miso" in json.dumps(each) for each in (tool, block)]

    assert told() == [True, True]
    # As the first `openclaw pairing approve` does.
    host.do("config", config={"commands": {"ownerAllowFrom": ["telegram:111"]}})
    assert told() == [False, False]


def test_a_compaction_within_a_turn_names_the_session_alone_and_is_kept_all_the_same(host: Host) -> None:
    host.turn([], "My cat is called Miso.")
    dropped = [{"role": "user", "content": "My dog is called Rex."}]
    host.hook("before_compaction", {"messageCount": 1, "messages": dropped}, {"sessionKey": CTX["sessionKey"]})
    host.recall_until("What is my dog called?", "Rex")


def _worked(failed: bool, at: str) -> list[dict[str, Any]]:
    """Return a command and what came of it, as OpenClaw tells them at the end of a turn."""
    output = "E   AssertionError: 3 != 4\n\n(Command exited with code 1)" if failed else "4 passed"
    details = {"status": "completed", "exitCode": int(failed), "durationMs": 40, "aggregated": output, "cwd": "/shop"}
    call = {"type": "toolCall", "id": at, "name": "exec", "arguments": {"command": "make test"}}
    return [
        {"role": "assistant", "content": [{"type": "thinking", "thinking": "hm"}, call], "stopReason": "toolUse"},
        {"role": "toolResult", "toolCallId": at, "toolName": "exec", "content": [{"type": "text", "text": output}],
         "details": details, "isError": False, "timestamp": 1_795_293_410_080},
    ]  # fmt: skip


def test_what_the_model_did_in_a_project_opens_its_next_session_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OWN_CONFIG", json.dumps({"opening_tokens": 800}))
    host = Host(tmp_path / "home")
    host.do("ready")
    here = {**CTX, "workspaceDir": "/shop", "activeProjectKeys": ["github.com/me/shop"]}
    given = {"path": "/shop/src/sum.py", "edits": [{"oldText": "return 3", "newText": "return 4"}]}
    edit = {"type": "toolCall", "id": "e", "name": "edit", "arguments": given}
    turn = [
        {"role": "user", "content": [{"type": "text", "text": "Mend the sum, please."}]}, *_worked(True, "a"),
        {"role": "assistant", "content": [{"type": "text", "text": "The sum is off by one."}, edit]},
        {"role": "toolResult", "toolCallId": "e", "toolName": "edit", "content": [{"type": "text", "text": "done"}]},
        *_worked(False, "b"), {"role": "assistant", "content": [{"type": "text", "text": "Green."}]},
    ]  # fmt: skip

    def opening(session: str, ctx: dict[str, Any]) -> str:
        asked = {"prompt": "What is next?", "messages": []}
        found = host.hook(
            "before_prompt_build", asked, {**ctx, "sessionId": session, "sessionKey": f"agent:main:{session}"}
        )
        shown: str = (found or {}).get("appendSystemContext", "")
        return shown

    # Elsewhere it is nobody's concern what the model does, and none of it leaves the host.
    host.hook("agent_end", {"success": True, "messages": turn}, {**CTX, "sessionId": "s0"})
    host.hook("agent_end", {"success": False, "messages": turn}, {**here, "sessionId": "s1"})
    host.hook("agent_end", {"success": True, "messages": turn}, {**here, "sessionId": "s2"})
    assert host.do("sent") == [3, 8, 8]
    deadline = time.monotonic() + 60
    while "make test" not in (shown := opening(f"t{time.monotonic()}", here)):
        assert time.monotonic() < deadline, host.do("warnings")
        time.sleep(0.05)
    assert "The agent changed src/sum.py." in shown
    assert "Failed, then passed: `make test`." in shown
    assert "make test" not in opening("s4", {**CTX, "activeProjectKeys": []})
    host.close()


def test_more_work_than_fits_into_a_line_costs_no_word_of_the_user(host: Host) -> None:
    here = {**CTX, "activeProjectKeys": ["github.com/me/shop"]}
    much = [part for at in range(60) for part in _worked(False, f"c{at}")]
    for each in much:
        if each["role"] == "toolResult":
            each["content"] = [{"type": "text", "text": "x" * 150_000}]
    said = {"role": "user", "content": [{"type": "text", "text": "My cat is called Miso."}]}
    host.hook("agent_end", {"success": True, "messages": [said, *much]}, here)
    assert host.do("sent") == [1]
    host.recall_until("What is my cat called?", "Miso")


def test_the_slot_offers_a_flush_plan_and_lines_for_the_prompt(host: Host) -> None:
    plan = host.do("flush", nowMs=1_795_325_515_000)
    assert plan["relativePath"] == "memory/2026-11-22.md"
    assert plan["relativePath"] in plan["prompt"]
    assert "{" not in plan["prompt"]
    assert plan["softThresholdTokens"] == 4_000
    assert "memory_search" in "\n".join(host.do("prompt"))


def test_a_small_window_is_flushed_before_the_host_compacts_it(host: Host) -> None:
    # The host compacts at 24,576 of 32,768 tokens.
    plan = host.do("flush", contextWindowTokens=32_768)
    assert (plan["reserveTokensFloor"], plan["softThresholdTokens"]) == (8_192, 4_000)
    plan = host.do("flush", contextWindowTokens=4_000)
    assert 0 < plan["softThresholdTokens"] < 4_000 - plan["reserveTokensFloor"]


def test_the_hosts_own_switch_and_model_of_the_flush_hold(host: Host) -> None:
    def cfg(**flush: Any) -> dict[str, Any]:
        return {"agents": {"defaults": {"compaction": {"memoryFlush": flush}}}}

    assert host.do("flush", cfg=cfg(enabled=False)) is None
    assert host.do("flush", cfg=cfg(model="local/small"))["model"] == "local/small"


def test_the_plugins_own_settings_of_the_flush_hold(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OWN_CONFIG", json.dumps({"flush": {"softTokens": 700, "prompt": "Save to {path}."}}))
    host = Host(tmp_path / "home")
    assert host.do("ready")
    plan = host.do("flush", nowMs=1_795_325_515_000)
    assert (plan["softThresholdTokens"], plan["reserveTokensFloor"]) == (700, 20_000)
    assert plan["prompt"] == "Save to memory/2026-11-22.md."
    host.close()
    monkeypatch.setenv("OWN_CONFIG", json.dumps({"flush": {"enabled": False}}))
    host = Host(tmp_path / "home")
    assert host.do("flush") is None
    host.close()


STALL = "The stall needs two people on Sundays."
AIMED = {"op": "triggers", "target": "m1", "quote": STALL, "triggers": ["who comes along at the weekend"]}
LENT = {"plugins": {"entries": {"perdure": {"llm": {"allowAgentIdOverride": True}}}}}
QUICK = """#!{python} -P
import perdure.engine.engine
from perdure.hosts.openclaw.__main__ import main
perdure.engine.engine.MINUTE = 0.2
main()
"""
"""A child whose librarian looks for something to read more often."""


@pytest.fixture
def reading(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Host]:
    """A host with a librarian, and the right to lend its model."""
    monkeypatch.setenv("OWN_CONFIG", json.dumps({"librarian": True}))
    monkeypatch.setenv("PERDURE_TIMERS", "true")
    program = tmp_path / "python"
    program.write_text(QUICK.format(python=sys.executable))
    program.chmod(0o755)
    host = Host(tmp_path / "home", str(program))
    host.do("config", config=LENT)
    host.do("ready")
    yield host
    host.close()


def _rests(host: Host, said: str = STALL) -> None:
    host.turn([], said)
    host.hook("before_compaction", {"messageCount": 1, "messages": []}, {"sessionKey": CTX["sessionKey"]})


def _until(holds: Callable[[], Any], host: Host) -> Any:
    deadline = time.monotonic() + 60
    while not (found := holds()):
        assert time.monotonic() < deadline, (host.do("warnings"), host.do("completions"))
        time.sleep(0.1)
    return found


def _librarian(home: Path) -> dict[str, Any]:
    with Memory.open(home, guest=True, embedder="none", timers=False, watch=False) as memory:
        return dict(memory.admin.librarian())


def test_a_compaction_has_the_hosts_own_model_read_what_was_said_once(reading: Host, tmp_path: Path) -> None:
    reading.do("answer", answers=[{"operations": [AIMED]}])
    # The host's own flush comes first, which is no turn of anybody's.
    flush = {"role": "user", "content": reading.do("flush")["prompt"]}
    reading.hook("agent_end", {"success": True, "messages": [flush]}, {**CTX, "trigger": "memory"})
    _rests(reading)
    [run] = _until(lambda: _librarian(tmp_path / "home").get("runs"), reading)
    assert (run["turns"], run["did"]) == (1, "triggers 1")
    [asked] = reading.do("completions")
    assert asked["execution"] == {"mode": "isolated-agent-runtime", "timeoutMs": 180_000}
    assert (asked["agentId"], asked["maxTokens"], len(asked["messages"])) == ("main", 4_000, 1)
    assert "tools" not in asked
    assert "operations" in asked["systemPrompt"]
    question = asked["messages"][0]
    assert STALL in question["content"]
    assert _tokens(tmp_path / "home") == 321
    # Should the host hand it over as a turn all the same, nobody said it, and it is not read again.
    reading.hook("agent_end", {"success": True, "messages": [question]}, {**CTX, "sessionId": "s9"})
    _rests(reading, "The stall needs a third person in May.")
    _until(lambda: len(reading.do("completions")) == 2, reading)
    assert "third person" in reading.do("completions")[1]["messages"][0]["content"]
    assert "perdure-librarian" not in reading.recall("Who comes along at the weekend?")


def test_what_the_host_refuses_is_told_with_what_to_do(reading: Host, tmp_path: Path) -> None:
    refusal = {"code": "LLM_COMPLETION_NOT_AUTHORIZED", "message": "the model is not allowlisted for plugin perdure"}
    reading.do("answer", answers=[refusal])
    _rests(reading)
    _until(lambda: _librarian(tmp_path / "home").get("failing"), reading)
    told = CliRunner().invoke(cli, ["librarian", "status", "--home", str(tmp_path / "home")], catch_exceptions=False)
    assert "1 turn waiting; openclaw failed 1 time" in told.output
    assert "LLM_COMPLETION_NOT_AUTHORIZED: the model is not allowlisted" in told.output


def test_a_question_ends_with_the_child_that_asked_it(reading: Host) -> None:
    reading.do("answer", answers=[{"hangs": True}])
    _rests(reading)
    _until(lambda: reading.do("completions"), reading)
    # A turn does not wait for it.
    assert reading.hook("agent_end", {"success": True, "messages": []}) is None
    os.kill(reading.do("pid"), signal.SIGKILL)
    _until(lambda: "aborted" in reading.do("completions"), reading)
    reading.recall_until("How many people does the stall need on Sundays?", "two")


@pytest.mark.parametrize("config", [{}, {"plugins": {"entries": {"perdure": {"llm": {}}}}}])
def test_without_the_right_to_lend_its_model_a_host_has_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, config: dict[str, Any]
) -> None:
    monkeypatch.setenv("OWN_CONFIG", json.dumps({"librarian": True}))
    host = Host(tmp_path / "home")
    host.do("config", config=config)
    host.do("ready")
    _rests(host)
    found = _until(lambda: (told := _librarian(tmp_path / "home"))["without"] and told, host)
    assert (found["without"], found["waiting"], host.do("completions")) == (["openclaw"], 0, [])
    told = CliRunner().invoke(cli, ["librarian", "status", "--home", str(tmp_path / "home")], catch_exceptions=False)
    assert "openclaw: no model to ask; update it, run `perdure openclaw install`, and restart" in told.output
    host.close()


def test_off_the_hosts_model_is_not_asked_and_nothing_waits_for_it(tmp_path: Path) -> None:
    host = Host(tmp_path / "home")
    host.do("config", config=LENT)
    host.do("ready")
    _rests(host)
    host.recall_until("How many people does the stall need on Sundays?", "two")
    with Memory.open(tmp_path / "home", guest=True, embedder="none", timers=False, watch=False) as memory:
        keys = memory._engine.store.database.query(lambda c: [key for (key,) in c.execute("SELECT key FROM meta")])
    assert ([key for key in keys if "librarian" in key], host.do("completions")) == ([], [])
    host.close()


def _tokens(home: Path) -> int:
    with Memory.open(home, guest=True, embedder="none", timers=False, watch=False) as memory:
        engine = memory._engine
        return sum(TokenMeter(engine.store.database, engine.clock, 0).used().values())


def test_the_child_ends_with_its_host(host: Host) -> None:
    host.recall("Is anybody there?")
    child = host.do("pid")
    host.process.kill()
    host.process.wait(60)
    deadline = time.monotonic() + 30
    while Path(f"/proc/{child}").exists():
        assert time.monotonic() < deadline
        time.sleep(0.05)
