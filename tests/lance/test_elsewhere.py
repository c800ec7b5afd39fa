"""A LanceDB table in object storage: vectors and words only, its keys told to nobody, and emptied by a purge."""

from __future__ import annotations

import json
import logging
import os
import re
import uuid
from collections.abc import Iterator, Mapping
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from perdure.api.memory import Memory
from perdure.cli.main import cli
from perdure.clock import ManualClock
from perdure.embed.deterministic import HashEmbedder
from perdure.engine.config_file import set_setting
from perdure.engine.settings import Settings
from perdure.errors import SettingsError
from perdure.lance.drift import compare, drop_index
from perdure.lance.indexer import Indexer
from perdure.lance.table import LanceIndex, names_at, rows_of
from perdure.lance.tiered import TieredIndex
from perdure.maintenance.purge import CERTIFIED, PENDING, certify, purge
from perdure.store import outbox
from perdure.store.fact import Fact
from perdure.store.scope import Audience
from perdure.store.search import View, lexical
from perdure.store.spaces import VectorSpace
from perdure.store.sql import run
from perdure.store.store import ObjectStore, Store
from perdure.store.transaction import StoredVector
from tests.kit import AUTHOR
from tests.waiting import until

EMBEDDER = HashEmbedder(64)
SPACE = VectorSpace(EMBEDDER.identity.id, 64, {"model": "hash"})
SECRET = "hunter2hunter2"
TEXT = "The kestrel hovers over the quarry at dusk"
AWAY = {"aws_endpoint": "http://127.0.0.1:9"}


class Bucket:
    """A bucket of a server on this machine, and how it is reached."""

    def __init__(self, endpoint: str) -> None:
        import boto3

        # What the server holds outlives it.
        self._name = f"memories-{uuid.uuid4()}"
        self._client = boto3.client(
            "s3", endpoint_url=endpoint, region_name="us-east-1", aws_access_key_id="k", aws_secret_access_key=SECRET
        )
        self._client.create_bucket(Bucket=self._name)
        self.options = {
            "aws_endpoint": endpoint, "aws_region": "us-east-1", "allow_http": "true", "aws_access_key_id": "k",
            "aws_secret_access_key": SECRET, "client_max_retries": "0",
        }  # fmt: skip
        self.place = ObjectStore(f"s3://{self._name}/tables", self.options)

    def keys(self) -> set[str]:
        """Return the names of all objects."""
        found: list[dict[str, str]] = self._client.list_objects_v2(Bucket=self._name).get("Contents", [])
        return {each["Key"] for each in found}


@pytest.fixture
def bucket(monkeypatch: pytest.MonkeyPatch) -> Iterator[Bucket]:
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)
    moto = pytest.importorskip("moto.server")
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = moto.ThreadedMotoServer(ip_address="127.0.0.1", port=0)
    server.start()
    yield Bucket("http://{}:{}".format(*server.get_host_and_port()))
    server.stop()


def opened(home: Path, place: ObjectStore | None, clock: ManualClock | None = None) -> Store:
    store = Store(home, clock=clock, objects=place)
    store.adopt_space(SPACE)
    return store


def add(store: Store, *texts: str) -> list[str]:
    vectors = StoredVector.rows(EMBEDDER.embed(list(texts)), SPACE.id)
    with store.write(AUTHOR) as tx:
        return [tx.add(Fact(text), vector).id for text, vector in zip(texts, vectors, strict=True)]


def work(store: Store) -> None:
    indexer = Indexer(store, lambda: None, 50)
    while indexer.step():
        pass
    indexer.close()


def index_of(store: Store) -> TieredIndex:
    index = TieredIndex(store, SPACE, mode="lance", patience=30.0)
    index.search(EMBEDDER.embed(["heron"])[0], view(store), 1)
    index.wait(60)
    return index


def view(store: Store) -> View:
    return View(Audience.of(), store.clock.now())


def found(store: Store, index: TieredIndex, query: str = "kestrel") -> tuple[list[str], str, str, list[str]]:
    """Return what words find, by which index and why, and what the vector finds."""
    with store.database.read() as connection:
        words = lexical(connection, query, view(store), 10, index)
    hits = index.search(EMBEDDER.embed([TEXT])[0], view(store), 1)
    return [hit.fact.id for hit in words.hits], words.by, words.why, [hit.id for hit in hits]


def state(store: Store) -> outbox.IndexState:
    return store.database.query(outbox.index_state, SPACE.id)


@pytest.fixture
def store(home: Path, clock: ManualClock, bucket: Bucket) -> Iterator[Store]:
    made = opened(home, bucket.place, clock)
    yield made
    made.close()


class TestTheTable:
    def test_vectors_and_words_are_answered_from_there_and_nothing_is_here(self, store: Store, bucket: Bucket) -> None:
        ids = add(store, TEXT, *(f"The heron {number} fishes" for number in range(30)))
        work(store)
        index = index_of(store)
        assert found(store, index) == (ids[:1], "lance", "as set", ids[:1])
        assert index.answered_by == "lance"
        assert not store.lance_folder.exists()
        assert bucket.keys()
        assert not compare(store)
        index.close()

    def test_each_store_has_its_own_below_the_address(self, store: Store, bucket: Bucket, tmp_path: Path) -> None:
        add(store, TEXT)
        work(store)
        other = opened(tmp_path / "other", bucket.place)
        add(other, "The kestrel is theirs")
        work(other)
        for each, text in ((store, TEXT), (other, "The kestrel is theirs")):
            index = index_of(each)
            with each.database.read() as connection:
                hits = lexical(connection, "kestrel", view(each), 10, index)
            assert (hits.by, [hit.fact.text for hit in hits.hits]) == ("lance", [text])
            index.close()
        drop_index(other)
        work(other)
        assert not compare(store)
        assert not compare(other)
        other.close()

    def test_a_server_that_is_away_costs_the_search_nothing_and_the_table_neither(
        self, home: Path, clock: ManualClock, bucket: Bucket
    ) -> None:
        with_it = opened(home, bucket.place, clock)
        ids = add(with_it, TEXT)
        work(with_it)
        before = state(with_it)
        with_it.close()
        away = ObjectStore(bucket.place.url, bucket.options | AWAY)
        without = opened(home, away, clock)
        index = index_of(without)
        words, by, why, nearest = found(without, index)
        assert (words, by, nearest) == (ids, "fts5", ids)
        assert "opening, or paused" in why
        [new] = add(without, "The heron fishes")
        work(without)
        assert state(without) == before
        assert without.outbox_state().problem
        without.close()
        clock.advance(60)
        again = opened(home, bucket.place, clock)
        work(again)
        assert state(again).generation == before.generation
        index = index_of(again)
        assert found(again, index, "heron")[:2] == ([new], "lance")
        index.close()
        again.close()

    def test_it_moves_there_and_back_and_leaves_nothing_behind(
        self, home: Path, clock: ManualClock, bucket: Bucket, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        for name, value in bucket.options.items():
            monkeypatch.setenv(name.upper() if name.startswith("aws_") else f"AWS_{name.upper()}", value)
        ids: list[str] = []
        for place in (None, ObjectStore(bucket.place.url), None):
            store = opened(home, place, clock)
            ids = ids or add(store, TEXT)
            index = index_of(store)
            assert found(store, index)[:2] == (ids, "fts5")
            work(store)
            assert (store.lance_folder.exists(), bool(bucket.keys())) == (place is None, place is not None)
            index.close()
            index = index_of(store)
            assert found(store, index) == (ids, "lance", "as set", ids)
            index.close()
            store.close()

    def test_it_stays_where_it_was_if_it_holds_what_is_nowhere_else(
        self, home: Path, clock: ManualClock, bucket: Bucket, caplog: pytest.LogCaptureFixture
    ) -> None:
        store = opened(home, None, clock)
        ids = add(store, TEXT)
        work(store)
        [row] = rows_of(store.database, ids, SPACE.id, clock.now())
        with closing(LanceIndex(store.lance_folder, SPACE.id, SPACE.dims, create=False)) as index:
            index.apply([{**row, "text": "The heron is elsewhere"}], [])
        store.close()
        store = opened(home, bucket.place, clock)
        work(store)
        assert store.lance_folder.exists()
        assert bucket.keys()
        assert (
            f"in {store.lance_folder} is kept, since it cannot be read or differs from SQLite in 1 places"
            in caplog.text
        )
        store.close()


class TestPurge:
    def test_it_leaves_no_object_that_held_the_text(self, store: Store, bucket: Bucket) -> None:
        doomed, *others = add(store, TEXT, *(f"The heron {number} fishes" for number in range(30)))
        work(store)
        add(store, "One more version")
        work(store)
        before = bucket.keys()
        assert before
        purge(store, [doomed], AUTHOR)
        [done] = certify(store)
        assert done.state == CERTIFIED
        assert any("object storage" in each for each in done.beyond)
        assert not bucket.keys() & before
        work(store)
        index = index_of(store)
        assert not found(store, index)[0]
        words, by, *_ = found(store, index, "heron 7")
        assert (words[0], by) == (others[7], "lance")
        assert not bucket.keys() & before
        index.close()

    def test_to_merge_files_and_drop_versions_would_leave_it(self, store: Store, bucket: Bucket) -> None:
        import lancedb

        add(store, TEXT, *(f"The heron {number} fishes" for number in range(30)))
        work(store)
        objects = store.objects
        assert objects is not None
        [name] = names_at(objects)
        table = lancedb.connect(objects.url, storage_options=dict(objects.options)).open_table(name)
        data = set(filter(re.compile("/data/").search, bucket.keys()))
        table.delete("text LIKE '%kestrel%'")
        with pytest.warns(UserWarning, match="removes every version"):
            table.optimize(cleanup_older_than=timedelta(0), delete_unverified=True)
        assert data <= bucket.keys()

    def test_it_waits_for_a_server_that_is_away(self, home: Path, bucket: Bucket) -> None:
        with_it = opened(home, bucket.place)
        [doomed] = add(with_it, TEXT)
        work(with_it)
        with_it.close()
        away = ObjectStore(bucket.place.url, bucket.options | AWAY)
        without = opened(home, away)
        purge(without, [doomed], AUTHOR)
        [waits] = certify(without)
        assert (waits.state, "cannot be reached" in str(waits.waiting)) == (PENDING, True)
        without.close()
        again = opened(home, bucket.place)
        assert certify(again)[0].state == CERTIFIED
        assert not bucket.keys()
        again.close()


class TestTheKeys:
    def test_they_are_told_to_nobody(
        self, home: Path, bucket: Bucket, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
    ) -> None:
        caplog.set_level(logging.DEBUG, "perdure")
        lexical = '{"lexical": "lance"}'
        given = {"embedder": "hash", "vector_index": "lance", "index": lexical, "lance_url": bucket.place.url}
        for name, value in given.items():
            monkeypatch.setenv(f"PERDURE_{name.upper()}", value)
        monkeypatch.setenv("PERDURE_LANCE_STORAGE_OPTIONS", json.dumps(bucket.options))
        monkeypatch.setenv("PERDURE_HOME", str(home))
        with Memory.open(home) as memory:
            assert memory.ready()
            memory.store(TEXT)
            assert memory.admin.sync_index()
            assert until(lambda: memory.recall("Where does the kestrel hover?") is not None)
            shown = [repr(memory._engine.settings), repr(memory._engine.store.objects), str(memory.status().to_dict())]
            memory.admin.export(home.parent / "export.jsonl")
        assert bucket.keys()
        calls = (["status", "--json"], ["doctor"], ["config", "show"], ["config", "get", "lance_storage_options"],
                 ["verify"], ["why", "--json"])  # fmt: skip
        shown += [CliRunner().invoke(cli, call).output for call in calls]
        shown += [caplog.text, (home.parent / "export.jsonl").read_text()]
        assert SECRET not in "".join(shown)
        assert '"aws_region": "us-east-1"' in "".join(shown)
        files = [path.read_bytes() for path in home.rglob("*") if path.is_file()]
        assert not [content for content in files if SECRET.encode() in content]

    def test_an_uninstall_takes_the_tables_along(
        self, home: Path, bucket: Bucket, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        for place in (bucket.place, ObjectStore(bucket.place.url, bucket.options | AWAY)):
            monkeypatch.setenv("PERDURE_LANCE_URL", place.url)
            monkeypatch.setenv("PERDURE_LANCE_STORAGE_OPTIONS", json.dumps(place.options))
            store = opened(home, bucket.place)
            add(store, TEXT)
            work(store)
            store.close()
            call = ["uninstall", "--purge-data", "--yes", "--home", str(home)]
            told = CliRunner().invoke(cli, call, catch_exceptions=False).output
            assert not home.exists()
            away = place is not bucket.place
            assert (bool(bucket.keys()), bucket.place.url in told) == (away, away)
            assert SECRET not in told

    def test_a_failure_says_nothing_of_what_the_storage_answers(self, home: Path, bucket: Bucket) -> None:
        wrong = ObjectStore(bucket.place.url, bucket.options | {"aws_endpoint": f"http://127.0.0.1:9/{SECRET}"})
        store = opened(home, wrong)
        with pytest.raises(Exception, match="cannot be removed") as failed:
            drop_index(store)
        assert SECRET not in f"{failed.value} {failed.value.__cause__!r}"
        store.close()

    @pytest.mark.parametrize("where", ["file", "host", "set"])
    @pytest.mark.parametrize("name", ["aws_secret_access_key", "azure_storage_sas_key", "google_service_account_key"])
    def test_they_are_refused_where_they_would_lie_about(self, tmp_path: Path, where: str, name: str) -> None:
        options: Mapping[str, Any] = {"aws_region": "us-east-1", name: SECRET}
        file = tmp_path / "config.toml"
        file.write_text(f'[lance_storage_options]\n{name} = "{SECRET}"\n' if where == "file" else "")
        host = {"lanceStorageOptions": options} if where == "host" else None
        with pytest.raises(SettingsError, match=name) as refused:
            _ = (
                set_setting(file, "lance_storage_options", json.dumps(options))
                if where == "set"
                else Settings.load(environ={}, file=file, host_config=host)
            )
        assert SECRET not in str(refused.value)

    def test_what_is_no_secret_may_stand_in_a_file(self, tmp_path: Path) -> None:
        file = tmp_path / "config.toml"
        file.write_text(
            'lance_url = "s3://b/f"\nlance_storage_options = {aws_region = "eu-west-1", allow_http = true}\n'
        )
        settings = Settings.load(environ={}, file=file)
        assert settings.lance_storage_options == {"aws_region": "eu-west-1", "allow_http": "true"}

    @pytest.mark.parametrize("wrong", [{"aws_secret_access_key": [SECRET]}, SECRET, [SECRET]])
    def test_a_value_of_a_wrong_type_is_not_quoted(self, wrong: Any) -> None:
        with pytest.raises(SettingsError, match="lance_storage_options") as refused:
            Settings.load({"lance_storage_options": wrong}, environ={})
        assert SECRET not in str(refused.value)

    @pytest.mark.parametrize("url", [f"s3://k:{SECRET}@bucket/f", f"az://b/f?sig={SECRET}", f"/{SECRET}", "db://cloud"])
    def test_an_address_that_may_hold_one_is_refused(self, url: str) -> None:
        with pytest.raises(SettingsError, match="lance_url"):
            Settings.load({"lance_url": url}, environ={})


def test_by_default_everything_is_in_the_folder(store: Store) -> None:
    assert Settings().lance_url is None
    assert Settings().index.lexical == "fts5"
    plain = Store(store.folder.parent / "plain")
    assert plain.objects is None
    assert not plain.database.query(run, "SELECT 1 FROM meta WHERE instr(key, 'lance') = 1")
    plain.close()
