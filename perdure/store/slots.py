"""Slots (entity and key): which hold one value only, and what they add to a text."""

from __future__ import annotations

_SINGLE = frozenset(
    [
        "name",
        "nickname",
        "birthday",
        "age",
        "email",
        "phone",
        "address",
        "location",
        "city",
        "country",
        "hometown",
        "employer",
        "job",
        "title",
        "role",
        "team",
        "manager",
        "boss",
        "timezone",
        "pronouns",
        "nationality",
        "salary",
        "deadline",
        "username",
        "website",
        "anniversary",
    ]
)
_SINGLE_PREFIXES = ("favorite ", "favourite ", "preferred ", "default ", "main ", "current ")


def vector_text(text: str, entity: str | None, key: str | None) -> str:
    """Return what is embedded for a fact.

    A slot that the words only imply is named in front: "I live in Lisbon" is near no question about a location,
    "My location: I live in Lisbon" is.
    """
    if entity is None or key is None:
        return text
    spoken = key.replace("_", " ")
    if spoken.casefold() in text.casefold():
        return text
    slot = f"My {spoken}" if entity.casefold() == "user" else f"{entity} {spoken}"
    return f"{slot}: {text}"


def is_single_valued(key: str) -> bool:
    """Return whether a new value in this slot means that the old one is no longer true.

    "My birthday is ..." can have one answer only; "my brother is ..." can be said of him many times.
    """
    key = key.casefold()
    return key in _SINGLE or key.startswith(_SINGLE_PREFIXES) or key.rsplit(" ", 1)[-1] in _SINGLE
