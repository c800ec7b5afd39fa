"""A record of the vault: the public description of a secret, and what may be stored."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from perdure.errors import InputError
from perdure.store.safe import safe

KINDS = {
    "token": "A token",
    "password": "A password",
    "api_key": "An API key",
    "ssh": "An SSH key",
    "bearer": "A bearer token",
    "other": "A secret",
}
"""Kinds of secrets, and what a memory calls them."""

MAX_NAME = 200
MAX_VALUE = 65_536
MIN_PREFIX = 8


@dataclass(frozen=True, slots=True)
class VaultRecord:
    """The public description of a secret. All times are epoch seconds."""

    id: str  # UUID
    service: str  # what the secret is for, such as "GitHub"
    kind: str  # one of `KINDS`
    name: str  # which one of that service, such as "work"; may be empty
    created_at: float  # when the value was stored
    expires_at: float | None  # when the value stops being good, if that is known


@dataclass(frozen=True, slots=True)
class Secret:
    """A record and its value, which `repr` omits."""

    record: VaultRecord
    value: str = field(repr=False)


def pointer_text(record: VaultRecord) -> str:
    """Return the text of the memory that points to a secret, without the secret."""
    name = f" ({record.name})" if record.name else ""
    return f"{KINDS[record.kind]} for {record.service}{name} is in the vault (id {record.id[:MIN_PREFIX]})."


def checked(value: str, service: str, kind: str, name: str, expires_at: float | None) -> bytes:
    """Return the bytes of a value that may be stored under this description.

    Raises:
        InputError: a value is invalid; the message never contains it.
    """
    if kind not in KINDS:
        raise InputError(f"kind {kind[:40]!r} is unknown; use one of {', '.join(KINDS)}")
    if not service:
        raise InputError("the service is empty; say what the secret is for")
    for what, label in (("service", service), ("name", name)):
        if len(label) > MAX_NAME or not label.isprintable() or label != label.strip():
            raise InputError(
                f"the {what} has {len(label)} characters; give one line of at most {MAX_NAME} printable characters"
            )
        # Service and name stand in the open, so what looks like a secret must not be there.
        if safe(label) != label or (value and value in label):
            raise InputError(f"the {what} seems to contain the secret itself; give another {what}")
    if expires_at is not None and not math.isfinite(expires_at):
        raise InputError(f"expires_at is {expires_at}; give epoch seconds, or None")
    try:
        plain = value.encode()
    except UnicodeEncodeError:
        raise InputError("the value contains a lone surrogate; it cannot be stored") from None
    if not 0 < len(plain) <= MAX_VALUE:
        raise InputError(f"the value has {len(plain)} bytes; it must have 1 to {MAX_VALUE}")
    return plain
