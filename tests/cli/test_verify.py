"""`perdure verify` and `perdure purge`: exit codes, JSON, and nothing happens unasked."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import apsw
import pytest
from click import Abort

from perdure.api.memory import Memory
from perdure.errors import InputError, NotFoundError
from perdure.hooks.types import Channel, TurnContext
from perdure.store.fact import Fact
from perdure.store.folder import Presence
from perdure.store.seals import seal
from perdure.store.sql import run
from perdure.store.store import Store
from perdure.store.transaction import Author
from tests.cli.calling import call, call_json

SECRET = "My neighbour Xylophilus Quagmire owes me seven hundred crowns."


@pytest.fixture
def home(elsewhere: Path) -> Iterator[Path]:
    before = os.umask(0o077)
    store = Store(elsewhere)
    with store.write(Author(Channel.LIBRARY)) as tx:
        for text in (SECRET, "The meeting is in the blue room."):
            tx.add(Fact(text))
        seal(tx.connection)
    store.close()
    yield elsewhere
    os.umask(before)


def texts(home: Path) -> list[str]:
    connection = apsw.Connection(str(home / "facts.db"))
    try:
        return [row[0] for row in run(connection, "SELECT text FROM facts ORDER BY seq")]
    finally:
        connection.close()


def edit(home: Path, sql: str) -> None:
    connection = apsw.Connection(str(home / "facts.db"))
    run(connection, sql)
    connection.close()


class TestVerify:
    def test_a_sound_store(self, home: Path) -> None:
        assert "No damage found." in call("verify", "--home", home).stdout
        told = call_json("verify", "--home", home)
        assert (told["sound"], told["findings"]) == (True, [])

    def test_what_can_be_repaired_is_only_repaired_when_asked(self, home: Path) -> None:
        edit(home, "DELETE FROM facts_fts WHERE rowid = 1")
        for _ in range(2):
            told = call_json("verify", "--home", home, code=1)
            assert {item["fixable"] for item in told["findings"]} == {True}
        assert call_json("verify", "--home", home, "--fix")["fixed"]
        call("verify", "--home", home)

    def test_what_cannot_be_repaired_stays_a_finding(self, home: Path) -> None:
        edit(home, "UPDATE facts SET text = 'The meeting is in the red room.' WHERE seq = 2")
        assert "changed" in call("verify", "--home", home, "--fix", code=1).stdout
        assert texts(home)[1] == "The meeting is in the red room."

    def test_what_cannot_be_looked_at(self, home: Path, tmp_path: Path) -> None:
        call("verify", "--home", tmp_path / "nowhere", code=2)
        assert not (tmp_path / "nowhere").exists()
        (home / "facts.db").write_bytes(b"no database at all, but long enough to be taken for one" * 100)
        call("verify", "--home", home, code=2)

    def test_the_index_of_files_and_recorded_conversations_are_looked_at_and_repaired(self, home: Path) -> None:
        with Memory.open(home, embedder="none", record_sessions=True) as memory:
            said = [
                {"role": "user", "content": "The heron stands in the reeds."},
                {"role": "assistant", "content": "Yes."},
            ]
            memory.turns.after(said, True, TurnContext(session_id="s"))
            memory.settle()
            memory.files.sync()
            assert memory.files.search("heron").results
        call("verify", "--home", home)
        [transcript] = (home / "transcripts").glob("*/*.jsonl")
        transcript.write_bytes(transcript.read_bytes().replace(b"reeds", b"weeds"))
        [index] = home.glob("index-*.db")
        connection = apsw.Connection(str(index))
        run(connection, "UPDATE chunks SET text = replace(text, 'reeds', 'weeds')")
        connection.close()
        found = call_json("verify", "--home", home, code=1)["findings"]
        assert {finding["repair"] for finding in found} == {"files", "conversations"}
        fixed = call_json("verify", "--home", home, "--fix")
        assert fixed["sound"]
        assert len(fixed["fixed"]) == len(found)


class TestPurge:
    def test_a_dry_run_removes_nothing(self, home: Path) -> None:
        told = call_json("purge", "--home", home, "--query", "xylophilus quagmire", "--dry-run")
        assert [item["why"] for item in told["would_remove"]] == ["requested"]
        assert len(texts(home)) == 2

    def test_it_asks_first(self, home: Path) -> None:
        with pytest.raises(Abort):
            call("purge", "--home", home, "--query", SECRET, stdin="n\n")
        assert len(texts(home)) == 2

    def test_it_removes_and_certifies(self, home: Path) -> None:
        [done] = call_json("purge", "--home", home, "--query", SECRET, "--yes")["purges"]
        assert (done["state"], len(done["facts"])) == ("certified", 1)
        assert texts(home) == ["The meeting is in the blue room."]
        assert not any(b"Quagmire" in path.read_bytes() for path in home.rglob("*") if path.is_file())
        call("verify", "--home", home)

    def test_while_others_have_the_store_open_it_is_pending(self, home: Path) -> None:
        other, another = Presence(home), Presence(home)
        assert "another process" in call("purge", "--home", home, "--query", SECRET, "--yes", code=1).stdout
        call("purge", "--home", home, "--status", code=1)
        other.close()
        another.close()
        assert "certified" in call("purge", "--home", home, "--status").stdout

    def test_nothing_named_and_unknown_ids_are_refused(self, home: Path) -> None:
        with pytest.raises(InputError, match="--query"):
            call("purge", "--home", home)
        with pytest.raises(NotFoundError):
            call("purge", "--home", home, "ffffffff", "--yes")
