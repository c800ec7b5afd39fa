"""Calls of tools and what came of them are one shape, whatever host or framework tells them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, ConfigDict, RootModel

from perdure.speech.author import uses_tools
from perdure.speech.tool_use import Call, Result, of_tools, used
from tests.kit import for_each

TEST = {"command": "make test"}
TEXT = '{"command": "make test"}'
PATCH = "*** Begin Patch\n*** Update File: a.py\n-x\n+y\n*** End Patch"


@dataclass
class Part:
    """As Pydantic AI has them."""

    tool_name: str
    args: Any = None
    tool_call_id: str = "c1"
    id: str | None = "provider's"


@dataclass
class Return:
    tool_name: str
    content: Any
    tool_call_id: str = "c1"
    metadata: Any = None
    outcome: str = "success"


class FunctionCall(BaseModel):
    """As Google's library has them."""

    id: str | None = "c1"
    name: str = "run"
    args: dict[str, Any] | None = None


class FunctionResponse(BaseModel):
    id: str | None = "c1"
    name: str = "run"
    response: dict[str, Any] | None = None


class GooglePart(BaseModel):
    text: str | None = None
    function_call: FunctionCall | None = None
    function_response: FunctionResponse | None = None


class Content(BaseModel):
    parts: list[GooglePart]
    role: str = "model"


class Message(BaseModel):
    """As LangChain has them."""

    content: Any = ""
    tool_calls: list[dict[str, Any]] = []
    tool_call_id: str | None = None
    artifact: Any = None
    status: str = "success"
    id: str = "m1"


CALLS = {
    "claude": {"role": "assistant", "content": [{"type": "tool_use", "id": "c1", "name": "Bash", "input": TEST}]},
    "openclaw": {"role": "assistant", "content": [{"type": "toolCall", "id": "c1", "name": "exec", "arguments": TEST}]},
    "openai chat": {
        "role": "assistant", "content": None,
        "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "x", "arguments": TEXT}}],
    },
    "openai": {"type": "function_call", "id": "i", "call_id": "c1", "name": "x", "arguments": TEXT},
    "openai shell": {"type": "shell_call", "call_id": "c1", "action": {"commands": ["make test"], "timeout_ms": 9}},
    "langchain": Message(tool_calls=[{"name": "shell", "args": TEST, "id": "c1", "type": "tool_call"}]),
    "pydantic": Part("run", TEST),
    "pydantic, json": Part("run", TEXT),
    "google": Content(parts=[GooglePart(text="I see."), GooglePart(function_call=FunctionCall(args=TEST))]),
    "strands": {"role": "assistant", "content": [{"toolUse": {"toolUseId": "c1", "name": "shell", "input": TEST}}]},
}  # fmt: skip


@for_each("shape", CALLS)
def test_a_call_is_told(shape: str) -> None:
    [call] = used(CALLS[shape])
    assert isinstance(call, Call)
    assert (call.id, call.given["command"]) == ("c1", "make test")
    made = of_tools(CALLS[shape])
    assert made["role"] == "tool"
    assert uses_tools(made)
    assert list(used(made)) == [call]


RESULTS = {
    "claude": ({"role": "user", "content": [{
        "type": "tool_result", "tool_use_id": "c1", "content": [{"type": "text", "text": "bad"}], "exit_code": 2}]}, 2),
    "openclaw": ({"role": "toolResult", "toolCallId": "c1", "content": [{"type": "text", "text": "bad"}],
                  "isError": False, "details": {"status": "completed", "exitCode": 2}}, 2),
    "openai chat": ({"role": "tool", "tool_call_id": "c1", "content": "bad", "exit_code": 2}, 2),
    "openai": ({"type": "function_call_output", "call_id": "c1", "output": '{"exit_code": 2, "stdout": "bad"}'}, 2),
    "openai shell": ({"type": "shell_call_output", "call_id": "c1", "output": [
        {"stdout": "bad", "outcome": {"type": "exit", "exit_code": 2}}]}, 2),
    "langchain": (Message(content="bad", tool_call_id="c1", artifact={"exit_code": 2, "truncated_by_lines": False}), 2),
    "pydantic": (Return("run", {"stdout": "bad", "returncode": 2}), 2),
    "pydantic, beside": (Return("run", "bad", metadata={"exit_code": 2}), 2),
    "google": (Content(parts=[GooglePart(function_response=FunctionResponse(
        response={"stdout": "bad", "exit_code": 2}))]), 2),
    "strands": ({"role": "user", "content": [{"toolResult": {
        "toolUseId": "c1", "status": "error", "content": [{"text": "bad"}, {"json": {"exit_code": 2}}]}}]}, 2),
    "nothing told": ({"role": "tool", "tool_call_id": "c1", "content": "bad"}, None),
    "passed": ({"role": "tool", "tool_call_id": "c1", "content": "bad", "exit_code": 0}, 0),
    "passed, though it printed a code": ({"role": "toolResult", "toolCallId": "c1", "details": {"exitCode": 0},
        "content": '{"exit_code": 2, "stdout": "bad"}'}, 0),
    "passed, though its output holds a code": ({"type": "function_call_output", "call_id": "c1",
        "metadata": {"exit_code": 0}, "output": '{"exit_code": 2, "stdout": "bad"}'}, 0),
    "failed, though its output holds a code": ({"role": "toolResult", "toolCallId": "c1", "details": {"exitCode": 2},
        "content": [{"text": "bad"}, {"json": {"exit_code": 0}}]}, 2),
    "an object that was printed": ({"role": "tool", "tool_call_id": "c1",
        "content": '{"exit_code": 2, "stdout": "bad"}'}, None),
    "an object that was read": ({"role": "tool", "tool_call_id": "c1", "content": '{"exit_code": 2} bad'}, None),
    "no number": ({"role": "tool", "tool_call_id": "c1", "content": "bad", "exit_code": True}, None),
    "no exit": ({"role": "toolResult", "toolCallId": "c1", "content": "bad", "details": {"exitCode": None}}, None),
}  # fmt: skip


@for_each("shape", RESULTS)
def test_what_came_of_a_call_is_told_with_the_exit_code_of_its_host(shape: str) -> None:
    message, ended = RESULTS[shape]
    [result] = used(message)
    assert isinstance(result, Result)
    assert (result.call, result.ended) == ("c1", ended)
    assert "bad" in result.text
    assert result.failed == bool(ended)
    assert list(used(of_tools(message))) == [result]


@for_each(
    ("output", "ended"),
    [
        ("bad\n\nExit code: 2", 2),
        ("bad\n[Command failed with exit code 2]", 2),
        ("bad\n[Command succeeded with exit code 0]\n", 0),
        ("bad\n\n(Command exited with code 2)", 2),
        ("Command: make test\nStatus: error\nExit Code: 2\nOutput: bad", 2),
        ("exit code: 2\nand bad", None),
        ("bad, exit code 2, they say", None),
        ("The page says: Exit code: 2", None),
    ],
)
def test_the_line_that_a_framework_writes_beside_an_output_tells_the_exit_code(output: str, ended: int | None) -> None:
    [told] = used(of_tools({"role": "tool", "tool_call_id": "c1", "content": output}))
    assert isinstance(told, Result)
    assert told.ended == ended
    # A host that tells codes as values tells all of them so.
    [plain] = used({"role": "tool", "tool_call_id": "c1", "content": output})
    assert isinstance(plain, Result)
    assert plain.ended is None


def test_patches_are_told_in_one_form() -> None:
    for message in (
        {"type": "custom_tool_call", "call_id": "c", "input": PATCH},
        {"content": [{"type": "toolCall", "id": "c", "name": "apply_patch", "arguments": {"input": PATCH}}]},
        {"type": "apply_patch_call", "call_id": "c",
         "operation": {"type": "update_file", "path": "a.py", "diff": "-x\n+y"}},
    ):  # fmt: skip
        [call] = used(message)
        assert isinstance(call, Call)
        assert call.given == {"patch": PATCH}


class Rows(RootModel[list[str]]):
    """As pydantic tells to write one: its items are what it iterates over."""

    def __iter__(self) -> Any:
        return iter(self.root)


class Open(BaseModel):
    model_config = ConfigDict(extra="allow")


class Broken(Mapping[str, Any]):
    def __getitem__(self, key: str) -> Any:
        raise OSError(key)

    def __iter__(self) -> Any:
        raise OSError

    def __len__(self) -> int:
        return 1


def test_a_model_with_items_or_fields_of_its_own_is_told() -> None:
    for content, text in ((Rows(["one", "two"]), "one\ntwo"), (Open.model_validate({"said": "one"}), "one")):
        [told] = used(of_tools(Return("rows", content)))
        assert isinstance(told, Result)
        assert told.text == text


@for_each("message", [Broken(), Return("run", Broken()), Part("run", Broken()), Message(content=[Broken()])])
def test_an_object_that_raises_breaks_no_run(message: Any) -> None:
    assert of_tools(message) == {"role": "tool", "content": ""}


@for_each("outcome", ["failed", "denied", "retried"])
def test_a_call_that_was_refused_has_done_nothing(outcome: str) -> None:
    [told] = used(Return("write_file", "no", outcome=outcome))
    assert isinstance(told, Result)
    assert told.failed


@for_each("message", [
    {"role": "user", "content": "run make test"}, {"role": "assistant", "content": [{"type": "text", "text": "a"}]},
    {"type": "reasoning", "id": "r", "summary": []}, {"role": "tool", "content": ""}, None, 3, "text", [], object(),
    {"content": [{"type": "tool_use", "id": "c1", "input": None}]}, Part("run", "not json"),
])  # fmt: skip
def test_what_tells_of_no_call_is_passed_over(message: Any) -> None:
    assert [each for each in used(message) if isinstance(each, Call)] == []
    assert of_tools(message)["role"] == "tool"


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(
        st.sampled_from(["id", "content", "input", "output", "tool_call_id", "function", "details", "exit_code", "x"]),
        inner, max_size=4,
    ),
    max_leaves=12,
)  # fmt: skip


@given(JSON)
def test_no_message_breaks_it(message: Any) -> None:
    assert list(used(of_tools(message))) is not None
