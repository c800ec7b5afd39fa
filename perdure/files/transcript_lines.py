"""The lines of the session files that we keep: JSON objects, each with a keyed checksum at its end."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from perdure.files.turns import presentable
from perdure.regex import lazy
from perdure.store.scope import Scope
from perdure.text.history import mark

CHANGED, UNREADABLE = "changed", "unreadable"
_SUMMED = lazy(rb'(\{.*),"sum":"([0-9a-f]{16})"\}', re.DOTALL)


def header_line(scope: Scope, session: str, now: float, key: bytes) -> bytes:
    """Return the first line of a session's file."""
    # In ASCII, so that an id that has no UTF-8 form is still kept exactly.
    values = {"type": "session", "id": session, "scope": str(scope), "started": now}
    return _summed(json.dumps(values).encode(), key)


def moved_line(line: bytes, scope: Scope, key: bytes) -> bytes:
    """Return a line of a session that is another scope's now: its first line says so."""
    values = values_of(line)
    if values.get("type") != "session":
        return line + b"\n"
    return header_line(scope, values.get("id", ""), values.get("started", 0.0), key)


def line_of(values: Mapping[str, Any], key: bytes) -> bytes:
    """Return the line of a message; a checksum that it brings is made anew."""
    kept = {name: value for name, value in values.items() if name != "sum"}
    return _summed(json.dumps(kept, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace"), key)


def values_of(line: bytes) -> dict[str, Any]:
    """Return what a line holds; nothing of one that cannot be read."""
    try:
        values = json.loads(line)
    except (ValueError, RecursionError):
        return {}
    return values if isinstance(values, dict) else {}


def damage(line: bytes, key: bytes) -> str:
    """Return how a line differs from what was written: CHANGED or UNREADABLE; empty: it does not."""
    summed = _SUMMED.fullmatch(line)
    if summed and _sum(summed[1] + b"}", key) == summed[2]:
        return ""
    return CHANGED if values_of(line) else UNREADABLE


def accepted(line: bytes, key: bytes) -> bytes:
    """Return a line that was changed as if it had been written so; nothing of one that cannot be read."""
    how = damage(line, key)
    return b"" if how == UNREADABLE else line_of(values_of(line), key) if how else line + b"\n"


def without(line: bytes, texts: Sequence[str], key: bytes) -> bytes:
    """Return a line without texts, wherever the message or the speaker's name holds them; of a broken one nothing."""
    values = values_of(line)
    if not values:
        return b""
    changed = False
    for field in ("content", "name"):
        value = values.get(field)
        # What stood around a text may form another one once it is gone.
        while isinstance(value, str) and (found := [text for text in texts if text in value]):
            for text in found:
                value = value.replace(text, "")
            values[field], changed = value, True
    return line_of(values, key) if changed else line + b"\n"


def redacted_again(line: bytes, key: bytes) -> bytes:
    """Return a line whose message and speaker's name have passed through the present redactor."""
    values = values_of(line)
    before = {field: values[field] for field in ("content", "name") if isinstance(values.get(field), str)}
    after = {field: presentable(text) for field, text in before.items()}
    if after == before:
        return line + b"\n"
    # With the mark of what stands there now, as a host that resends its history is told from by the same redactor.
    changed = {**values, **after}
    return line_of({**changed, "mark": mark({"role": changed.get("role"), "content": changed.get("content")})}, key)


def _summed(body: bytes, key: bytes) -> bytes:
    return b'%s,"sum":"%s"}\n' % (body[:-1], _sum(body, key))


def _sum(body: bytes, key: bytes) -> bytes:
    return hashlib.blake2b(body, digest_size=8, key=key).hexdigest().encode()
