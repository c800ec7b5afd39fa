"""The tools for clients of MCP: fewer names than elsewhere, those that memory servers have in common."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from pydantic import Field, create_model, model_validator

from perdure.api import tool_arguments, tool_work
from perdure.api.fact_search import marks
from perdure.api.tool_arguments import UNTOLD, Arguments, Id, Maybe, Short, Words
from perdure.api.tool_caller import Answer, ToolCaller
from perdure.api.tool_work import DATA, LINE
from perdure.api.tools import Tool
from perdure.store.fact import Fact
from perdure.store.listing import Filter
from perdure.text.clean import clip
from perdure.text.escape import escape

_SHOWN = ("id", "text", "category", "entity", "key", "value", "why", "tags", "scope", "superseded_by")
_CHECKED = ("description", "minLength", "maxLength", "maxItems", "minimum", "additionalProperties")
_SOURCES = {"files": ("memory",), "conversations": ("sessions",), "all": None}
_SAID: Mapping[str, str | None] = {
    "memory_store.triggers": None,
    "memory_update.triggers": "As in memory_store; replaces those you gave.",
    "as_of": "A date or time.",
    "from": None,
    "memory_list.entity": "The user is `user`.",
    "memory_list.key": "Attribute of the entity.",
    "memory_store.category": "fact, preference, decision, entity...",
    "path": "Such as memory/2026-02-24.md#L12-L28.",
    "quote": "The user's own words that ask for it.",
    "scope": "`project`: for this repository only.",
    "supersedes": None,
    "type": None,
}
"""What a client is told of arguments, of all tools or of one; None: what a model is. Names tell the others."""


class Search(tool_arguments.Recall):
    """Of memory_search."""

    query: Words
    memory: Id | Maybe = Field(None, json_schema_extra=UNTOLD)
    places: Literal["memories", "files", "conversations", "all"] = Field("memories", alias="in")


class List(tool_arguments.Lookup):
    """Of memory_list."""

    entity: Short | Maybe = None  # type: ignore[assignment]  # all there are
    category: Short | Maybe = None
    limit: int = Field(20, ge=1, le=100)

    @model_validator(mode="after")
    def _slot(self) -> List:
        if self.key is not None and self.entity is None:
            raise ValueError("key requires entity; give both")
        return self


class Get(tool_arguments.Get):
    """Of memory_get."""

    memory: Id | Maybe = None
    path: Words | Maybe = None  # type: ignore[assignment]  # here it is one of two

    either = ("memory", "path")


class Forget(tool_arguments.Forget):
    """Of memory_forget."""

    memory: Id
    query: Words | Maybe = Field(None, json_schema_extra=UNTOLD)


def _by_id(takes: type[Arguments], *, quote: bool = False) -> type[Arguments]:
    """Return arguments among which a memory is named by `id`, with a `quote` where the user's word may be needed."""
    fields: dict[str, Any] = {"quote": (Words | Maybe, Field(None, exclude=True))} if quote else {}
    if "memory" in takes.model_fields:
        must = takes.model_fields["memory"].is_required()
        fields["memory"] = (Id, Field(alias="id")) if must else (Id | Maybe, Field(None, alias="id"))
    return create_model(takes.__name__, __base__=takes, **fields)


def shown(fact: Fact) -> dict[str, Any]:
    """Return a memory as JSON values; what it does not have is left out."""
    values = {name: value for name in _SHOWN if (value := getattr(fact, name))}
    beside = {"tags": list(fact.tags), "channel": fact.channel.value, "said_at": _iso(fact.effective_date)}
    return values | beside | ({"marks": list(marks(fact))} if marks(fact) else {})


def search(caller: ToolCaller, given: Search) -> Answer:
    """Search memories, files, conversations, or all of them."""
    caller.refuse_if_overheard()
    parts = []
    if given.places in ("memories", "all"):
        parts.append(_memories(caller, given))
    if given.places != "memories":
        parts.append(_passages(caller, given))
    texts = [part.text for part in parts if part.text]
    details = {"memories": [], "results": []} | {key: part.details[key] for part in parts for key in part.details}
    return Answer("\n".join([DATA, *texts]) if texts else "Nothing matches. Try other words, or in: all.", details)


def _memories(caller: ToolCaller, given: Search) -> Answer:
    found = tool_work.recall(caller, given).details.get("memories", ())
    facts = caller.facts([each["id"] for each in found])
    # A passage of a file may come up as well, which is no memory.
    items = [{**each, **(shown(facts[each["id"]]) if each["id"] in facts else {})} for each in found]
    return Answer("\n".join(map(_line, items)), {"memories": items})


def _passages(caller: ToolCaller, given: Search) -> Answer:
    found = caller.files.search(given.query, max_results=given.limit, sources=_SOURCES[given.places])
    lines = [
        f"- {escape(each.citation or each.path)} ({each.score:.2f}) {escape(each.snippet)}" for each in found.results
    ]
    results = [each.to_dict() | ({} if each.at is None else {"at": _iso(each.at)}) for each in found.results]
    return Answer("\n".join(lines), found.to_dict() | {"results": results})


def list_(caller: ToolCaller, given: List) -> Answer:
    """List memories: of a slot the most certain first, else the newest."""
    caller.refuse_if_overheard()
    chosen = Filter(category=given.category, review_state="approved")
    seen = given.model_dump(include={"tag", "as_of", "include_superseded"})
    if given.entity is None:
        facts: Sequence[Fact] = caller.admin.list(chosen, limit=given.limit, **seen)
    else:
        slot = caller.lookup(given.entity, given.key, **seen)
        right = [fact for fact in slot if given.category in (None, fact.category)]
        facts = [fact for fact in right if fact.review_state == "approved"][: given.limit]
    ids = [fact.id for fact in facts]
    caller.handed_out(ids, hits=ids if given.entity is not None else ())
    items = [shown(fact) for fact in facts]
    return Answer(
        "\n".join([DATA, *map(_line, items)]) if items else "Nothing is stored under that name.", {"memories": items}
    )


def get(caller: ToolCaller, given: Get) -> Answer:
    """Show one memory whole, or lines of a file."""
    if given.path is not None:
        return tool_work.get(caller, given)
    answer = tool_work.recall(caller, tool_arguments.Recall.model_validate({"memory": given.memory}))
    facts = caller.facts([each["id"] for each in answer.details.get("memories", ())])
    return Answer(answer.text, {"memories": [shown(fact) for fact in facts.values()]})


def _iso(moment: float) -> str:
    return dt.datetime.fromtimestamp(moment, dt.UTC).isoformat(timespec="seconds")


def _line(item: Mapping[str, Any]) -> str:
    beside = ", ".join([item["category"], *item.get("marks", ()), item.get("said_at", "")[:10]]).rstrip(", ")
    name = item["id"][:8] if "said_at" in item else item["id"]
    return f"- {escape(name)} [{escape(beside)}] {escape(clip(item['text'], LINE))}"


@dataclass(frozen=True)
class Offer(Tool):
    """A tool, and what clients are told of it.

    Attributes:
        title: for people.
        does: whether it only reads, adds something, or may take something away.
        answers: the names of its structured answer, with their JSON types.
    """

    title: str
    does: Literal["reads", "adds", "takes"]
    answers: Mapping[str, str]

    def wire(self) -> dict[str, Any]:
        """Return it as the protocol has it."""
        kinds = {name: {"type": kind} for name, kind in self.answers.items()}
        hint = {"readOnlyHint": True} if self.does == "reads" else {"destructiveHint": self.does == "takes"}
        said = {"name": self.name, "title": self.title, "description": self.description}
        gives = {"type": "object", "properties": kinds}
        takes = _brief(self.parameters)
        takes["properties"].pop("strength", None)
        for name, each in takes["properties"].items():
            for known in {name, f"{self.name}.{name}"} & _SAID.keys():
                each["description"] = _SAID[known] or self.arguments[name]["description"]
        return said | {"inputSchema": takes, "outputSchema": gives, "annotations": hint}


def _brief(value: Any) -> Any:
    """Return a schema without what costs tokens in every request and is checked anyway, in words that help."""
    if isinstance(value, Mapping):
        return {key: _brief(part) for key, part in value.items() if key not in _CHECKED}
    return value


_CHANGED = {"id": "string", "outcome": "string"}
TOOLS: tuple[Offer, ...] = (
    Offer("memory_search",
          "Search memories of earlier conversations: facts, preferences, decisions, dates.",
          Search, search, "Search memory", "reads", {"memories": "array", "results": "array"}),
    Offer("memory_list",
          "List the newest memories, or those about one entity (a person, project or thing) and key.",
          List, list_, "List memories", "reads", {"memories": "array"}),
    Offer("memory_get",
          "Read a memory by its id, or lines of MEMORY.md or memory/ by a path from memory_search.",
          _by_id(Get), get, "Read a memory or file", "reads",
          {"memories": "array", "path": "string", "text": "string"}),
    Offer("memory_store",
          "Store what will matter in later conversations: one idea in one self-contained sentence.",
          _by_id(tool_arguments.Store, quote=True), tool_work.store, "Remember", "adds", _CHANGED),
    Offer("memory_update",
          "Correct a memory when the user corrects it; otherwise the user is asked first, or the "
          "change waits for review.",
          _by_id(tool_arguments.Update, quote=True), tool_work.update, "Correct a memory", "takes", _CHANGED),
    Offer("memory_forget",
          "Forget a memory when the user withdraws it. Needs their words as `quote`, like memory_update.",
          _by_id(Forget, quote=True), tool_work.forget, "Forget a memory", "takes", _CHANGED),
    Offer("memory_link",
          "Record how one memory relates to another.",
          tool_arguments.Link, tool_work.link, "Link two memories", "adds", {"id": "string"}),
    Offer("memory_why",
          "Explain what was last recalled and why; with id, why that memory was or was not.",
          _by_id(tool_arguments.Why), tool_work.why, "Explain memory", "reads", {"id": "string", "shown": "array"}),
    Offer("memory_checkpoint",
          "Before risky work, save what you are about to do; kept for four hours.",
          tool_arguments.Checkpoint, tool_work.checkpoint, "Save a checkpoint", "adds", {"id": "string"}),
    Offer("memory_prune",
          "Remove expired memories, if the user asks for it.",
          tool_arguments.Prune, tool_work.prune, "Remove expired memories", "takes",
          {"expired": "integer", "removed": "integer"}),
    Offer("memory_reflect",
          "Find patterns in recent memories and store them.",
          tool_arguments.Reflect, tool_work.reflect, "Find patterns", "adds",
          {"examined": "integer", "patterns": "integer"}),
)  # fmt: skip
