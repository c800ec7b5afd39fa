"""Export and import of everything a store knows, as a file of JSON lines that other programs can read.

The first line is a header; then come facts, links and, if asked for, the journal, a line each; the last line is a
seal by which the store knows its own exports again.
"""

from __future__ import annotations

import base64
import errno
import hashlib
import hmac
import json
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from perdure.errors import InputError, StoreFullError, StoreUnavailableError
from perdure.store.fact import COLUMNS, SELECT, Fact, from_row
from perdure.store.folder import prepare_folder, private_file, sync_folder
from perdure.store.migrations import STEPS
from perdure.store.safe import safe_fact
from perdure.store.sql import Connection, newest, run
from perdure.store.store import Store

FORMAT = 1
_LINKS = "SELECT id, source_fact_id, target_fact_id, link_type, strength, created_at FROM memory_links ORDER BY rowid"
_LINK_COLUMNS = ("id", "source_fact_id", "target_fact_id", "link_type", "strength", "created_at")
_JOURNAL_COLUMNS = ("seq", "at", "action", "fact_id", "other_id", "channel", "host", "session", "batch", "detail")


@dataclass(frozen=True, slots=True)
class Exported:
    """What an export wrote.

    Attributes:
        path: the file.
        facts, links, vectors, journal: lines of each kind; vectors stand in the lines of their facts.
    """

    path: Path
    facts: int
    links: int
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

    One state of the store is written, whoever writes to it meanwhile. Secrets are redacted once more.

    Args:
        store: an open store.
        target: the file, readable by its owner only. It appears whole or not at all.
        vectors: also the vectors of the store's space.
        journal: also the journal, for reading; an import does not take it.
        replace: take the place of a file of this name.
        advance: called after each fact.

    Raises:
        InputError: there is a file of this name already.
        StoreError: it could not be written.
    """
    if target.exists() and not replace:
        raise InputError(f"{target} exists already; name another file, or move it away")
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
        for row in connection.execute(_LINKS):
            out.line({"type": "link", **dict(zip(_LINK_COLUMNS, row, strict=True))})
        if journal:
            for row in connection.execute(f"SELECT {', '.join(_JOURNAL_COLUMNS)} FROM journal ORDER BY seq"):
                out.line({"type": "journal", **dict(zip(_JOURNAL_COLUMNS, row, strict=True))})
        out.seal()
    return Exported(target, counts["facts"], counts["links"], counts["vectors"], counts["journal"])


def fact_count(store: Store) -> int:
    """Return how many facts an export has."""
    with store.database.read() as connection:
        return int(run(connection, "SELECT count(*) FROM facts")[0][0])


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
        " (SELECT count(*) FROM vectors WHERE embedding_id = ?), (SELECT count(*) FROM journal WHERE ? = 1)"
    )
    row = run(connection, sql, (space_id, journal))[0]
    return dict(zip(("facts", "links", "vectors", "journal"), row, strict=True))


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
    """Lend a file that takes the place of the target when the block ends; if it raises, nothing has happened.

    Raises:
        StoreError: it could not be written.
    """
    prepare_folder(target.parent)
    part = target.with_name(f"{target.name}.{os.getpid()}.part")
    part.unlink(missing_ok=True)
    try:
        with private_file(part).open("wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        part.replace(target)
        sync_folder(target.parent)
    except OSError as error:
        if error.errno == errno.ENOSPC:
            raise StoreFullError(f"the disk is full; {target} was not written. Free some space and retry") from error
        raise StoreUnavailableError(f"{target} cannot be written ({error.strerror}); name another file") from error
    finally:
        part.unlink(missing_ok=True)
