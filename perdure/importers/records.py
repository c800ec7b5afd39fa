"""Values of other systems as ours: ids, times, scopes and columns. What fits no column is kept in the metadata."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

from perdure.errors import ScopeError
from perdure.hooks.types import Channel
from perdure.maintenance.importing import fact_id
from perdure.store.fact import Fact, split_tags
from perdure.store.scope import GLOBAL, Scope, checked_id

_MILLISECONDS = 1e10
"""Greater times are in milliseconds: in seconds this is the year 2286, in milliseconds April 1970."""


def seconds(value: object) -> float | None:
    """Return a time in epoch seconds: from seconds, milliseconds or an ISO date; None if it is none of these."""
    if isinstance(value, str):
        try:
            return seconds(float(value))
        except ValueError:
            return _iso(value)
    number = _number(value)
    return number / 1000 if number is not None and abs(number) > _MILLISECONDS else number


def scope_of(kind: object, target: object) -> Scope:
    """Return a scope; None is the global one. One that we do not know becomes a custom scope that nobody is in."""
    name = "global" if kind in (None, "") else str(kind)
    try:
        if name == "global":
            return GLOBAL
        return Scope.parse(name if target in (None, "") and ":" in name else f"{name}:{target or ''}")
    except ScopeError:
        pass
    try:
        unknown = f"{name}:{target}" if target else name
        return Scope("custom", checked_id(unknown.strip(), "custom"))
    except ScopeError:
        return Scope("custom", "unreadable")


def fact_of(values: Mapping[str, Any]) -> Fact:
    """Make a fact of another system's values by our column names; those that do not fit go into the metadata.

    `values`: at least `id` and `text`; `scope` and `scope_target` as that system has them.
    """
    rest = dict(values)
    metadata = json_object(rest.pop("metadata", None))
    columns: dict[str, Any] = {}
    for name, convert in _COLUMNS.items():
        if rest.get(name) is None:
            rest.pop(name, None)
        elif (value := convert(rest[name])) is not None:
            columns[name] = value
            del rest[name]
    raw_id = rest.pop("id")
    scope = scope_of(rest.pop("scope", None), rest.pop("scope_target", None))
    if scope.kind == "custom" and str(values.get("scope")).partition(":")[0] != "custom":
        rest |= {name: values[name] for name in ("scope", "scope_target") if values.get(name)}
    if fact_id(raw_id) != raw_id:
        rest["imported_id"] = raw_id
    # The fingerprint of a text is made anew: each system has its own.
    rest.pop("normalized_hash", None)
    rest.pop("text")
    return Fact(
        str(values["text"] or ""),
        id=fact_id(raw_id),
        channel=Channel.CLI,
        scope=scope.kind,
        scope_target=scope.target,
        metadata={**metadata, **{name: _json(value) for name, value in rest.items() if value is not None}},
        **columns,
    )


def _iso(text: str) -> float | None:
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        return None
    return (at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp()


def json_object(value: object) -> dict[str, Any]:
    """Return metadata as an object of JSON: read where it is written as text, under "metadata" if it is no object."""
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except ValueError:
            return {"metadata": value} if value else {}
    if isinstance(value, dict):
        return {str(name): _json(item) for name, item in value.items()}
    return {} if value is None else {"metadata": _json(value)}


def _json(value: Any) -> Any:
    match value:
        case None | bool() | int() | str():
            return value
        case float():
            return value if math.isfinite(value) else str(value)
        case dict():
            return {str(name): _json(item) for name, item in value.items()}
        case list() | tuple():
            return [_json(item) for item in value]
        case bytes():
            return value.hex()
        case _:
            return str(value)


def _text(value: object) -> str | None:
    return str(value) if isinstance(value, (str, int, float)) else None


def _number(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None


def _count(value: object) -> int | None:
    number = _number(value)
    return None if number is None or number != int(number) else int(number)


def _flag(value: object) -> bool | None:
    return bool(value) if value in (0, 1) else None


def _reference(value: object) -> str | None:
    return fact_id(value) if isinstance(value, str) and value else None


def _tags(value: object) -> tuple[str, ...] | None:
    if isinstance(value, str):
        return split_tags(value)
    return tuple(value) if isinstance(value, list) and all(isinstance(tag, str) for tag in value) else None


_BY_KIND: Mapping[Callable[[object], Any], str] = {
    _text: "why category entity key value source decay_class summary tier embedding_model provenance_session"
    " source_turn extraction_method review_state",
    _number: "importance confidence extraction_confidence",
    _count: "recall_count access_count injected_count reinforced_count",
    _flag: "pinned preserve_tags",
    _reference: "superseded_by supersedes_id",
    _tags: "tags",
    seconds: "created_at source_date expires_at decay_freeze_until last_confirmed_at last_accessed valid_from"
    " valid_until superseded_at forgotten_at",
}
_COLUMNS = {name: convert for convert, names in _BY_KIND.items() for name in names.split()}
