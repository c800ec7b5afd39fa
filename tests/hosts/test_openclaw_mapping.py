"""OpenClaw's payloads as perdure's values: whatever is missing or malformed gives less, never more."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from perdure.engine.audiences import audience_of
from perdure.hosts.openclaw.mapping import (
    data_home,
    messages_of,
    owner_asks,
    prompt_of,
    state_folder,
    turn_context,
    work_of,
)

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)
NAMES = st.sampled_from(
    ["agentId", "sessionId", "sessionKey", "runId", "trigger", "workspaceDir", "activeProjectKeys", "inputProvenance",
     "senderIsOwner", "ownerIsNamed"]
)  # fmt: skip
GROUP = "agent:main:telegram:group:-100"
DIRECT = "agent:main:main"


@settings(deadline=None)
@given(st.dictionaries(NAMES, JSON))
def test_any_context_is_read_and_no_agent_means_no_scope_of_its_own(ctx: dict[str, Any]) -> None:
    context = turn_context(ctx)
    key = str(ctx.get("sessionKey") if isinstance(ctx.get("sessionKey"), str) else "").split(":")
    of_key = key[1] if key[0] == "agent" and len(key) > 2 else ""
    agent = ctx.get("agentId", of_key)
    home = audience_of(context).home
    assert context.agent_id == (agent if isinstance(agent, str) else "")
    assert home is None or (home.kind == "agent" and bool(agent))


@settings(deadline=None)
@given(JSON, JSON, st.dictionaries(NAMES, JSON))
def test_any_event_is_read(messages: Any, prompt: Any, ctx: dict[str, Any]) -> None:
    assert isinstance(prompt_of({"prompt": prompt, "currentUserMessage": messages}), str)
    assert all(message["role"] in ("user", "assistant") for message in messages_of(messages, ctx))
    assert len(work_of(messages, ctx)) <= len(messages if isinstance(messages, list) else ())
    assert owner_asks(ctx) in (True, False)


def test_a_malformed_project_does_not_close_the_others() -> None:
    context = turn_context({"agentId": "main", "activeProjectKeys": ["github.com/a/b", "", " x", 3, "c"]})
    assert context.scopes == ("project:github.com/a/b", "project:3", "project:c")
    assert audience_of(context).home is not None


@pytest.mark.parametrize(
    ("ctx", "trigger"),
    [
        ({}, "user"),
        ({"trigger": "user"}, "user"),
        ({"trigger": "heartbeat"}, "heartbeat"),
        ({"trigger": "user", "inputProvenance": {"kind": "external_user"}}, "user"),
        ({"trigger": "user", "inputProvenance": {"kind": "inter_session"}}, "system"),
        ({"inputProvenance": {"kind": "internal_system"}}, "system"),
    ],
)
def test_only_what_a_person_wrote_is_a_turn_of_the_user(ctx: dict[str, Any], trigger: str) -> None:
    assert turn_context(ctx).trigger == trigger


@pytest.mark.parametrize(
    ("key", "chat"),
    [
        ("agent:main:main", "direct"),
        ("agent:main:telegram:group:-100", "group"),
        ("agent:main:discord:channel:7", "channel"),
        ("agent:main:telegram:work:group:-100", "group"),
        ("agent:main:slack:channel:c1:thread:5", "channel"),
        ("agent:main:telegram:direct:7:thread:5", "direct"),
        ("agent:main:main:thread:5", "direct"),
        ("agent:main:whatsapp:12345@g.us", "group"),
        ("agent:main:discord:guild-1:channel-2", "group"),
        ("agent:group:main", "direct"),
        ("", "direct"),
    ],
)
def test_a_group_is_known_by_the_key_of_its_session(key: str, chat: str) -> None:
    assert turn_context({"sessionKey": key}).chat == chat


@pytest.mark.parametrize(
    ("key", "mark", "named", "owner"),
    [
        (GROUP, True, True, True),
        (GROUP, False, True, False),
        (GROUP, None, True, False),
        (GROUP, None, False, False),
        (DIRECT, True, True, True),
        (DIRECT, False, True, False),
        (DIRECT, None, True, True),
        (DIRECT, False, False, True),
    ],
)
def test_in_a_group_the_owner_is_proven_and_in_a_direct_chat_nobody_else(
    key: str, mark: bool | None, named: bool, owner: bool
) -> None:
    assert owner_asks({"sessionKey": key, "senderIsOwner": mark, "ownerIsNamed": named}) is owner


@pytest.mark.parametrize("asks", [True, False])
def test_what_others_say_and_are_answered_is_left_out_whoever_asks_now(asks: bool) -> None:
    def said(text: str, **marks: Any) -> list[dict[str, Any]]:
        return [{"role": "user", "content": text, **marks}, {"role": "assistant", "content": f"Re {text}"}]

    history = [
        *said("owner", senderIsOwner=True), *said("guest", senderIsOwner=False), *said("nobody knows"), *said("newest"),
    ]  # fmt: skip
    kept = [each["content"] for each in messages_of(history, {"sessionKey": GROUP, "senderIsOwner": asks})]
    assert kept == ["owner", "Re owner", *(("newest", "Re newest") if asks else ())]


def test_what_the_model_did_is_told_beside_what_was_said_and_for_the_owner_alone() -> None:
    def worked(text: str, **marks: Any) -> list[dict[str, Any]]:
        call = {"id": text, "name": "exec", "arguments": {"command": text}}
        return [
            {"role": "user", "content": text, **marks}, {"role": "assistant", "content": "", "tool_calls": [call]},
            {"role": "toolResult", "toolCallId": text, "content": "ok", "details": {"exitCode": 0}},
            {"role": "assistant", "content": f"Re {text}", "tool_calls": []},
        ]  # fmt: skip

    history = [*worked("owner", senderIsOwner=True), *worked("guest", senderIsOwner=False)]
    ctx = {"sessionKey": GROUP, "workspaceDir": "/work"}
    said = messages_of(history, ctx)
    assert [each["content"] for each in said] == ["owner", "Re owner"]
    assert not any("tool_calls" in each for each in said)
    done = work_of(history, ctx)
    assert [each["role"] for each in done] == ["user", "assistant", "toolResult", "assistant"]
    assert {each["cwd"] for each in done} == {"/work"}
    assert "guest" not in str(done)
    assert work_of([each for each in history if not each.get("tool_calls")], ctx) == ()


def test_a_compaction_that_names_only_the_session_is_of_the_sessions_agent() -> None:
    assert turn_context({"sessionKey": "agent:second:telegram:direct:7"}).agent_id == "second"
    assert turn_context({"sessionKey": "agent:second:main", "agentId": ""}).agent_id == ""
    assert turn_context({"sessionKey": "main"}).agent_id == ""


def test_the_newest_message_of_the_user_goes_before_the_prompt() -> None:
    assert prompt_of({"prompt": "[Telegram] hello", "currentUserMessage": "hello"}) == "hello"
    assert prompt_of({"prompt": "hello"}) == "hello"


def test_the_data_folder_is_found_as_the_host_finds_its_own(tmp_path: Path) -> None:
    environ = {"OPENCLAW_STATE_DIR": str(tmp_path / "state"), "OPENCLAW_HOME": str(tmp_path)}
    assert state_folder(environ) == tmp_path / "state"
    assert state_folder({"OPENCLAW_HOME": str(tmp_path)}) == tmp_path / ".openclaw"
    assert data_home({}, environ) == tmp_path / "state" / "memory" / "perdure"
    assert data_home({"home": "/elsewhere"}, environ) == Path("/elsewhere")
    assert data_home({"home": ""}, {**environ, "PERDURE_HOME": "/mine"}) is None
