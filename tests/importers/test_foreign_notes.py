"""Memories and notes of other systems: mem0, basic-memory, Obsidian, OpenClaw's own files."""

from __future__ import annotations

import json
import shutil
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from perdure.files.notes import with_line
from perdure.hooks.types import Channel
from perdure.importers.sources import load_source
from perdure.maintenance.importing import Imported, bring_in
from perdure.store.scope import Audience
from perdure.store.store import Store
from perdure.store.undo import undo
from tests.kit import AUTHOR, all_facts, by_text
from tests.maintenance.test_exchange import SECRET

FORMATS = Path(__file__).with_name("formats")


def take(store: Store, name: str | Path, **options: Any) -> Imported:
    return bring_in(store, load_source(FORMATS / name, store.key), **options)


def day(text: str) -> float:
    return datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()


def test_mem0(store: Store) -> None:
    done = take(store, "mem0.json")
    assert (done.total, done.added, done.unreadable) == (2, 2, 1)
    fact = by_text(store)["Likes oat milk"]
    assert (fact.id, fact.tags) == ("8e5d4b8a-1111-4a1a-9a3f-000000000001", ("food",))
    assert (fact.created_at, fact.source_date) == (day("2025-05-01T08:00"), day("2025-06-01T08:00"))
    assert fact.metadata["user_id"] == "ada"
    assert SECRET not in str(all_facts(store))


def test_those_of_several_users_stay_apart(store: Store, tmp_path: Path) -> None:
    values = [{"id": name, "memory": f"{name} likes tea", "user_id": name} for name in ("ada", "bob")]
    (tmp_path / "mem0.json").write_text(json.dumps(values))
    take(store, tmp_path / "mem0.json")
    assert {fact.scope_target for fact in all_facts(store).values()} == {"ada", "bob"}


def test_basic_memory(store: Store) -> None:
    assert take(store, "basic-memory").added == 3
    found = by_text(store)
    assert set(found) == {
        "Works at a bakery in Ghent #work #bread (since 2020)", "Drinks her coffee black",
        "Ida Berg sister of Ada Berg",
    }  # fmt: skip
    job = found["Works at a bakery in Ghent #work #bread (since 2020)"]
    assert (job.entity, job.category) == ("Ida Berg", "other")
    assert set(job.tags) == {"family", "friends", "job", "work", "bread"}
    assert found["Drinks her coffee black"].category == "preference"
    assert job.source_date == day("2025-04-01")


def test_obsidian(store: Store) -> None:
    assert take(store, "obsidian").added == 3
    found = by_text(store)
    assert set(found) == {"Sencha is best at 70 degrees.", "Buy more matcha", "Gyokuro needs soft water"}
    assert set(found["Buy more matcha"].tags) == {"drinks", "home", "shopping"}
    assert found["Buy more matcha"].source_date == day("2025-07-01")


def test_what_perdure_wrote_into_a_file_is_no_news(store: Store, tmp_path: Path) -> None:
    (tmp_path / "MEMORY.md").write_text(with_line("- I sing.\n", "I like tea."))
    take(store, tmp_path)
    assert set(by_text(store)) == {"I sing."}


def test_openclaw(store: Store) -> None:
    assert take(store, "openclaw").added == 3
    assert by_text(store)["Ada bought a new lathe."].source_date == day("2026-01-15")
    assert not any("Rules" in text for text in by_text(store))


@pytest.mark.parametrize("name", ["mem0.json", "basic-memory", "obsidian", "openclaw"])
def test_a_second_import_adds_nothing_and_undo_takes_all_of_it(name: str, store: Store) -> None:
    done = take(store, name)
    assert {fact.channel for fact in all_facts(store).values()} == {Channel.IMPORT}
    before = all_facts(store)
    assert take(store, name).added == 0
    assert all_facts(store) == before
    with store.write(AUTHOR) as tx:
        undo(tx, str(done.batch), Audience.of())
    assert all(fact.forgotten_at is not None for fact in all_facts(store).values())


def test_a_single_file_is_enough(store: Store, tmp_path: Path) -> None:
    shutil.copy(FORMATS / "openclaw" / "MEMORY.md", tmp_path)
    assert take(store, tmp_path / "MEMORY.md").added == 2
