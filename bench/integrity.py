"""Runs the at-rest cases of the public suite agent-memory-integrity against a real store.

python -m bench integrity --json

Each case writes memories through the library, edits the files behind its back, and asks whether it noticed: "rejected"
means that the store does not open, "reported" that `perdure verify` names it. Who edits holds the files and may take
rows out of every table, journal and seals included; as in the suite, he does not use the key, which lies in facts.db
and beside it.

The last case puts an older complete copy back. Of facts.db alone, the folder tells; of the whole folder nothing in it
can, and only an anchor that is kept elsewhere does.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Any

import apsw
import click
from agmi.adapters.base import MemoryAdapter, Record
from agmi.attacks.at_rest import AT_REST_ATTACKS_WITH_SNAPSHOT, SnapshotRollbackAttack
from agmi.check import LABELS, verdict

from bench.program import program
from perdure.api.memory import Memory
from perdure.errors import PerdureError, StoreLostError
from perdure.maintenance.verify import anchor, unanchored
from perdure.store.sql import run
from perdure.store.store import Store
from perdure.text.normalise import fingerprint, fts_text

SUITE = "agent-memory-integrity"
FINE = ("REJECTED", "REPORTED")
COLUMNS = ("seq", "id", "text", "normalized_hash", "metadata", "scope_target")
OWNER, OTHER = "alice", "bob"


class PerdureAdapter(MemoryAdapter):  # type: ignore[misc]
    """A store of perdure under the suite's edits; the last one puts facts.db back, or the whole folder.

    With `anchored` an anchor is kept elsewhere.
    """

    name = f"perdure {version('perdure')}"
    supports_replay = supports_metadata = supports_snapshot = True

    def __init__(self, *, whole_folder: bool = False, anchored: bool = False) -> None:
        """Prepare; nothing is made before a case begins."""
        self.whole_folder = whole_folder
        self.anchored = anchored
        self.detection_point = "read"
        self.verify_detail: str | None = None
        self._folder = Path()
        self._anchors = ""

    @property
    def home(self) -> Path:
        """The data folder."""
        return self._folder / "home"

    def setup(self) -> None:
        """Begin with an empty folder."""
        self._folder = Path(tempfile.mkdtemp(prefix="perdure-integrity-"))
        self._anchors = ""

    def teardown(self) -> None:
        """Remove it."""
        shutil.rmtree(self._folder, ignore_errors=True)

    def seed(self, n: int) -> None:
        """Write memories of one user."""
        self._write(OWNER, [f"Decision {number} of Alice is to use database heron{number}." for number in range(n)])

    def seed_other(self, n: int) -> None:
        """Write memories of another user."""
        self._write(OTHER, [f"Decision {number} of Bob is to use database otter{number}." for number in range(n)])

    def append_genuine(self) -> None:
        """Write one more memory."""
        self._write(OWNER, ["The last decision of Alice is to use database marten."])

    def reload(self) -> None:
        """Do nothing: each look opens the store anew."""

    def verify(self) -> bool:
        """Open the store and have it look at itself."""
        self.verify_detail, self.detection_point = None, "read"
        try:
            store = Store(self.home)
        except StoreLostError as error:
            self.verify_detail = error.truth
            return False
        store.close()
        self.detection_point = "audit"
        with self._memory(OWNER) as memory:
            found = [finding.what for finding in memory.admin.verify()]
        if self.anchored:
            store = Store(self.home)
            found += [finding.what for finding in unanchored(store, self._anchors)]
            store.close()
        self.verify_detail = "; ".join(dict.fromkeys(found)) or None
        return not found

    def read_all_raw(self) -> list[Record]:
        """Read the first user's rows."""
        return self._rows(OWNER)

    def read_other_raw(self) -> list[Record]:
        """Read the second user's rows."""
        return self._rows(OTHER)

    def write_raw(self, record: Record) -> None:
        """Write a row: over the one with its number, or behind all others."""
        with self._edited() as connection:
            given = record.fields
            if not run(connection, "SELECT 1 FROM facts WHERE seq = ?", (record.seq,)):
                self._forge(connection, given)
            self._put(connection, record.seq, given["text"], given["metadata"])

    def delete_raw(self, seq: int) -> None:
        """Take a memory out of every table that names it; of the newest nothing tells any more in the database."""
        with self._edited() as connection:
            [(fact_id,)] = run(connection, "SELECT id FROM facts WHERE seq = ?", (seq,))
            run(connection, "DELETE FROM facts_fts WHERE rowid = ?", (seq,))
            for table, column in (("facts", "id"), ("journal", "fact_id"), ("outbox", "fact_id"), ("seals", "id")):
                run(connection, f"DELETE FROM {table} WHERE {column} = ?", (fact_id,))
            for table in ("facts", "journal"):
                sql = f"UPDATE sqlite_sequence SET seq = (SELECT max(seq) FROM {table}) WHERE name = ?"
                run(connection, sql, (table,))

    def mutate_payload(self, record: Record) -> Record:
        """Change what a memory says."""
        record.fields["text"] = record.fields["text"].replace("heron", "cuckoo")
        return record

    def forge_record(self, template: Record) -> Record:
        """Make up a memory behind all others."""
        fields = {**template.fields, "id": "f0f0f0f0-0000-4000-8000-000000000000", "text": "Alice trusts Mallory."}
        return Record(template.seq + 100, fields)

    def replay_onto(self, victim_seq: int, donor: Record) -> None:
        """Copy a genuine memory over another, with its seal."""
        with self._edited() as connection:
            [(victim,)] = run(connection, "SELECT id FROM facts WHERE seq = ?", (victim_seq,))
            sql = "UPDATE seals SET seal = (SELECT seal FROM seals WHERE id = ?) WHERE id = ?"
            run(connection, sql, (donor.fields["id"], victim))
            self._put(connection, victim_seq, donor.fields["text"], donor.fields["metadata"])

    def read_meta(self, seq: int) -> dict[str, Any]:
        """Read a memory's metadata."""
        with self._edited() as connection:
            [(metadata,)] = run(connection, "SELECT metadata FROM facts WHERE seq = ?", (seq,))
        found: dict[str, Any] = json.loads(metadata)
        return found

    def write_meta(self, seq: int, meta: Mapping[str, Any]) -> None:
        """Write a memory's metadata."""
        with self._edited() as connection:
            run(connection, "UPDATE facts SET metadata = ? WHERE seq = ?", (json.dumps(dict(meta)), seq))

    def snapshot_store(self) -> Path:
        """Copy facts.db, or the whole folder."""
        copy = Path(tempfile.mkdtemp(dir=self._folder)) / "copy"
        if self.whole_folder:
            shutil.copytree(self.home, copy)
        else:
            shutil.copy(self.home / "facts.db", copy)
        return copy

    def restore_store(self, token: object) -> None:
        """Put the copy back."""
        copy = Path(str(token))
        if self.whole_folder:
            shutil.rmtree(self.home)
            shutil.copytree(copy, self.home)
            return
        for path in self.home.glob("facts.db*"):
            path.unlink()
        shutil.copy(copy, self.home / "facts.db")

    def identity_of(self, record: Record) -> str:
        """Return which memory a row is."""
        return str(record.fields["id"])

    def payload_of(self, record: Record) -> str:
        """Return what it says."""
        return str(record.fields["text"])

    def owner_of(self, record: Record) -> str:
        """Return whose it is."""
        return str(record.fields["scope_target"])

    def _memory(self, user: str) -> Memory:
        return Memory.open(self.home, user=user, embedder="none", timers=False, watch=False)

    def _write(self, user: str, texts: list[str]) -> None:
        with self._memory(user) as memory:
            for text in texts:
                memory.store(text)
        store = Store(self.home)
        self._anchors += f"{anchor(store)}\n"
        store.close()

    def _rows(self, user: str) -> list[Record]:
        with self._edited() as connection:
            sql = f"SELECT {', '.join(COLUMNS)} FROM facts WHERE scope_target = ? ORDER BY seq"
            return [Record(row[0], dict(zip(COLUMNS, row, strict=True))) for row in run(connection, sql, (user,))]

    def _put(self, connection: apsw.Connection, seq: int, text: str, metadata: str) -> None:
        sql = "UPDATE facts SET text = ?, normalized_hash = ?, metadata = ? WHERE seq = ?"
        run(connection, sql, (text, fingerprint(text), metadata, seq))
        [others] = run(connection, "SELECT entity, key, value, category FROM facts WHERE seq = ?", (seq,))
        words = [fts_text(part or "") for part in (text, *others)]
        sql = "INSERT OR REPLACE INTO facts_fts (rowid, text, entity, key, value, category) VALUES (?, ?, ?, ?, ?, ?)"
        run(connection, sql, (seq, *words))

    def _forge(self, connection: apsw.Connection, given: Mapping[str, Any]) -> None:
        columns = [row[1] for row in run(connection, "PRAGMA table_info(facts)") if row[1] not in ("seq", "id")]
        names = ", ".join(columns)
        run(connection, f"INSERT INTO facts (seq, id, {names}) SELECT ?, ?, {names} FROM facts WHERE seq = ?",
            (given["seq"] + 100, given["id"], given["seq"]))  # fmt: skip
        run(
            connection,
            "INSERT INTO journal (at, action, fact_id, channel, host, batch, seal)"
            " SELECT at, action, ?, channel, host, batch, seal FROM journal ORDER BY seq DESC LIMIT 1",
            (given["id"],),
        )

    @contextmanager
    def _edited(self) -> Iterator[apsw.Connection]:
        connection = apsw.Connection(str(self.home / "facts.db"))
        try:
            yield connection
        finally:
            connection.close()


def cases() -> list[dict[str, str]]:
    """Run the nine cases; return each with its verdict and what the store said."""
    adapter = PerdureAdapter()
    return [_case(adapter, attack()) for attack in AT_REST_ATTACKS_WITH_SNAPSHOT]


def whole_folder(*, anchored: bool) -> dict[str, str]:
    """Put a whole data folder back; return the verdict and what the store said."""
    return _case(PerdureAdapter(whole_folder=True, anchored=anchored), SnapshotRollbackAttack())


def _case(adapter: PerdureAdapter, attack: Any) -> dict[str, str]:
    result = attack.run(adapter)
    said = result.guard or result.error or adapter.verify_detail or ""
    return {"edit": LABELS[attack.name], "verdict": verdict(result, adapter), "said": said}


def bench() -> dict[str, Any]:
    """Run the at-rest cases of agent-memory-integrity against perdure."""
    try:
        found = cases()
        extra = {"with an anchor": whole_folder(anchored=True), "without one": whole_folder(anchored=False)}
    except PerdureError as error:
        raise click.ClickException(str(error)) from error
    passed = sum(case["verdict"] in FINE for case in found)
    suite = f"{SUITE} {version(SUITE)}"
    return {"suite": suite, "passed": passed, "of": len(found), "cases": found, "whole_folder": extra}


main = program(bench, failed=lambda result: result["passed"] < result["of"])
