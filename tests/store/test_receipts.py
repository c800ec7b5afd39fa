"""A receipt comes back as it was put, whichever version wrote it, and takes little room."""

from __future__ import annotations

import json
import uuid
from pathlib import Path

from perdure.store import receipts
from perdure.store.scope import Audience
from perdure.store.sql import run
from perdure.store.store import Store

SCOPE = "user:owner"


def candidates(count: int) -> list[dict[str, object]]:
    return [
        {"id": str(uuid.uuid4()), "change_seq": number, "cosine": 0.5 + number / 1000, "coverage": 0.25, "named": False,
         "legs": {"sqlite": 5.153297, "semantic": 0.019045}, "score": 0.9, "verdict": "below the floor"}
        for number in range(count)
    ]  # fmt: skip


def test_a_receipt_comes_back_whole_and_is_found_by_what_it_names(tmp_path: Path) -> None:
    body = {"query": "Where is the heron?", "candidates": candidates(3), "echo": {"MEMORY.md#L1": [[["aa"], [], []]]}}
    named = str(body["candidates"][1]["id"])  # type: ignore[index]
    store = Store(tmp_path)
    with store.database.write() as connection:
        receipts.put(connection, "new", 1.0, "s", SCOPE, body)
        receipts.put(connection, "bare", 2.0, "s", SCOPE, {"query": "", "silence": "nothing was asked"})
        # As versions before this one wrote it.
        old = "INSERT INTO receipts (id, at, session, scope, body) VALUES ('old', 3.0, 's', ?, ?)"
        run(connection, old, (SCOPE, json.dumps(body)))
        known = {each.id: each.body for each in receipts.listed(connection, Audience.of(), 9)}
        assert known == {"new": body, "old": body, "bare": {"query": "", "silence": "nothing was asked"}}
        queries = [each.body["query"] for each in receipts.of_session(connection, "s", SCOPE, 1.0, 9)]
        assert queries == [body["query"], ""]
        assert receipts.naming(connection, [named]) == {"new", "old"}
        assert receipts.naming(connection, [str(uuid.uuid4())]) == set()
    store.close()


def test_what_was_considered_takes_a_third_of_its_words(tmp_path: Path) -> None:
    body = {"query": "Where is the heron?", "candidates": candidates(90)}
    store = Store(tmp_path)
    with store.database.write() as connection:
        receipts.put(connection, "r", 1.0, "s", SCOPE, body)
        [(size,)] = run(connection, "SELECT length(body) + length(details) FROM receipts")
    store.close()
    assert size < len(json.dumps(body)) / 3
