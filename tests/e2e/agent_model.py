"""A model on loopback for command-line agents: it speaks Anthropic's Messages and OpenAI's Responses."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tests.e2e.model import REPLY, Body, Model, sent_event, words

FENCE = re.compile(r'<memory-context nonce="[0-9a-f]{16}">\n.*?\n</memory-context>', re.DOTALL)
SUMMARY = "<summary>They talked.</summary>"
"""What it answers when it is asked to sum up a conversation that is compacted."""
_TITLE = "Generate a concise, single-line task title"
"""What it is asked for beside a turn, with what was said in it."""
_SUMMING_UP = ("create a detailed summary", "CONTEXT CHECKPOINT COMPACTION")


@dataclass(frozen=True, slots=True)
class Turn:
    """What the model saw in a turn.

    Attributes:
        shown: the block that came with what was said, "" if there was none.
        resent: the blocks of former turns, which the host sends again.
    """

    shown: str
    resent: str

    @property
    def blocks(self) -> str:
        """All blocks."""
        return f"{self.resent}\n{self.shown}"

    def id_of(self, text: str) -> str:
        """Return the short id behind the memory with this text."""
        return short_id(self.blocks, text)


class AgentModel(Model):
    """The server, in a thread of this process.

    Attributes:
        answers: what it says to a message with such a text in it; to any other it says that it has understood.
        calls: the tool, with its arguments, that it calls at such a text, though nobody has offered it.
    """

    def __init__(self) -> None:
        super().__init__()
        self.answers: dict[str, str] = {}
        self.calls: dict[str, tuple[str, Mapping[str, Any]]] = {}

    def saw(self, text: str) -> bool:
        """Return whether a message with this text was the last that somebody said to it."""
        return any(text in said and _TITLE not in said for _, said in map(_last, list(self.requests)))

    def turn(self, text: str) -> Turn:
        """Return what it saw with this text, the last time it was said."""
        for body in reversed(self.requests):
            at, said = _last(body)
            if text in said and _TITLE not in said:
                told = messages(body)
                return Turn(shown=_blocks(told[at:]), resent=_blocks(told[:at]))
        raise AssertionError(f"the model never saw {text!r}")

    def offered(self, tool: str) -> bool:
        """Return whether the last request offers a tool."""
        return tool in {each.get("name") for each in self.requests[-1]["tools"]}

    def tool_answer(self) -> str:
        """Return what the last tool answered."""
        for body in reversed(self.requests):
            told = body["messages"] if "messages" in body else body["input"]
            parts = [part for each in told for part in (each, *_parts(each))]
            answers = [part for part in parts if part.get("type") in ("tool_result", "function_call_output")]
            if answers:
                return json.dumps(answers[-1], ensure_ascii=False)
        raise AssertionError("no tool was called")

    def _answer(self, path: str, body: Body) -> Sequence[bytes]:
        self.requests.append(body)
        time.sleep(self.delay)
        name = f"{len(self.requests):04}"
        call = self._taken_call(body)
        text = "" if call else self._text(body)
        events = _anthropic if "messages" in body else _openai
        return [sent_event({"type": kind, **data}, kind) for kind, data in events(body, name, text, call)]

    def _taken_call(self, body: Body) -> tuple[str, Mapping[str, Any]] | None:
        """Return the call that is to be made, once a request offers its tool."""
        said = _last(body)[1]
        forced = next((call for part, call in self.calls.items() if part in said), None)
        if forced:
            return forced
        if self._call is None or self._call[0].partition(".")[0] not in {tool.get("name") for tool in body["tools"]}:
            return None
        call, self._call = self._call, None
        return call

    def _text(self, body: Body) -> str:
        said = _last(body)[1]
        if any(part in said for part in _SUMMING_UP):
            return SUMMARY
        return next((answer for part, answer in self.answers.items() if part in said), REPLY)


def short_id(blocks: str, text: str) -> str:
    """Return the short id that stands behind the memory with a text."""
    found = re.search(rf"{re.escape(text)}.* #([a-z2-7]{{4,26}})$", blocks, re.MULTILINE)
    assert found, f"no id behind {text!r}: {blocks}"
    return found[1]


def messages(body: Body) -> list[tuple[str, str]]:
    """Return the role and the text of all messages of a request, of either form."""
    told = body["messages"] if "messages" in body else body["input"]
    return [(each["role"], words(each["content"])) for each in told if "role" in each]


def _parts(message: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    content = message.get("content")
    return [part for part in content if isinstance(part, dict)] if isinstance(content, list) else []


def _last(body: Body) -> tuple[int, str]:
    """Return where the last message stands that was said to the model, and its text."""
    told = messages(body)
    at = max((number for number, (role, _) in enumerate(told) if role == "user"), default=0)
    return at, told[at][1] if told else ""


def _blocks(told: Sequence[tuple[str, str]]) -> str:
    return "\n".join(block for _, text in told for block in FENCE.findall(text))


def _anthropic(
    body: Body, name: str, text: str, call: tuple[str, Mapping[str, Any]] | None
) -> Iterator[tuple[str, Mapping[str, Any]]]:
    if call:
        content = {"type": "tool_use", "id": f"toolu_{name}", "name": call[0], "input": {}}
        delta = {"type": "input_json_delta", "partial_json": json.dumps(call[1])}
    else:
        content = {"type": "text", "text": ""}
        delta = {"type": "text_delta", "text": text}
    base = {"id": f"msg_{name}", "type": "message", "role": "assistant", "model": body["model"], "content": []}
    usage = {"input_tokens": len(json.dumps(body)) // 4, "output_tokens": 1}
    yield "message_start", {"message": {**base, "stop_reason": None, "stop_sequence": None, "usage": usage}}
    yield "content_block_start", {"index": 0, "content_block": content}
    yield "content_block_delta", {"index": 0, "delta": delta}
    yield "content_block_stop", {"index": 0}
    end = {"stop_reason": "tool_use" if call else "end_turn", "stop_sequence": None}
    yield "message_delta", {"delta": end, "usage": {"output_tokens": 5}}
    yield "message_stop", {}


def _openai(
    body: Body, name: str, text: str, call: tuple[str, Mapping[str, Any]] | None
) -> Iterator[tuple[str, Mapping[str, Any]]]:
    if call:
        space, _, tool = call[0].rpartition(".")
        item: dict[str, Any] = {"type": "function_call", "id": f"fc_{name}", "call_id": f"call_{name}", "name": tool}
        item |= {"arguments": json.dumps(call[1]), "status": "completed"} | ({"namespace": space} if space else {})
    else:
        content = [{"type": "output_text", "text": text, "annotations": []}]
        item = {"type": "message", "id": f"msg_{name}", "role": "assistant", "status": "completed", "content": content}
    response = {"id": f"resp_{name}", "object": "response"}
    sent = len(json.dumps(body)) // 4
    usage = {"input_tokens": sent, "output_tokens": 5, "total_tokens": sent + 5}
    yield "response.created", {"response": {**response, "status": "in_progress", "output": []}}
    yield "response.output_item.done", {"output_index": 0, "item": item}
    yield "response.completed", {"response": {**response, "status": "completed", "output": [item], "usage": usage}}
