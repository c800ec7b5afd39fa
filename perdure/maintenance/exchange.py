"""Export and import of everything a store knows, as a file of JSON lines that other programs can read.

The first line is a header; then come facts, links, triggers and, if asked for, the journal, a line each; the last line
is a seal by which the store knows its own exports again.
"""

from __future__ import annotations

import base64
import binascii
import errno
import hashlib
import hmac
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields
from pathlib import Path
from typing import IO, Any

from perdure.errors import InputError, ScopeError, StoreError, StoreFullError, StoreUnavailableError
from perdure.hooks.types import Channel
from perdure.maintenance.importing import Incoming, Load
from perdure.store.fact import COLUMNS, SELECT, Fact, from_row
from perdure.store.folder import whole
from perdure.store.links import Link
from perdure.store.migrations import STEPS
from perdure.store.safe import safe, safe_fact
from perdure.store.scope import Scope
from perdure.store.spaces import VectorSpace
from perdure.store.sql import Connection, newest, run
from perdure.store.store import Store
from perdure.store.transaction import StoredVector
from perdure.store.triggers import ORIGINS, Trigger, checked

FORMAT = 1
_JOURNAL_COLUMNS = ("seq", "at", "action", "fact_id", "other_id", "channel", "host", "session", "batch", "detail")
_KINDS: Mapping[str, tuple[type, ...]] = {
    "str": (str,), "str | None": (str, type(None)), "int": (int,), "float": (int, float), "bool": (bool,),
    "float | None": (int, float, type(None)), "tuple[str, ...]": (list,), "Channel": (str,),
    "Mapping[str, Any]": (dict,),
}  # fmt: skip
_TYPES = {column.name: _KINDS[str(column.type).replace("Epoch", "float")] for column in fields(Fact)}
_LINK_TYPES: Mapping[str, tuple[type, ...]] = {
    "id": (str,), "source_fact_id": (str,), "target_fact_id": (str,), "link_type": (str,),
    "strength": (int, float), "created_at": (int, float),
}  # fmt: skip
_LINES = ("header", "fact", "link", "trigger", "journal", "seal")
_TRIGGER = ("id", "fact_id", "text", "origin", "created_at")


@dataclass(frozen=True, slots=True)
class Exported:
    """The result of an export."""

    path: Path
    facts: int  # number of lines of each kind; vectors are in the lines of their facts
    links: int
    triggers: int
    vectors: int
    journal: int


def export(
    store: Store,
    target: Path,
    *,
    vectors: bool = False,
    journal: bool = False,
    replace: bool = False,
    advance: Callable[[], None] = lambda: None,
) -> Exported:
    """Write all facts with all columns, superseded and forgotten ones too, and the links between them.

    One state of the store is written, whoever writes to it meanwhile. Secrets are redacted once more. The file is
    readable by its owner only, and appears whole or not at all. An import does not take the journal.
    """
    if target.exists() and not replace:
        raise InputError(f"{target} already exists; name another file, or move it elsewhere")
    space = store.space()
    with store.database.read() as connection, private_copy(target) as file, connection:
        # The transaction holds one state of the store for all that is read below.
        counts = _counts(connection, space.id if space and vectors else None, journal)
        described = None if space is None else {"id": space.id, "dims": space.dims, "description": space.description}
        out = Sealed(file, store.key)
        out.line({
            "type": "header", "format": FORMAT, "schema": len(STEPS), "space": described, "counts": counts,
            "at": store.clock.now(), "change": newest(connection),
        })  # fmt: skip
        for line in _fact_lines(connection, space.id if space and vectors else None):
            out.line(line)
            advance()
        for row in connection.execute(f"SELECT {', '.join(_LINK_TYPES)} FROM memory_links ORDER BY rowid"):
            out.line({"type": "link", **dict(zip(_LINK_TYPES, row, strict=True))})
        for *values, text, origin, at in connection.execute(
            f"SELECT {', '.join(_TRIGGER)} FROM triggers WHERE removed_at IS NULL ORDER BY rowid"
        ):
            out.line({"type": "trigger", **dict(zip(_TRIGGER, (*values, safe(text), origin, at), strict=True))})
        if journal:
            for row in connection.execute(f"SELECT {', '.join(_JOURNAL_COLUMNS)} FROM journal ORDER BY seq"):
                out.line({"type": "journal", **dict(zip(_JOURNAL_COLUMNS, row, strict=True))})
        out.seal()
    return Exported(target, **counts)


def fact_count(store: Store) -> int:
    """Return how many facts an export has."""
    return int(store.database.query(run, "SELECT count(*) FROM facts")[0][0])


def seal_of(key: bytes) -> hmac.HMAC:
    """Return the start of a seal: it covers every byte of the file before its own line."""
    return hmac.new(key, b"perdure export\n", hashlib.sha256)


class Sealed:
    """The lines of an export on their way into a file, and the seal of what was written."""

    def __init__(self, file: IO[bytes], key: bytes) -> None:
        """Write into an open file."""
        self._file = file
        self._seal = seal_of(key)

    def line(self, value: Mapping[str, Any]) -> None:
        """Write JSON values as a line."""
        self.write(json.dumps(value, ensure_ascii=False).encode() + b"\n")

    def write(self, body: bytes) -> None:
        """Write a line as it is."""
        self._seal.update(body)
        self._file.write(body)

    def seal(self) -> None:
        """Write the last line."""
        self.line({"type": "seal", "hmac": self._seal.hexdigest()})


def _counts(connection: Connection, space_id: str | None, journal: bool) -> dict[str, int]:
    sql = (
        "SELECT (SELECT count(*) FROM facts), (SELECT count(*) FROM memory_links),"
        " (SELECT count(*) FROM triggers WHERE removed_at IS NULL),"
        " (SELECT count(*) FROM vectors WHERE embedding_id = ?), (SELECT count(*) FROM journal WHERE ? = 1)"
    )
    row = run(connection, sql, (space_id, journal))[0]
    return dict(zip(("facts", "links", "triggers", "vectors", "journal"), row, strict=True))


def _fact_lines(connection: Connection, space_id: str | None) -> Iterator[dict[str, Any]]:
    rows = connection.execute(
        f"SELECT {SELECT}, v.vector FROM facts LEFT JOIN vectors v ON v.fact_id = facts.id AND v.embedding_id = ?"
        " ORDER BY facts.seq",
        (space_id,),
    )
    for *row, vector in rows:
        line = fact_line(from_row(tuple(row)))
        yield line if vector is None else {**line, "vector": base64.b64encode(vector).decode()}


def fact_line(fact: Fact) -> dict[str, Any]:
    """Return the line of a fact, as JSON values; its texts are redacted once more."""
    # The change number counts the journal of this store, and means nothing in another.
    safe = safe_fact(fact).fact
    return {"type": "fact"} | {name: getattr(safe, name) for name in COLUMNS if name != "change_seq"}


@contextmanager
def private_copy(target: Path) -> Iterator[IO[bytes]]:
    """Lend a file that takes the place of the target when the block ends; if it raises, nothing has happened."""
    try:
        with whole(target) as part, part.open("wb") as file:
            yield file
    except OSError as error:
        raise unwritten(target, error, "file") from error


def unwritten(target: Path, error: OSError, kind: str) -> StoreError:
    """Return what to raise where a file or folder could not be written."""
    if error.errno == errno.ENOSPC:
        return StoreFullError(f"the disk is full; {target} was not written. Free some space and retry")
    return StoreUnavailableError(f"{target} cannot be written ({error.strerror}); name another {kind}")


class ExportFile:
    """A file that `export` wrote, or somebody after its pattern."""

    def __init__(self, path: Path) -> None:
        """Read the header."""
        self.path = path
        first = next(self._lines(), None)
        header = None if first is None else self._parsed(*first)
        if header is None or header.get("type") != "header":
            raise InputError(f"{path} is not a perdure export; its first line must be a header")
        for name, known in (("format", FORMAT), ("schema", len(STEPS))):
            if not isinstance(header.get(name), int) or header[name] > known:
                raise InputError(
                    f"{path} has {name} {header.get(name)!r}, this perdure supports up to {known}; upgrade perdure"
                )
        self._header = header
        self._space = self._space_of(header.get("space"))

    def load(self, key: bytes) -> Load:
        """Check every line, and whether the seal is that of the store with this key."""
        count, sealed = self._survey(key)
        counts = self._header.get("counts")
        expected = counts.get("facts") if isinstance(counts, dict) else None
        missing = max(0, expected - count) if isinstance(expected, int) else 0
        return Load(
            "perdure", count, self._facts, self._links, sealed, self._space, missing=missing, triggers=self._triggers
        )

    def _survey(self, key: bytes) -> tuple[int, bool]:
        """Check every line; return how many facts there are, and whether the seal holds."""
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
            elif value["type"] == "trigger":
                self._trigger(number, value)
        return facts, sealed

    def _facts(self) -> Iterator[Incoming]:
        return (self._incoming(number, value) for number, value in self._of_type("fact"))

    def _links(self) -> Iterator[Link]:
        return (self._link(number, value) for number, value in self._of_type("link"))

    def _triggers(self) -> Iterator[Trigger]:
        return (self._trigger(number, value) for number, value in self._of_type("trigger"))

    def _of_type(self, kind: str) -> Iterator[tuple[int, dict[str, Any]]]:
        parsed = ((number, self._parsed(number, line)) for number, line in self._lines())
        return ((number, value) for number, value in parsed if value["type"] == kind)

    def _lines(self) -> Iterator[tuple[int, bytes]]:
        try:
            with self.path.open("rb") as file:
                yield from ((number, line) for number, line in enumerate(file, 1) if line.strip())
        except OSError as error:
            raise InputError(
                f"{self.path} cannot be read ({error.strerror}); check the name and permissions"
            ) from error

    def _parsed(self, number: int, line: bytes) -> dict[str, Any]:
        try:
            value = json.loads(line, parse_constant=refuse_constant)
        except ValueError:
            value = None
        if not isinstance(value, dict) or value.get("type") not in _LINES:
            raise self._wrong(number, "is not a line of an export")
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

    def _trigger(self, number: int, line: dict[str, Any]) -> Trigger:
        try:
            return read_trigger([line.get(name) for name in _TRIGGER])
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
            raise self._wrong(number, f"has a vector that does not have {self._space.dims} dimensions")
        return StoredVector(self._space.id, blob)

    def _space_of(self, value: object) -> VectorSpace | None:
        match value:
            case {"id": str(name), "dims": int(dims), "description": dict(description)} if dims > 0:
                return VectorSpace(name, dims, description)
        return None

    def _wrong(self, number: int, what: str) -> InputError:
        return InputError(f"{self.path} line {number} {what}; nothing was imported. Fix or remove the line")


def read_fact(values: Mapping[str, Any]) -> Fact:
    """Make a fact of columns as an export has them."""
    columns = dict(values)
    if columns.get("scope") is None:
        columns |= {"scope": "global", "scope_target": ""}
    for name, value in columns.items():
        if name not in _TYPES:
            raise InputError(f"has the unknown column {name[:40]!r}")
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
    """Make a link of its values, in the order in which `Link` has them."""
    if len(values) != len(_LINK_TYPES) or not all(map(_fits, values, _LINK_TYPES.values())):
        raise InputError("is not a link")
    if not 0 <= values[4] <= 1:
        raise InputError(f"has strength {values[4]}; it must be from 0 to 1")
    return Link(*values)


def read_trigger(values: Sequence[Any]) -> Trigger:
    """Make a trigger of its values, in the order in which `Trigger` has them."""
    kinds: Sequence[tuple[type, ...]] = ((str,), (str,), (str,), (str,), (int, float))
    if len(values) != len(kinds) or not all(map(_fits, values, kinds)) or values[3] not in ORIGINS:
        raise InputError("is not a valid trigger")
    checked([values[2]])
    return Trigger(*values)


def _fits(value: object, kinds: tuple[type, ...]) -> bool:
    return isinstance(value, kinds) and (bool in kinds or not isinstance(value, bool))


def refuse_constant(constant: str) -> None:
    """Refuse what JSON has no number for, as NaN."""
    raise ValueError(constant)
