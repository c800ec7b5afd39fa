"""What the tools take. Strict: an argument that is unknown is refused by name."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator
from pydantic.json_schema import SkipJsonSchema

Words = Annotated[str, Field(min_length=1, max_length=2_000)]
Id = Annotated[str, Field(min_length=1, max_length=200)]
Short = Annotated[str, Field(min_length=1, max_length=200)]
Share = Annotated[float, Field(ge=0, le=1)]
Tags = Annotated[tuple[Short, ...], Field(max_length=20)]
Count = Annotated[int, Field(ge=1, le=1_000_000)]
DecayClass = Literal["permanent", "durable", "normal", "short", "session", "ephemeral"]
LinkType = Literal[
    "RELATED_TO", "CAUSED_BY", "PART_OF", "DEPENDS_ON", "CONTRADICTS", "INSTANCE_OF", "DERIVED_FROM"
]  # fmt: skip
Maybe = SkipJsonSchema[None]
"""An argument that may be left out; providers differ in what they make of "null" in a schema."""


class Arguments(BaseModel):
    """What all of them have in common."""

    # Models write a number in quotes, and an id of digits without.
    model_config = ConfigDict(frozen=True, extra="forbid", coerce_numbers_to_str=True)


class Recall(Arguments):
    """Of memory_recall."""

    query: Words | Maybe = Field(None, description="What to look for, in words.")
    memory: Id | Maybe = Field(None, description="Number or id of a memory that was shown to you.")
    limit: int = Field(6, ge=1, le=20, description="Memories at the most.")
    as_of: float | Maybe = Field(None, description="What was true at this time, epoch seconds.")
    tag: Short | Maybe = Field(None, description="Only memories with this tag.")
    entity: Short | Maybe = Field(None, description="Only memories about this person, project or thing.")
    category: Short | Maybe = Field(None, description="Only memories of this category, such as decision.")

    @model_validator(mode="after")
    def _one(self) -> Recall:
        if (self.query is None) == (self.memory is None):
            raise ValueError("give either query or memory")
        return self


class Store(Arguments):
    """Of memory_store."""

    text: str = Field(min_length=3, max_length=2_000, description="One sentence that can be understood alone.")
    category: Short | Maybe = Field(None, description="fact, preference, decision, entity...; left out: found.")
    importance: float = Field(0.5, ge=0, le=1, description="0 to 1.")
    entity: Short | Maybe = Field(None, description="What it is about; the user is `user`.")
    key: Short | Maybe = Field(None, description="Which property, such as birthday.")
    value: Short | Maybe = Field(None, description="Its value.")
    why: Words | Maybe = Field(None, description="The reason, of a decision.")
    tags: Tags | Maybe = Field(None, description="Instead of those that are found.")
    supersedes: Id | Maybe = Field(None, description="Id of the memory whose place it takes.")
    decay_class: DecayClass | Maybe = Field(None, description="How long it is kept; left out: for good, or as it says.")
    scope: Short | Maybe = Field(None, description="Whose it is, such as project:heron; left out: the user's.")


class Update(Arguments):
    """Of memory_update."""

    memory: Id = Field(description="Its id.")
    text: Words | Maybe = Field(None, description="New words.")
    category: Short | Maybe = Field(None, description="New category.")
    importance: Share | Maybe = Field(None, description="0 to 1.")
    value: Short | Maybe = Field(None, description="New value of its slot.")
    tags: Tags | Maybe = Field(None, description="New tags.")

    @model_validator(mode="after")
    def _any(self) -> Update:
        if not self.model_dump(exclude_none=True).keys() - {"memory"}:
            raise ValueError("give what is to be changed: text, category, importance, value or tags")
        return self


class Forget(Arguments):
    """Of memory_forget."""

    memory: Id | Maybe = Field(None, description="Its id, or its first eight digits.")
    query: Words | Maybe = Field(None, description="To be shown memories to choose from.")

    @model_validator(mode="after")
    def _one(self) -> Forget:
        if (self.query is None) == (self.memory is None):
            raise ValueError("give either memory or query")
        return self


class Lookup(Arguments):
    """Of lookup."""

    entity: Short = Field(description="A person, project or thing; the user is `user`.")
    key: Short | Maybe = Field(None, description="One property of it.")
    tag: Short | Maybe = Field(None, description="Only memories with this tag.")
    as_of: float | Maybe = Field(None, description="What was true at this time, epoch seconds.")


class Link(Arguments):
    """Of memory_link."""

    source: Id = Field(description="Id of the memory that the link begins at.")
    target: Id = Field(description="Id of the other.")
    type: LinkType = Field("RELATED_TO", description="How source stands to target.")
    strength: float = Field(1.0, ge=0, le=1, description="0 to 1.")


class Search(Arguments):
    """Of memory_search; the names are those of OpenClaw's own tool."""

    query: Words = Field(description="What to look for, in words.")
    maxResults: int = Field(6, ge=1, le=20, description="Passages at the most.")
    minScore: Share | Maybe = Field(None, description="Leave out what is less certain.")


class Get(Arguments):
    """Of memory_get; the names are those of OpenClaw's own tool."""

    path: str = Field(min_length=1, max_length=1_000, description="Such as memory/2026-02-24.md#L12-L28.")
    start: Count | Maybe = Field(None, alias="from", description="First line.")
    lines: Count | Maybe = Field(None, description="How many.")


class Why(Arguments):
    """Of memory_why."""

    memory: Id | Maybe = Field(None, description="Id of a memory.")


class Checkpoint(Arguments):
    """Of memory_checkpoint."""

    intent: Words = Field(description="What you are about to do.")
    state: Words = Field(description="Where things stand now.")
    expected: Words = Field("", description="What should come out of it.")


class Prune(Arguments):
    """Of memory_prune."""


class Reflect(Arguments):
    """Of memory_reflect."""

    days: int = Field(14, ge=1, le=365, description="How far back.")
