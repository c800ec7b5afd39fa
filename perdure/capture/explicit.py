"""A memory that somebody asks to be stored: what is left out is made out from its text."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from perdure.capture.describe import CategoryPatterns, check_category, describe
from perdure.capture.lifetimes import timed
from perdure.capture.statements import Statement
from perdure.errors import InputError
from perdure.hooks.types import Channel
from perdure.store.fact import Fact
from perdure.store.lifecycle import checked
from perdure.store.safe import SafeFact, safe_fact
from perdure.store.scope import Scope


@dataclass(frozen=True, slots=True)
class Given:
    """What the caller says about a memory beside its text, in the fields of `Fact`; None: to be made out."""

    category: str | None = None
    importance: float = 0.5
    entity: str | None = None
    key: str | None = None
    value: str | None = None
    why: str | None = None
    tags: Iterable[str] | None = None
    decay_class: str | None = None
    metadata: Mapping[str, Any] | None = None


def explicit_fact(
    text: str, given: Given, scope: Scope, channel: Channel, now: float, zone: dt.tzinfo | None = None,
    categories: CategoryPatterns = (),
) -> SafeFact:  # fmt: skip
    """Return the fact to store, without secrets; missing tags are found when it is written.

    `now`: epoch seconds; what it says of days counts in the zone.
    """
    values = {name: value for name in Given.__slots__ if (value := getattr(given, name)) is not None}
    if channel not in tuple(Channel):
        raise InputError(f"channel {channel!r} is unknown; use one of {', '.join(Channel)}")
    fitting = checked({**values, "text": text, "importance": given.importance})
    if given.category is not None:
        check_category(given.category, categories)
    # Redacted first: a slot's value cut out of "my password is ..." no longer shows what it is.
    given_fact = Fact(
        text=text,
        why=given.why,
        category=given.category or "",
        entity=given.entity,
        key=given.key,
        value=given.value,
        tags=fitting.get("tags", ()),
        metadata=dict(given.metadata or {}),
    )
    clean = safe_fact(given_fact)
    fact, text = clean.fact, clean.fact.text.strip()
    known = describe(Statement(text, "stored"), categories)
    slot = known.slot if given.entity is None and given.key is None else None
    described = replace(
        fact,
        text=text,
        why=fact.why or known.why,
        category=fact.category or known.category,
        importance=given.importance,
        entity=slot.entity if slot else fact.entity,
        key=slot.key if slot else fact.key,
        value=slot.value if slot and given.value is None else fact.value,
        source=channel.value,
        channel=channel,
        preserve_tags=given.tags is not None,
        scope=scope.kind,
        scope_target=scope.target,
        extraction_method="explicit",
    )
    found = timed(described, now, zone)
    return replace(clean, fact=replace(found, decay_class=given.decay_class or found.decay_class))
