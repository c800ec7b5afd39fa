"""What the librarian may propose, as data."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date
from functools import cache
from typing import Annotated, Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, TypeAdapter, ValidationError

MOST: Final = 60
"""Operations of one answer: what comes behind them is passed over."""
MOST_TRIGGERS: Final = 4
_SHOWN: Final = 5
"""Problems that a model is told of at once."""


def _text(most: int) -> Any:
    return StringConstraints(strip_whitespace=True, min_length=1, max_length=most)


Quote = Annotated[str, _text(800)]
Note = Annotated[str, _text(500)]
Name = Annotated[str, StringConstraints(pattern=r"^m[0-9]{1,4}$")]
Situation = Annotated[str, _text(200)]
Category = Annotated[str, _text(40)]
Slot = tuple[Annotated[str, _text(60)], Annotated[str, _text(60)], Annotated[str, _text(120)]]


class _Operation(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    quote: Quote


class Remember(_Operation):
    """Keep a note."""

    op: Literal["remember"]
    note: Note
    category: Category = "other"
    slot: Slot | None = None
    until: date | None = None
    triggers: Annotated[tuple[Situation, ...], Field(max_length=MOST_TRIGGERS)] = ()


class Replace(_Operation):
    """Keep a note in the place of a memory."""

    op: Literal["replace"]
    target: Name
    note: Note
    category: Category = "other"
    slot: Slot | None = None
    until: date | None = None
    triggers: Annotated[tuple[Situation, ...], Field(max_length=MOST_TRIGGERS)] = ()


class Merge(_Operation):
    """Keep one note in the place of several memories that say the same."""

    op: Literal["merge"]
    targets: Annotated[tuple[Name, ...], Field(min_length=2, max_length=8)]
    note: Note


class Withdraw(_Operation):
    """Take a memory out of use."""

    op: Literal["withdraw"]
    target: Name
    why: Literal["over", "not_users"]


class File(_Operation):
    """Give a memory another category."""

    op: Literal["file"]
    target: Name
    category: Category


class Triggers(_Operation):
    """Give a memory without triggers some."""

    op: Literal["triggers"]
    target: Name
    triggers: Annotated[tuple[Situation, ...], Field(min_length=1, max_length=MOST_TRIGGERS)]


class Lesson(_Operation):
    """Keep what the agent has learnt of a tool."""

    op: Literal["lesson"]
    note: Note


class Nothing(BaseModel):
    """Do nothing."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    op: Literal["nothing"]


Noted = Remember | Replace
Operation = Remember | Replace | Merge | Withdraw | File | Triggers | Lesson | Nothing


@cache
def _reader() -> TypeAdapter[Operation]:
    return TypeAdapter(Annotated[Operation, Field(discriminator="op")])


def schema() -> dict[str, Any]:
    """Return the JSON schema of an answer."""
    one = _reader().json_schema(ref_template="#/$defs/{model}")
    defs = one.pop("$defs")
    operations = {"type": "array", "maxItems": MOST, "items": one}
    defs = {name: _untitled(each) for name, each in defs.items()}
    return {"type": "object", "properties": {"operations": operations}, "required": ["operations"], "$defs": defs}


def _untitled(form: dict[str, Any]) -> dict[str, Any]:
    """Return a form without the titles that only say its names again."""
    properties = form["properties"].items()
    told = {name: {key: value for key, value in each.items() if key != "title"} for name, each in properties}
    return {key: value for key, value in form.items() if key != "title"} | {"properties": told}


def parse(answer: object) -> tuple[list[Operation], list[str]]:
    """Return the operations of an answer that have the form, and what is wrong with the others, in words."""
    given = answer.get("operations") if isinstance(answer, dict) else answer
    if not isinstance(given, list):
        return [], ['the answer is not {"operations": [...]}']
    found: list[Operation] = []
    wrong: list[str] = []
    for number, each in enumerate(given[:MOST], 1):
        try:
            found.append(_reader().validate_python(each, strict=None))
        except ValidationError as error:
            wrong += (f"operation {number}: {told}" for told in _told(error))
    return found, wrong[:_SHOWN]


def targets(operation: Operation) -> Iterator[str]:
    """Yield the names of the memories that an operation is about."""
    if isinstance(operation, Merge):
        yield from operation.targets
    elif isinstance(operation, Replace | Withdraw | File | Triggers):
        yield operation.target


def _told(error: ValidationError) -> Iterator[str]:
    for each in error.errors(include_input=False, include_url=False)[:_SHOWN]:
        yield f"{'.'.join(map(str, each['loc'])) or 'it'}: {each['msg'].removeprefix('Value error, ')}"
