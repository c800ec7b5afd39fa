"""The JavaScript entry with the real child, in a Node process that plays the host."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
NODE = shutil.which("node")
RECALL_MS = 1_500
CTX = {"agentId": "main", "sessionId": "s1", "sessionKey": "agent:main:s1", "trigger": "user"}

pytestmark = pytest.mark.skipif(NODE is None, reason="there is no node on the PATH")


class Host:
    """The Node process."""

    def __init__(self, home: Path) -> None:
        assert NODE is not None
        here = Path(__file__).parent
        entry = ROOT / "perdure" / "hosts" / "openclaw" / "index.js"
        self.process = subprocess.Popen(
            [NODE, str(here / "openclaw_entry.mjs"), str(entry), sys.executable, str(home), str(RECALL_MS)],
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

    def turn(self, history: list[dict[str, Any]], text: str) -> None:
        """Have a turn; the newest message comes in parts, the older ones as strings, as from OpenClaw."""
        newest = [{"role": "user", "content": [{"type": "text", "text": text}], "timestamp": 1.0 + len(history)}]
        reply = [
            {"role": "assistant", "content": [{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "Ok."}]}
        ]
        self.hook("agent_end", {"success": True, "messages": [*history, *newest, *reply]})
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


def test_only_what_is_new_goes_through_the_pipe_and_all_of_it_after_a_change(host: Host) -> None:
    history: list[dict[str, Any]] = []
    for text in ("My cat is called Miso.", "My dog is called Rex.", "My bird is called Kiwi."):
        host.turn(history, text)
    assert host.do("sent") == [2, 2, 2]
    host.recall_until("What is my bird called?", "Kiwi")
    history[0]["content"] = "A summary of what was said."
    host.turn(history, "My fish is called Finn.")
    assert host.do("sent")[3:] == [8]
    os.kill(host.do("pid"), signal.SIGKILL)
    host.recall_until("What is my fish called?", "Finn")
    host.turn(history, "My horse is called Hugo.")
    assert host.do("sent")[4:] == [10]
    host.recall_until("What is my horse called?", "Hugo")


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
        "before_prompt_build", "agent_end", "session_start", "session_end", "before_compaction", "before_reset",
    }  # fmt: skip
    assert host.do("warnings") == []
    host.recall_until("What is my bicycle called?", "Rocinante")


def test_the_slot_offers_a_flush_plan_and_lines_for_the_prompt(host: Host) -> None:
    plan = host.do("flush", nowMs=1_795_325_515_000)
    assert plan["relativePath"] == "memory/2026-11-22.md"
    assert plan["relativePath"] in plan["prompt"]
    assert "{" not in plan["prompt"]
    assert plan["softThresholdTokens"] == 4_000
    assert "memory_search" in "\n".join(host.do("prompt"))


def test_the_child_ends_with_its_host(host: Host) -> None:
    host.recall("Is anybody there?")
    child = host.do("pid")
    host.process.kill()
    host.process.wait(60)
    deadline = time.monotonic() + 30
    while Path(f"/proc/{child}").exists():
        assert time.monotonic() < deadline
        time.sleep(0.05)
