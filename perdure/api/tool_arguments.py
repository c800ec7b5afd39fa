"""The tools' arguments and their descriptions for the model. Unknown arguments are refused by name."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from contextlib import suppress
from functools import cache, partial
from typing import Annotated, Any, ClassVar, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema, model_validator
from pydantic.json_schema import SkipJsonSchema

from perdure.errors import refused
from perdure.ranking.decay import LIFETIMES
from perdure.store.fact import tags_of
from perdure.store.links import TYPES
from perdure.store.triggers import LONGEST, MOST
from perdure.text.clean import clean
from perdure.text.timestamps import moment


def _chosen(names: Iterable[str], shown: Iterable[str], value: Any) -> Any:
    """Return the name that a value means, ignoring case and separators."""
    known = {_folded(name): name for name in names}
    if not isinstance(value, str) or _folded(value) not in known:
        raise refused(value, f"one of {', '.join(shown)}")
    return known[_folded(value)]


def _folded(name: str) -> str:
    return "".join(filter(str.isalnum, name)).lower()


def _several(value: Any) -> Any:
    """Return the texts of a list; models give one as JSON, or a single text, too."""
    if not isinstance(value, str):
        return value
    with suppress(ValueError, RecursionError):
        if isinstance(found := json.loads(value), list):
            return found
    return [value]


_LINKS = tuple(each for each in TYPES if each not in ("SUPERSEDES", "CORRECTS"))
"""Types of links that are made by hand; the others come of what is stored."""
_DECAYS = ("permanent", "durable", "normal", "short", "session", "ephemeral")
"""Classes shown to a model; the others are aliases of these."""
Words = Annotated[str, Field(min_length=1, max_length=2_000)]
Id = Annotated[str, Field(min_length=1, max_length=200)]
Short = Annotated[str, Field(min_length=1, max_length=200)]
_Share = Annotated[float, Field(ge=0, le=1)]
Tags = Annotated[tuple[Short, ...], Field(max_length=20), BeforeValidator(tags_of)]
Triggers = Annotated[
    tuple[Annotated[str, Field(min_length=1, max_length=LONGEST)], ...],
    Field(max_length=MOST),
    BeforeValidator(_several),
]
_Tag = Annotated[Tags, WithJsonSchema({"type": "string"})]
_Time = Annotated[float, BeforeValidator(moment), WithJsonSchema({"type": "string"})]
_Count = Annotated[int, Field(ge=1)]
_Few = Annotated[int, Field(ge=1, le=20)]
_Decay = Annotated[
    str, BeforeValidator(partial(_chosen, LIFETIMES, _DECAYS)), WithJsonSchema({"enum": _DECAYS, "type": "string"})
]
_LinkType = Annotated[
    str, BeforeValidator(partial(_chosen, _LINKS, _LINKS)), WithJsonSchema({"enum": _LINKS, "type": "string"})
]
Maybe = SkipJsonSchema[None]
"""An optional argument; providers differ in how they treat "null" in a schema."""
UNTOLD: dict[str, Any] = {"untold": True}
"""Marks an argument that is accepted but not shown to a model: every word of a schema is in every request."""
_Tagged = Annotated[_Tag | Maybe, Field(description="Only memories with this tag.")]
_AsOf = Annotated[_Time | Maybe, Field(description="As of this time: a date, ISO 8601 or epoch seconds.")]
_Former = Annotated[bool, Field(description="Include previous versions.", json_schema_extra=UNTOLD)]
WHEN = (
    "Short prompts, in the user's words, where this memory matters though they don't mention it."
    " For 'I'm allergic to penicillin': 'what can I take for my sore throat'."
)
"""What a model is told of triggers."""
_SAME = tuple(
    frozenset(names.split())
    for names in (
        "memory id memoryid factid", "source sourceid sourcefact sourcefactid",
        "target targetid targetfact targetfactid", "type linktype", "supersedes supersedesid", "limit maxresults",
    )
)  # fmt: skip
"""Other systems' names for the same argument, folded: without case and punctuation."""


class Arguments(BaseModel):
    """The base of all arguments."""

    either: ClassVar[tuple[str, ...]] = ()
    """Arguments of which exactly one is given."""

    # Models write a number in quotes, and an id of digits without.
    model_config = ConfigDict(frozen=True, extra="forbid", coerce_numbers_to_str=True)

    @classmethod
    @cache
    def _names(cls) -> Mapping[str, str]:
        """Return the argument that each accepted name stands for."""
        own = {_folded(each): field.alias or name for name, field in cls.model_fields.items()
               for each in (name, field.alias or name)}  # fmt: skip
        return {other: own[name] for same in _SAME for name in same & own.keys() for other in same} | own

    @model_validator(mode="before")
    @classmethod
    def _named(cls, values: Any) -> Any:
        if not isinstance(values, Mapping):
            return values
        optional = {field.alias or name for name, field in cls.model_fields.items() if not field.is_required()}
        told: dict[str, Any] = {}
        called: dict[str, str] = {}
        for key, value in values.items():
            name = cls._names().get(_folded(str(key)), str(key))
            plain = clean(value) if isinstance(value, str) else value
            # There are clients that fill in every argument: nothing means that it was left out.
            if plain is None or (isinstance(plain, str) and not plain.strip()):
                if name not in optional:
                    told.setdefault(name, plain)
                continue
            if name in called:
                raise ValueError(f"{called[name]} and {key} are the same argument; give one of them")
            told[name], called[name] = plain, str(key)
        return told

    @model_validator(mode="after")
    def _one_of(self) -> Self:
        if self.either and sum(getattr(self, name) is not None for name in self.either) != 1:
            raise ValueError(f"give either {' or '.join(self.either)}")
        return self


class Recall(Arguments):
    """Search long-term memory: facts, preferences, decisions, dates from earlier conversations.

    Give `query`; or only `tag`, `entity` or `category` for the newest that match; or `memory`, the number or id of a
    memory that was shown to you in shortened form, to read it in full.
    """

    query: Words | Maybe = Field(None, description="What to look for, in words.")
    memory: Id | Maybe = Field(None, description="Number or id of a memory that was shown to you.")
    limit: _Few = Field(6, description="Maximum number of memories.")
    as_of: _AsOf = None
    include_superseded: _Former = False
    tag: _Tagged = None
    entity: Short | Maybe = Field(None, description="Only memories about this person, project or thing.")
    category: Short | Maybe = Field(None, description="Only memories of this category, such as decision.")

    @model_validator(mode="after")
    def _chooses(self) -> Self:
        named = (self.query is not None) + (self.memory is not None)
        if named > 1 or not (named or self.tag or self.entity or self.category):
            raise ValueError("give query or memory, or only tag, entity or category")
        return self


class Store(Arguments):
    """Store a fact, preference, decision or date that will matter in later conversations.

    One idea in one self-contained sentence. What the user says plainly is kept automatically; what is not in their own
    words is kept as your note.
    """

    text: str = Field(min_length=3, max_length=2_000, description="One self-contained sentence.")
    category: Short | Maybe = Field(None, description="fact, preference, decision, entity...; default: detected.")
    importance: _Share = Field(0.5, description="0 to 1.")
    entity: Short | Maybe = Field(None, description="What it is about; the user is `user`.")
    key: Short | Maybe = Field(None, description="Attribute, such as birthday.")
    value: Short | Maybe = Field(None, description="Value of the attribute.")
    why: Words | Maybe = Field(None, description="The reason for a decision.")
    tags: Tags | Maybe = Field(None, description="Replaces the detected tags: a list, or comma-separated.")
    supersedes: Id | Maybe = Field(None, description="Id of the memory it replaces.")
    triggers: Triggers | Maybe = Field(None, description=WHEN)
    decay_class: _Decay | Maybe = Field(
        None, description="How long it is kept; default: as its text says, else permanently."
    )
    scope: Short | Maybe = Field(None, description="Scope, such as project:heron; default: the user's.")


class Update(Arguments):
    """Correct a memory, given the #id after its note, in the same turn as the user's correction.

    Give new words, category, importance, tags or triggers. The previous version stays in the history.
    """

    memory: Id = Field(description="Its id.")
    text: Words | Maybe = Field(None, description="New text.")
    category: Short | Maybe = Field(None, description="New category.")
    importance: _Share | Maybe = Field(None, description="0 to 1.")
    value: Short | Maybe = Field(None, description="New value of its attribute.")
    tags: Tags | Maybe = Field(None, description="New tags: a list, or comma-separated.")
    triggers: Triggers | Maybe = Field(None, description=f"Replaces the triggers you gave before. {WHEN}")

    @model_validator(mode="after")
    def _any(self) -> Update:
        if not self.model_dump(exclude_none=True).keys() - {"memory"}:
            raise ValueError("give at least one change: text, category, importance, value, tags or triggers")
        return self


class Forget(Arguments):
    """Forget a memory in the turn the user withdraws it: it is left out of every later answer.

    Give the #id after its note; or a query, to list memories to choose from.
    """

    memory: Id | Maybe = Field(None, description="Its id.")
    query: Words | Maybe = Field(None, description="To list memories to choose from.")

    either = ("memory", "query")


class Lookup(Arguments):
    """Show what is known about an entity (a person, project or thing; the user is `user`).

    With `key`, only one attribute of it, such as birthday. Exact names only, no semantic search.
    """

    entity: Short = Field(description="A person, project or thing; the user is `user`.")
    key: Short | Maybe = Field(None, description="Attribute, such as birthday.")
    tag: _Tagged = None
    as_of: _AsOf = None
    include_superseded: _Former = False


class Link(Arguments):
    """Link two memories by their ids: one causes, contradicts, is part of, depends on or is related to the other."""

    source: Id = Field(description="Id of the memory the link starts from.")
    target: Id = Field(description="Id of the other memory.")
    type: _LinkType = Field("RELATED_TO", description="How source relates to target.")
    strength: _Share = Field(1.0, description="0 to 1.")


class Search(Arguments):
    """Search MEMORY.md, memory/*.md and past conversations by meaning and keyword.

    Returns passages with citations; read the surrounding lines with memory_get.
    """

    query: Words = Field(description="What to look for, in words.")
    maxResults: _Few | Maybe = Field(None, description="Maximum number of passages; default: from settings.")
    minScore: _Share | Maybe = Field(None, description="Minimum score of a passage; default: from settings.")


class Get(Arguments):
    """Read lines of MEMORY.md or of a file in memory/, by a path or citation from memory_search."""

    path: str = Field(min_length=1, max_length=1_000, description="Such as memory/2026-02-24.md#L12-L28.")
    start: _Count | Maybe = Field(None, alias="from", description="First line.")
    lines: _Count | Maybe = Field(None, description="Number of lines.")


class Why(Arguments):
    """Explain what memory showed in the last turn and why; with `memory`, why that one was or was not recalled."""

    memory: Id | Maybe = Field(None, description="Id of a memory.")


class Checkpoint(Arguments):
    """Before risky work, save what you are about to do and where things stand; kept for four hours."""

    intent: Words = Field(description="What you are about to do.")
    state: Words = Field(description="Where things stand now.")
    expected: Words = Field("", description="Expected outcome.")


class Prune(Arguments):
    """Remove expired memories. Only when the user asks for it."""


class Reflect(Arguments):
    """Find patterns in what was said in recent days and store them as memories."""

    days: int = Field(14, ge=1, le=36_500, description="Days to look back.")
