"""Reading an export: all of it is checked before anything of it is used."""

from __future__ import annotations

import base64
import binascii
import hmac
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from perdure.errors import InputError, ScopeError
from perdure.hooks.types import Channel
from perdure.maintenance.exchange import FORMAT, seal_of
from perdure.maintenance.importing import Incoming, Load
from perdure.store.fact import Fact
from perdure.store.links import Link
from perdure.store.migrations import STEPS
from perdure.store.scope import Scope
from perdure.store.store import VectorSpace
from perdure.store.transaction import StoredVector

_KINDS: Mapping[str, tuple[type, ...]] = {
    "str": (str,),
    "str | None": (str, type(None)),
    "int": (int,),
    "float": (int, float),
    "float | None": (int, float, type(None)),
    "bool": (bool,),
    "tuple[str, ...]": (list,),
    "Channel": (str,),
    "Mapping[str, Any]": (dict,),
}
_TYPES = {column.name: _KINDS[str(column.type)] for column in fields(Fact)}
_LINK_TYPES: Mapping[str, tuple[type, ...]] = {
    "id": (str,), "source_fact_id": (str,), "target_fact_id": (str,), "link_type": (str,),
    "strength": (int, float), "created_at": (int, float),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Survey:
    facts: int
    sealed: bool


class ExportFile:
    """A file that `export` wrote, or somebody after its pattern."""

    def __init__(self, path: Path) -> None:
        """Read the header.

        Raises:
            InputError: the file cannot be read, is no export, or is one of a newer perdure.
        """
        self.path = path
        first = next(self._lines(), None)
        header = None if first is None else self._parsed(*first)
        if header is None or header.get("type") != "header":
            raise InputError(f"{path} is no export of perdure; its first line has to be a header")
        for name, known in (("format", FORMAT), ("schema", len(STEPS))):
            if not isinstance(header.get(name), int) or header[name] > known:
                raise InputError(
                    f"{path} has {name} {header.get(name)!r}, this perdure knows up to {known}; upgrade perdure"
                )
        self._header = header
        self._space = self._space_of(header.get("space"))

    def load(self, key: bytes) -> Load:
        """Check every line, and whether the seal is that of the store with this key.

        Raises:
            InputError: a line is not what it should be; nothing of the file was used.
        """
        survey = self._survey(key)
        counts = self._header.get("counts")
        expected = counts.get("facts") if isinstance(counts, dict) else None
        missing = max(0, expected - survey.facts) if isinstance(expected, int) else 0
        return Load("perdure", survey.facts, self._facts, self._links, survey.sealed, self._space, missing=missing)

    def _survey(self, key: bytes) -> _Survey:
        seal, sealed, facts = seal_of(key), False, 0
        for number, line in self._lines():
            value = self._parsed(number, line)
            sealed = value["type"] == "seal" and hmac.compare_digest(str(value.get("hmac")), seal.hexdigest())
            seal.update(line)
            facts += value["type"] == "fact"
            if value["type"] == "fact":
                self._incoming(number, value)
            elif value["type"] == "link":
                self._link(number, value)
        return _Survey(facts, sealed)

    def _facts(self) -> Iterator[Incoming]:
        for number, line in self._lines():
            value = self._parsed(number, line)
            if value["type"] == "fact":
                yield self._incoming(number, value)

    def _links(self) -> Iterator[Link]:
        for number, line in self._lines():
            value = self._parsed(number, line)
            if value["type"] == "link":
                yield self._link(number, value)

    def _lines(self) -> Iterator[tuple[int, bytes]]:
        try:
            with self.path.open("rb") as file:
                yield from ((number, line) for number, line in enumerate(file, 1) if line.strip())
        except OSError as error:
            raise InputError(f"{self.path} cannot be read ({error.strerror}); check its name and mode") from error

    def _parsed(self, number: int, line: bytes) -> dict[str, Any]:
        try:
            value = json.loads(line, parse_constant=_refuse)
        except ValueError:
            value = None
        if not isinstance(value, dict) or value.get("type") not in ("header", "fact", "link", "journal", "seal"):
            raise self._wrong(number, "is no line of an export")
        return value

    def _incoming(self, number: int, line: dict[str, Any]) -> Incoming:
        try:
            fact = read_fact({name: value for name, value in line.items() if name not in ("type", "vector")})
        except InputError as error:
            raise self._wrong(number, str(error)) from None
        return Incoming(fact, self._vector(number, line.get("vector")))

    def _link(self, number: int, line: dict[str, Any]) -> Link:
        try:
            return read_link([line.get(name) for name in _LINK_TYPES])
        except InputError as error:
            raise self._wrong(number, str(error)) from None

    def _vector(self, number: int, text: object) -> StoredVector | None:
        if text is None or self._space is None:
            return None
        try:
            blob = base64.b64decode(str(text), validate=True)
        except binascii.Error:
            blob = b""
        if len(blob) != 4 * self._space.dims:
            raise self._wrong(number, f"has a vector that is not of {self._space.dims} numbers")
        return StoredVector(self._space.id, blob)

    def _space_of(self, value: object) -> VectorSpace | None:
        match value:
            case {"id": str(name), "dims": int(dims), "description": dict(description)} if dims > 0:
                return VectorSpace(name, dims, description)
        return None

    def _wrong(self, number: int, what: str) -> InputError:
        return InputError(f"{self.path} line {number} {what}; nothing was imported. Mend or remove the line")


def read_fact(values: Mapping[str, Any]) -> Fact:
    """Make a fact of columns as an export has them.

    Raises:
        InputError: a column is unknown or holds what it cannot; says so as what is said of a line.
    """
    columns = dict(values)
    if columns.get("scope") is None:
        columns |= {"scope": "global", "scope_target": ""}
    for name, value in columns.items():
        if name not in _TYPES:
            raise InputError(f"has the column {name[:40]!r}, which is unknown")
        if not _fits(value, _TYPES[name]):
            raise InputError(f"has a {name} of type {type(value).__name__}")
    if not columns.get("id") or "text" not in columns:
        raise InputError("has no id or no text")
    try:
        scope = Scope.parse(str(Scope(columns["scope"], columns.get("scope_target", ""))))
        columns |= {"scope": scope.kind, "scope_target": scope.target}
        columns["channel"] = Channel(columns.get("channel", Channel.UNKNOWN))
    except (ScopeError, ValueError) as error:
        raise InputError(f"is not usable: {error}") from None
    columns["tags"] = tuple(columns.get("tags", ()))
    return Fact(**columns)


def read_link(values: Sequence[Any]) -> Link:
    """Make a link of its values, in the order in which `Link` has them.

    Raises:
        InputError: they are no link; says so as what is said of a line.
    """
    if len(values) != len(_LINK_TYPES) or not all(map(_fits, values, _LINK_TYPES.values())):
        raise InputError("is no link")
    if not 0 <= values[4] <= 1:
        raise InputError(f"has strength {values[4]}; it must be from 0 to 1")
    return Link(*values)


def _fits(value: object, kinds: tuple[type, ...]) -> bool:
    return isinstance(value, kinds) and (bool in kinds or not isinstance(value, bool))


def _refuse(constant: str) -> None:
    raise ValueError(constant)
