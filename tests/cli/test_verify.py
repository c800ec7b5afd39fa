"""`perdure verify` and `perdure purge`: exit codes, JSON, and nothing happens unasked."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import apsw
import pytest
from click import Abort, Command
from click.testing import CliRunner

from perdure.cli.purge import purge
from perdure.cli.verify import verify
from perdure.errors import InputError, NotFoundError
from perdure.hooks.types import Channel
from perdure.store.database import run
from perdure.store.fact import Fact
from perdure.store.presence import Presence
from perdure.store.seals import seal
from perdure.store.store import Store
from perdure.store.transaction import Author

SECRET = "My neighbour Xylophilus Quagmire owes me seven hundred crowns."


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Path]:
    before = os.umask(0o077)
    folder = tmp_path / "home"
    store = Store(folder)
    with store.write(Author(Channel.LIBRARY)) as tx:
        for text in (SECRET, "The meeting is in the blue room."):
            tx.add(Fact(text))
        seal(tx.connection)
    store.close()
    yield folder
    os.umask(before)


def call(command: Command, home: Path, *arguments: str, answer: str | None = None) -> tuple[int, str]:
    """Call a command as the command line does; return its exit code and what it printed."""
    result = CliRunner().invoke(command, [*arguments, "--home", str(home)], input=answer, standalone_mode=False)
    if result.exception is not None:
        raise result.exception
    return result.return_value, result.stdout


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


def found(output: str) -> list[dict[str, Any]]:
    findings: list[dict[str, Any]] = json.loads(output)["findings"]
    return findings


class TestVerify:
    def test_a_sound_store(self, home: Path) -> None:
        code, output = call(verify, home)
        assert (code, "as it was written" in output) == (0, True)
        code, output = call(verify, home, "--json")
        assert (code, json.loads(output)["sound"], found(output)) == (0, True, [])

    def test_what_can_be_repaired_is_only_repaired_when_asked(self, home: Path) -> None:
        edit(home, "DELETE FROM facts_fts WHERE rowid = 1")
        for _ in range(2):
            code, output = call(verify, home, "--json")
            assert (code, {item["fixable"] for item in found(output)}) == (1, {True})
        code, output = call(verify, home, "--fix", "--json")
        assert (code, bool(json.loads(output)["fixed"])) == (0, True)
        assert call(verify, home)[0] == 0

    def test_what_cannot_be_repaired_stays_a_finding(self, home: Path) -> None:
        edit(home, "UPDATE facts SET text = 'The meeting is in the red room.' WHERE seq = 2")
        code, output = call(verify, home, "--fix")
        assert (code, "changed" in output) == (1, True)
        assert texts(home)[1] == "The meeting is in the red room."

    def test_what_cannot_be_looked_at(self, home: Path, tmp_path: Path) -> None:
        assert call(verify, tmp_path / "nowhere")[0] == 2
        assert not (tmp_path / "nowhere").exists()
        (home / "facts.db").write_bytes(b"no database at all, but long enough to be taken for one" * 100)
        assert call(verify, home)[0] == 2


class TestPurge:
    def test_a_dry_run_removes_nothing(self, home: Path) -> None:
        code, output = call(purge, home, "--query", "xylophilus quagmire", "--dry-run", "--json")
        assert (code, [item["why"] for item in json.loads(output)["would_remove"]]) == (0, ["asked for"])
        assert len(texts(home)) == 2

    def test_it_asks_first(self, home: Path) -> None:
        with pytest.raises(Abort):
            call(purge, home, "--query", SECRET, answer="n\n")
        assert len(texts(home)) == 2

    def test_it_removes_and_certifies(self, home: Path) -> None:
        code, output = call(purge, home, "--query", SECRET, "--yes", "--json")
        [done] = json.loads(output)["purges"]
        assert (code, done["state"], len(done["facts"])) == (0, "certified", 1)
        assert texts(home) == ["The meeting is in the blue room."]
        assert not any(b"Quagmire" in path.read_bytes() for path in home.rglob("*") if path.is_file())
        assert call(verify, home)[0] == 0

    def test_while_others_have_the_store_open_it_is_pending(self, home: Path) -> None:
        other, another = Presence(home), Presence(home)
        code, output = call(purge, home, "--query", SECRET, "--yes")
        assert (code, "another process" in output) == (1, True)
        assert call(purge, home, "--status")[0] == 1
        other.close()
        another.close()
        code, output = call(purge, home, "--status")
        assert (code, "certified" in output) == (0, True)

    def test_nothing_named_and_unknown_ids_are_refused(self, home: Path) -> None:
        with pytest.raises(InputError, match="--query"):
            call(purge, home)
        with pytest.raises(NotFoundError):
            call(purge, home, "ffffffff", "--yes")
