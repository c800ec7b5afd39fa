"""What an agent did, from the transcript that its host keeps of a session, as messages.

Each host writes lines of JSON of its own form. The last part of a long file is read. What no person has typed and no
agent has said came to it, whatever its form; where that is not known in full, a message says so.
"""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any

from perdure.hooks.types import Message
from perdure.regex import lazy
from perdure.speech.tool_use import UNREAD, strings

NEWEST = 16_000_000
"""Bytes of a transcript that are read, the last."""
LATELY = 200_000
"""Bytes of a transcript, the last, in which is looked for a session's last error, and for what its tools returned."""
_ENDED = lazy(r"(?:Exit code:? |Process exited with code )(-?\d{1,9})(?!\d)")
_LEFT_OUT: Message = {"role": "tool", "content": "", UNREAD: True}
_SAID = ("user", "assistant")
_HEAD = 400
"""Characters of an output in which a host says how the command ended, before what the command itself has said."""


def messages(path: str, newest: int = NEWEST) -> list[Message]:
    """Return the messages of a transcript of Claude Code or Codex; none of a file that cannot be read.

    `newest`: bytes of it, the last.
    """
    found: list[Message] = []
    folder = branch = ""
    for line in _lines(path, newest):
        payload = line.get("payload") if line else None
        if line is None:
            found.append(_LEFT_OUT)
        elif not isinstance(payload, Mapping):
            found += _of_claude(line)
        elif line.get("type") == "session_meta":
            git = payload.get("git")
            branch = str(git.get("branch") or "") if isinstance(git, Mapping) else ""
            folder = str(payload.get("cwd") or "")
        elif line.get("type") == "response_item":
            found += ({**each, "cwd": folder, "branch": branch} for each in _of_codex(payload))
            branch = ""  # it is told as of the beginning alone
    return found


def _lines(path: str, newest: int) -> Iterator[Mapping[str, Any] | None]:
    """Yield what lines hold; None: it is not known what was written there."""
    try:
        # Nothing that could keep its reader waiting.
        with os.fdopen(os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0)), "rb") as file:
            told = os.fstat(file.fileno())
            if not stat.S_ISREG(told.st_mode):
                return
            skipped = max(0, told.st_size - newest)
            file.seek(skipped)
            if skipped:
                file.readline()
                yield None
            for line in file:
                try:
                    value = json.loads(line)
                except (ValueError, RecursionError):
                    # The last one may be in the middle of being written.
                    if line.endswith(b"\n"):
                        yield None
                    continue
                if isinstance(value, Mapping):
                    yield value
    except OSError:
        return


def _of_claude(line: Mapping[str, Any]) -> Iterator[Message]:
    message = line.get("message")
    ours = not (line.get("isSidechain") or line.get("isMeta"))
    if not (ours and isinstance(message, Mapping) and message.get("role") in _SAID):
        yield _came(line)
        return
    content, told = message.get("content"), line.get("toolUseResult")
    parts = content if isinstance(content, list) else [{"type": "text", "text": content}]
    yield {
        "role": message.get("role"), "cwd": line.get("cwd"), "branch": line.get("gitBranch"),
        "content": [{**part, **_code(part, told)} for part in parts if isinstance(part, Mapping)],
    }  # fmt: skip


def _came(value: object) -> Message:
    """Return what came to an agent in a form that tells no more of it."""
    return {"role": "tool", "content": "\n".join(strings(value))}


def _code(part: Mapping[str, Any], told: Any) -> dict[str, int]:
    """Return the exit code of a command: it is told of one that failed, and a result of its own form of one that ended.

    A command that goes on in the background, was refused or broken off has none.
    """
    if part.get("type") != "tool_result":
        return {}
    text = part.get("content")
    if isinstance(text, list):
        text = next((each.get("text") for each in text if isinstance(each, Mapping)), "")
    found = _ENDED.match(text) if part.get("is_error") and isinstance(text, str) else None
    if found:
        return {"exit_code": int(found[1])}
    ran = not part.get("is_error") and isinstance(told, Mapping) and "stdout" in told
    return {"exit_code": 0} if ran and not any(map(told.get, ("backgroundTaskId", "interrupted"))) else {}


def _of_codex(item: Mapping[str, Any]) -> Iterator[Message]:
    name = item.get("call_id") or item.get("id")
    match item.get("type"):
        case "message":
            yield {"role": item.get("role"), "content": item.get("content")}
        case "function_call" | "custom_tool_call":
            call = {"type": "tool_use", "id": name, "input": item.get("arguments") or item.get("input")}
            yield {"role": "assistant", "content": [call]}
        case "local_shell_call":
            yield {"role": "assistant", "content": [{"type": "tool_use", "id": name, "input": item.get("action")}]}
        case "function_call_output" | "custom_tool_call_output" | "local_shell_call_output":
            text, ended = _output(item.get("output"))
            told = {} if ended is None else {"exit_code": ended}
            yield {"role": "tool", "tool_call_id": name, "content": text, **told}
        case "reasoning":
            pass
        case kind:
            # What a search on the provider's side has found is in no line.
            yield {**_came(item), UNREAD: str(kind).startswith("web_search")}


def _output(output: Any) -> tuple[str, int | None]:
    """Return what a command said and its exit code, which stands in an object, or in lines before the output."""
    told = output
    if isinstance(output, str) and output.startswith("{"):
        with suppress(ValueError, RecursionError):
            told = json.loads(output)
    if isinstance(told, Mapping):
        inner, text = told.get("metadata"), told.get("output") or told.get("content")
        ended = inner.get("exit_code") if isinstance(inner, Mapping) else None
        return "\n".join(strings(text)), ended if isinstance(ended, int) else None
    if not isinstance(output, str):
        return "\n".join(strings(output)), None
    head, mark, text = output.partition("Output:\n")
    found = _ENDED.search(head[:_HEAD]) if mark else None
    return (text, int(found[1])) if found else (output, None)
