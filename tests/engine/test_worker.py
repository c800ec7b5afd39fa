"""The worker process makes LanceDB hold what SQLite says, and can be killed at any moment."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path

import lancedb
import pytest
from filelock import FileLock

from perdure.api.memory import Memory
from perdure.background.worker_process import WorkerProcess
from perdure.embed.base import EmbedderIdentity
from perdure.embed.deterministic import HashEmbedder
from perdure.engine.settings import Settings
from perdure.engine.work import work
from perdure.hooks.types import Channel
from perdure.lance.indexer import Indexer
from perdure.recall.options import LEXICAL
from perdure.store.fact import Fact
from perdure.store.spaces import VectorSpace
from perdure.store.sql import run
from perdure.store.store import Store
from perdure.store.transaction import Author, StoredVector
from tests.waiting import until

AUTHOR = Author(Channel.LIBRARY)
HASH = Settings.load({"embedder": "hash", "vector_index": "lance"}, environ={})
MODULE = "perdure.engine.worker"
HANGING = """
import os, pathlib, time
from perdure.engine.extensions import hookimpl

def hang(settings):
    mark = pathlib.Path(os.environ["ODD_MARK"])
    mark.with_suffix(".part").write_text(str(os.getpid()))
    mark.with_suffix(".part").rename(mark)
    while True:
        time.sleep(1)

@hookimpl
def perdure_register_embedders(register):
    register("hanging", hang)
"""
PARENT = """
import sys
from pathlib import Path
from perdure.background.worker_process import WorkerProcess

worker = WorkerProcess("perdure.engine.worker", Path(sys.argv[1]), {"embedder": "hanging"})
worker.ensure()
sys.stdin.read()
"""

LINGERING = """
import os, pathlib, time
from perdure.engine.extensions import hookimpl

class Lingering:
    def __del__(self):
        time.sleep(3600)

kept = Lingering()

def linger(settings):
    kept.itself = kept
    pathlib.Path(os.environ["ODD_MARK"]).touch()
    from perdure.embed.deterministic import HashEmbedder
    return HashEmbedder()

@hookimpl
def perdure_register_embedders(register):
    register("lingering", linger)
"""

posix = pytest.mark.skipif(os.name != "posix", reason="needs SIGKILL")


class OtherEmbedder(HashEmbedder):
    """Another model with vectors of the same length."""

    def __init__(self) -> None:
        super().__init__()
        self.identity = EmbedderIdentity("other", "1", 64, 256, pooling="none")


def bind(store: Store, embedder: HashEmbedder) -> None:
    identity = embedder.identity
    assert store.adopt_space(VectorSpace(identity.id, identity.dims, asdict(identity)))


def fill(folder: Path, *texts: str, embedder: HashEmbedder | None = None) -> list[str]:
    """Store facts, with the embedder's vectors or without any."""
    store = Store(folder)
    bind(store, embedder or HashEmbedder())
    with store.write(AUTHOR) as tx:
        ids = [tx.add(Fact(text, channel=Channel.LIBRARY), vector_of(text, embedder)).id for text in texts]
    store.close()
    return ids


def vector_of(text: str, embedder: HashEmbedder | None) -> StoredVector | None:
    if embedder is None:
        return None
    return StoredVector(embedder.identity.id, embedder.embed([text])[0].astype("<f4").tobytes())


def ask(folder: Path, sql: str) -> list[tuple[object, ...]]:
    store = Store(folder)
    with store.database.read() as connection:
        found = run(connection, sql)
    store.close()
    return found


def live(folder: Path) -> list[object]:
    return sorted(row[0] for row in ask(folder, "SELECT id FROM facts WHERE superseded_at IS NULL"))  # type: ignore[type-var]


def indexed(folder: Path) -> list[object]:
    """Return the ids in the LanceDB table, each as often as it is in there."""
    database = lancedb.connect(folder / "lancedb")
    [name] = database.list_tables().tables
    ids: list[object] = database.open_table(name).to_arrow()["id"].to_pylist()
    return sorted(ids)  # type: ignore[type-var]


def run_worker(home: Path, **settings: object) -> subprocess.Popen[bytes]:
    process = subprocess.Popen([sys.executable, "-m", MODULE], stdin=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdin is not None
    process.stdin.write(json.dumps({"home": str(home), "settings": settings}).encode() + b"\n")
    process.stdin.flush()
    return process


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    stat = Path(f"/proc/{pid}/stat")
    # One that has ended but was not waited for yet is gone for our purposes.
    return not (stat.exists() and stat.read_text().rpartition(")")[2].split()[0] == "Z")


def test_the_index_holds_exactly_what_is_live(tmp_path: Path) -> None:
    with Memory.open(tmp_path, embedder="hash", vector_index="lance") as memory:
        assert memory.ready()
        ids = [memory.store(f"The heron of lake {number} nests early").id for number in range(5)]
        assert memory.admin.sync_index()
    assert indexed(tmp_path) == live(tmp_path) == sorted(ids)
    store = Store(tmp_path)
    with store.write(AUTHOR) as tx:
        tx.supersede(ids[0], ids[1])
        tx.supersede(ids[2], tx.add(Fact("The heron of lake 2 nests late")).id)
    store.close()
    with Memory.open(tmp_path, embedder="hash", vector_index="lance") as memory:
        assert memory.admin.sync_index()
        assert memory.status().outbox == 0
    assert indexed(tmp_path) == live(tmp_path)
    assert len(live(tmp_path)) == 4


@posix
def test_a_worker_that_is_killed_again_and_again_leaves_neither_gaps_nor_doubles(tmp_path: Path) -> None:
    ids = fill(tmp_path, *(f"heron number {number}" for number in range(60)), embedder=HashEmbedder())
    watching = Store(tmp_path)
    Indexer(watching, lambda: None, 2).restart("a test")
    for left in (50, 25):
        worker = run_worker(tmp_path, embedder="hash", vector_index="lance", index={"vectors": 2})
        with worker:
            assert until(lambda: watching.outbox_state().waiting < left)  # noqa: B023
            worker.send_signal(signal.SIGKILL)
        assert worker.returncode == -signal.SIGKILL
    assert 0 < watching.outbox_state().waiting < 25
    watching.close()
    with Memory.open(tmp_path, embedder="hash", vector_index="lance") as memory:
        assert memory.admin.sync_index()
    assert indexed(tmp_path) == live(tmp_path) == sorted(ids)


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Path]:
    """Install an extension's code for the worker; returns the file by which it says that it was used."""

    def install(code: str) -> Path:
        packages = tmp_path / "packages"
        (packages / "odd-1.0.dist-info").mkdir(parents=True)
        (packages / "odd-1.0.dist-info" / "METADATA").write_text("Metadata-Version: 2.1\nName: odd\nVersion: 1.0\n")
        (packages / "odd-1.0.dist-info" / "entry_points.txt").write_text("[perdure]\nodd = odd_embedder\n")
        (packages / "odd_embedder.py").write_text(code)
        monkeypatch.delenv("PERDURE_LOAD_EXTENSIONS")
        monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, [str(packages), os.environ.get("PYTHONPATH")])))
        monkeypatch.setenv("ODD_MARK", str(tmp_path / "mark"))
        return tmp_path / "mark"

    return install


@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
def test_a_worker_does_not_outlive_its_host(tmp_path: Path, install: Callable[[str], Path]) -> None:
    """Its embedder hangs for ever, so that nothing but the host's death can end it."""
    mark = install(HANGING)
    home = tmp_path / "home"
    fill(home, "heron")
    parent = subprocess.Popen([sys.executable, "-c", PARENT, str(home)], stdin=subprocess.PIPE)
    try:
        assert until(mark.exists)
        pid = int(mark.read_text())
        assert alive(pid)
    finally:
        parent.kill()
        parent.communicate()
    try:
        assert until(lambda: not alive(pid))
    finally:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def test_a_worker_that_has_nothing_to_do_ends_whatever_the_code_of_others_does_at_the_end(
    tmp_path: Path, install: Callable[[str], Path]
) -> None:
    mark = install(LINGERING)
    home = tmp_path / "home"
    fill(home, "heron")
    worker = run_worker(home, embedder="lingering", vector_index="lance")
    try:
        assert until(mark.exists)
        assert until(lambda: worker.poll() is not None)
    finally:
        worker.kill()
        worker.communicate()
    assert worker.returncode == 0
    assert indexed(home) == live(home)


def test_a_worker_whose_host_went_before_it_spoke_just_ends(tmp_path: Path) -> None:
    worker = subprocess.Popen([sys.executable, "-m", MODULE], stdin=subprocess.PIPE, stderr=subprocess.PIPE)
    _, errors = worker.communicate(b'{"home": "', timeout=60)
    assert (worker.returncode, errors) == (0, b"")


def test_a_worker_whose_host_goes_while_it_starts_begins_nothing(tmp_path: Path) -> None:
    worker = run_worker(tmp_path, embedder="none")
    _, errors = worker.communicate(timeout=60)
    assert (worker.returncode, errors) == (0, b"")
    assert list(tmp_path.iterdir()) == []


def test_a_worker_that_cannot_be_started_is_tried_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(tmp_path, "heron")
    worker = WorkerProcess(MODULE, tmp_path, {"embedder": "none"})
    with monkeypatch.context() as patch:
        patch.setattr(sys, "executable", str(tmp_path / "absent"))
        worker.ensure()
        assert not worker.running
    worker.ensure()
    assert worker.running
    worker.stop()


def test_stopping_ends_the_worker(tmp_path: Path) -> None:
    fill(tmp_path, "heron")
    worker = WorkerProcess(MODULE, tmp_path, {"embedder": "none"})
    worker.stop()
    assert not worker.running
    worker.ensure()
    worker.ensure()
    assert worker.running
    worker.stop()
    assert not worker.running
    worker.stop()


@posix
def test_a_worker_that_has_ended_leaves_no_zombie(tmp_path: Path) -> None:
    with Memory.open(tmp_path, embedder="hash", vector_index="lance", timers=False) as memory:
        assert memory.ready()
        memory.store("The heron of the lake nests early.")
        assert memory.admin.sync_index()
        worker = memory._engine._worker._process
        assert worker is not None
        memory.admin.sync_index()
        # Nobody asks for it any more: it ends by itself, and is let go of.
        worker.terminate()
        assert until(lambda: not Path(f"/proc/{worker.pid}").exists())


def test_only_one_worker_works_in_a_folder(tmp_path: Path) -> None:
    fill(tmp_path, "heron", embedder=HashEmbedder())
    with FileLock(tmp_path / "worker.lock"):
        worker = run_worker(tmp_path, embedder="hash", vector_index="lance")
        _, errors = worker.communicate(timeout=60)
    assert (worker.returncode, errors) == (0, b"")
    assert not (tmp_path / "lancedb").exists()


def test_a_folder_that_cannot_be_used_is_reported(tmp_path: Path) -> None:
    (tmp_path / "facts.db").write_bytes(b"not a database " * 500)
    worker = run_worker(tmp_path)
    # Its stdin stays open meanwhile: a worker whose host has gone does not finish its sentence.
    assert worker.wait(timeout=60) == 1
    assert worker.communicate()[1].startswith(b"perdure worker: StoreCorruptError")


def test_no_code_of_the_agents_workspace_is_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    workspace, home, mark = tmp_path / "workspace", tmp_path / "home", tmp_path / "mark"
    workspace.mkdir()
    (workspace / "filelock.py").write_text(f"open({str(mark)!r}, 'w').close()\nraise SystemExit\n")
    home.mkdir()
    monkeypatch.chdir(workspace)
    worker = WorkerProcess(MODULE, home, {"embedder": "none"})
    with FileLock(home / "worker.lock"):
        worker.ensure()
        assert until(lambda: not worker.running)
    worker.stop()
    assert not mark.exists()


class TestVectorsLater:
    def test_facts_get_their_vectors_once_a_model_is_there(self, tmp_path: Path) -> None:
        with Memory.open(tmp_path, embedder="none") as memory:
            ids = [memory.store(f"The heron of lake {number} nests early").id for number in range(6)]
            assert memory.status().model == "disabled by setting"
        assert ask(tmp_path, "SELECT count(*) FROM vectors") == [(0,)]
        with Memory.open(tmp_path, embedder="hash", vector_index="lance") as memory:
            assert memory.ready()
            assert memory.admin.sync_index()
        assert {row[0] for row in ask(tmp_path, "SELECT fact_id FROM vectors")} == set(ids)
        assert indexed(tmp_path) == sorted(ids)

    def test_each_fact_once_and_in_one_space(self, tmp_path: Path) -> None:
        ids = fill(tmp_path, *(f"heron {number}" for number in range(9)))
        for _ in range(2):
            work(tmp_path, HASH, threading.Event(), idle_seconds=0)
            assert {row[0] for row in ask(tmp_path, "SELECT fact_id FROM vectors")} == set(ids)
            assert ask(tmp_path, "SELECT count(*) FROM outbox") == [(0,)]
            assert indexed(tmp_path) == sorted(ids)

    def test_what_is_told_to_stop_leaves_the_rest_in_the_outbox(self, tmp_path: Path) -> None:
        fill(tmp_path, "heron", embedder=HashEmbedder())
        store = Store(tmp_path)
        Indexer(store, lambda: None, 2).restart("a test")
        store.close()
        stop = threading.Event()
        stop.set()
        work(tmp_path, HASH, stop)
        assert ask(tmp_path, "SELECT count(*) FROM outbox") == [(1,)]


class TestMixedEmbedders:
    def test_another_model_is_not_used_and_status_says_why(self, tmp_path: Path) -> None:
        theirs = OtherEmbedder()
        fill(tmp_path, "The heron database is staging", embedder=theirs)
        with Memory.open(tmp_path, embedder="hash", vector_index="lance") as memory:
            assert not memory.ready()
            model = memory.status().model
            assert model.startswith("keyword only")
            assert "other" in model
            assert "hash" in model
            ours = memory.store("The kettle is broken since Monday")
            assert ours.embedding_model is None
            recall = memory.recall("Which database is staging?")
            assert recall is not None
            assert [(item.text, item.leg) for item in recall.items] == [("The heron database is staging", LEXICAL)]
        assert ask(tmp_path, "SELECT id FROM embeddings") == [(theirs.identity.id,)]
        assert ask(tmp_path, "SELECT DISTINCT embedding_id FROM vectors") == [(theirs.identity.id,)]

    def test_the_worker_does_not_mix_them_either(self, tmp_path: Path) -> None:
        theirs = OtherEmbedder()
        [kept] = fill(tmp_path, "The heron database is staging", embedder=theirs)
        store = Store(tmp_path)
        with store.write(AUTHOR) as tx:
            tx.add(Fact("The kettle is broken"))
        store.close()
        work(tmp_path, HASH, threading.Event(), idle_seconds=0)
        assert ask(tmp_path, "SELECT fact_id, embedding_id FROM vectors") == [(kept, theirs.identity.id)]
        assert indexed(tmp_path) == [kept]
