"""The child of the gateway: whatever comes through the pipe, it answers with protocol and goes on."""

from __future__ import annotations

import json
import os
import random
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from perdure.hosts.openclaw.server import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    INVALID_REQUEST,
    MAX_LINE,
    METHOD_NOT_FOUND,
    PARSE_ERROR,
    lines,
)
from tests.hosts.child import AGENT, Child

BROKEN = 1_000
HUGE = 50_000_000
Made = tuple[bytes, int]


@pytest.fixture
def child(tmp_path: Path) -> Iterator[Child]:
    with Child(tmp_path / "home") as child:
        yield child


def _request(rng: random.Random, **members: Any) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": f"x{rng.random()}", "method": "agent_end", **members}).encode()


MAKERS: tuple[Callable[[random.Random], Made], ...] = (
    lambda rng: (_request(rng)[: rng.randint(1, 40)], PARSE_ERROR),
    lambda rng: (rng.randbytes(rng.randint(1, 300)).replace(b"\n", b"\xff") + b"\xff", PARSE_ERROR),
    lambda rng: (b"[" * rng.randint(2_000, 200_000), PARSE_ERROR),
    lambda rng: (b'{"a":' * 50_000 + b"1" + b"}" * 50_000, PARSE_ERROR),
    lambda rng: (b'{"id":1,"method":"ping","params":{"a":' + rng.choice((b"NaN", b"-Infinity")) + b"}}", PARSE_ERROR),
    lambda rng: (b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"a":1e999}}', PARSE_ERROR),
    lambda rng: (b'{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}', PARSE_ERROR),
    lambda rng: (_request(rng) + _request(rng), PARSE_ERROR),
    lambda rng: (b'{"jsonrpc":"2.0","id":' + b"9" * 5_000 + b',"method":"ping"}', PARSE_ERROR),
    lambda rng: (json.dumps(rng.choice([[], 3, "ping", None, True, [{"jsonrpc": "2.0"}]])).encode(), INVALID_REQUEST),
    lambda rng: (_request(rng, jsonrpc=rng.choice(["1.0", 2, None])), INVALID_REQUEST),
    lambda rng: (_request(rng, method=rng.choice([None, 3, [], ""])), INVALID_REQUEST),
    lambda rng: (_request(rng, id=rng.choice([[], {}, 1.5, True, "i" * 129])), INVALID_REQUEST),
    lambda rng: (_request(rng, more=1), INVALID_REQUEST),
    lambda rng: (_request(rng, method="initialize", params={"protocol": 2}), INVALID_REQUEST),
    lambda rng: (_request(rng, params=rng.choice([[], 3, "x", None])), INVALID_PARAMS),
    lambda rng: (_request(rng, params={"ctx": rng.choice([[], 3, "x"])}), INVALID_PARAMS),
    lambda rng: (_request(rng, method="tool", params={"name": 3}), INVALID_PARAMS),
    lambda rng: (_request(rng, params={"event": 3}), INVALID_PARAMS),
    lambda rng: (_request(rng, method=f"no_{rng.random()}"), METHOD_NOT_FOUND),
)  # fmt: skip
"""Each makes a broken line, with the code that it must be answered with."""


def test_broken_input_is_answered_by_protocol_and_harms_nothing(child: Child) -> None:
    rng = random.Random(20_261_122)
    expected: dict[int, int] = {}
    pings = []
    for number in range(BROKEN):
        line, code = MAKERS[number % len(MAKERS)](rng)
        expected[code] = expected.get(code, 0) + 1
        # In pieces, as a pipe may bring them, and with good requests in between.
        cut = rng.randint(0, len(line))
        child.raw(line[:cut])
        child.raw(line[cut:] + rng.choice((b"\n", b"\r\n", b"\n\n")))
        if number % 10 == 0:
            pings.append(child.ask("ping"))
    child.raw(b"x" * HUGE + b"\n")
    expected[INVALID_REQUEST] += 1
    for ping in pings:
        assert child.answer(ping)["result"] == "pong"
    child.say("My bicycle is called Rocinante.")
    assert "Rocinante" in _ask_until(child, "What is my bicycle called?", sessionId="s2")["prependContext"]
    child.raw(b'{"jsonrpc":"2.0","id":1,"method":"pi')
    assert child.end() == 0, child.errors
    answers = [json.loads(line) for line in child.lines]
    assert all(answer["jsonrpc"] == "2.0" and ("result" in answer) != ("error" in answer) for answer in answers)
    got: dict[int, int] = {}
    for answer in answers:
        if "error" in answer:
            got[answer["error"]["code"]] = got.get(answer["error"]["code"], 0) + 1
            assert len(answer["error"]["message"]) < 500
    assert got == expected
    assert b"Traceback" not in child.errors


def test_a_line_of_the_limit_is_taken_and_one_more_byte_is_not(child: Child) -> None:
    frame = b'{"jsonrpc":"2.0","id":"big","method":"ping","params":{"a":""}}'
    full = frame.replace(b'""', b'"' + b"x" * (MAX_LINE - len(frame)) + b'"')
    child.raw(full + b"\n")
    assert child.answer("big")["result"] == "pong"
    child.raw(full + b" \n")
    assert child.answer(None)["error"]["code"] == INVALID_REQUEST


def test_a_turn_is_kept_and_recalled_in_another_session(child: Child) -> None:
    child.say("My birthday is on 3 March 1990.", sessionId="one")
    child.call("session_end", ctx={**AGENT, "sessionId": "one"})
    assert child.call("foresee", event={"prompt": "When is my birthday?"}, ctx={**AGENT, "sessionId": "two"}) == {}
    found = _ask_until(child, "When is my birthday?", sessionId="two")
    assert "3 March 1990" in found["prependContext"]
    assert found["prependContext"].startswith("<memory-context nonce=")
    other = child.call("before_prompt_build", event={"prompt": "When is my birthday?"}, ctx={**AGENT, "agentId": "b"})
    assert other == {}


@pytest.mark.parametrize("agent", [{"agentId": ""}, {"agentId": None}, {"agentId": 3}, {"agentId": " main"}])
def test_without_a_good_agent_id_nothing_is_kept_or_recalled(child: Child, agent: dict[str, Any]) -> None:
    child.say("My birthday is on 3 March 1990.")
    _ask_until(child, "When is my birthday?")
    assert child.call("before_prompt_build", event={"prompt": "When is my birthday?"}, ctx={**AGENT, **agent}) == {}
    assert "did nothing" in child.tool("memory_store", {**AGENT, **agent}, text="The boat is called Albatross.")


def test_a_history_that_comes_whole_or_in_part_is_kept_once(child: Child) -> None:
    first = [{"role": "user", "content": "My cat is called Miso."}, {"role": "assistant", "content": "Nice."}]
    second = [{"role": "user", "content": "My dog is called Rex."}, {"role": "assistant", "content": "Nice, too."}]
    done = {"event": {"success": True}, "ctx": AGENT}
    for part in (first, second, [*first, *second]):
        assert child.call("agent_end", **done, messages=part) == {"messages": len(part)}
    assert "Miso" in _ask_until(child, "What are my cat and my dog called?")["prependContext"]
    found = child.call("tool", name="memory_recall", arguments={"query": "What is my cat called?"}, ctx=AGENT)
    assert [each["text"] for each in found["details"]["memories"]].count("My cat is called Miso.") == 1


def test_placement_follows_the_setting(tmp_path: Path) -> None:
    with Child(tmp_path / "home", recallPlacement="tail") as child:
        child.say("My birthday is on 3 March 1990.")
        assert set(_ask_until(child, "When is my birthday?", sessionId="two")) == {"appendContext"}


def test_a_tool_call_counts_as_the_users_only_if_the_owner_asks_for_it(child: Child) -> None:
    child.say("My birthday is on 3 March 1990.")
    _ask_until(child, "When is my birthday?")
    found = child.call("tool", name="lookup", arguments={"entity": "user", "key": "birthday"}, ctx=AGENT)
    memory = found["details"]["memories"][0]["id"]
    child.call("before_prompt_build", event={"prompt": "My birthday is not on 3 March 1990 any more."}, ctx=AGENT)
    other = {**AGENT, "senderIsOwner": False, "ownerIsNamed": True}
    assert "did nothing" in child.tool("memory_forget", other, memory=memory)
    assert "was not forgotten" in child.tool("memory_forget", {**AGENT, "sessionId": "other"}, memory=memory)
    # As long as the host has not been told who the owner is, it says of nobody in a direct chat that they are.
    assert "Forgotten" in child.tool("memory_forget", {**AGENT, "senderIsOwner": False}, memory=memory)


GROUP: dict[str, Any] = {
    **AGENT,
    "sessionId": "g",
    "sessionKey": "agent:main:telegram:group:-100",
    "ownerIsNamed": True,
}
OWNER, GUEST = {**GROUP, "senderIsOwner": True}, {**GROUP, "senderIsOwner": False}


def test_in_a_group_the_owner_is_kept_and_nobody_gets_the_owners_memories(child: Child) -> None:
    question = "When is my birthday, and what is my dog called?"
    child.say("My birthday is on 3 March 1990.", **OWNER)
    child.say("My dog is called Rex.", **GUEST)
    assert "3 March" in _ask_until(child, question)["prependContext"]
    assert "Rex" not in child.call("before_prompt_build", event={"prompt": question}, ctx=AGENT)["prependContext"]
    private = {**AGENT, "senderIsOwner": False, "ownerIsNamed": True}
    for ctx in (OWNER, GUEST, GROUP, private):
        assert child.call("before_prompt_build", event={"prompt": question}, ctx=ctx) == {}
    assert "others can read" in child.tool("memory_recall", OWNER, query=question)
    for ctx in (OWNER, GUEST, GROUP, private):
        assert "3 March" not in child.tool("memory_recall", ctx, query=question)
        assert "3 March" not in child.tool("memory_search", ctx, query=question, minScore=0)
        stored = child.tool("memory_store", ctx, text="The boat is called Albatross.")
        assert ("did nothing" in stored) is (ctx is not OWNER)


@pytest.mark.parametrize("in_groups", [False, True])
def test_others_read_no_file_of_the_workspace(tmp_path: Path, in_groups: bool) -> None:
    (tmp_path / "MEMORY.md").write_text("# Notes\n\nThe staging server is called heron.\n")
    with Child(tmp_path / "home", recallInGroups=in_groups) as child:
        for ctx, found in ((OWNER, in_groups), (GUEST, False), (GROUP, False)):
            placed = {**ctx, "workspaceDir": str(tmp_path)}
            child.call("before_prompt_build", event={"prompt": "Hello."}, ctx=placed)
            assert ("heron" in child.tool("memory_search", placed, query="staging server", minScore=0)) is found
            assert ("heron" in child.tool("memory_get", placed, path="MEMORY.md")) is found


def test_in_a_group_the_owner_gets_memories_if_the_setting_says_so(tmp_path: Path) -> None:
    with Child(tmp_path / "home", recallInGroups=True) as child:
        child.say("My birthday is on 3 March 1990.")
        asked = {"event": {"prompt": "When is my birthday?"}}
        assert "3 March" in _ask_until(child, "When is my birthday?", **OWNER)["prependContext"]
        assert "3 March" in child.tool("memory_recall", OWNER, query="When is my birthday?")
        assert child.call("before_prompt_build", **asked, ctx=GUEST) == {}
        assert "3 March" not in child.tool("memory_recall", GUEST, query="When is my birthday?")


def test_a_turn_that_could_not_be_kept_is_asked_for_again(child: Child, tmp_path: Path) -> None:
    child.call("before_prompt_build", event={"prompt": "Is anybody there?"}, ctx=AGENT)
    inbox = tmp_path / "home" / "inbox"
    inbox.rmdir()
    inbox.write_text("no folder")
    turn: dict[str, Any] = {"event": {"success": True}, "ctx": AGENT}
    turn["messages"] = [{"role": "user", "content": "My cat is called Miso."}]
    refused = child.answer(child.ask("agent_end", **turn))["error"]
    assert (refused["code"], "again with the next" in refused["message"]) == (INTERNAL_ERROR, True)
    inbox.unlink()
    inbox.mkdir()
    assert child.call("agent_end", **turn) == {"messages": 1}
    assert "Miso" in _ask_until(child, "What is my cat called?")["prependContext"]


def test_settings_that_are_unknown_leave_the_turn_without_memory_and_say_why(tmp_path: Path) -> None:
    with Child(tmp_path / "home", recallLimits=3) as child:
        assert child.call("before_prompt_build", event={"prompt": "When is my birthday?"}, ctx=AGENT) == {}
        assert "not available" in child.tool("memory_recall", query="birthday")
        assert child.end() == 0
    assert b"did you mean recall_limit?" in child.errors


def test_before_initialize_nothing_is_done(tmp_path: Path) -> None:
    with Child(tmp_path / "home", ready=False) as child:
        assert child.answer(child.ask("agent_end"))["error"]["code"] == INVALID_REQUEST
        wrong = child.answer(child.ask("initialize", protocol=99, config={}))["error"]
        assert wrong["code"] == INVALID_PARAMS
        assert "perdure openclaw install" in wrong["message"]


def test_sigterm_ends_it_and_what_was_said_is_there_afterwards(tmp_path: Path) -> None:
    with Child(tmp_path / "home") as child:
        child.say("My birthday is on 3 March 1990.")
        os.kill(child.process.pid, signal.SIGTERM)
        assert child.process.wait(30) == 0
    with Child(tmp_path / "home") as child:
        assert "3 March" in _ask_until(child, "When is my birthday?", sessionId="two")["prependContext"]


def test_a_signal_that_comes_just_before_a_read_ends_the_reading() -> None:
    silent, open_end = os.pipe()
    stop, woken = os.pipe()
    try:
        os.write(woken, b"\x0f")
        assert list(lines(silent, stop)) == []
    finally:
        for handle in (silent, open_end, stop, woken):
            os.close(handle)


def test_every_hook_of_the_host_is_taken_as_the_host_sends_it(child: Child) -> None:
    rows = json.loads((Path(__file__).parent / "data" / "openclaw_payloads.json").read_text())
    taken = []
    for row in rows:
        event, ctx = row["event"], row["ctx"] or {}
        answer = child.answer(child.ask(row["hook"], event=event, ctx=ctx, messages=event.get("messages")))
        if "result" in answer:
            taken.append(row["hook"])
        else:
            assert answer["error"]["code"] == METHOD_NOT_FOUND, answer
    assert set(taken) == {
        "before_prompt_build", "agent_end", "gateway_start", "session_start", "session_end", "before_compaction",
        "before_reset",
    }  # fmt: skip
    assert "Rocinante" in _ask_until(child, "What is my bicycle called?", sessionId="s3")["prependContext"]


def _ask_until(child: Child, prompt: str, **ctx: Any) -> Any:
    """Ask until what was said has been captured in the background."""
    deadline = time.monotonic() + 60
    while not (found := child.call("before_prompt_build", event={"prompt": prompt}, ctx={**AGENT, **ctx})):
        assert time.monotonic() < deadline, f"nothing comes up for {prompt!r}"
        time.sleep(0.02)
    return found
