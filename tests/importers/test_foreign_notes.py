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
from tests.kit import AUTHOR, all_facts, by_text, for_each
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


def test_what_has_expired_there_comes_in_as_over_and_a_later_end_is_kept(store: Store, tmp_path: Path) -> None:
    ends = {"old": "2020-01-15", "new": "2999-01-15", "none": None, "never": "9999-12-31"}
    values = [{"id": name, "memory": f"Is {name}", "expiration_date": end} for name, end in ends.items()]
    (tmp_path / "mem0.json").write_text(json.dumps(values))
    done = take(store, tmp_path / "mem0.json", trust=True)
    assert (done.added, done.ended) == (4, 1)
    assert {text: fact.expires_at for text, fact in by_text(store).items()} == {
        "Is old": day("2020-01-16"), "Is new": day("2999-01-16"), "Is none": None, "Is never": None,
    }  # fmt: skip


def test_those_of_several_users_stay_apart(store: Store, tmp_path: Path) -> None:
    values = [{"id": name, "memory": f"{name} likes tea", "user_id": name} for name in ("ada", "bob")]
    (tmp_path / "mem0.json").write_text(json.dumps(values))
    take(store, tmp_path / "mem0.json")
    assert {fact.scope_target for fact in all_facts(store).values()} == {"ada", "bob"}


def test_basic_memory(store: Store) -> None:
    assert take(store, "basic-memory").added == 3
    found = by_text(store)
    assert set(found) == {
        "Ida Berg: Works at a bakery in Ghent #work #bread (since 2020)", "Ida Berg: Drinks her coffee black",
        "Ida Berg sister of Ada Berg",
    }  # fmt: skip
    job = found["Ida Berg: Works at a bakery in Ghent #work #bread (since 2020)"]
    assert (job.entity, job.category) == ("Ida Berg", "other")
    assert set(job.tags) == {"family", "friends", "job", "work", "bread"}
    assert found["Ida Berg: Drinks her coffee black"].category == "preference"
    assert job.source_date == day("2025-04-01")


def test_obsidian(store: Store) -> None:
    assert take(store, "obsidian").added == 3
    found = by_text(store)
    assert set(found) == {"Tea: Sencha is best at 70 degrees.", "Tea: Buy more matcha", "Tea: Gyokuro needs soft water"}
    assert set(found["Tea: Buy more matcha"].tags) == {"drinks", "home", "shopping"}
    assert found["Tea: Buy more matcha"].source_date == day("2025-07-01")


@for_each(("page", "texts"), [
    ("My sister.", ["Leah: My sister."]),
    ("Leah is my sister.", ["Leah is my sister."]),
    ("- [x] Call Ruiz ✅ 2026-01-14", ["Leah: Call Ruiz ✅ 2026-01-14 (done)"]),
    ("- [-] Move to Graz", ["Leah: Move to Graz (cancelled)"]),
    ("- [ ] Paint #home\n  - [X] Ask Tom", ["Leah: Paint #home\n- Ask Tom (done)"]),
    ("I own %% or so %% a boat.\n\n%%\nI hate my boss.\n%%\n\nI sail.", ["Leah: I own  a boat.", "Leah: I sail."]),
    ("- Mood: {{mood}}\n- <% tp.file.cursor() %>\n- I write `{{x}}` often.", ["Leah: I write `{{x}}` often."]),
    ("My doctor is Ruiz. ^block1\n\n^lone", ["Leah: My doctor is Ruiz."]),
    ("- I sing.\n> [!info]- Nuts\n> I am allergic.\n\n> [!tip] Bins\n> - Paper", [
        "Leah: I sing.", "Leah: Nuts: I am allergic.", "Leah: Paper"]),
    ("> To be or not to be.\n\n> [!quote] Tom\n> I live in Quoteville.\n\nMine.", ["Leah: Mine."]),
    ("![[boiler.png]]\n\n![](a.png)\n\nThe boiler ![[b.png]] leaks.", ["Leah: The boiler leaks."]),
    ("Lorem ipsum dolor sit amet.\n\n```js\nI live in Codeville.\n```\n\nMine.", ["Leah: Mine."]),
    ("With [[People/Tom#Work|my Tom]] in [[Inns/Kitchen#Sink]].", ["Leah: With my Tom in Kitchen."]),
    ("| Day | Bin |\n|---|:-:|\n| Monday | Paper |\n| Friday | |\n", [
        "Leah: Day: Monday, Bin: Paper", "Leah: Day: Friday"]),
    ("Deploy key: ghp_abcdefghijklmnopqrstuvwxyz0123456789", []),
    ("---\nbirthday: 1990-05-03\nlikes:\n  - tea\n  - walks\nhome:\n  town: York\n"
     "aliases: [Lee]\nbio: |\n  A\n---\nHi.", [
        "Leah: birthday: 1990-05-03", "Leah: likes: tea, walks", "Leah: Hi."]),
    ("---\nexcalidraw-plugin: parsed\n---\nfrontend", []),
])  # fmt: skip
def test_a_note_is_read_as_its_program_means_it(page: str, texts: list[str], tmp_path: Path) -> None:
    (tmp_path / "Leah.md").write_text(page, encoding="utf-8")
    assert [each.fact.text for each in load_source(tmp_path, b"", "obsidian").facts()] == texts


def test_a_field_of_the_front_matter_is_looked_up(store: Store, tmp_path: Path) -> None:
    (tmp_path / "Leah.md").write_text("---\nbirthday: 1990-05-03\n---\n")
    take(store, tmp_path)
    [fact] = all_facts(store).values()
    assert (fact.entity, fact.key, fact.value) == ("Leah", "birthday", "1990-05-03")


@for_each(("data", "texts", "unread"), [
    ("Café ß".encode("cp1252"), ["a: Café ß"], 0),
    ("\ufeffZoë".encode("utf-16-le"), ["a: Zoë"], 0),
    ("Zoë lives.".encode("utf-16-be"), ["a: Zoë lives."], 0),
    ("\ufeffZoë".encode(), ["a: Zoë"], 0),
    ("Zoë.\n\n".encode() + b"Bad \xff.", ["a: Zoë."], 1),
    ("Привет из Москвы".encode("cp1251"), [], 1),
    (b"\xff\xd8\xff\xe0\0\x10JFIF\0 and so on", [], 1),
])  # fmt: skip
def test_what_is_no_text_is_named_and_not_kept(data: bytes, texts: list[str], unread: int, tmp_path: Path) -> None:
    (tmp_path / "a.md").write_bytes(data)
    load = load_source(tmp_path, b"", "obsidian")
    assert [each.fact.text for each in load.facts()] == texts
    assert (list(load.unread), load.unreadable) == (["a.md"] * unread, unread)


def test_templates_are_passed_over_wherever_the_vault_has_them(tmp_path: Path) -> None:
    for folder in ("templates", "Meta/Vorlagen", ".obsidian", "mine"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / ".obsidian" / "templates.json").write_text('{"folder": "Meta/Vorlagen"}')
    for folder in ("templates", "Meta/Vorlagen", "mine"):
        (tmp_path / folder / "Day.md").write_text(f"In {folder}.")
    load = load_source(tmp_path, b"", "obsidian")
    assert [each.fact.text for each in load.facts()] == ["Day: In mine."]
    assert load.passed == {"templates": 2}


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
