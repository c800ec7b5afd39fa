"""Secrets in structured data, where a key says what the value is: `{"password": ...}`, at any depth."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

from perdure.errors import InputError
from perdure.regex import lazy
from perdure.secrets import filters as judge
from perdure.secrets.names import NAMES, Name
from perdure.secrets.redact import redact
from perdure.secrets.views import lowered
from perdure.text.clean import clean

_CAMEL = lazy(r"(?<=[a-z0-9])(?=[A-Z])")
_SEPARATORS = lazy(r"[\W_]+")
# Behind the name in a key such as "wifi password 2" or "api keys"; the colon stands for the key's end.
_BEHIND = lazy(r"s?(?: (?:\d+|value|text|plain|raw|old|new))*:\Z")
_NEUTRAL = frozenset(["value", "val", "text", "content", "current", "new", "old", "plain", "raw", "data"])
"""Keys that say nothing of their value: what is above or beside them does."""
_LABELS = ("name", "key", "label", "field", "title", "type", "kind", "id")
"""Beside a value, these name it: `{"name": "DB_PASSWORD", "value": ...}`."""
_SHORT_NAMES = ("pw:", "psk:")
"""Names that are none in a text."""
_DATE = lazy(r"\d{4}-\d\d-\d\d")
_SHORTEST = 3
_LEAST = 6
"""Characters of a token that counts by its key alone."""
_LONG_NUMBER = 8
_TELLING = 500
"""Characters of a value that its key is read together with, as a sentence would be."""
_DISTINCT = 4
"""Characters of a secret that is looked for in other places as well."""


class Redactor:
    """Redacts values that belong together: what is a secret in one of them stays in none."""

    def __init__(self) -> None:
        self._kinds: dict[str, None] = {}
        self._marks: dict[str, str] = {}  # by secret

    @property
    def kinds(self) -> tuple[str, ...]:
        """What was taken out, each kind once, in the order in which it was found."""
        return tuple(self._kinds)

    def text(self, text: str, labels: Sequence[str] = ()) -> str:
        """Return a text without secrets; if one of its labels names a secret, it may be one as a whole."""
        text = clean(text)
        kind = next(filter(None, (_kind_of(label, text) for label in labels)), None)
        if kind is not None:
            return self._whole(text, kind)
        found = redact(text)
        if not found.kinds and labels and len(text) <= _TELLING:
            # "backup codes", "social security number": the label tells as a sentence would.
            told = redact(f"{labels[0]}: {text}")
            if told.kinds and not told.text.endswith(text) and not redact(labels[0]).kinds:
                return self._whole(text, told.kinds[-1])
        self._kinds.update(dict.fromkeys(found.kinds))
        self._marks.update(found.marks)
        return found.text

    def value(self, value: Any, labels: Sequence[str] = ()) -> Any:
        """Return a JSON value without secrets; each text in it is judged together with its key."""
        match value:
            case str():
                return self.text(value, labels)
            case Mapping():
                return self._mapping(value, labels)
            case list() | tuple():
                if len(value) == 2 and isinstance(value[0], str):
                    return [self.value(value[0], labels), self.value(value[1], (*labels, value[0]))]
                return [self.value(item, labels) for item in value]
            case None | bool():
                return value
            case int() | float() if math.isfinite(value):
                return self._number(value, labels)
            case _:
                told = value if isinstance(value, float) else "a value"
                raise InputError(f"metadata holds {told} of type {type(value).__name__}; use JSON values only")

    def elsewhere(self, value: Any) -> Any:
        """Return a JSON value without the secrets that were found in other values."""
        match value:
            case str():
                for secret, mark in self._marks.items():
                    value = _without(value, secret, mark)
                return value
            case Mapping():
                return {self.elsewhere(key): self.elsewhere(item) for key, item in value.items()}
            case list():
                return [self.elsewhere(item) for item in value]
            case _:
                return value

    def _whole(self, text: str, kind: str) -> str:
        mark = f"[redacted {kind}]"
        self._kinds[kind] = None
        self._marks[text.strip()] = mark
        return mark

    def _mapping(self, mapping: Mapping[Any, Any], labels: Sequence[str]) -> dict[str, Any]:
        beside = [mapping[name] for name in _LABELS if isinstance(mapping.get(name), str)]
        taken: dict[str, Any] = {}
        for key, item in mapping.items():
            name = str(key)
            if name.lower() in _NEUTRAL:
                value = self.value(item, (*beside, *labels))
            else:
                value = self.value(item, (name,))
                if value == item and isinstance(item, str) and judge.is_mixed(item) and not _DATE.match(item):
                    # `{"passwords": {"router": ...}}`
                    kind = next(filter(None, (_kind_of(label, item) for label in labels)), None)
                    value = item if kind is None else self._whole(item, kind)
            taken[redact(clean(name)).text] = value
        return taken

    def _number(self, number: float, labels: Sequence[str]) -> Any:
        text = str(number)
        kind = next(filter(None, (_kind_of(label, text) for label in labels)), None)
        if kind is not None:
            return self._whole(text, kind)
        told = self.text(text) if len(text) >= _LONG_NUMBER else text
        return number if told == text else told


def _kind_of(label: str, value: str) -> str | None:
    """Return which kind of secret a value with this label is, if it is one as a whole."""
    value = value.strip()
    if len(value) < _SHORTEST or value.startswith("[redacted ") or judge.is_placeholder(value):
        return None
    spoken = lowered(_SEPARATORS.sub(" ", _CAMEL.sub(" ", label)).strip() + ":")
    if spoken.rpartition(" ")[2] in _SHORT_NAMES and judge.quoted(value):
        return "password"
    for name in NAMES:
        if any(stem in spoken for stem in name.stems):
            ends = (found.end() for found in name.pattern.finditer(spoken))
            # Of several tokens nobody says that they are secrets: language models have them, too.
            named = any(_BEHIND.match(spoken, end) and spoken[end - 5 : end + 1] != "tokens" for end in ends)
            if named and _is_secret(value, name):
                return name.kind
    return None


def _is_secret(value: str, name: Name) -> bool:
    if name.kind in ("pin", "seed-phrase"):
        return name.value.match(value) is not None
    if name.chosen:
        return judge.quoted(value)
    if " " in value or _DATE.match(value) or judge.is_code(value):
        return False
    return judge.is_made(value) and len(value) >= (_LEAST if not value.isdecimal() else _LONG_NUMBER)


def _without(text: str, secret: str, mark: str) -> str:
    """Return a text with a mark in the place of a secret, wherever it stands; an ordinary word only as a whole."""
    if len(secret) < _DISTINCT or secret not in text:
        return text
    if not secret.isalnum() or (not secret.isalpha() and len(secret) > _LEAST):
        return text.replace(secret, mark)
    return re.sub(rf"(?<!\w){re.escape(secret)}(?!\w)", lambda _: mark, text)
