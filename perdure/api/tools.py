"""The agent's tools: names, schemas and implementations, the same for every host."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from pydantic import BaseModel, ValidationError

from perdure.api import tool_arguments as arguments
from perdure.api import tool_work as work
from perdure.api.memory import Memory
from perdure.api.tool_arguments import UNTOLD
from perdure.api.tool_caller import Answer, ToolCaller
from perdure.errors import PerdureError, refused
from perdure.hooks.types import Consent, ToolResult, TurnContext
from perdure.text.clean import clip

MAX_CHARS = 8_000
"""Maximum characters of an answer: about 2,000 tokens."""
_log = logging.getLogger("perdure.plugin")


@dataclass(frozen=True)
class Tool:
    """One tool.

    Attributes:
        name: what the model calls.
        description: for the model.
        takes: its arguments.
        work: what it does.
    """

    name: str
    description: str
    takes: type[BaseModel]
    work: Callable[[ToolCaller, Any], Answer]

    @cached_property
    def arguments(self) -> Mapping[str, Mapping[str, Any]]:
        """The JSON Schema of each argument, including those not shown to a model."""
        found: Mapping[str, Any] = _plain(self.takes.model_json_schema().get("properties", {}))
        return found

    @cached_property
    def parameters(self) -> Mapping[str, Any]:
        """The JSON Schema of its arguments, closed, without titles."""
        schema: dict[str, Any] = _plain(self.takes.model_json_schema())
        schema.pop("description", None)
        told = {name: each for name, each in self.arguments.items() if not each.keys() & UNTOLD.keys()}
        return {**schema, "properties": told} if "properties" in schema else schema


_WORK: Mapping[str, tuple[type[BaseModel], Callable[[ToolCaller, Any], Answer]]] = {
    "memory_recall": (arguments.Recall, work.recall),
    "memory_store": (arguments.Store, work.store),
    "memory_update": (arguments.Update, work.update),
    "memory_forget": (arguments.Forget, work.forget),
    "lookup": (arguments.Lookup, work.lookup),
    "memory_lookup": (arguments.Lookup, work.lookup),
    "memory_link": (arguments.Link, work.link),
    "memory_search": (arguments.Search, work.search),
    "memory_get": (arguments.Get, work.get),
    "memory_why": (arguments.Why, work.why),
    "memory_checkpoint": (arguments.Checkpoint, work.checkpoint),
    "memory_prune": (arguments.Prune, work.prune),
    "memory_reflect": (arguments.Reflect, work.reflect),
}
TOOLS: tuple[Tool, ...] = tuple(
    Tool(name, " ".join((takes.__doc__ or "").split()), takes, does) for name, (takes, does) in _WORK.items()
)
"""Every tool. One of them has two names."""
ALIKE = tuple(tool for tool in TOOLS if tool.name.startswith("memory_"))
"""The same with one name each, for hosts whose models also have other tools."""


def call_tool(
    memory: Memory,
    name: str,
    values: Mapping[str, Any],
    context: TurnContext,
    user_message: str = "",
    *,
    consent: Consent = Consent.IN_WORDS,
    said_in: str | None = None,
    tools: Sequence[Tool] = TOOLS,
) -> ToolResult:
    """Call a tool for an agent. A model's mistakes raise no error: the result explains them.

    Args:
        memory: an open store.
        name: of the tool.
        values: its arguments, as the model passed them.
        context: the caller; an agent reads and writes its own scope.
        user_message: the user's message of this turn, according to the host: what it asks for counts as theirs.
        consent: what else is known of the user's consent.
        said_in: the session of that message, where tools are called in a session of their own.
        tools: the tools that the host offers.
    """
    tool = next((tool for tool in tools if tool.name == name), None)
    if tool is None:
        return _refusal(f"Unknown tool {name!r}. Available tools: {', '.join(tool.name for tool in tools)}.", "unknown")
    try:
        given = tool.takes.model_validate(values)
    except ValidationError as error:
        return _refusal(f"{name} did nothing: {_wrong(tool, error)}.", "arguments")
    try:
        answer = tool.work(ToolCaller(memory, context, user_message, consent, said_in), given)
    except PerdureError as error:
        return _refusal(f"{name} did nothing: {error}.", type(error).__name__)
    return ToolResult(clip(answer.text, MAX_CHARS), answer.details, answer.refused)


def _refusal(text: str, error: str) -> ToolResult:
    return ToolResult(clip(text, MAX_CHARS), {"error": error}, refused=True)


def _wrong(tool: Tool, error: ValidationError) -> str:
    """Return what is wrong with a call: the argument, its value, and what is accepted."""
    first = error.errors(include_url=False)[0]
    told = str(first["ctx"]["error"]) if first["type"] == "value_error" else ""
    if not first["loc"]:
        return told or "give the arguments by name"
    name = str(first["loc"][0])
    match first["type"]:
        case "extra_forbidden":
            known = f"it takes {', '.join(tool.parameters['properties'])}" if tool.arguments else "it takes none"
            return f"unknown argument {name}; {known}"
        case "missing":
            return f"{name} is missing; give {_accepted(tool.arguments[name])}"
    return f"{name}: {told}" if told else str(refused(first["input"], _accepted(tool.arguments[name]), name))


def _accepted(schema: Mapping[str, Any]) -> str:
    """Return in words what an argument accepts."""
    match schema:
        case {"enum": names}:
            return f"one of {', '.join(names)}"
        case {"type": "array", "items": each}:
            return f"a list of strings, at most {schema['maxItems']}{_within(each, 'Length')} characters each"
        case {"type": "string"}:
            limits = _within(schema, "Length")
            return f"a string{limits} characters" if limits else "a string"
        case {"type": "boolean"}:
            return "true or false"
    return f"a {'whole ' * (schema['type'] == 'integer')}number{_within(schema, 'imum', ' from ')}"


def _within(schema: Mapping[str, Any], what: str, of: str = " of ") -> str:
    least, most = schema.get(f"min{what}"), schema.get(f"max{what}")
    if least is None:
        return ""
    return f", {least:,} or more" if most is None else f"{of}{least:,} to {most:,}"


def _plain(value: Any) -> Any:
    """Return a schema without the titles that pydantic adds: they cost tokens and say nothing."""
    if isinstance(value, dict):
        return {
            key: _plain(part)
            for key, part in value.items()
            if not (key == "title" and isinstance(part, str)) and not (key == "default" and part is None)
        }
    return [_plain(part) for part in value] if isinstance(value, list) else value
