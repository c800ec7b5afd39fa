"""Nothing of what another system knew is lost on the way."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import apsw
import pytest

from perdure.api.memory import Memory
from perdure.errors import InputError
from perdure.hooks.types import Channel, TurnContext
from perdure.importers.records import scope_of, seconds
from perdure.importers.sources import kind_of, load_source
from perdure.maintenance.importing import Imported, bring_in, fact_id
from perdure.ranking.decay import DAY
from perdure.store.fact import Fact
from perdure.store.scope import KINDS, Audience, Scope
from perdure.store.search import View, by_ids
from perdure.store.sql import run
from perdure.store.store import Store

ONE, TWO, THREE = (f"0000000{number}-aaaa-4bbb-8ccc-dddddddddddd" for number in (1, 2, 3))
THEN = 1_700_000_000.0
COLUMNS = {
    "id": ONE, "text": "I prefer short answers.", "why": "said twice", "category": "preference", "importance": 0.8,
    "entity": "user", "key": "style", "value": "short", "source": "distill", "created_at": THEN,
    "source_date": THEN - DAY, "decay_class": "durable", "expires_at": THEN + DAY, "last_confirmed_at": THEN + 60,
    "confidence": 0.75, "summary": "short answers", "tags": "style,writing", "normalized_hash": "theirs",
    "recall_count": 7, "access_count": 6, "last_accessed": THEN + 90, "valid_from": THEN, "valid_until": THEN + 5,
    "superseded_at": THEN + 5, "superseded_by": TWO, "supersedes_id": THREE, "tier": "hot", "scope": "agent",
    "scope_target": "main", "decay_freeze_until": THEN + 9, "reinforced_count": 3, "embedding_model": "text-3-small",
    "provenance_session": "session-9", "source_turn": "4", "extraction_method": "llm", "extraction_confidence": 0.5,
    "preserve_tags": 1,
}  # fmt: skip
EXTRA = {"last_accessed_at": "2023-11-14T22:14:50.000Z", "procedure_type": "positive", "success_count": 2}


def hybrid(folder: Path, *rows: Mapping[str, Any], links: Sequence[tuple[Any, ...]] = ()) -> Path:
    """Write a facts.db of hybrid-memory, with the columns that the rows have."""
    folder.mkdir(exist_ok=True)
    names = list(dict.fromkeys(name for row in rows for name in row))
    connection = apsw.Connection(str(folder / "facts.db"))
    run(connection, f"CREATE TABLE facts ({', '.join(names)})")
    run(
        connection,
        "CREATE TABLE memory_links (id, source_fact_id, target_fact_id, link_type, strength, created_at)",
    )
    for row in rows:
        sql = f"INSERT INTO facts VALUES ({', '.join('?' * len(names))})"
        run(connection, sql, [row.get(name) for name in names])
    connection.executemany("INSERT INTO memory_links VALUES (?, ?, ?, ?, ?, ?)", links)
    connection.close()
    return folder


def wal(folder: Path, *entries: Mapping[str, Any], array: bool = False) -> None:
    text = json.dumps(entries) if array else "".join(json.dumps(entry) + "\n" for entry in entries)
    (folder / "memory.wal").write_text(text)


def entry(name: str, text: str, operation: str = "store", target: str | None = None, **data: Any) -> dict[str, Any]:
    return {
        "id": name, "timestamp": THEN * 1000, "operation": operation, "targetId": target,
        "data": {"text": text, "vector": [0.1, 0.2], **data},
    }  # fmt: skip


def take(store: Store, path: Path, **options: Any) -> Imported:
    return bring_in(store, load_source(path, store.key), **options)


def facts(store: Store) -> dict[str, Fact]:
    with store.database.read() as connection:
        ids = [row[0] for row in run(connection, "SELECT id FROM facts")]
        scopes = {Scope(*row) for row in run(connection, "SELECT DISTINCT scope, scope_target FROM facts")}
        everybody = Audience(frozenset(scopes), None)
        found = by_ids(connection, ids, View(everybody, 0.0, include_superseded=True))
        forgotten = set(ids) - found.keys()
        assert not forgotten, "use `column` for these"
        return found


def column(store: Store, name: str) -> dict[str, Any]:
    with store.database.read() as connection:
        return dict(run(connection, f"SELECT id, {name} FROM facts"))


class TestHybridMemory:
    def test_every_field_survives(self, store: Store, tmp_path: Path) -> None:
        report = take(store, hybrid(tmp_path / "hybrid", COLUMNS | EXTRA))
        assert (report.kind, report.added) == ("hybrid-memory", 1)
        fact = facts(store)[ONE]
        kept = {name: getattr(fact, name) for name in COLUMNS if name != "normalized_hash"}
        expected = {name: value for name, value in COLUMNS.items() if name != "normalized_hash"}
        assert kept == expected | {"tags": ("style", "writing"), "preserve_tags": True}
        assert fact.metadata == EXTRA

    def test_of_an_old_version_only_what_is_there(self, store: Store, tmp_path: Path) -> None:
        old = {"id": ONE, "text": "I like tea.", "category": "fact", "importance": 0.5, "created_at": int(THEN)}
        take(store, hybrid(tmp_path / "hybrid", old))
        fact = facts(store)[ONE]
        assert (fact.text, fact.created_at, fact.scope, fact.metadata) == ("I like tea.", THEN, "global", {})

    def test_without_expiry_nothing_expires(self, store: Store, tmp_path: Path) -> None:
        take(store, hybrid(tmp_path / "hybrid", COLUMNS | {"expires_at": None, "superseded_at": None}))
        assert facts(store)[ONE].expires_at is None

    def test_values_that_fit_no_column_are_kept_in_the_metadata(self, store: Store, tmp_path: Path) -> None:
        row = COLUMNS | {"confidence": "rather", "created_at": "2023-11-14T22:13:20Z", "expires_at": THEN * 1000}
        take(store, hybrid(tmp_path / "hybrid", row))
        fact = facts(store)[ONE]
        assert (fact.confidence, fact.created_at, fact.expires_at) == (1.0, THEN, THEN)
        assert fact.metadata == {"confidence": "rather"}

    def test_comes_as_an_import_unless_it_is_trusted(self, store: Store, tmp_path: Path) -> None:
        folder = hybrid(tmp_path / "hybrid", COLUMNS)
        take(store, folder)
        assert facts(store)[ONE].channel is Channel.IMPORT
        assert take(store, folder, trust=True).vouched == 1
        assert facts(store)[ONE].channel is Channel.CLI

    def test_ids_that_are_no_uuids_are_translated_everywhere(self, store: Store, tmp_path: Path) -> None:
        rows = ({"id": "a1", "text": "I like tea.", "superseded_by": "a2", "superseded_at": THEN},
                {"id": "a2", "text": "I like coffee.", "supersedes_id": "a1"})  # fmt: skip
        take(store, hybrid(tmp_path / "hybrid", *rows, links=[("l1", "a2", "a1", "SUPERSEDES", 7.0, THEN)]))
        found = facts(store)
        assert found.keys() == {fact_id("a1"), fact_id("a2")}
        assert found[fact_id("a1")].superseded_by == fact_id("a2")
        assert found[fact_id("a1")].metadata == {"imported_id": "a1"}
        with store.database.read() as connection:
            links = run(connection, "SELECT * FROM memory_links")
        assert links == [("l1", fact_id("a2"), fact_id("a1"), "SUPERSEDES", 1.0, THEN)]

    def test_the_source_is_not_changed(self, store: Store, tmp_path: Path) -> None:
        folder = hybrid(tmp_path / "hybrid", COLUMNS)
        wal(folder, entry("w1", "I like coffee."))
        before = {path.name: path.read_bytes() for path in folder.iterdir()}
        take(store, folder)
        assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


class TestPending:
    @pytest.fixture
    def folder(self, tmp_path: Path) -> Path:
        return hybrid(tmp_path / "hybrid", {"id": ONE, "text": "I live in Porto.", "created_at": THEN - DAY})

    @pytest.mark.parametrize("array", [False, True])
    def test_what_had_not_reached_the_database_is_imported_once(self, store: Store, folder: Path, array: bool) -> None:
        waiting = entry(TWO, "I like tea.", decayClass="permanent", scope="agent", scopeTarget="main", colour="red")
        wal(folder, waiting, array=array)
        assert take(store, folder).added == 2
        assert take(store, folder).added == 0
        fact = facts(store)[TWO]
        assert (fact.text, fact.created_at, fact.decay_class) == ("I like tea.", THEN, "permanent")
        assert (fact.scope, fact.scope_target, fact.metadata) == ("agent", "main", {"colour": "red"})

    def test_what_is_done_is_left_out(self, store: Store, folder: Path) -> None:
        wal(folder, entry(TWO, "I like tea."), {"op": "remove", "id": TWO}, entry(THREE, "I live in Porto."))
        take(store, folder)
        assert facts(store).keys() == {ONE}

    def test_an_update_takes_the_place_of_its_target(self, store: Store, folder: Path) -> None:
        wal(folder, entry(TWO, "I live in Lisbon.", "update", ONE))
        take(store, folder)
        found = facts(store)
        assert (found[ONE].superseded_by, found[ONE].superseded_at, found[ONE].valid_until) == (TWO, THEN, THEN)
        assert (found[TWO].supersedes_id, found[TWO].valid_from) == (ONE, THEN)

    def test_an_update_after_an_earlier_import_as_well(self, store: Store, folder: Path) -> None:
        take(store, folder)
        wal(folder, entry(TWO, "I live in Lisbon.", "update", ONE))
        assert take(store, folder).superseded == 1
        assert facts(store)[ONE].superseded_by == TWO

    def test_a_deletion_forgets_its_target(self, store: Store, folder: Path) -> None:
        wal(folder, {"id": TWO, "timestamp": THEN * 1000, "operation": "delete", "targetId": ONE})
        take(store, folder)
        assert column(store, "forgotten_at") == {ONE: THEN}

    def test_torn_lines_are_counted(self, store: Store, folder: Path) -> None:
        (folder / "memory.wal").write_text(json.dumps(entry(TWO, "I like tea.")) + '\n{"id": "3", "op\n[]\n')
        report = take(store, folder)
        assert (report.added, report.unreadable) == (2, 2)


METADATA = {
    "fact_key": "user.style", "valid_from": THEN * 1000, "invalidated_at": (THEN + 5) * 1000, "supersedes": THREE,
    "superseded_by": TWO, "tier": "core", "confidence": 0.75, "source": "auto-capture", "state": "pending",
    "l0_abstract": "short answers", "access_count": 6, "injected_count": 5, "last_accessed_at": (THEN + 9) * 1000,
    "source_session": "session-9",
}  # fmt: skip
REST = {"l1_overview": "…", "memory_category": "preferences", "bad_recall_count": 1, "nested": {"a": [1, None]}}
ROW = {
    "id": ONE, "text": "I prefer short answers.", "vector": [0.1, 0.2], "category": "preference",
    "scope": "agent:main", "importance": 0.75, "timestamp": int(THEN * 1000), "metadata": json.dumps(METADATA | REST),
}  # fmt: skip


def lancedb_pro(folder: Path, *rows: Mapping[str, Any]) -> Path:
    """Write a table of memory-lancedb-pro."""
    import lancedb
    import pyarrow as pa

    schema = pa.schema([
        ("id", pa.string()), ("text", pa.string()), ("vector", pa.list_(pa.float32(), 2)), ("category", pa.string()),
        ("scope", pa.string()), ("importance", pa.float64()), ("timestamp", pa.int64()), ("metadata", pa.string()),
    ])  # fmt: skip
    lancedb.connect(folder).create_table("memories", pa.Table.from_pylist([dict(row) for row in rows], schema=schema))
    return folder


class TestLanceDBPro:
    def test_every_field_survives(self, store: Store, tmp_path: Path) -> None:
        report = take(store, lancedb_pro(tmp_path / "pro", ROW))
        assert (report.kind, report.added, report.vectors) == ("lancedb-pro", 1, 0)
        expected = Fact(
            "I prefer short answers.", id=ONE, category="preference", importance=0.75, key="user.style",
            source="auto-capture", channel=Channel.IMPORT, created_at=THEN, decay_class="permanent",
            last_confirmed_at=THEN, confidence=0.75, summary="short answers", access_count=6, injected_count=5,
            last_accessed=THEN + 9, valid_from=THEN, valid_until=THEN + 5, superseded_at=THEN + 5,
            superseded_by=TWO, supersedes_id=THREE, tier="hot", scope="agent", scope_target="main",
            provenance_session="session-9", review_state="pending", metadata=REST,
        )  # fmt: skip
        fact = facts(store)[ONE]
        made_here = ("normalized_hash", "change_seq")
        names = [field.name for field in fields(Fact) if field.name not in made_here]
        assert {name: getattr(fact, name) for name in names} == {name: getattr(expected, name) for name in names}

    def test_scopes_stay_apart_and_null_is_global(self, store: Store, tmp_path: Path) -> None:
        scopes = [None, "global", "agent:main", "custom:work", "project:heron", "user:owner", "reflection:agent:main"]
        rows = [ROW | {"id": f"{number}", "scope": scope, "metadata": "{}"} for number, scope in enumerate(scopes)]
        take(store, lancedb_pro(tmp_path / "pro", *rows))
        found = facts(store)
        assert [str(Scope(found[fact_id(n)].scope, found[fact_id(n)].scope_target)) for n in range(len(scopes))] == [
            "global", "global", "agent:main", "custom:work", "project:heron", "user:owner",
            "custom:reflection:agent:main",
        ]  # fmt: skip
        assert found[fact_id(6)].metadata["scope"] == "reflection:agent:main"

    def test_what_was_archived_or_replaced_comes_up_for_nobody(self, store: Store, tmp_path: Path) -> None:
        rows = [
            ROW | {"id": ONE, "metadata": json.dumps({"state": "archived"})},
            ROW | {"id": TWO, "metadata": json.dumps({"superseded_by": THREE})},
            ROW | {"id": THREE, "timestamp": int(THEN * 1000) + 7000, "metadata": None},
        ]
        take(store, lancedb_pro(tmp_path / "pro", *rows))
        found = facts(store)
        assert (found[ONE].review_state, found[ONE].metadata) == ("rejected", {"state": "archived"})
        assert found[TWO].superseded_at == THEN + 7
        assert found[THREE].superseded_at is None

    def test_metadata_that_is_no_object_is_kept(self, store: Store, tmp_path: Path) -> None:
        rows = [ROW | {"id": ONE, "metadata": "{torn"}, ROW | {"id": TWO, "metadata": "[1]"}]
        take(store, lancedb_pro(tmp_path / "pro", *rows))
        assert facts(store)[ONE].metadata == {"metadata": "{torn"}
        assert facts(store)[TWO].metadata == {"metadata": [1]}

    def test_another_table_is_refused(self, store: Store, tmp_path: Path) -> None:
        import lancedb

        lancedb.connect(tmp_path / "other").create_table("memories", [{"id": "a", "vector": [0.1]}])
        with pytest.raises(InputError, match="no column text, timestamp"):
            take(store, tmp_path / "other")


class TestBackupsOfLanceDBPro:
    BACKUPS = Path(__file__).parent / "formats" / "lancedb-pro" / "backups"
    OLDER, NEWER = "0b9d2f7e-51c4-4f0a-8f3d-6a7712c0de45", "f1a6b0c2-7d3e-4b8a-9c15-2e40d7a9b611"
    PARKING, BROKEN = "3e8a90b4-c1f5-4d27-a6e9-07b2d4c81f36", "e6610f3b-9a24-4c7d-8b52-1f0d93a7c4e8"

    def test_a_backup_brings_what_the_table_does(self, store: Store, tmp_path: Path) -> None:
        take(store, lancedb_pro(tmp_path / "pro", ROW))
        [from_table] = facts(store).values()
        other = Store(tmp_path / "other", clock=store.clock)
        file = tmp_path / "memory-backup-2026-03-24.jsonl"
        file.write_text(json.dumps({name: value for name, value in ROW.items() if name != "vector"}) + "\n")
        report = take(other, file)
        [from_backup] = facts(other).values()
        other.close()
        assert (report.kind, report.added, report.unreadable) == ("lancedb-pro", 1, 0)
        assert replace(from_backup, change_seq=0) == replace(from_table, change_seq=0)

    def test_of_a_folder_the_newest_is_read(self, store: Store) -> None:
        report = take(store, self.BACKUPS)
        found = facts(store)
        assert (report.added, len(found)) == (6, 6)
        assert self.BROKEN not in found, "it was deleted there before the last backup"
        older, newer = found[self.OLDER], found[self.NEWER]
        assert (older.superseded_by, older.superseded_at) == (self.NEWER, newer.valid_from)
        assert (newer.supersedes_id, newer.key, newer.tier) == (self.OLDER, "entities:staging database", "hot")
        assert {str(Scope(fact.scope, fact.scope_target)) for fact in found.values()} == {
            "agent:main", "global", "custom:office", "custom:reflection:agent:main",
        }  # fmt: skip
        assert "Marta\u2028is the contact at the hosting company." in {fact.text for fact in found.values()}

    def test_what_has_an_end_there_ends_here(self, store: Store) -> None:
        take(store, self.BACKUPS)
        ends = {fact_id: fact.expires_at for fact_id, fact in facts(store).items() if fact.expires_at is not None}
        assert ends == {self.PARKING: 1_773_640_800 + 400 * DAY}

    def test_twice_it_adds_nothing_and_a_dry_run_writes_nothing(self, store: Store) -> None:
        told = take(store, self.BACKUPS, dry_run=True)
        assert column(store, "id") == {}
        done = take(store, self.BACKUPS)
        assert replace(told, dry_run=False, sample=[]) == done
        before = facts(store)
        again = take(store, self.BACKUPS)
        assert (again.added, again.skipped, again.conflicts) == (0, 6, [])
        assert facts(store) == before

    def test_a_later_backup_brings_what_is_new_and_what_was_replaced(self, store: Store) -> None:
        first = take(store, self.BACKUPS / "memory-backup-2026-03-23.jsonl")
        assert (first.added, facts(store)[self.OLDER].superseded_at) == (3, None)
        report = take(store, self.BACKUPS)
        assert (report.added, report.superseded, report.skipped) == (4, 1, 1)
        assert facts(store)[self.OLDER].superseded_by == self.NEWER

    def test_lines_that_are_no_memories_are_counted_and_named(self, store: Store, tmp_path: Path) -> None:
        lines = (self.BACKUPS / "memory-backup-2026-03-24.jsonl").read_text(encoding="utf-8").split("\n")
        file = tmp_path / "memory-backup-2026-03-24.jsonl"
        odd = ["[]", '{"id": 5}', "[" * 100_000, lines[3][:70]]
        file.write_text("\n".join([*lines[:3], *odd]), encoding="utf-8-sig")
        assert kind_of(file) == "lancedb-pro"
        report = take(store, file)
        assert (report.added, report.unreadable) == (3, 4)
        assert report.unread == {file.name: "4 of its lines are not memories"}

    def test_it_comes_up_unasked_once_it_is_vouched_for(self, tmp_path: Path) -> None:
        with Memory.open(tmp_path / "home", embedder="none", watch=False) as memory:
            store, context = memory._engine.store, TurnContext(session_id="s1", agent_id="main", host="test")
            for trust, shown in ((False, None), (True, ["The staging database moved from Frankfurt to Helsinki."])):
                bring_in(store, load_source(self.BACKUPS, store.key), trust=trust)
                recall = memory.turns.before("Where is the staging database?", context)
                assert (recall and [item.text for item in recall.items]) == shown


class TestDetection:
    @pytest.mark.parametrize("within", ["", "backups", "backups/memory-backup-2026-03-23.jsonl"])
    def test_backups_of_lancedb_pro_are_told_by_their_lines(self, within: str) -> None:
        assert kind_of(TestBackupsOfLanceDBPro.BACKUPS.parent / within) == "lancedb-pro"

    def test_lines_of_something_else_are_no_backup(self, tmp_path: Path) -> None:
        path = tmp_path / "memory-backup-2026-03-24.jsonl"
        path.write_text('{"id": "a", "text": "I like tea."}\n')
        with pytest.raises(InputError, match="not in a recognised format"):
            kind_of(path)

    def test_tells_the_sources_apart(self, tmp_path: Path) -> None:
        folder = hybrid(tmp_path / "hybrid", COLUMNS)
        pro = lancedb_pro(tmp_path / "state" / "lancedb-pro", ROW)
        assert kind_of(folder) == kind_of(folder / "facts.db") == "hybrid-memory"
        assert kind_of(pro) == kind_of(pro.parent) == "lancedb-pro"

    def test_what_is_none_of_them_is_refused(self, store: Store, tmp_path: Path) -> None:
        (tmp_path / "notes.txt").write_text("notes")
        for path in (tmp_path / "notes.txt", tmp_path / "nowhere"):
            with pytest.raises(InputError):
                load_source(path, store.key)

    def test_a_store_of_our_own_is_not_taken_for_another(self, store: Store) -> None:
        with pytest.raises(InputError, match="perdure export"):
            load_source(store.folder, store.key)


@pytest.mark.parametrize(
    ("value", "expected"),
    [(THEN, THEN), (THEN * 1000, THEN), (int(THEN), THEN), ("2023-11-14T22:13:20Z", THEN), ("1700000000", THEN),
     ("2023-11-14T22:13:20", THEN), (None, None), ("soon", None), (float("nan"), None), (10**400, None), (True, None)],
)  # fmt: skip
def test_times(value: object, expected: float | None) -> None:
    assert seconds(value) == expected


@pytest.mark.parametrize("kind", ["agent", "user", "session", "orchestra", "agent:\x07", "custom:"])
def test_a_scope_that_is_not_understood_is_in_nobodys_reach(kind: str) -> None:
    scope = scope_of(kind, None)
    assert scope.kind == "custom"
    assert scope.target
    assert scope not in Audience.of(user="owner", agent="main", session="s").scopes
    assert set(KINDS) >= {scope.kind}
