"""LanceDB and PyArrow are not installed by default: all goes on without them, and a large store says what it lacks."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from perdure.api.memory import Memory
from perdure.embed.deterministic import HashEmbedder
from perdure.errors import InputError, SettingsError, StoreUnavailableError
from perdure.importers.systems import load_lancedb_pro
from perdure.index.feeding import PACKAGES, TELL_FROM
from perdure.lance.table import rows_in
from perdure.store.fact import Fact
from perdure.store.spaces import VectorSpace
from perdure.store.store import Store
from perdure.store.transaction import StoredVector
from tests.kit import AUTHOR

ROOT = Path(__file__).parents[2]
EMBEDDER = HashEmbedder(64)
SPACE = VectorSpace(EMBEDDER.identity.id, 64, {"model": "hash"})
CROSSOVER = 1_000
MASK = f"import sys\nsys.modules.update(dict.fromkeys({PACKAGES!r}))\n"
LIFE = """
import json, logging, sys
from perdure import Memory, TurnContext
from perdure.api.doctor import examine

home, told = sys.argv[1], []
handler = logging.Handler()
handler.emit = lambda record: told.append(record.getMessage())
logging.getLogger("perdure").addHandler(handler)
with Memory.open(home) as memory:
    memory.ready()
    said = [{"role": "user", "content": "The staging database is called heron."}]
    memory.turns.after(said, True, TurnContext(session_id="s"))
    assert memory.settle()
    recalled = memory.turns.before("What is the staging database called?", TurnContext(session_id="t")).block
    for _ in range(3):
        memory._engine.feed.look()
    status = memory.status()
    [kept] = [each.id for each in memory.search("staging database heron", limit=1)]
    memory.admin.purge(kept)
    found = memory.admin.verify()
    backup = memory.admin.backup()
doctor = [each.state + " | " + each.fix for each in examine(home) if each.name in ("index", "drift")]
print(json.dumps({
    "recalled": "heron" in recalled, "problem": status.index_problem, "told": told, "backup": backup.exists(),
    "found": [each.what for each in found], "doctor": doctor,
}))
"""


@pytest.fixture
def absent(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in PACKAGES:
        monkeypatch.setitem(sys.modules, name, None)


def test_a_store_of_any_size_lives_without_lancedb_and_says_once_what_it_lacks(tmp_path: Path) -> None:
    home, mask = tmp_path / "home", tmp_path / "mask"
    mask.mkdir()
    # The worker's process lacks them, too.
    (mask / "sitecustomize.py").write_text(MASK)
    with closing(Store(home)) as store:
        store.adopt_space(SPACE)
        texts = [f"Note {number} is about nothing." for number in range(CROSSOVER + 10)]
        with store.write(AUTHOR) as tx:
            for text, vector in zip(texts, StoredVector.rows(EMBEDDER.embed(texts), SPACE.id), strict=True):
                tx.add(Fact(text), vector)
    environ = {
        **os.environ, "PYTHONPATH": os.pathsep.join([str(mask), str(ROOT), os.environ.get("PYTHONPATH", "")]),
        "PERDURE_EMBEDDER": "hash", "PERDURE_EMBEDDER_MODEL": "64",
        "PERDURE_INDEX": json.dumps({"crossover": CROSSOVER}),
    }  # fmt: skip
    done = subprocess.run(
        [sys.executable, "-c", LIFE, str(home)], env=environ, cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    seen = json.loads(done.stdout)
    assert (seen["recalled"], seen["backup"], seen["found"]) == (True, True, [])
    lacks = f"more than {int(TELL_FROM * CROSSOVER)} memories, and LanceDB is not installed"
    remedy = 'pip install "perdure[lancedb]"'
    assert lacks in seen["problem"]
    assert remedy in seen["problem"]
    [told] = [each for each in seen["told"] if "LanceDB" in each]
    assert lacks in told
    assert remedy in told
    assert [lacks in each and remedy in each for each in seen["doctor"]] == [True, False]
    assert not (home / "lancedb").exists()


@pytest.mark.usefixtures("absent")
def test_who_asks_for_lancedb_by_name_is_told_what_to_install(tmp_path: Path) -> None:
    remedy = r'pip install "perdure\[lancedb\]"'
    asking: dict[str, dict[str, Any]] = {
        "vector_index": {"vector_index": "lance"}, "index.lexical": {"index": {"lexical": "lance"}},
        "lance_url": {"lance_url": "s3://bucket/memories"},
    }  # fmt: skip
    for name, setting in asking.items():
        with pytest.raises(SettingsError, match=rf"setting {name} .*{remedy}"):
            Memory.open(tmp_path / "home", embedder="none", **setting)
    assert not (tmp_path / "home").exists()
    table = tmp_path / "memories.lance"
    table.mkdir()
    for look in (lambda: rows_in(table), lambda: load_lancedb_pro(tmp_path)):
        with pytest.raises((StoreUnavailableError, InputError), match=remedy):
            look()


@pytest.mark.usefixtures("absent")
def test_a_small_store_lacks_nothing(tmp_path: Path) -> None:
    with Memory.open(tmp_path / "home", embedder="none") as memory:
        memory.store("The staging database is called heron.")
        assert memory.status().index_problem is None


def test_a_table_that_cannot_be_looked_at_is_left_as_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = tmp_path / "home"
    with Memory.open(home, embedder="hash", embedder_model="64", vector_index="lance") as memory:
        memory.ready()
        memory.store("The staging database is called heron.")
        assert memory.admin.sync_index()
    for name in PACKAGES:
        monkeypatch.setitem(sys.modules, name, None)
    with Memory.open(home, embedder="hash", embedder_model="64") as memory:
        memory.ready()
        memory.store("The production database is called crane.")
        assert memory.recall("What is the staging database called?")
        assert "has a LanceDB table" in (memory.status().index_problem or "")
        [finding] = memory.admin.verify()
        assert "perdure[lancedb]" in finding.hint
        assert not finding.fixable
    assert (home / "lancedb").exists()
