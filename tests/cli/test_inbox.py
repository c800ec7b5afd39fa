"""`perdure review`: what is acknowledged and no memory is shown to whom it belongs, and removed when they say so."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from perdure.api.memory import Memory
from perdure.errors import NotFoundError
from perdure.store.inbox_lines import line_of
from perdure.store.store import Store
from tests.background.test_drain import ENTRY
from tests.cli.calling import call

DAMAGED = "My PIN is 4821 and the heron nests\x1b[31m at the lake."


@pytest.fixture
def home(home: Path) -> Path:
    """A store with turns of the owner and of a named user that wait, one that failed, and one that is damaged."""
    store = Store(home)
    for scope, text in (
        ("user:owner", "I prefer tea over coffee."),
        ("agent:main user:eva", "The lamp in the hall is red."),
    ):
        store.inbox.append({**ENTRY, "scope": scope, "messages": [{"text": text, "at": None}]})
    failed = {**ENTRY, "messages": [{"text": "My dog is called Fido."}]}
    store.park("failed:1", "ValueError", json.dumps(failed))
    store.close()
    kept = store.folder / "inbox" / "gone.damaged"
    kept.touch(0o600)
    kept.write_bytes(line_of({"messages": [{"text": DAMAGED}]}).replace(b"heron", b"hexon"))
    return store.folder


def turns(*words: str) -> list[tuple[str, str]]:
    return [(turn["state"], turn["text"]) for turn in call("review", *words, "--json").json["turns"]]


def test_what_waits_failed_or_was_damaged_is_shown_to_whom_it_belongs(home: Path) -> None:
    assert sorted(turns()) == [
        ("damaged", "My PIN is [redacted pin] and the hexon nests [31m at the lake."),
        ("failed: ValueError", "My dog is called Fido."),
        ("waits", "I prefer tea over coffee."),
    ]
    # An agent reads what its user says, too; whose a damaged one is nobody knows.
    assert sorted(text for _, text in turns("list", "--agent", "main")) == [
        "I prefer tea over coffee.", "My dog is called Fido.",
    ]  # fmt: skip
    assert turns("list", "--agent", "main", "--user", "eva") == [("waits", "The lamp in the hall is red.")]
    assert turns("--user", "bob") == []


def test_a_turn_is_removed_by_its_id_and_what_waits_is_not(home: Path) -> None:
    ids = {turn["state"]: turn["id"] for turn in call("review", "--json").json["turns"]}
    doomed = [ids["damaged"], ids["failed: ValueError"]]
    assert "Would remove 2 turns." in call("review", "drop", *doomed, "--dry-run").stdout
    assert len(turns()) == 3
    for words in ([ids["waits"]], [doomed[0], "--user", "bob"]):
        with pytest.raises(NotFoundError):
            call("review", "drop", *words, "--dry-run")
    assert "Removed 2 turns." in call("review", "drop", *doomed).stdout
    with Memory.open(home, embedder="none", guest=True) as memory:
        assert (memory.status().damaged, memory.status().parked) == (0, 0)


def test_status_counts_them_and_every_command_that_reads_says_what_waits(home: Path) -> None:
    with Memory.open(home, embedder="none", guest=True) as memory:
        status = memory.status()
        assert (status.inbox, status.damaged, status.parked, status.inbox_problem) == (2, 1, 1, None)
        assert len(memory.admin.notices()) == 1
    assert "1 turn to capture" in call("stats").stderr
