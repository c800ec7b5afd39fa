"""The day's export comes back by an import as it was, and comes up unasked as before; a forged one lifts nothing."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from perdure.api.memory import Memory
from perdure.clock import ManualClock
from perdure.hooks.types import Channel, TurnContext
from perdure.importers.sources import load_source
from perdure.maintenance.backup import backup, restore
from perdure.maintenance.exports import daily_export
from perdure.maintenance.importing import Imported, bring_in
from perdure.store import lifecycle
from perdure.store.fact import Fact
from perdure.store.links import link
from perdure.store.sql import run
from perdure.store.store import Store
from perdure.store.transaction import Author
from tests.kit import all_facts

DAY = 86_400.0
PINNED = "The cabin is called Heron."
PROMPTS = {
    "Where is the boat moored?": ["The boat is moored in Kiel."],
    "Who repairs the mast?": [],
    "What does the sail maker charge?": [],
    "Which harbour had the ferry?": [],
}
"""What comes up for what beside what is pinned: the newer version; nothing that waits, was imported or is forgotten."""


def filled(store: Store) -> None:
    """Store memories in every state that a memory may be in."""
    home: dict[str, Any] = {"scope": "agent", "scope_target": "main"}
    slot: dict[str, Any] = {"entity": "boat", "key": "mooring"}
    now = store.clock.now()
    with store.write(Author(Channel.USER)) as tx:
        old = tx.add(Fact("The boat is moored in Lisbon.", channel=Channel.USER, category="fact", tags=("boat",),
                          value="Lisbon", source_date=now - 9 * DAY, **slot, **home))  # fmt: skip
        new = tx.add(Fact("The boat is moored in Kiel.", channel=Channel.USER, category="decision",
                          tags=("boat", "kiel"), value="Kiel", source_date=now - DAY, **slot, **home))  # fmt: skip
        tx.supersede(old.id, new.id)
        cabin = tx.add(Fact("The cabin is called Heron.", channel=Channel.CLI, scope="global", category="entity"))
        tx.add(Fact("Olaf repairs the mast.", channel=Channel.ASSISTANT, review_state="pending", **home))
        tx.add(Fact("The sail maker charges 900.", channel=Channel.IMPORT, scope="user", scope_target="owner"))
        gone = tx.add(Fact("The ferry went from the harbour of Visby.", channel=Channel.USER, **home))
        tx.add(Fact("The berth costs 40 a night.", channel=Channel.TOOL_UNASKED, scope="project", scope_target="fjord",
                    decay_class="short", metadata={"from": ["log", 3]}))  # fmt: skip
        lifecycle.pin(tx, cabin.id)
        lifecycle.forget(tx, gone.id)
        link(tx, new.id, cabin.id, "PART_OF", 0.5)


def links(store: Store) -> list[tuple[Any, ...]]:
    return store.database.query(run, "SELECT * FROM memory_links ORDER BY id")


def facts(store: Store) -> dict[str, Fact]:
    # The numbers of the journal are this database's own.
    return {fact_id: replace(fact, change_seq=0) for fact_id, fact in all_facts(store).items()}


def shown(home: Path, clock: ManualClock) -> dict[str, list[str]]:
    """Return what comes up for each prompt beside what is pinned, each asked in a session of its own."""
    with Memory.open(home, clock=clock, embedder="none", watch=False) as memory:
        found = {}
        for prompt in PROMPTS:
            recall = memory.turns.before(prompt, TurnContext(session_id=prompt, agent_id="main", host="test"))
            texts = [item.text for item in (recall.items if recall else ())]
            assert (PINNED in texts) is any(fact.pinned for fact in memory.admin.list() if fact.channel is Channel.CLI)
            found[prompt] = [text for text in texts if text != PINNED]
        return found


def take(home: Path, clock: ManualClock, **options: Any) -> tuple[Imported, Path]:
    """Import the day's export that stands in a store's folder, or in a `store` of `options`; return the report."""
    [path] = (home / "exports").glob("facts-*.jsonl")
    with closing(Store(options.pop("into", home), clock=clock)) as store:
        return bring_in(store, load_source(path, store.key), **options), path


@pytest.fixture
def lost(home: Path, tmp_path: Path, clock: ManualClock) -> tuple[dict[str, Fact], list[tuple[Any, ...]]]:
    """Return what a store held, with its links, before it was put back to when it was empty; its export is there."""
    with closing(Store(home, clock=clock)) as store:
        empty = backup(store, tmp_path / "empty.db")
        filled(store)
        assert daily_export(store) is not None
        held = facts(store), links(store)
    assert shown(home, clock) == PROMPTS
    restore(home, empty, clock=clock)
    assert not any(shown(home, clock).values())
    return held


def test_in_its_own_store_all_is_as_it_was(lost: Any, home: Path, clock: ManualClock) -> None:
    held, linked = lost
    report, _ = take(home, clock, dry_run=True)
    assert (report.added, report.trusted) == (len(held), True)
    report, _ = take(home, clock)
    assert (report.added, report.links, report.trusted) == (len(held), 1, True)
    with closing(Store(home, clock=clock)) as store:
        assert (facts(store), links(store)) == (held, linked)
    assert shown(home, clock) == PROMPTS
    again, _ = take(home, clock)
    assert (again.added, again.skipped, again.superseded, again.conflicts) == (0, len(held), 0, [])


def test_in_another_store_it_is_so_once_somebody_vouches_for_it(
    lost: Any, home: Path, tmp_path: Path, clock: ManualClock
) -> None:
    held, linked = lost
    report, _ = take(home, clock, into=tmp_path / "other")
    assert (report.added, report.trusted) == (len(held), False)
    assert not any(shown(tmp_path / "other", clock).values())
    take(home, clock, into=tmp_path / "other", trust=True)
    with closing(Store(tmp_path / "other", clock=clock)) as store:
        assert (facts(store), links(store)) == (held, linked)
    assert shown(tmp_path / "other", clock) == PROMPTS


def forge(path: Path, change: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
    lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    path.write_text("".join(json.dumps(change(line) if line["type"] == "fact" else line) + "\n" for line in lines))


@pytest.mark.parametrize(
    "lifted",
    [
        {"review_state": "approved"},
        {"channel": "user", "review_state": "approved"},
        {"channel": "cli", "review_state": "approved", "pinned": True, "importance": 1.0, "entity": "convention"},
        {"forgotten_at": None, "superseded_at": None, "channel": "user", "review_state": "approved"},
        {"scope": "global", "scope_target": "", "channel": "user", "review_state": "approved"},
    ],
    ids=lambda lifted: "-".join(lifted),
)
def test_a_file_that_was_changed_lifts_nothing(
    lost: Any, home: Path, clock: ManualClock, lifted: dict[str, Any]
) -> None:
    [path] = (home / "exports").glob("facts-*.jsonl")
    forge(path, lambda line: line | lifted)
    report, _ = take(home, clock)
    assert not report.trusted
    with closing(Store(home, clock=clock)) as store:
        assert {fact.channel for fact in facts(store).values()} == {Channel.IMPORT}
    assert not any(shown(home, clock).values())


def test_over_memories_that_are_there_a_changed_file_changes_nothing(lost: Any, home: Path, clock: ManualClock) -> None:
    take(home, clock)
    with closing(Store(home, clock=clock)) as store:
        before = facts(store), links(store)
    [path] = (home / "exports").glob("facts-*.jsonl")
    lifted = {
        "pinned": True,
        "review_state": "approved",
        "channel": "user",
        "forgotten_at": None,
        "superseded_at": None,
    }
    forge(path, lambda line: line | lifted)
    report, _ = take(home, clock)
    assert (report.added, report.vouched, report.superseded) == (0, 0, 0)
    with closing(Store(home, clock=clock)) as store:
        assert (facts(store), links(store)) == before
    assert shown(home, clock) == PROMPTS
