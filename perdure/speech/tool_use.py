"""Calls of tools and what came of them: in one shape, whatever host or framework tells them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from typing import Any, Final

from perdure.hooks.types import Message
from perdure.regex import lazy
from perdure.text.clean import clean, part_text

PATCH: Final = "*** Begin Patch"
UNREAD: Final = "unread"
"""Under this key a message tells that what came to an agent is not all there."""
_CALLS = ("tool_call_id", "call_id", "toolUseId", "id")
_RESULTS = ("tool_use_id", "tool_call_id", "toolCallId", "call_id", "toolUseId")
"""Under which keys a call and its result name the call; the first that is there counts."""
_GIVEN, _BROUGHT = ("input", "arguments", "args", "action", "operation"), ("content", "output", "response")
_AROUND = ("function", "function_call", "function_response", "toolUse", "toolResult")
"""Keys under which a part may hold the call, or its result."""
_CODES = ("exit_code", "exitCode", "returncode")
_BESIDE = ("details", "artifact", "metadata", "outcome", "json", "result", *_BROUGHT)
"""Keys below which a result may tell how a command ended."""
_AS_JSON = ("function_call_output",)
"""Types of results whose host writes the whole of it, code and output, as JSON."""
_STREAMS = ("stdout", "stderr", "output")
_UNSAID = (*_CALLS, *_RESULTS, "type", "role", "name", "status", "outcome")
"""Keys of a result whose values are no output."""
_DEEP = 4
_ENDED = lazy(
    r"(?i)[\[(]?(?:command |process )?"
    r"(?:exited with code|(?:failed|succeeded) with exit code|exit code:?) (-?\d{1,9})[\])]?"
)
"""The line that some frameworks write behind a command's output, or before it."""
_HEAD = 400
"""Characters of an output in which that line stands, if it stands before."""


@dataclass(frozen=True, slots=True)
class Call:
    """A call of a tool."""

    id: str  # by which its result names it
    given: Mapping[str, Any]  # what the tool was given


@dataclass(frozen=True, slots=True)
class Result:
    """What came of a call."""

    call: str  # the call's id
    text: str
    ended: int | None  # the exit code of a command, if the host tells it
    failed: bool  # whether nothing was done


def used(message: object) -> Iterator[Call | Result]:
    """Yield what a message, or a part of one, tells of tools. What is not understood is passed over."""
    whole = _plain(message)
    for part in (whole, *(part for key in ("content", "parts", "tool_calls") for part in _listed(whole.get(key)))):
        plain = _plain(part)
        plain = next((_plain(plain[key]) | _named(plain) for key in _AROUND if _plain(plain.get(key))), plain)
        given = _given(plain)
        if given is not None:
            yield Call(_first(plain, _CALLS), given)
        name = _first(plain, _RESULTS if "response" not in plain else ("id",))
        if name and (given is None or any(key in plain for key in _BROUGHT)):
            yield _result(name, plain)


def of_tools(message: object) -> Message:
    """Return what a framework's message, or a part of one, tells of tools, as a message of a host.

    That a tool was used counts even where nothing else is understood. What a tool brought is nobody's word.
    """
    try:
        return {"role": "tool", "content": list(_parts(message))}
    except Exception:  # noqa: BLE001 - the objects are a tool's own: the host's run must survive whatever they raise
        return {"role": "tool", "content": ""}


def _parts(message: object) -> Iterator[dict[str, Any]]:
    for each in used(message):
        if isinstance(each, Call):
            yield {"type": "tool_use", "id": each.id, "input": each.given}
            continue
        ended = _told(each.text) if each.ended is None else each.ended
        code = {} if ended is None else {"exit_code": ended}
        told = {"tool_use_id": each.call, "content": each.text, "is_error": each.failed, **code}
        yield {"type": "tool_result", **told}


def _plain(value: object) -> dict[str, Any]:
    """Return an object of a framework as a mapping, not deeper than itself; empty: it is nothing of that kind."""
    if isinstance(value, Mapping):
        return dict(value)
    if is_dataclass(value) and not isinstance(value, type):
        return {each.name: getattr(value, each.name, None) for each in fields(value)}
    if hasattr(type(value), "model_fields"):
        # Pydantic's. What iterating yields is each class's own affair.
        return {**value.__dict__, **(getattr(value, "__pydantic_extra__", None) or {})}
    return {}


def _listed(value: object) -> Sequence[object]:
    return value if isinstance(value, list | tuple) else ()


def _named(part: Mapping[str, Any]) -> dict[str, Any]:
    """Return the ids beside what a part holds."""
    return {key: part[key] for key in (*_CALLS, *_RESULTS) if part.get(key)}


def _first(part: Mapping[str, Any], keys: Sequence[str]) -> str:
    return next((str(part[key]) for key in keys if part.get(key)), "")


def _given(part: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Return what a call was given: a patch in Codex's form as `patch`, several commands as one."""
    value = next((part[key] for key in _GIVEN if part.get(key) is not None), None)
    if isinstance(value, str):
        value = {"patch": value} if value.startswith(PATCH) else _object(value)
    given = _plain(value)
    if isinstance(given.get("input"), str) and given["input"].startswith(PATCH):
        return {"patch": given["input"]}
    if isinstance(given.get("diff"), str) and isinstance(given.get("path"), str):
        return {"patch": f"{PATCH}\n*** Update File: {given['path']}\n{given['diff']}\n*** End Patch"}
    if commands := [each for each in _listed(given.get("commands")) if isinstance(each, str)]:
        return {"command": " && ".join(commands)}
    return given or None


def _result(name: str, part: Mapping[str, Any]) -> Result:
    brought = next((part[key] for key in _BROUGHT if part.get(key) is not None), "")
    codes = list(_codes({key: inner for key, inner in part.items() if key not in _BROUGHT}))
    if not codes:
        # What a command has printed may look the same: it is believed where no host tells a code beside it.
        told = _object(brought) if isinstance(brought, str) and part.get("type") in _AS_JSON else None
        if told and any(key in told for key in _STREAMS) and list(_codes(told)):
            part, brought = {**part, "output": told}, told
        codes = list(_codes(part))
    ended = next((code for code in codes if code), codes[0] if codes else None)
    refused = part.get("is_error") or part.get("isError") or part.get("status") in ("error", "failed")
    outcome = part.get("outcome")
    refused = refused or (isinstance(outcome, str) and outcome != "success")
    return Result(name, clean("\n".join(_texts(brought))), ended, bool(refused or ended))


def _codes(value: object, deep: int = _DEEP) -> Iterator[int]:
    """Yield the exit codes that a host tells beside an output: of one result in several places, the nearest first."""
    plain = _plain(value)
    found = next((plain[key] for key in _CODES if type(plain.get(key)) is int), None)
    if found is not None:
        yield found
    elif deep:
        for each in (*_listed(value), *(plain[key] for key in _BESIDE if key in plain)):
            if not isinstance(each, str):
                yield from _codes(each, deep - 1)


def _texts(value: object, deep: int = _DEEP) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif (text := part_text(value)) is not None:
        yield text
    elif deep:
        for each in (*_listed(value), *(inner for key, inner in _plain(value).items() if key not in _UNSAID)):
            yield from _texts(each, deep - 1)


def strings(value: object, deep: int = 2 * _DEEP) -> Iterator[str]:
    """Yield every text in a value of any form, whatever it is called there."""
    inner = [*_listed(value), *_plain(value).values()]
    if isinstance(value, str) or (inner and not deep):
        yield str(value)
    else:
        for each in inner:
            yield from strings(each, deep - 1)


def _object(text: str) -> dict[str, Any] | None:
    if not text.lstrip().startswith("{"):
        return None
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def _told(text: str) -> int | None:
    """Return the exit code that a framework's line before or behind an output tells."""
    head, mark, _ = text[:_HEAD].partition("Output:")
    lines = [*(head.splitlines() if mark else ()), text.rstrip()[-_HEAD:].rpartition("\n")[2]]
    found = next(filter(None, (_ENDED.fullmatch(line.strip()) for line in lines)), None)
    return int(found[1]) if found else None
