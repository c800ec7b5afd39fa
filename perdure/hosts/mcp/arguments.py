"""What the tools take from a client of MCP: memories are named by `id` and counted by `limit`, times are ISO 8601."""

from __future__ import annotations

import datetime as dt
from typing import Annotated, ClassVar, Literal

from pydantic import Field, model_validator

from perdure.api import tool_arguments as arguments
from perdure.api.tool_arguments import Arguments, DecayClass, Id, LinkType, Maybe, Share, Short, Tags, Words

Line = Annotated[int, Field(ge=1)]
Quote = Words | Maybe
_QUOTE = "The user's own words that ask for it."


class Search(Arguments):
    """Of memory_search."""

    query: Words
    places: Literal["memories", "files", "conversations", "all"] = Field("memories", alias="in")
    entity: Short | Maybe = None
    category: Short | Maybe = None
    tag: Short | Maybe = None
    as_of: dt.datetime | Maybe = None
    limit: int = Field(6, ge=1, le=20)


class List(Arguments):
    """Of memory_list."""

    entity: Short | Maybe = Field(None, description="The user is `user`.")
    key: Short | Maybe = Field(None, description="Property of entity.")
    category: Short | Maybe = None
    tag: Short | Maybe = None
    as_of: dt.datetime | Maybe = None
    limit: int = Field(20, ge=1, le=100)

    @model_validator(mode="after")
    def _slot(self) -> List:
        if self.key is not None and self.entity is None:
            raise ValueError("key needs entity")
        return self


class Get(Arguments):
    """Of memory_get."""

    id: Id | Maybe = None
    path: Words | Maybe = Field(None, description="Such as memory/2026-02-24.md#L12-L28.")
    start: Line | Maybe = Field(None, alias="from", description="First line.")
    lines: Line | Maybe = None

    @model_validator(mode="after")
    def _one(self) -> Get:
        if (self.id is None) == (self.path is None):
            raise ValueError("give either id or path")
        return self


class Store(Arguments):
    """Of memory_store."""

    text: str = Field(min_length=3, max_length=2_000)
    category: Short | Maybe = Field(None, description="fact, preference, decision, entity...")
    importance: Share = 0.5
    entity: Short | Maybe = None
    key: Short | Maybe = None
    value: Short | Maybe = None
    why: Words | Maybe = None
    tags: Tags | Maybe = None
    supersedes: Id | Maybe = Field(None, description="Id of what it replaces.")
    decay_class: DecayClass | Maybe = None
    scope: Short | Maybe = Field(None, description="`project`: for this repository alone.")
    quote: Quote = Field(None, exclude=True, description=_QUOTE)


class Update(arguments.Update):
    """Of memory_update."""

    memory: Id = Field(alias="id")
    text: Words | Maybe = None
    category: Short | Maybe = None
    importance: Share | Maybe = None
    value: Short | Maybe = None
    tags: Tags | Maybe = None
    quote: Quote = Field(None, exclude=True, description=_QUOTE)


class Forget(Arguments):
    """Of memory_forget."""

    memory: Id = Field(alias="id")
    quote: Quote = Field(None, exclude=True, description=_QUOTE)


class Link(Arguments):
    """Of memory_link."""

    source: Id
    target: Id
    type: LinkType = Field("RELATED_TO", description="How source stands to target.")
    strength: ClassVar[float] = 1.0


class Why(Arguments):
    """Of memory_why."""

    memory: Id | Maybe = Field(None, alias="id")


class Checkpoint(Arguments):
    """Of memory_checkpoint."""

    intent: Words
    state: Words
    expected: Words = ""


class Prune(Arguments):
    """Of memory_prune."""


class Reflect(Arguments):
    """Of memory_reflect."""

    days: int = Field(14, ge=1, le=365)
