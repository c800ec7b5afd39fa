"""Whatever a flipped bit changes in the index of files is named, and the index is built anew."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import apsw
import pytest

from perdure.errors import PerdureError
from perdure.files.search import Ask, FileSearch
from perdure.maintenance.checks import drop_index_of_files, index_of_files
from perdure.store.scope import Audience
from perdure.store.sql import run
from tests.faulty import CountingEmbedder
from tests.files.workshop import Workshop

ANIMALS = ("heron", "otter", "lynx", "badger", "falcon", "newt", "viper", "gecko", "marten", "stoat")
FLIPS = 150
Found = list[tuple[str, int, str]]


@pytest.fixture
def workshop(tmp_path: Path) -> Iterator[Workshop]:
    opened = Workshop(tmp_path)
    for number, animal in enumerate(ANIMALS):
        opened.note(f"2026-02-{number + 1:02}", f"# About {animal}\n\nThe {animal} lives in house {number}.\n")
    lines = "".join(
        f'{{"role": "{role}", "content": "The {animal} was seen on day {number}."}}\n'
        for number, animal in enumerate(ANIMALS)
        for role in ("user", "assistant")
    )
    opened.write("sessions/talk.jsonl", lines)
    opened.index.sync(opened.roots)
    opened.index.embed(CountingEmbedder(), 100)
    yield opened
    opened.close()


def found(workshop: Workshop) -> Found:
    search = FileSearch(workshop.index, lambda: None, workshop.store.clock)
    try:
        return [
            (result.path, result.start_line, result.snippet)
            for word in (*ANIMALS, "house", "seen", "February")
            for result in search.search(Ask(word, 100, 0.0), Audience.of(), lambda: workshop.roots).results
        ]
    finally:
        search.close()


def test_a_sound_index_has_nothing_wrong(workshop: Workshop) -> None:
    assert list(index_of_files(workshop.store)) == []
    workshop.note("2026-02-01", "Changed on disk, which is no damage.")
    assert list(index_of_files(workshop.store)) == []


def test_a_store_without_an_index_has_nothing_wrong(tmp_path: Path) -> None:
    empty = Workshop(tmp_path)
    assert list(index_of_files(empty.store)) == []
    empty.close()


def test_each_flipped_bit_that_changes_an_answer_is_reported(workshop: Workshop) -> None:
    before = found(workshop)
    assert len(before) > 30
    live = workshop.index.generations.live()
    assert live is not None
    with live.database.read() as connection:
        run(connection, "PRAGMA wal_checkpoint(TRUNCATE)")
    path = live.database.path
    workshop.index.close()
    content, chance, silent, changed = path.read_bytes(), random.Random(7), [], 0
    for _ in range(FLIPS):
        place, bit = chance.randrange(len(content)), chance.randrange(8)
        damaged = bytearray(content)
        damaged[place] ^= 1 << bit
        path.write_bytes(damaged)
        for beside in ("-wal", "-shm"):
            path.with_name(path.name + beside).unlink(missing_ok=True)
        told = bool(list(index_of_files(workshop.store)))
        try:
            same = found(workshop) == before
        except (PerdureError, apsw.Error, ValueError, TypeError):
            same = False
        workshop.index.close()
        changed += not same
        if not same and not told:
            silent.append((place, bit))
    path.write_bytes(content)
    assert silent == []
    assert changed > 2


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE chunks SET text = replace(text, 'heron', 'xeron')",
        "UPDATE chunks SET speaker = 'Eve' WHERE speaker IS NOT NULL",
        "UPDATE chunks SET scope_target = 'eve' WHERE id = 4",
        "UPDATE chunks SET start_line = 70 WHERE id = 4",
        "UPDATE files SET source = 'sessions' WHERE id = 2",
        "DELETE FROM chunks_fts WHERE rowid = 3",
        "INSERT INTO chunks_fts (rowid, body) VALUES (999, 'a ghost')",
        "DELETE FROM files_fts WHERE rowid = 1",
        "UPDATE chunks_fts_data SET block = x'0101010101' WHERE id = 1",
        "UPDATE embedding_cache SET vectors = zeroblob(7)",
        "DROP TABLE chunks",
    ],
)
def test_what_is_wrong_is_named_and_built_anew(workshop: Workshop, damage: str) -> None:
    live = workshop.index.generations.live()
    assert live is not None
    with live.database.write() as connection:
        run(connection, damage)
    told = list(index_of_files(workshop.store))
    assert told
    assert {finding.repair for finding in told} == {"files"}
    drop_index_of_files(workshop.store)
    assert list(index_of_files(workshop.store)) == []
    workshop.index.sync(workshop.roots)
    assert list(index_of_files(workshop.store)) == []
    assert len(workshop.texts()) == 30


def test_a_lost_index_is_named(workshop: Workshop) -> None:
    live = workshop.index.generations.live()
    assert live is not None
    live.database.path.unlink()
    [finding] = index_of_files(workshop.store)
    assert (finding.where, finding.repair) == ("index-1.db", "files")
    drop_index_of_files(workshop.store)
    assert list(index_of_files(workshop.store)) == []
