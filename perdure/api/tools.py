"""The tools that an agent is given: names, schemas and what they do, the same for every host."""

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
from perdure.api.tool_caller import Answer, ToolCaller
from perdure.errors import PerdureError
from perdure.hooks.types import Consent, ToolResult, TurnContext
from perdure.text.clean import clip

MAX_CHARS = 8_000
"""Characters of an answer at the most: about 2,000 tokens."""
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
    def parameters(self) -> Mapping[str, Any]:
        """The JSON Schema of its arguments, closed, without titles."""
        schema: dict[str, Any] = _plain(self.takes.model_json_schema())
        schema.pop("description", None)
        return schema


_LOOKUP = (
    "Show what is known in a slot: of an entity (a person, project or thing; the user is `user`) and, if given, "
    "one key of it, such as birthday. Exact names, no search by meaning."
)
TOOLS: tuple[Tool, ...] = (
    Tool(
        "memory_recall",
        "Search long-term memory: facts, preferences, decisions, dates from earlier conversations. Give `query`; or "
        "`memory`, the number or id of a memory that was shown to you shortened, to read all of it.",
        arguments.Recall,
        work.recall,
    ),
    Tool(
        "memory_store",
        "Keep something for good: a fact, preference, decision or date that will matter in later conversations. One "
        "idea in one sentence that can be understood alone. What the user says is captured anyway.",
        arguments.Store,
        work.store,
    ),
    Tool(
        "memory_update",
        "Correct a memory by its id: new words, category, importance or tags. The former version stays in the history.",
        arguments.Update,
        work.update,
    ),
    Tool(
        "memory_forget",
        "Leave a memory out of every answer from now on. Give its id; or a query, to be shown what there is to choose.",
        arguments.Forget,
        work.forget,
    ),
    Tool("lookup", _LOOKUP, arguments.Lookup, work.lookup),
    Tool("memory_lookup", _LOOKUP, arguments.Lookup, work.lookup),
    Tool(
        "memory_link",
        "Link two memories by their ids: one causes, contradicts, is part of, depends on or is related to the other.",
        arguments.Link,
        work.link,
    ),
    Tool(
        "memory_search",
        "Search MEMORY.md, memory/*.md and past conversations by meaning and words. Returns passages with a citation; "
        "read around one with memory_get.",
        arguments.Search,
        work.search,
    ),
    Tool(
        "memory_get",
        "Read lines of MEMORY.md or of a file in memory/, by the path or the citation that memory_search shows.",
        arguments.Get,
        work.get,
    ),
    Tool(
        "memory_why",
        "Explain what memory showed in the last turn and why; with `memory`, why that one did or did not come up.",
        arguments.Why,
        work.why,
    ),
    Tool(
        "memory_checkpoint",
        "Before risky work, keep what you are about to do and where things stand, for a few hours.",
        arguments.Checkpoint,
        work.checkpoint,
    ),
    Tool(
        "memory_prune",
        "Remove what has expired from memory. Only when the user asks for it.",
        arguments.Prune,
        work.prune,
    ),
    Tool(
        "memory_reflect",
        "Look for patterns in what was said over the last days and keep them as memories.",
        arguments.Reflect,
        work.reflect,
    ),
)
"""Every tool. One of them has two names."""
ALIKE = tuple(tool for tool in TOOLS if tool.name.startswith("memory_"))
"""The same with one name each, for hosts whose models also have tools that are not of memory."""


def call_tool(
    memory: Memory,
    name: str,
    values: Mapping[str, Any],
    context: TurnContext,
    user_message: str = "",
    *,
    consent: Consent = Consent.IN_WORDS,
    quote: str = "",
    tools: Sequence[Tool] = TOOLS,
) -> ToolResult:
    """Call a tool for an agent. It never raises for what a model may have got wrong: the result says it.

    Args:
        memory: an open store.
        name: of the tool.
        values: its arguments, as the model gave them.
        context: who calls; an agent reads and writes its own scope.
        user_message: the user's message of this turn, by the host's word; decides whether the user asked for it.
        consent: what else is known of the user's will.
        quote: what the user has said lately, by the host's word: what it asks for counts as theirs.
        tools: those that the host offers.
    """
    tool = next((tool for tool in tools if tool.name == name), None)
    if tool is None:
        return _refusal(f"There is no tool {name!r}. There are: {', '.join(tool.name for tool in tools)}.", "unknown")
    try:
        given = tool.takes.model_validate(values)
    except ValidationError as error:
        return _refusal(_wrong(name, error), "arguments")
    try:
        answer = tool.work(ToolCaller(memory, context, name, user_message, consent, quote), given)
    except PerdureError as error:
        return _refusal(f"{name} did nothing: {error}.", type(error).__name__)
    return ToolResult(clip(answer.text, MAX_CHARS), answer.details, answer.refused)


def _refusal(text: str, error: str) -> ToolResult:
    return ToolResult(clip(text, MAX_CHARS), {"error": error}, refused=True)


def _wrong(name: str, error: ValidationError) -> str:
    first = error.errors(include_url=False, include_input=False)[0]
    where = ".".join(str(part) for part in first["loc"]) or "the arguments"
    return f"{name} did nothing: {where}: {first['msg'].removeprefix('Value error, ')}. Correct the call and try again."


def _plain(value: Any) -> Any:
    """Return a schema without the titles that pydantic adds: they cost tokens and say nothing."""
    if isinstance(value, dict):
        return {
            key: _plain(part)
            for key, part in value.items()
            if not (key == "title" and isinstance(part, str)) and not (key == "default" and part is None)
        }
    return [_plain(part) for part in value] if isinstance(value, list) else value
