"""Secrets never reach the data folder, and those that an older redactor let through are taken out of it."""

from __future__ import annotations

import json
import uuid
from dataclasses import replace
from pathlib import Path

import pytest

from bench.secret_samples import Sample, secret_samples
from perdure.hooks.types import Channel
from perdure.maintenance.exports import daily_export
from perdure.maintenance.scrub import META
from perdure.secrets.redact import VERSION
from perdure.store import receipts
from perdure.store.fact import Fact
from perdure.store.inbox_lines import line_of
from perdure.store.sql import run
from perdure.store.store import Store
from perdure.store.transaction import Author
from perdure.text.normalise import fts_text
from tests.cli.calling import call, call_json
from tests.kit import OpenHost, OpenMemory, bytes_of, complaints

LEAST = 8
"""Characters: a shorter part is found in other bytes by chance."""
PASSWORD = "zq" + "7-heron-" + "Kx41"
TEXT = f"The wifi password is {PASSWORD} and the router is in the hall."
CLEAN = "The wifi password is [redacted password] and the router is in the hall."


def sought(samples: list[Sample]) -> set[bytes]:
    """Return what must be in no file: of seed phrases two words in a row, else values that chance does not make."""
    return {
        part.encode() for sample in samples for part in sample.parts if len(part) >= LEAST and "seed" not in sample.kind
    }


def test_no_secret_of_a_conversation_is_in_any_file(
    home: Path, open_host: OpenHost, caplog: pytest.LogCaptureFixture
) -> None:
    samples = secret_samples(11)
    host, memory = open_host()
    found = sought(samples)
    assert len(found) > 300
    for start in range(0, len(samples), 12):
        host.turn("\n\n".join(sample.text for sample in samples[start : start + 12]), "Noted.")
    assert memory.settle(60)
    memory.close()
    written = bytes_of(home) + caplog.text.encode()
    assert [part for part in found if part in written or fts_text(part.decode()).encode() in written] == []


def test_what_was_left_out_is_counted_and_the_vault_offered(
    open_host: OpenHost, caplog: pytest.LogCaptureFixture
) -> None:
    host, memory = open_host()
    host.turn(TEXT)
    host.turn("And my PIN is 4821, my password is hunter2.")
    assert memory.settle()
    assert memory.status().left_out == ("2 password", "1 pin")
    told = [line for line in complaints(caplog) if "perdure vault store" in line]
    assert len(told) == 2
    assert PASSWORD not in caplog.text


def let_through(home: Path) -> str:
    """Store what an older redactor let through, as it stood in a store of that time; return the fact's id."""
    store = Store(home)
    try:
        with store.write(Author(Channel.USER)) as tx:
            fact = tx.add(Fact("The router is in the hall, by the door.", channel=Channel.USER))
            run(tx.connection, "UPDATE facts SET text = ?, summary = NULL, metadata = ? WHERE id = ?",
                (TEXT, json.dumps({"note": TEXT}), fact.id))  # fmt: skip
            run(tx.connection, "DELETE FROM facts_fts WHERE rowid = (SELECT seq FROM facts WHERE id = ?)", (fact.id,))
            row = run(tx.connection, "SELECT seq FROM facts WHERE id = ?", (fact.id,))[0][0]
            tx._index(row, replace(fact, text=TEXT))
            receipts.put(tx.connection, str(uuid.uuid4()), 1.0, None, "global", {"query": TEXT, "score": 1})
            run(tx.connection, "INSERT INTO inbox_parked VALUES ('p', 1, 'KeyError', ?)",
                (json.dumps({"messages": [{"text": TEXT}]}),))  # fmt: skip
            run(tx.connection, "DELETE FROM meta WHERE key = ?", (META,))
        folder = home / "transcripts" / "global-x"
        folder.mkdir(parents=True, exist_ok=True)
        line = {"role": "user", "content": TEXT, "timestamp": 1.0, "mark": "m"}
        (folder / "s.jsonl").write_text(json.dumps(line) + "\n", encoding="utf-8")
        return fact.id
    finally:
        store.close()


def test_what_an_older_redactor_let_through_goes_at_the_next_start(home: Path, open_memory: OpenMemory) -> None:
    fact_id = let_through(home)
    assert PASSWORD.encode() in bytes_of(home)
    memory = open_memory()
    assert memory.settle(60)
    [fact] = memory.admin.list()
    assert (fact.id, fact.text, fact.metadata) == (fact_id, CLEAN, {"note": CLEAN})
    assert {finding.where for finding in memory.admin.verify()} == {"p"}
    assert "scrub" in {change.action for change in memory.admin.changes() if change.fact.id == fact_id}
    memory.close()
    assert PASSWORD.encode() not in bytes_of(home)
    assert fts_text(PASSWORD).encode() not in bytes_of(home)
    store = Store(home)
    assert store.meta(META) == str(VERSION)
    with store.database.read() as connection:
        assert run(connection, "SELECT state FROM purges") == [("certified",)]
        assert CLEAN in run(connection, "SELECT body FROM receipts")[0][0]
        assert CLEAN in run(connection, "SELECT entry FROM inbox_parked")[0][0]
    store.close()


def test_a_dry_run_changes_nothing_and_a_second_scrub_finds_nothing(home: Path, open_memory: OpenMemory) -> None:
    memory = open_memory()
    assert memory.settle()
    memory.close()
    fact_id = let_through(home)
    store = Store(home)
    with store.database.write() as connection:
        run(connection, "INSERT INTO meta VALUES (?, ?)", (META, str(VERSION)))
    store.close()
    memory = open_memory()
    assert memory.settle()
    planned = memory.admin.scrub(dry_run=True)
    assert (planned.facts, planned.receipts, planned.parked, planned.state) == ((fact_id,), 1, 1, "dry run")
    assert memory.get(fact_id).text == TEXT
    done = memory.admin.scrub()
    assert (done.facts, done.receipts, done.parked, done.conversations) == ((fact_id,), 1, 1, 1)
    assert (done.state, done.waiting) == ("certified", None)
    again = memory.admin.scrub()
    assert (again.facts, again.receipts, again.parked, again.conversations, again.state) == ((), 0, 0, 0, "nothing")
    assert memory.recall("router hall wifi") is not None


def test_the_exports_of_all_days_are_scrubbed(home: Path) -> None:
    store = Store(home)
    with store.write(Author(Channel.USER)) as tx:
        tx.add(Fact("The router is in the hall, by the door.", channel=Channel.USER))
    path = daily_export(store)
    assert path is not None
    whole = path.read_bytes()
    for day in (1, 2, 3):
        text = TEXT if day != 2 else CLEAN
        old = path.with_name(f"facts-2026-01-0{day}.jsonl")
        old.write_bytes(whole.replace(b"The router is in the hall, by the door.", text.encode()))
    store.close()
    assert PASSWORD.encode() in bytes_of(home)
    done = call_json("scrub", "--home", home)
    assert (done["exports"], done["state"]) == (2, "certified")
    assert PASSWORD.encode() not in bytes_of(home)
    assert CLEAN in path.with_name("facts-2026-01-01.jsonl").read_text()


def test_a_damaged_turn_that_is_kept_aside_is_redacted_and_stays(home: Path, open_memory: OpenMemory) -> None:
    memory = open_memory()
    assert memory.settle()
    kept_aside = home / "inbox" / "gone.damaged"
    lines = [line_of({"messages": [{"text": text}]}) for text in (TEXT, "The heron nests at the lake.")]
    kept_aside.write_bytes(b"".join(lines))
    assert memory.admin.scrub(dry_run=True).parked == 1
    assert kept_aside.read_bytes() == b"".join(lines)
    assert memory.admin.scrub().parked == 1
    assert kept_aside.read_bytes() == CLEAN.encode() + b"\n" + lines[1]
    assert memory.admin.scrub().parked == 0


def test_the_command_says_what_it_changed(home: Path) -> None:
    fact_id = let_through(home)
    planned = call("scrub", "--home", home, "--dry-run", "--json")
    assert planned.json["facts"] == [fact_id]
    assert PASSWORD.encode() in bytes_of(home)
    done = call("scrub", "--home", home, "--json")
    assert done.json["state"] == "certified"
    assert PASSWORD not in planned.output + done.output
    assert PASSWORD.encode() not in bytes_of(home)
