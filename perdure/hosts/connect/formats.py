"""The formats of config files: JSON, and TOML with its comments."""

from __future__ import annotations

import json
import tomllib
from collections.abc import MutableMapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import tomlkit
from tomlkit.exceptions import TOMLKitError
from tomlkit.items import Table

from perdure.errors import HostError
from perdure.hosts.connect.config_file import ConfigFile
from perdure.regex import lazy

Values = MutableMapping[str, Any]

_BOM = "\ufeff"
_INDENT = lazy(r"\n([ \t]+)\S")
_LONE = lazy("[\ud800-\udfff]")
MISSING = object()


def parse(path: Path, content: bytes | None) -> Values:
    """Return what a config file says; an absent or empty one says nothing.

    Raises:
        HostError: it is broken.
    """
    try:
        text = (content or b"").decode().removeprefix(_BOM)
        values = _toml(text) if path.suffix == ".toml" else json.loads(text or "{}")
    except (ValueError, RecursionError) as error:
        kind = path.suffix.lstrip(".").upper()
        raise HostError(f"{path} is no {kind} ({error}); mend it first. Nothing was changed") from None
    if not isinstance(values, MutableMapping):
        raise HostError(f"{path} holds no object; mend it first. Nothing was changed")
    return values


def read_values(path: Path) -> Values:
    """Return what a config file says, as it stands on the disk.

    Raises:
        HostError: it is broken, or cannot be read.
    """
    return parse(path, ConfigFile.read(path).content)


def dump(path: Path, values: Values, former: bytes | None) -> bytes:
    """Return the file that says this: in TOML all else stays as it was written, in JSON the indentation.

    Raises:
        HostError: the change cannot be made to this file.
    """
    text = (former or b"").decode()
    bom = _BOM if text.startswith(_BOM) else ""
    if isinstance(values, tomlkit.TOMLDocument):
        return (bom + _written(path, values)).encode()
    indent = _INDENT.search(text)
    try:
        written = json.dumps(values, ensure_ascii=False, allow_nan=False, indent=indent[1] if indent else 2)
    except ValueError:
        raise HostError(f"{path} holds a number that JSON cannot name; mend it first. Nothing was changed") from None
    # JSON can name half of a character, UTF-8 cannot.
    written = _LONE.sub(lambda match: f"\\u{ord(match[0]):04x}", written)
    newline = "\r\n" if "\r\n" in text else "\n"
    ending = newline if not text or text.endswith("\n") else ""
    return (bom + written.replace("\n", newline) + ending).encode()


def at(values: Any, *keys: str) -> Any:
    """Return what stands at a place, or MISSING."""
    for key in keys:
        if not isinstance(values, MutableMapping) or key not in values:
            return MISSING
        values = values[key]
    return values


def child(values: Values, key: str, kind: type[dict[str, Any]] | type[list[Any]]) -> Any:
    """Return the object or the list at a key; it is made if there is none.

    Raises:
        HostError: something else stands there.
    """
    if key not in values:
        values[key] = kind()
    found = values[key]
    if not isinstance(found, MutableMapping if kind is dict else kind):
        raise HostError(f"its {key!r} is not of the kind that its program reads; mend it first. Nothing was changed")
    return found


def put(values: Values, key: str, value: dict[str, Any]) -> None:
    """Set an object; in TOML a table that gets a line of its own below."""
    values[key] = value
    table = values[key]
    if isinstance(table, Table):
        table.add(tomlkit.nl())


def _toml(text: str) -> Values:
    try:
        return tomlkit.parse(text)
    except TOMLKitError as error:
        raise ValueError(str(error)) from None


def _written(path: Path, values: tomlkit.TOMLDocument) -> str:
    text = values.as_string().rstrip("\n")
    text += "\n" if text else ""
    # A second reader sees to it that what is written says what is meant.
    with suppress(tomllib.TOMLDecodeError):
        if tomllib.loads(text) == values.unwrap():
            return text
    raise HostError(
        f"{path} cannot be changed safely as it is written; write what belongs to one table below one [header], and run"
        " this again. Nothing was changed"
    )
