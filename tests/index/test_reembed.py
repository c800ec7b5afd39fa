"""Changing the embedding model: nothing is lost, nothing is mixed, recall works all along, and there is a way back."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import lancedb
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from perdure.clock import ManualClock
from perdure.embed.base import Embedder, GuardedEmbedder
from perdure.embed.deterministic import HashEmbedder
from perdure.engine.settings import Settings
from perdure.engine.work import work
from perdure.errors import ModelError, NotFoundError
from perdure.hooks.types import Channel
from perdure.index.reembed import KEEP_SECONDS, Reembedder, prune
from perdure.store import lifecycle, spaces, triggers
from perdure.store.fact import Fact
from perdure.store.seals import damages
from perdure.store.spaces import VectorSpace
from perdure.store.sql import run
from perdure.store.store import Store
from perdure.store.transaction import Author, StoredVector
from perdure.store.triggers import USER

if TYPE_CHECKING:
    from perdure.embed.base import Vectors

AUTHOR = Author(Channel.LIBRARY)
OLD, NEW = HashEmbedder(384), HashEmbedder(256)
BIRDS = ("heron", "plover", "kestrel", "bittern", "avocet")
RECALLING = """
import json, sys, threading
from perdure.api.memory import Memory
from perdure.store import spaces

stop = threading.Event()
threading.Thread(target=lambda: (sys.stdin.read(), stop.set()), daemon=True).start()
seen = {"before": 0, "building": 0, "after": 0}
missed = []
with Memory.open(sys.argv[1], embedder="hash", embedder_model="384") as memory:
    assert memory.ready()
    store = memory._engine.store
    first = store.space()
    number = 0
    print("ready", flush=True)
    while not (stop.is_set() and seen["after"] >= 5):
        with store.database.read() as connection:
            phase = "building" if spaces.building(connection) else "before"
            if spaces.active(connection) != first:
                phase = "after"
        number = (number + 7) % 300
        recall = memory.recall(f"Who keeps ringing list number{number}?")
        if recall is None or not any(f"number{number} " in item.text for item in recall.items):
            missed.append((phase, number))
        seen[phase] += 1
print(json.dumps({"seen": seen, "missed": missed}))
"""


class Fussy(HashEmbedder):
    """Fails on some texts, as a model may; counts what it embeds."""

    def __init__(self, dims: int, poison: str) -> None:
        super().__init__(dims)
        self.poison = poison
        self.texts: list[str] = []

    def embed(self, texts: Sequence[str], *, query: bool = False) -> Vectors:
        if any(self.poison in text for text in texts):
            raise ModelError("hash failed")
        self.texts += texts
        return super().embed(texts, query=query)


def space_of(embedder: HashEmbedder) -> VectorSpace:
    identity = embedder.identity
    recipe = {"embedder": "hash", "embedder_model": str(identity.dims)}
    return VectorSpace(identity.id, identity.dims, asdict(identity) | {"settings": recipe})


def vector(text: str, embedder: HashEmbedder) -> StoredVector:
    row = GuardedEmbedder(embedder).embed([text])[0]
    return StoredVector(embedder.identity.id, row.astype("<f4").tobytes())


def add(store: Store, *texts: str, embedder: HashEmbedder | None = OLD) -> list[str]:
    with store.write(AUTHOR) as tx:
        return [
            tx.add(Fact(text, channel=Channel.LIBRARY), vector(text, embedder) if embedder else None).id
            for text in texts
        ]


def begin(store: Store, embedder: HashEmbedder = NEW) -> bool:
    with store.database.write() as connection:
        return spaces.begin(connection, space_of(embedder), store.clock.now())


def rollback(store: Store) -> VectorSpace:
    with store.database.write() as connection:
        return spaces.rollback(connection, store.clock.now())


def finish(store: Store, embedder: Embedder | None = NEW) -> None:
    reembedder = Reembedder(store, lambda space: GuardedEmbedder(embedder) if embedder else None)
    while reembedder.step():
        pass


def states(store: Store) -> dict[int, tuple[str, int]]:
    """Return by dimensions how a space stands and how many vectors it has."""
    with store.database.read() as connection:
        return {item.space.dims: (item.state, item.vectors) for item in spaces.every(connection)}


def problem(store: Store) -> str | None:
    with store.database.read() as connection:
        return spaces.problem(connection)


def ask(store: Store, sql: str, *values: Any) -> list[tuple[Any, ...]]:
    with store.database.read() as connection:
        return run(connection, sql, values)


def blobs(store: Store, embedder: HashEmbedder) -> dict[str, bytes]:
    return dict(ask(store, "SELECT fact_id, vector FROM vectors WHERE embedding_id = ?", embedder.identity.id))


def indexed(store: Store, embedder: HashEmbedder) -> list[str]:
    """Return the ids in the LanceDB table of a space, each as often as it is in there; there is no other table."""
    database = lancedb.connect(store.lance_folder)
    [name] = database.list_tables().tables
    assert name.startswith(f"memories_{embedder.identity.id}")
    return sorted(database.open_table(name).to_arrow()["id"].to_pylist())


def work_off(home: Path) -> None:
    """Do all that the worker would, in this process. Its settings name a third model."""
    settings = Settings.load({"embedder": "hash", "vector_index": "lance"}, environ={})
    work(home, settings, threading.Event(), idle_seconds=0)


def killed_worker(home: Path, point: str) -> int:
    """Run the worker until it dies at a fail point; return its exit code."""
    order = {"home": str(home), "settings": {"embedder": "hash"}}
    worker = subprocess.Popen(
        [sys.executable, "-m", "perdure.engine.worker"],
        stdin=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "PERDURE_FAIL_POINT": point},
    )
    assert worker.stdin is not None
    worker.stdin.write(json.dumps(order).encode() + b"\n")
    worker.stdin.flush()
    # Its stdin stays open meanwhile, or it would end by itself.
    code = worker.wait(60)
    worker.communicate()
    return code


@pytest.fixture
def store(store: Store) -> Store:
    assert store.adopt_space(space_of(OLD))
    return store


def test_a_switch_of_some_hundred_facts_with_kills_and_recalls_beside_it(tmp_path: Path) -> None:
    home = tmp_path / "home"
    store = Store(home)
    store.adopt_space(space_of(OLD))
    ids = add(store, *(f"{BIRDS[n % 5]} ringing list number{n} is kept by Team {n % 7}" for n in range(300)))
    with store.write(AUTHOR) as tx:
        for fact_id in ids[290:]:
            lifecycle.forget(tx, fact_id)
    [former] = add(store, "The warden is called Anna")
    [now] = add(store, "The warden is called Berta")
    with store.write(AUTHOR) as tx:
        tx.supersede(former, now)
    live = sorted([*ids[:290], now])
    work_off(home)
    assert indexed(store, OLD) == live
    before = blobs(store, OLD)

    recalling = subprocess.Popen(
        [sys.executable, "-c", RECALLING, str(home)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert recalling.stdout is not None
    assert recalling.stdout.readline() == "ready\n"
    assert begin(store)
    built = [0]
    for point in ("commit.before:12", "commit.after:40"):
        assert killed_worker(home, point) == 137
        built.append(states(store)[256][1])
        assert states(store)[384] == ("active", 302)
        assert states(store)[256][0] == "building"
    assert 0 < built[1] < built[2] < 292
    work_off(home)
    seen, _ = recalling.communicate(timeout=60)
    heard = json.loads(seen)

    assert min(heard["seen"]["building"], heard["seen"]["after"]) >= 5
    assert [miss for miss in heard["missed"] if miss[1] < 290] == []
    assert states(store) == {384: ("retired", 302), 256: ("active", 292)}
    # Nothing is lost and each vector is that of its own fact: former versions too, forgotten ones not.
    assert blobs(store, NEW) == {
        fact_id: vector(text, NEW).blob
        for fact_id, text in ask(store, "SELECT id, text FROM facts WHERE forgotten_at IS NULL")
    }
    assert indexed(store, NEW) == live
    assert ask(store, "SELECT count(*) FROM outbox") == [(0,)]
    assert ask(store, "SELECT DISTINCT embedding_model FROM facts WHERE forgotten_at IS NULL") == [(NEW.identity.id,)]

    assert rollback(store).id == OLD.identity.id
    assert blobs(store, OLD) == before
    work_off(home)
    assert blobs(store, OLD) == before
    assert indexed(store, OLD) == live
    store.close()


@pytest.mark.parametrize(
    ("point", "count"),
    [("commit.before", 2), ("commit.after", 3), ("transaction.begun", 4), ("commit.before", 4), ("commit.after", 4)],
)
def test_a_kill_at_any_step_of_the_switch_leaves_the_old_or_the_new_space(
    point: str, count: int, store: Store, tmp_path: Path
) -> None:
    """Five facts: the steps are a report, two batches, and the switch."""
    ids = add(store, *(f"{bird} nests early" for bird in BIRDS))
    with store.database.write() as connection:
        run(connection, "DELETE FROM outbox")
    begin(store)
    assert killed_worker(tmp_path / "home", f"{point}:{count}") == 137
    switched = (point, count) == ("commit.after", 4)
    assert states(store)[384] == ("retired" if switched else "active", 5)
    work_off(tmp_path / "home")
    assert states(store) == {384: ("retired", 5), 256: ("active", 5)}
    assert indexed(store, NEW) == sorted(ids)


def test_what_comes_meanwhile_gets_both_vectors(store: Store) -> None:
    ids = add(store, *(f"heron {number}" for number in range(5)))
    begin(store)
    fresh = add(store, "kestrel") + add(store, "plover", embedder=None)
    finish(store)
    assert blobs(store, NEW).keys() == {*ids, *fresh}
    assert blobs(store, OLD).keys() == {*ids, fresh[0]}


def test_what_comes_before_the_last_moment_is_not_left_behind(store: Store) -> None:
    """A fact that comes in while the last batch is embedded is in none of the batches."""

    class Late(HashEmbedder):
        def embed(self, texts: Sequence[str], *, query: bool = False) -> Vectors:
            if "heron" in texts and not late:
                late.extend(add(store, "kestrel"))
            return super().embed(texts, query=query)

    late: list[str] = []
    [fact_id] = add(store, "heron")
    begin(store)
    finish(store, Late(256))
    assert states(store)[256][0] == "active"
    assert blobs(store, NEW).keys() == {fact_id, *late}


def test_an_attribute_that_the_words_imply_is_embedded_with_them(store: Store) -> None:
    with store.write(AUTHOR) as tx:
        fact = tx.add(Fact("I live in Lisbon", entity="user", key="location"))
    begin(store)
    finish(store)
    assert blobs(store, NEW) == {fact.id: vector("My location: I live in Lisbon", NEW).blob}


def test_an_empty_store_switches_at_once(store: Store) -> None:
    assert begin(store)
    finish(store)
    assert states(store) == {384: ("retired", 0), 256: ("active", 0)}


def test_a_store_without_a_model_takes_the_first_one(tmp_path: Path) -> None:
    store = Store(tmp_path / "fresh")
    assert not begin(store)
    assert states(store) == {256: ("active", 0)}
    assert not begin(store), "there is nothing to switch"
    store.close()


def test_a_text_that_the_model_fails_on_goes_by_words_and_stops_nothing(store: Store) -> None:
    ids = add(store, "heron", "bad egret", "kestrel", "plover", "avocet", "bad bittern")
    begin(store)
    finish(store, Fussy(256, "bad"))
    assert states(store)[256] == ("active", 4)
    assert blobs(store, NEW).keys() == {ids[0], ids[2], ids[3], ids[4]}
    assert [row[0] for row in ask(store, "SELECT id FROM facts WHERE embedding_model IS NULL")] == [ids[1], ids[5]]


@pytest.mark.parametrize("broken", [None, Fussy(256, "")])
def test_a_model_that_fails_on_everything_is_reported_and_nothing_switches(
    broken: Embedder | None, store: Store
) -> None:
    add(store, "heron", "kestrel")
    begin(store)
    finish(store, broken)
    assert states(store) == {384: ("active", 2), 256: ("building", 0)}
    reason = problem(store)
    assert reason is not None
    assert "hash (256 dimensions)" in reason
    finish(store)
    assert states(store) == {384: ("retired", 2), 256: ("active", 2)}
    assert problem(store) is None


def test_a_switch_that_is_stopped_goes_on_where_it_was(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    add(store, *(f"heron {number}" for number in range(10)))
    begin(store)
    monkeypatch.setattr("perdure.index.reembed.STEP_SECONDS", 0.0)
    stopping = Reembedder(store, lambda space: NEW)
    assert stopping.step()
    assert stopping.step()
    begun = states(store)[256][1]
    assert rollback(store) == space_of(OLD)
    assert 0 < begun < 10
    assert states(store) == {384: ("active", 10), 256: ("abandoned", begun)}
    assert not stopping.step()
    begin(store)
    again = Fussy(256, "nothing")
    finish(store, again)
    assert states(store) == {384: ("retired", 10), 256: ("active", 10)}
    assert len(again.texts) == 10 - begun


def test_one_switch_at_a_time(store: Store) -> None:
    add(store, "heron")
    begin(store)
    begin(store, HashEmbedder(128))
    assert states(store) == {384: ("active", 1), 256: ("abandoned", 0), 128: ("building", 0)}
    finish(store, HashEmbedder(128))
    assert states(store)[128] == ("active", 1)


def test_nobody_switches_by_himself_to_what_was_left(store: Store, clock: ManualClock) -> None:
    def by_itself(embedder: HashEmbedder) -> bool:
        with store.database.write() as connection:
            return spaces.begin_if_new(connection, space_of(embedder), clock.now())

    assert not by_itself(OLD)
    assert by_itself(NEW)
    assert not by_itself(HashEmbedder(128)), "one is being built"
    finish(store)
    assert not by_itself(OLD), "that would be a way back that nobody asked for"
    rollback(store)
    assert not by_itself(NEW), "it was rolled back"


def test_the_way_back_and_forth(store: Store, clock: ManualClock) -> None:
    ids = add(store, "heron", "kestrel")
    old = blobs(store, OLD)
    with pytest.raises(NotFoundError):
        rollback(store)
    begin(store)
    finish(store)
    clock.advance(60)
    [fresh] = add(store, "plover", embedder=NEW)
    new = blobs(store, NEW)
    assert rollback(store) == space_of(OLD)
    assert (blobs(store, OLD), blobs(store, NEW)) == (old, new)
    models = dict(ask(store, "SELECT id, embedding_model FROM facts"))
    assert models == {ids[0]: OLD.identity.id, ids[1]: OLD.identity.id, fresh: None}
    # The worker gives what came since the vectors that it lacks.
    work_off(store.folder)
    assert blobs(store, OLD) == old | {fresh: vector("plover", OLD).blob}
    clock.advance(60)
    assert rollback(store).id == NEW.identity.id
    assert blobs(store, NEW) == new


class TestPrune:
    @pytest.fixture
    def left(self, store: Store) -> Store:
        add(store, *(f"heron {number}" for number in range(1200)))
        begin(store)
        finish(store)
        return store

    def test_by_hand(self, left: Store) -> None:
        assert [item.space.dims for item in prune(left, dry_run=True)] == [384]
        assert states(left)[384] == ("retired", 1200)
        assert [item.space.dims for item in prune(left)] == [384]
        assert states(left) == {384: ("pruned", 0), 256: ("active", 1200)}
        assert prune(left) == []
        with pytest.raises(NotFoundError):
            rollback(left)

    def test_the_worker_does_it_after_thirty_days(self, left: Store, clock: ManualClock) -> None:
        clock.advance(KEEP_SECONDS - 1)
        assert not Reembedder(left, lambda space: None).step()
        assert states(left)[384] == ("retired", 1200)
        clock.advance(1)
        assert not Reembedder(left, lambda space: None).step()
        assert states(left)[384] == ("pruned", 0)

    def test_one_that_was_killed_is_finished_later(self, left: Store) -> None:
        with left.database.write() as connection:
            spaces.prune(connection, OLD.identity.id, 0.0)
            spaces.drop_vectors(connection, OLD.identity.id, 0, 500)
        assert states(left)[384] == ("pruned", 700)
        with pytest.raises(NotFoundError):
            rollback(left)
        prune(left)
        assert states(left)[384] == ("pruned", 0)

    def test_a_space_that_is_wanted_again_keeps_what_it_gets(self, left: Store) -> None:
        with left.database.write() as connection:
            spaces.prune(connection, OLD.identity.id, 0.0)
        begin(left, OLD)
        with left.database.write() as connection:
            assert spaces.drop_vectors(connection, OLD.identity.id, 0, 500) is None
        finish(left, OLD)
        assert states(left) == {384: ("active", 1200), 256: ("retired", 1200)}


OPERATIONS = st.lists(
    st.tuples(st.sampled_from(["add", "add bare", "forget", "begin", "step", "roll back", "prune"]), st.integers(0, 2)),
    max_size=25,
)


@settings(max_examples=30, deadline=None)
@given(OPERATIONS)
def test_whatever_happens_no_space_is_mixed_and_the_one_that_was_built_is_whole(
    operations: list[tuple[str, int]],
) -> None:
    embedders = [HashEmbedder(dims) for dims in (8, 16, 24)]
    by_id = {embedder.identity.id: embedder for embedder in embedders}
    clock = ManualClock()
    with tempfile.TemporaryDirectory() as folder:
        store = Store(Path(folder), clock=clock)
        reembedder = Reembedder(store, lambda space: GuardedEmbedder(by_id[space.id]))
        texts: dict[str, str] = {}
        for operation, number in operations:
            clock.advance(1)
            space = store.space()
            match operation:
                case "add" | "add bare":
                    embedder = by_id[space.id] if space and operation == "add" else None
                    text = f"heron {len(texts)}"
                    [fact_id] = add(store, text, embedder=embedder)
                    texts[fact_id] = text
                case "forget" if texts:
                    fact_id = sorted(texts)[number % len(texts)]
                    with store.write(AUTHOR) as tx:
                        if tx.fact(fact_id).forgotten_at is None:
                            lifecycle.forget(tx, fact_id)
                case "begin":
                    begin(store, embedders[number])
                case "step":
                    reembedder.step()
                    after = store.space()
                    if after != space and after is not None:
                        assert not ask(
                            store,
                            "SELECT 1 FROM facts f WHERE forgotten_at IS NULL AND NOT EXISTS"
                            " (SELECT 1 FROM vectors v WHERE v.fact_id = f.id AND v.embedding_id = ?)",
                            after.id,
                        )
                case "roll back":
                    try:
                        rollback(store)
                    except NotFoundError:
                        assert "retired" not in {state for state, _ in states(store).values()}
                case "prune":
                    prune(store)
            found = [state for state, _ in states(store).values()]
            assert found.count("active") <= 1
            assert found.count("building") <= 1
            for fact_id, space_id, blob in ask(store, "SELECT fact_id, embedding_id, vector FROM vectors"):
                assert blob == vector(texts[fact_id], by_id[space_id]).blob
        store.close()


def test_triggers_move_along_before_the_new_model_answers(store: Store) -> None:
    [fact_id, other] = add(store, "The ferry leaves at nine.", "The boiler loses pressure.")
    with store.write(AUTHOR) as tx:
        known = {"to the island": vector("to the island", OLD)}
        tx.put_triggers(fact_id, [*known, "a day at sea"], USER, known)
        tx.put_triggers(other, ["gone again"], USER)
        tx.put_triggers(other, [], USER)
    assert begin(store)
    finish(store)
    space = store.space()
    assert space is not None
    assert space.id == NEW.identity.id
    with store.database.read() as connection:
        moved = triggers.vectors(connection, space.id, space.dims)
        texts = {each.id: each.text for each in triggers.of(connection, [fact_id])[fact_id]}
    assert {texts[name] for name in moved.ids} == {"to the island", "a day at sea"}
    for name, row in zip(moved.ids, moved.vectors, strict=True):
        assert row.tobytes() == vector(texts[name], NEW).blob
    assert list(store.database.query(damages)) == []
    # The way back is open: those of before are still there, and what has none gets one.
    rollback(store)
    with store.database.read() as connection:
        assert len(triggers.vectors(connection, OLD.identity.id, OLD.identity.dims).ids) == 1


def test_a_trigger_that_the_model_fails_on_stops_no_switch(store: Store) -> None:
    [fact_id] = add(store, "The ferry leaves at nine.")
    with store.write(AUTHOR) as tx:
        tx.put_triggers(fact_id, ["a bad day at sea", "to the island"], USER)
    assert begin(store)
    finish(store, Fussy(256, "bad"))
    assert states(store)[256] == ("active", 1)
    assert len(ask(store, "SELECT 1 FROM trigger_vectors WHERE embedding_id = ?", NEW.identity.id)) == 1
