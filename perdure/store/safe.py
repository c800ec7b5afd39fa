"""What may be written to the disk: no secrets, and no characters that no file can hold."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from perdure.secrets.fields import Redactor
from perdure.secrets.redact import redact
from perdure.store.fact import Fact
from perdure.text.clean import clean

_PLAIN = ("text", "why", "category", "entity", "key", "value", "summary")
TEXTS = (*_PLAIN, "tags", "metadata")
"""What of a fact may hold a secret."""


@dataclass(frozen=True, slots=True)
class SafeFact:
    """A fact as it may be written."""

    fact: Fact
    redacted: tuple[str, ...]  # the kinds of what was taken out


def safe(text: str) -> str:
    """Return a text as it may be written."""
    return redact(clean(text)).text


def safe_values(value: Any) -> Any:
    """Return a JSON value as it may be written: what its keys name as a secret is one."""
    redactor = Redactor()
    return redactor.elsewhere(redactor.value(value))


def safe_fact(fact: Fact) -> SafeFact:
    """Return a fact as it may be written. What is a secret by its slot or its metadata goes out of its texts, too."""
    redactor = Redactor()
    slot = [part for part in (fact.entity, fact.key) if part]
    labels = (" ".join(slot), *slot) if slot else ()
    # A memory of one word may be nothing but the value.
    named = {"value": labels, "text": labels if len(fact.text.split()) == 1 else ()}
    values: dict[str, Any] = {
        name: redactor.text(text, named.get(name, ())) for name in _PLAIN if (text := getattr(fact, name)) is not None
    }
    values |= {"tags": redactor.value(list(fact.tags)), "metadata": redactor.value(fact.metadata)}
    values = redactor.elsewhere(values)
    return SafeFact(replace(fact, **values | {"tags": tuple(values["tags"])}), redactor.kinds)
