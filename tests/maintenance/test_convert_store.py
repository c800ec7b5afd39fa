"""A store from before the first release is converted once, and a copy of it is kept."""

from __future__ import annotations

from pathlib import Path

import apsw
import pytest

from perdure.errors import PerdureError
from perdure.hooks.types import Channel
from perdure.store import receipts
from perdure.store.fact import Fact
from perdure.store.migrations import APPLICATION_ID
from perdure.store.scope import Audience
from perdure.store.seals import seal
from perdure.store.sql import run
from perdure.store.store import Store
from perdure.store.transaction import Author, Transaction
from perdure.text.normalise import NORMALISER_VERSION
from scripts.convert_store import convert

OLD = Path(__file__).with_name("data") / "schema-6.sql"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The folder of a store with a memory, as the last commit before wrote it."""
    connection = apsw.Connection(str(tmp_path / "facts.db"))
    run(connection, OLD.read_text(encoding="utf-8"))
    meta = {"normaliser": str(NORMALISER_VERSION), "store_key": "ab" * 32, "earlier_rules": "7"}
    connection.executemany("INSERT INTO meta VALUES (?, ?)", list(meta.items()))
    run(connection, "INSERT INTO cursors VALUES ('keyed', 'k1:aa bb', 0), ('plain', 'cc', 0)")
    run(connection, "INSERT INTO receipts VALUES ('r', 0, NULL, 'user:owner', '{}', NULL)")
    run(connection, f"PRAGMA application_id = {APPLICATION_ID}; PRAGMA user_version = 6; PRAGMA journal_mode = WAL")
    with connection:
        Transaction(connection, 1_000.0, Author(Channel.LIBRARY)).add(Fact("The heron nests at the lake."))
        seal(connection)
    connection.close()
    return tmp_path


def test_a_store_of_before_is_converted_once(folder: Path) -> None:
    copied, cursors, sound = convert(folder)
    copy = Path(copied.rpartition(": ")[2])
    assert copy.is_file()
    assert copy.parent == folder / "backups"
    assert cursors.endswith(": 1")
    assert sound.endswith("schema 1 now, and perdure verify finds: nothing")
    store = Store(folder)
    assert store.meta("earlier_rules") is None
    assert (store.cursor("keyed"), store.cursor("plain")) == ("aa bb", "")
    with store.database.read() as connection:
        assert run(connection, "SELECT text FROM facts") == [("The heron nests at the lake.",)]
        assert [each.body for each in receipts.listed(connection, Audience.of(), 9)] == [{}]
    store.close()
    with pytest.raises(PerdureError, match="has not schema 6; it was left untouched"):
        convert(folder)


def test_one_that_is_in_use_is_left_as_it_is(tmp_path: Path) -> None:
    stores = [Store(tmp_path), Store(tmp_path)]
    with pytest.raises(PerdureError, match="in use"):
        convert(tmp_path)
    for store in stores:
        store.close()
