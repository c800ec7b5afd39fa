"""Triggers in what keeps a store in order: exports, imports, moves, purges, scrubs, repairs, a new model."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path

import pytest

from perdure.api.memory import Memory
from perdure.errors import InputError
from perdure.hooks.types import Channel
from perdure.index.missing import embed_missing
from perdure.maintenance import move
from perdure.maintenance.markdown import export_pages
from perdure.maintenance.purge import CERTIFIED
from perdure.maintenance.scrub import META
from perdure.store import triggers
from perdure.store.seals import damages
from perdure.store.sql import run
from perdure.store.store import Store
from perdure.store.transaction import Author
from tests.kit import OpenMemory, bytes_of, for_each

PENICILLIN = "I'm allergic to penicillin."
SORE, FEVER = "what can I take for my sore throat", "the little one has a temperature again"
PASSWORD = "zq" + "7-heron-" + "Kx41"


def told(memory: Memory) -> set[tuple[str, str, str]]:
    """Return the text of each memory with its triggers and their origins."""
    return {
        (fact.text, each.text, each.origin)
        for fact in memory.admin.list(limit=100)
        for each in memory.admin.triggers(fact)
    }


@pytest.fixture
def memory(open_memory: OpenMemory) -> Memory:
    memory = open_memory()
    fact = memory.store(PENICILLIN, triggers=[SORE])
    with memory._engine.store.write(Author(Channel.TOOL_UNASKED)) as tx:
        tx.put_triggers(fact.id, [FEVER], triggers.AGENT)
    return memory


@for_each("edited", [False, True])
def test_an_import_brings_them_with_their_origins_if_it_is_vouched_for(
    memory: Memory, tmp_path: Path, edited: bool
) -> None:
    path = tmp_path / f"export-{edited}.jsonl"
    assert memory.admin.export(path).triggers == 2
    with Memory.open(tmp_path / f"other-{edited}", timers=False) as other:
        done = other.admin.import_from(path, trust=not edited)
        assert done.triggers == 2
        found = {(text, origin) for _, text, origin in told(other)}
        assert found == {(SORE, "agent" if edited else "user"), (FEVER, "agent")}
        assert other.admin.import_from(path, trust=not edited).triggers == 0
        other.undo(done.batch)
        assert told(other) == set()
        assert other.admin.verify() == []


def test_a_line_that_is_no_trigger_is_named(memory: Memory, tmp_path: Path) -> None:
    path = tmp_path / "export.jsonl"
    memory.admin.export(path)
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    for change in ({"text": "x" * 201}, {"origin": "nobody"}, {"fact_id": 5}):
        path.write_text("\n".join(json.dumps(line | change if line["type"] == "trigger" else line) for line in lines))
        with pytest.raises(InputError, match="line 3"):
            memory.admin.import_from(path)


def test_a_move_takes_them_along(memory: Memory, tmp_path: Path) -> None:
    source = memory._engine.store
    with closing(Store(tmp_path / "target")) as empty:
        empty.note("store_key", source.meta("store_key"))
    (tmp_path / "target" / "remembered.json").unlink()
    with closing(Store(tmp_path / "target")) as target:
        move.begin(source, target)
        assert move.copy(source, target)["triggers"] == 2
        rows = "SELECT t.text, v.vector FROM triggers t JOIN trigger_vectors v ON v.trigger_id = t.id ORDER BY t.text"
        assert target.database.query(run, rows) == source.database.query(run, rows) != []
        assert list(target.database.query(damages)) == []


def test_a_purge_leaves_nothing_of_them(memory: Memory) -> None:
    home = memory._engine.store.folder
    fact = memory.admin.list()[0]
    other = memory.store("The doctor is called Nadia.", triggers=[f"remember: {PENICILLIN}", "who treats me"])
    assert memory.admin.purge(fact.id).state == CERTIFIED
    assert told(memory) == {(other.text, "who treats me", "user")}
    assert SORE.encode() not in bytes_of(home)
    assert memory.admin.verify() == []


def test_what_an_older_redactor_left_in_them_is_scrubbed(memory: Memory, home: Path) -> None:
    store = memory._engine.store
    fact = memory.admin.list()[0]
    with store.write(Author(Channel.CLI)) as tx:
        said = f"the wifi password is {PASSWORD} and does not work"
        run(tx.connection, "UPDATE triggers SET text = ? WHERE text = ?", (said, SORE))
        tx.journal("triggers", fact.id, detail={"added": [], "removed": []})
    store.note(META, "0")
    assert memory.admin.scrub().state == CERTIFIED
    assert "password" in " ".join(text for _, text, _ in told(memory))
    assert PASSWORD.encode() not in bytes_of(store.folder)
    assert memory.admin.verify() == []


DAMAGE: dict[str, tuple[str, str]] = {
    "a word": ("UPDATE triggers SET text = 'deploy'", "trigger has changed since it was written"),
    "an origin": ("UPDATE triggers SET origin = 'user'", "trigger has changed since it was written"),
    "a foreign one": (
        "INSERT INTO triggers SELECT 'x', fact_id, 'deploy', 'user', 0, NULL FROM triggers LIMIT 1",
        "trigger was not written by perdure",
    ),
    "a vector": ("UPDATE trigger_vectors SET vector = zeroblob(4)", "vector has changed since it was written"),
}


@pytest.mark.parametrize("kind", DAMAGE)
def test_a_change_behind_the_back_is_found(memory: Memory, kind: str) -> None:
    sql, what = DAMAGE[kind]
    memory._engine.store.database.apply(run, sql)
    assert what in {finding.what for finding in memory.admin.verify()}


def test_those_without_a_vector_get_one_in_the_background(tmp_path: Path) -> None:
    with Memory.open(tmp_path / "home", embedder="none", timers=False) as early:
        fact = early.store(PENICILLIN, triggers=[SORE, "run the tests"])
    with Memory.open(tmp_path / "home", timers=False) as memory:
        assert memory.ready()
        store = memory._engine.store
        while embed_missing(store, memory._engine.model.embedder):
            pass
        space = store.space()
        assert space is not None
        with store.database.read() as connection:
            found = triggers.vectors(connection, space.id, space.dims)
        # What is near every day's prompts is left out then, too.
        assert (found.fact_ids, [each.text for each in memory.admin.triggers(fact)]) == ([fact.id], [SORE])
        assert memory.admin.verify() == []


BOTH = {(PENICILLIN, SORE, "user"), (PENICILLIN, FEVER, "agent")}


def test_markdown_pages_show_them_and_bring_them_back(memory: Memory, tmp_path: Path) -> None:
    store, folder = memory._engine.store, tmp_path / "pages"
    export_pages(store, folder)
    [page] = [each for each in folder.rglob("*.md") if SORE in each.read_text()]
    assert FEVER in page.read_text()
    with store.write(Author(Channel.CLI)) as tx:
        for origin in (triggers.USER, triggers.AGENT):
            tx.put_triggers(memory.admin.list()[0].id, [], origin)
    assert told(memory) == set()
    assert memory.admin.import_from(folder).triggers == 2
    assert told(memory) == BOTH
    assert memory.admin.import_from(folder).triggers == 0
    with Memory.open(tmp_path / "other", timers=False) as other:
        assert other.admin.import_from(folder).triggers == 0
        assert other.admin.import_from(folder, trust=True).triggers == 2
        assert told(other) >= BOTH


@for_each(("old", "new"), [("allergic", "immune"), (SORE, "deploy the app to production")])
def test_what_somebody_wrote_into_a_page_aims_at_nothing(memory: Memory, tmp_path: Path, old: str, new: str) -> None:
    folder = tmp_path / new
    export_pages(memory._engine.store, folder)
    for page in folder.rglob("*.md"):
        page.write_text(page.read_text().replace(old, new))
    assert memory.admin.import_from(folder).triggers == 0
    assert told(memory) == BOTH
