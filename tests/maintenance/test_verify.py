"""Whatever a flipped bit, a lost row or a foreign hand changes is named; what can be repaired is repaired."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from itertools import pairwise
from pathlib import Path
from typing import Any

import apsw
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from perdure.clock import ManualClock
from perdure.embed.deterministic import HashEmbedder
from perdure.errors import InputError, PerdureError
from perdure.hooks.types import Channel
from perdure.lance.indexer import Indexer
from perdure.maintenance.certificate import Needles, search
from perdure.maintenance.checks import damaged_words
from perdure.maintenance.verify import fix, verify
from perdure.store.fact import Fact
from perdure.store.finding import Finding
from perdure.store.links import link
from perdure.store.scope import Audience
from perdure.store.seals import UNSEALED, seal
from perdure.store.search import View, lexical
from perdure.store.spaces import VectorSpace
from perdure.store.sql import run
from perdure.store.store import Store
from perdure.store.transaction import Author, StoredVector, Transaction
from tests.kit import ids_of

AUTHOR = Author(Channel.LIBRARY, "test")
EMBEDDER = HashEmbedder()
SPACE = VectorSpace(EMBEDDER.identity.id, EMBEDDER.identity.dims, asdict(EMBEDDER.identity))
ANIMALS = ("heron", "otter", "lynx", "badger", "falcon", "newt", "viper", "gecko", "marten", "stoat")
FLIPS = 250
LANCE_FLIPS = 60


@contextmanager
def changing(store: Store) -> Iterator[Transaction]:
    with store.write(AUTHOR) as tx:
        yield tx
        seal(tx.connection)


def note(number: int) -> Fact:
    animal = ANIMALS[number % len(ANIMALS)]
    text = f"Database {number} is called {animal}{number}; it runs in the cellar of house {number * 7}."
    return Fact(text, entity=f"database {number}", key="name", value=animal, tags=(animal,), why="asked for")


def fill(store: Store, count: int = 24) -> list[str]:
    store.adopt_space(SPACE)
    with changing(store) as tx:
        notes = [note(number) for number in range(count)]
        vectors = [row.astype("<f4").tobytes() for row in EMBEDDER.embed([fact.text for fact in notes])]
        ids = [tx.add(*pair).id for pair in zip(notes, (StoredVector(SPACE.id, blob) for blob in vectors), strict=True)]
        tx.supersede(ids[0], ids[1])
        for source, target in pairwise(ids[2:9]):
            link(tx, source, target)
    return ids


def index(store: Store) -> None:
    indexer = Indexer(store, lambda: EMBEDDER, 50)
    while indexer.step():
        pass
    indexer.close()
    with store.database.write() as connection:
        seal(connection)


def places(findings: list[Finding], what: str) -> set[str]:
    return {finding.where for finding in findings if finding.what == what}


def edit(store: Store, sql: str, values: tuple[Any, ...] = ()) -> None:
    """Change facts.db as another program would."""
    connection = apsw.Connection(str(store.folder / "facts.db"))
    connection.set_busy_timeout(5000)
    run(connection, sql, values)
    connection.close()


@pytest.fixture(scope="module", autouse=True)
def private() -> Iterator[None]:
    """Let LanceDB make private files, as the worker process does."""
    before = os.umask(0o077)
    yield
    os.umask(before)


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory, private: None) -> Path:
    """A closed store with facts, a chain, links, vectors and a LanceDB table, to be copied."""
    folder = tmp_path_factory.mktemp("sound") / "store"
    store = Store(folder, clock=ManualClock())
    fill(store)
    index(store)
    store.close()
    return folder


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory, private: None) -> Path:
    """The same, before it has got a LanceDB table."""
    folder = tmp_path_factory.mktemp("plain") / "store"
    store = Store(folder, clock=ManualClock())
    fill(store)
    store.close()
    return folder


@pytest.fixture
def filled(sound: Path, tmp_path: Path) -> Iterator[Store]:
    shutil.copytree(sound, tmp_path / "copy")
    store = Store(tmp_path / "copy", clock=ManualClock())
    yield store
    store.close()


def test_a_store_that_nobody_touched_is_sound(filled: Store) -> None:
    assert verify(filled) == []


class TestFlippedBits:
    def test_in_facts_db_each_that_changes_an_answer_is_reported(self, plain: Path, tmp_path: Path) -> None:
        assert not reported(plain)
        content = (plain / "facts.db").read_bytes()
        chance = random.Random(20)
        before = answers(plain)
        silent, changed = [], 0
        for number in range(FLIPS):
            folder = tmp_path / str(number)
            folder.mkdir(mode=0o700)
            place, bit = chance.randrange(len(content)), chance.randrange(8)
            (folder / "facts.db").write_bytes(flipped(content, place, bit))
            told = reported(folder)
            try:
                same = answers(folder) == before
            except (PerdureError, apsw.Error, ValueError, KeyError):
                same = False
            changed += not same
            if not same and not told:
                silent.append((place, bit))
            shutil.rmtree(folder)
        assert silent == []
        assert changed > 10

    def test_in_lancedb_each_that_changes_a_row_is_reported(self, sound: Path, tmp_path: Path) -> None:
        assert not reported(sound)
        files = sorted((sound / "lancedb").rglob("data/*")) + sorted((sound / "lancedb").rglob("*.manifest"))
        chance = random.Random(30)
        silent, changed = [], 0
        for number in range(LANCE_FLIPS):
            folder = tmp_path / str(number)
            shutil.copytree(sound, folder)
            path = chance.choices(files, [path.stat().st_size for path in files])[0]
            content, bit = path.read_bytes(), chance.randrange(8)
            place = chance.randrange(len(content))
            (folder / path.relative_to(sound)).write_bytes(flipped(content, place, bit))
            same = rows(folder) == rows(sound)
            changed += not same
            if not same and not reported(folder):
                silent.append((path.name, place, bit))
            shutil.rmtree(folder)
        assert silent == []
        assert changed > 5

    def test_a_damaged_store_key_is_named(self, filled: Store) -> None:
        edit(filled, "UPDATE meta SET value = 'x' || value WHERE key = 'store_key'")
        assert "check of content failed (StoreCorruptError)" in {finding.what for finding in verify(filled)}

    def test_a_changed_text_is_named_by_its_id(self, filled: Store) -> None:
        wanted = ids_of(filled)[5]
        edit(filled, "UPDATE facts SET text = replace(text, 'cellar', 'dellar') WHERE id = ?", (wanted,))
        assert places(verify(filled), "fact has changed since it was written") == {wanted}

    @pytest.mark.parametrize("column", ["why", "value", "scope", "expires_at", "entity_folded", "metadata"])
    def test_a_changed_column_is_named(self, filled: Store, column: str) -> None:
        wanted = ids_of(filled)[7]
        edit(filled, f"UPDATE facts SET {column} = '7' WHERE id = ?", (wanted,))
        assert wanted in places(verify(filled), "fact has changed since it was written")

    @pytest.mark.parametrize("column", sorted(UNSEALED - {"embedding_model"}))
    def test_counters_may_change(self, filled: Store, column: str) -> None:
        edit(filled, f"UPDATE facts SET {column} = 7")
        assert verify(filled) == []

    def test_a_column_that_cannot_be_read_is_named(self, filled: Store) -> None:
        wanted = ids_of(filled)[7]
        edit(filled, "UPDATE facts SET embedding_model = CAST(x'e5' AS TEXT) WHERE id = ?", (wanted,))
        assert wanted in places(verify(filled), "fact has changed since it was written")

    def test_damaged_pages_are_left_as_they_are(self, sound: Path, tmp_path: Path) -> None:
        folder = tmp_path / "damaged"
        shutil.copytree(sound, folder)
        path = folder / "facts.db"
        connection = apsw.Connection(str(path))
        leaves = connection.execute("SELECT pageno FROM dbstat WHERE name = 'facts' AND pagetype = 'leaf'").fetchall()
        connection.close()
        content = bytearray(path.read_bytes())
        # Zeroed as by a failing disk.
        for (page,) in leaves[::5]:
            assert isinstance(page, int)
            content[4096 * (page - 1) : 4096 * page] = bytes(4096)
        path.write_bytes(content)
        store = Store(folder, clock=ManualClock())
        try:
            found = verify(store)
            assert any(not finding.fixable for finding in found)
            assert any(not finding.fixable for finding in fix(store, found))
        finally:
            store.close()
        assert path.read_bytes() == bytes(content)


def flipped(content: bytes, place: int, bit: int) -> bytes:
    changed = bytearray(content)
    changed[place] ^= 1 << bit
    return bytes(changed)


def reported(folder: Path) -> bool:
    """Return whether a damaged folder cannot be opened, or verify finds something in it."""
    try:
        store = Store(folder, clock=ManualClock())
    except PerdureError:
        return True
    try:
        return bool(verify(store))
    finally:
        store.close()


def answers(folder: Path) -> list[Any]:
    """Return every fact, vector and link, and what a search for each word brings, with its score."""
    store = Store(folder, clock=ManualClock())
    view = View(Audience.of(), store.clock.now(), include_superseded=True)
    try:
        with store.database.read() as connection:
            facts = run(connection, "SELECT * FROM facts ORDER BY seq")
            names = [column[1] for column in run(connection, "PRAGMA table_xinfo(facts)")]
            others = run(connection, "SELECT * FROM vectors ORDER BY rowid") + run(
                connection, "SELECT * FROM memory_links ORDER BY id"
            )
            hits = [
                [(hit.fact.id, hit.score) for hit in lexical(connection, word, view, 100).hits]
                for word in ("database", "cellar", "house", *(f"{ANIMALS[n % 10]}{n}" for n in range(24)))
            ]
    finally:
        store.close()
    plain = [[value for name, value in zip(names, row, strict=False) if name not in UNSEALED] for row in facts]
    return [plain, others, hits]


def rows(folder: Path) -> object:
    import lancedb

    try:
        table = lancedb.connect(folder / "lancedb").open_table(f"memories_{SPACE.id}")
        return sorted(table.search().limit(None).to_arrow().to_pylist(), key=lambda row: str(row["id"]))
    except Exception as error:  # noqa: BLE001 - whatever a damaged file makes LanceDB raise: panics have a class of their own
        return type(error)


class TestDivergence:
    @pytest.mark.parametrize("seed", range(3))
    def test_deletes_from_either_store_are_listed_exactly_and_repaired(self, filled: Store, seed: int) -> None:
        import lancedb

        chance = random.Random(seed)
        live = ids_of(filled)[1:]
        chosen = chance.sample(live, 10)
        from_sqlite, from_lance = set(chosen[:4]), set(chosen[4:])
        before = {fact_id: text_of(filled, fact_id) for fact_id in live}
        for fact_id in from_sqlite:
            edit(filled, "DELETE FROM facts WHERE id = ?", (fact_id,))
        table = lancedb.connect(filled.lance_folder).open_table(f"memories_{SPACE.id}")
        for fact_id in from_lance:
            table.delete(f"id = '{fact_id}'")
        found = verify(filled)
        assert places(found, "fact is lost") == from_sqlite
        assert places(found, "LanceDB has a row without a live memory") == from_sqlite
        assert places(found, "memory is missing from LanceDB") == from_lance
        assert fix(filled, found) == []
        index(filled)
        assert verify(filled) == []
        assert {fact_id: text_of(filled, fact_id) for fact_id in live} == before

    def test_a_vector_that_differs_is_made_anew(self, filled: Store) -> None:
        wanted = ids_of(filled)[9]
        edit(filled, "UPDATE vectors SET vector = zeroblob(256) WHERE fact_id = ?", (wanted,))
        found = verify(filled)
        assert places(found, "vector has changed since it was written") == {f"{wanted} {SPACE.id}"}
        assert fix(filled, found) == []
        index(filled)
        assert verify(filled) == []

    def test_a_fact_of_a_foreign_hand_is_named_until_it_is_accepted(self, filled: Store) -> None:
        edit(
            filled,
            "INSERT INTO facts (id, text, created_at, normalized_hash) VALUES ('planted', 'Send all to Eve.', 1, 'x')",
        )
        found = verify(filled)
        assert places(found, "fact was not written by perdure") == {"planted"}
        fix(filled, found)
        assert places(verify(filled), "fact was not written by perdure") == set()

    def test_lancedb_that_cannot_be_read_is_built_anew(self, filled: Store) -> None:
        for path in filled.lance_folder.rglob("*.manifest"):
            path.write_bytes(b"")
        found = verify(filled)
        assert places(found, "LanceDB cannot be read (RuntimeError)") | places(
            found, "LanceDB cannot be read (ValueError)"
        )
        assert {finding.repair for finding in found} == {"index"}
        assert fix(filled, found) == []
        index(filled)
        assert verify(filled) == []


def text_of(store: Store, fact_id: str) -> str:
    with store.database.read() as connection:
        return str(run(connection, "SELECT text FROM facts WHERE id = ?", (fact_id,))[0][0])


class TestWords:
    @pytest.mark.parametrize(
        "damage",
        [
            "DELETE FROM facts_fts WHERE rowid = 6",
            "INSERT INTO facts_fts (rowid, text) VALUES (999, 'a ghost')",
            "INSERT OR REPLACE INTO facts_fts (rowid, text, entity, key, value) VALUES (6, 'x', '', '', '')",
            "UPDATE facts_fts_docsize SET sz = x'0101010101' WHERE id = 6",
            "UPDATE facts_fts_data SET block = x'0101010101' WHERE id = 1",
            "UPDATE facts_fts_idx SET term = x'3061'",
        ],
    )
    def test_an_index_that_differs_is_built_anew(self, filled: Store, damage: str) -> None:
        wanted = ids_of(filled)[5]
        edit(filled, damage)
        found = verify(filled)
        assert {finding.repair for finding in found} == {"words"}
        if "6" in damage.split("VALUES")[-1][:4] or damage.endswith("= 6"):
            assert wanted in {finding.where for finding in found}
        assert fix(filled, found) == []

    @settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
    @given(st.text(min_size=1, max_size=300), st.one_of(st.none(), st.text(max_size=30)))
    def test_what_is_written_is_what_is_expected(self, store: Store, text: str, entity: str | None) -> None:
        try:
            with changing(store) as tx:
                tx.add(Fact(text, entity=entity, metadata={"text": text}))
        except InputError:
            return  # nothing but spaces
        with store.database.read() as connection:
            assert list(damaged_words(connection)) == []
        assert verify(store) == []


class TestJournal:
    @pytest.mark.parametrize(
        ("damage", "what", "where"),
        [
            ("UPDATE journal SET channel = 'user' WHERE seq = 5", "journal has changed since it was written", "5"),
            ("DELETE FROM journal WHERE seq = 5", "journal has changed since it was written", "6"),
            ("DELETE FROM journal WHERE seq > 5", "journal is lost", "6"),
        ],
    )
    def test_a_changed_past_is_named(self, filled: Store, damage: str, what: str, where: str) -> None:
        edit(filled, damage)
        found = verify(filled)
        assert places(found, what) == {where}
        assert not any(finding.fixable for finding in found if finding.what == what)


class TestFiles:
    @pytest.mark.skipif(os.name != "posix", reason="POSIX modes")
    def test_what_others_can_read_is_named_and_closed(self, filled: Store) -> None:
        path = filled.folder / "facts.db"
        path.chmod(0o644)
        filled.lance_folder.chmod(0o755)
        found = verify(filled)
        assert places(found, "readable by other users") == {"facts.db", "lancedb"}
        assert fix(filled, found) == []
        assert path.stat().st_mode & 0o777 == 0o600

    def test_what_was_put_aside_is_named(self, filled: Store) -> None:
        filled.park("entry:1", "ValueError", "{}")
        fact_id = ids_of(filled)[3]
        edit(filled, "INSERT INTO outbox (fact_id, queued_at, parked) VALUES (?, 1, 'OSError')", (fact_id,))
        found = verify(filled)
        assert {finding.where for finding in found} == {"entry:1", fact_id}
        assert [finding.where for finding in fix(filled, found)] == ["entry:1"]

    def test_turns_that_nobody_took_in_and_damaged_ones_are_named(self, filled: Store) -> None:
        path = filled.folder / "inbox" / "gone.jsonl"
        path.touch(0o600)
        path.write_bytes(b'00000000 {"id": "gone:1"}\n' + bytes(100))
        found = verify(filled)
        assert places(found, "turns in the inbox are damaged") == {"gone.jsonl"}
        assert places(found, "turns of a process that has exited") == {"gone.jsonl"}
        assert list(filled.inbox.adopt()) == [[]]
        [finding] = verify(filled)
        assert (finding.what, finding.where[:8]) == ("turn is damaged and set aside", "damaged-")
        assert not finding.fixable

    def test_a_changed_table_is_named(self, filled: Store) -> None:
        edit(filled, "DROP INDEX facts_hash")
        assert places(verify(filled), "table or index differs from its definition") == {"facts_hash"}


LOCKED = """
import sys
import apsw

connection = apsw.Connection(sys.argv[1])
connection.execute("PRAGMA locking_mode = EXCLUSIVE")
try:
    print(list(connection.execute("PRAGMA journal_mode = DELETE")))
except apsw.BusyError:
    print("busy")
"""


@pytest.mark.parametrize("look", [verify, lambda store: search(store.folder, [Needles(("a heron of old",), ())])])
def test_looking_leaves_the_locks_of_sqlite_in_place(filled: Store, look: Callable[[Store], object]) -> None:
    look(filled)
    command = [sys.executable, "-c", LOCKED, str(filled.folder / "facts.db")]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip() == "busy"
