"""Folders that cannot be used are left as they were; a full disk costs nothing that was acknowledged."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import apsw
import pytest

from perdure.errors import StoreCorruptError, StoreError, StoreTooNewError, StoreUnavailableError
from perdure.hooks.types import Channel
from perdure.store.fact import Fact
from perdure.store.inbox import Inbox
from perdure.store.migrations import APPLICATION_ID, STEPS
from perdure.store.sql import run
from perdure.store.store import Store
from perdure.store.transaction import Author

posix = pytest.mark.skipif(os.name != "posix", reason="POSIX modes and limits")
SESSION = """
import json, os, sys
os.umask(0)
from pathlib import Path
from perdure.hooks.types import TurnContext
from perdure.api.memory import Memory

home = Path(sys.argv[1])
def modes():
    paths = [home, *home.rglob("*")]
    return {str(path.relative_to(home)): [path.is_dir(), path.stat().st_mode & 0o777] for path in paths}
seen = {}
with Memory.open(home, embedder="hash", vector_index=sys.argv[2]) as memory:
    memory.ready()
    memory.store("The staging database is called heron.")
    memory.turns.after([{"role": "user", "content": "I prefer tea over coffee."}], True, TurnContext(session_id="s"))
    seen |= modes()
    memory.settle()
    assert memory.admin.sync_index()
    seen |= modes()
print(json.dumps(seen | modes()))
"""
FULL_STORE = """
import json, resource, signal, sys
from pathlib import Path
from perdure.errors import StoreError
from perdure.api.memory import Memory

signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
said, errors = [], []
def store(memory, number):
    text = f"note {number} " + f"heron{number} " * 200
    try:
        said.append(memory.store(text).text)
    except StoreError as error:
        errors.append(type(error).__name__)
with Memory.open(Path(sys.argv[1]), embedder="none") as memory:
    resource.setrlimit(resource.RLIMIT_FSIZE, (2_000_000, hard))
    for number in range(500):
        store(memory, number)
        if len(errors) == 3:
            break
    resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
    for number in range(1000, 1005):
        store(memory, number)
print(json.dumps([said, errors]))
"""
FULL_INBOX = """
import json, resource, signal, sys
from pathlib import Path
from perdure.errors import StoreError
from perdure.store.inbox import Inbox

signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
said, errors = [], []
inbox = Inbox(Path(sys.argv[1]))
resource.setrlimit(resource.RLIMIT_FSIZE, (140_000, hard))
for number in range(1000):
    if len(errors) == 3:
        resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
    try:
        said.append(inbox.append({"number": number, "text": "x" * 3_333})["id"])
    except StoreError as error:
        errors.append(type(error).__name__)
inbox.close()
print(json.dumps([said, errors]))
"""


def child(code: str, *arguments: str) -> Any:
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def snapshot(folder: Path) -> dict[str, bytes]:
    # SQLite's own side files come and go with connections.
    files = (path for path in folder.rglob("*") if path.is_file() and not path.name.endswith(("-wal", "-shm")))
    return {path.name: path.read_bytes() for path in files}


def database(folder: Path, *statements: str) -> None:
    connection = apsw.Connection(str(folder / "facts.db"))
    for statement in statements:
        run(connection, statement)
    connection.close()


class TestRefusal:
    def refused(self, folder: Path, error: type[StoreError]) -> None:
        before = snapshot(folder)
        with pytest.raises(error) as caught:
            Store(folder)
        assert str(folder) in str(caught.value)
        assert snapshot(folder) == before

    @pytest.mark.parametrize("content", [b"not a database " * 500, b"SQLite format 2\0" + b"\0" * 4096, b"x" * 16])
    def test_a_file_that_is_no_database(self, tmp_path: Path, content: bytes) -> None:
        (tmp_path / "facts.db").write_bytes(content)
        self.refused(tmp_path, StoreCorruptError)

    @pytest.mark.parametrize(
        "mode",
        [
            pytest.param(
                "delete"
            ),
            "wal",
        ],
    )  # fmt: skip
    def test_the_database_of_another_program(self, tmp_path: Path, mode: str) -> None:
        database(tmp_path, f"PRAGMA journal_mode = {mode}", "CREATE TABLE facts (a)", "INSERT INTO facts VALUES (1)")
        self.refused(tmp_path, StoreCorruptError)

    def test_an_empty_database_of_another_program(self, tmp_path: Path) -> None:
        database(tmp_path, "PRAGMA journal_mode = wal", "PRAGMA user_version = 3")
        self.refused(tmp_path, StoreCorruptError)

    def test_a_newer_schema(self, tmp_path: Path) -> None:
        Store(tmp_path).close()
        database(tmp_path, f"PRAGMA user_version = {len(STEPS) + 1}")
        self.refused(tmp_path, StoreTooNewError)

    def test_a_damaged_page_is_reported_where_it_is_read(self, tmp_path: Path) -> None:
        Store(tmp_path).close()
        with (tmp_path / "facts.db").open("r+b") as file:
            file.seek(100)
            file.write(b"\xff" * 3_000)
        self.refused(tmp_path, StoreCorruptError)

    def test_a_folder_that_is_a_file(self, tmp_path: Path) -> None:
        (tmp_path / "file").write_bytes(b"mine")
        for folder in (tmp_path / "file", tmp_path / "file" / "below"):
            with pytest.raises(StoreUnavailableError, match="PERDURE_HOME"):
                Store(folder)
        assert (tmp_path / "file").read_bytes() == b"mine"

    def test_an_inbox_that_is_a_file(self, tmp_path: Path) -> None:
        (tmp_path / "inbox").write_bytes(b"mine")
        with pytest.raises(StoreUnavailableError, match="inbox"):
            Store(tmp_path)
        assert (tmp_path / "inbox").read_bytes() == b"mine"

    def test_a_database_that_is_a_folder(self, tmp_path: Path) -> None:
        (tmp_path / "facts.db").mkdir()
        with pytest.raises(StoreUnavailableError, match=r"facts\.db"):
            Store(tmp_path)

    def test_an_empty_file_is_a_new_database(self, tmp_path: Path) -> None:
        (tmp_path / "facts.db").touch()
        store = Store(tmp_path)
        with store.database.read() as connection:
            assert run(connection, "PRAGMA application_id") == [(APPLICATION_ID,)]
        store.close()


@posix
class TestModes:
    def test_all_that_a_session_leaves_is_private(self, tmp_path: Path) -> None:
        modes = child(SESSION, str(tmp_path / "home"), "lance")
        names = set(modes)
        assert {".", "facts.db", "facts.db-wal", "inbox", "lancedb"} <= names
        assert any(name.startswith("inbox/") for name in names)
        assert any(name.endswith(".lance") for name in names)
        open_to_others = {name: oct(mode) for name, (_, mode) in modes.items() if mode & 0o077}
        assert open_to_others == {}
        assert {oct(modes[name][1]) for name in (".", "inbox", "lancedb")} == {"0o700"}
        assert oct(modes["facts.db"][1]) == "0o600"

    def test_what_others_could_read_before_is_closed(self, tmp_path: Path) -> None:
        Store(tmp_path / "home").close()
        for path, mode in ((tmp_path / "home", 0o755), (tmp_path / "home" / "facts.db", 0o644)):
            path.chmod(mode)
        Store(tmp_path / "home").close()
        assert (tmp_path / "home").stat().st_mode & 0o777 == 0o700
        assert (tmp_path / "home" / "facts.db").stat().st_mode & 0o777 == 0o600


@posix
class TestFullDisk:
    def test_every_acknowledged_fact_is_there_once(self, tmp_path: Path) -> None:
        said, errors = child(FULL_STORE, str(tmp_path))
        assert len(errors) == 3
        assert len(said) > 10
        assert sum(text.startswith("note 100") for text in said) == 5
        store = Store(tmp_path)
        with store.database.read() as connection:
            texts = [row[0] for row in run(connection, "SELECT text FROM facts")]
            journal = run(connection, "SELECT count(*) FROM journal")[0][0]
            words = run(connection, "SELECT count(*) FROM facts_fts")[0][0]
            assert run(connection, "PRAGMA integrity_check") == [("ok",)]
        assert sorted(texts) == sorted(said)
        assert len(said) == journal == words
        with store.write(Author(Channel.LIBRARY)) as tx:
            assert tx.add(Fact("after all"))
        store.close()

    def test_every_acknowledged_inbox_entry_is_there_once(self, tmp_path: Path) -> None:
        said, errors = child(FULL_INBOX, str(tmp_path))
        assert len(errors) == 3
        assert errors[0] == "StoreFullError"
        inbox = Inbox(tmp_path)
        assert [entry["id"] for entries in inbox.adopt() for entry in entries] == said
        inbox.close()


LOCKLESS = """
import errno, fcntl, sys

def refuse(*arguments):
    raise OSError(errno.ENOLCK, "No locks available")

fcntl.lockf = fcntl.flock = refuse
from perdure.api.doctor import examine
from perdure.store.store import Store

[wrong] = [each for each in examine(sys.argv[1]) if each.wrong]
print(wrong.name, wrong.state)
try:
    Store(__import__("pathlib").Path(sys.argv[1]))
except Exception as error:
    print(type(error).__name__, error)
"""


@posix
def test_a_drive_without_locks_is_named_with_the_way_out(tmp_path: Path) -> None:
    command = [sys.executable, "-c", LOCKLESS, str(tmp_path / "home")]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    looked, opened = done.stdout.splitlines()
    assert looked.startswith("store the file system of ")
    assert opened.startswith("StoreUnavailableError the file system of ")
    assert all("does not support locks" in line and "PERDURE_HOME" in line for line in (looked, opened))
    assert not (tmp_path / "home" / "facts.db").exists()
