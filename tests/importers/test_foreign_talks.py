"""What people said to other agents is imported: theirs alone, with its dates, once, and taken back as one change."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from perdure.clock import ManualClock
from perdure.errors import InputError
from perdure.hooks.types import Channel
from perdure.importers.archive import elements, members
from perdure.importers.chatgpt import load_chatgpt
from perdure.importers.claude_ai import load_claude_ai
from perdure.importers.claude_code import load_claude_code
from perdure.importers.codex import load_codex
from perdure.importers.conversation_import import Heard, Talks, hear
from perdure.importers.mem0 import load_mem0
from perdure.importers.sources import FORMATS as FORMS
from perdure.importers.sources import KINDS, kind_of, load_source, open_source
from perdure.maintenance.importing import bring_in
from perdure.store.fact import Fact
from perdure.store.scope import Audience
from perdure.store.store import Store
from perdure.store.transaction import Author
from perdure.store.undo import undo
from tests.kit import AUTHOR, OpenMemory, add, all_facts

FORMATS = Path(__file__).with_name("formats")
TALKS = ("chatgpt", "claude-ai", "claude-code", "codex")
LATEST = datetime(2026, 3, 1, tzinfo=UTC).timestamp()


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    opened = Store(tmp_path / "store", clock=ManualClock(LATEST))
    yield opened
    opened.close()


def talks(name: str | Path, store: Store) -> Talks:
    found = open_source(FORMATS / name, store.key)
    assert isinstance(found, Talks)
    return found


def take(store: Store, name: str | Path, **options: Any) -> Heard:
    return hear(store, talks(name, store), **options)


def live(store: Store) -> dict[str, Fact]:
    facts = all_facts(store).values()
    return {fact.text: fact for fact in facts if fact.superseded_at is None and fact.forgotten_at is None}


def day(text: str) -> float:
    return datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()


class TestFormats:
    @pytest.mark.parametrize("name", [*TALKS, "mem0.json", "basic-memory", "obsidian", "openclaw"])
    def test_each_is_told_by_what_is_in_it(self, name: str) -> None:
        assert kind_of(FORMATS / name) == name.removesuffix(".json")

    @pytest.mark.parametrize("name", ["chatgpt", "claude-ai"])
    def test_a_zip_is_as_good_as_its_folder(self, name: str, store: Store, tmp_path: Path) -> None:
        with zipfile.ZipFile(tmp_path / "export.zip", "w") as archive:
            for file in (FORMATS / name).iterdir():
                archive.write(file, f"export/{file.name}")
        assert kind_of(tmp_path / "export.zip") == name
        packed, plain = take(store, tmp_path / "export.zip", dry_run=True), take(store, name, dry_run=True)
        assert (packed.messages, packed.statements) == (plain.messages, plain.statements)

    def test_what_cannot_be_imported_is_told_what_can(self, tmp_path: Path) -> None:
        (tmp_path / "notes.txt").write_text("notes")
        (tmp_path / "data.json").write_text('{"turns": []}')
        (tmp_path / "bad.zip").write_text("PK")
        for path in (tmp_path, *tmp_path.iterdir()):
            with pytest.raises(InputError) as raised:
                kind_of(path)
            assert all(kind in str(raised.value) for kind in KINDS)

    def test_conversations_are_no_memories(self, store: Store) -> None:
        with pytest.raises(InputError, match="perdure import"):
            load_source(FORMATS / "chatgpt", store.key)


class TestWhatIsKept:
    def test_chatgpt_the_current_branch_of_the_person_alone(self, store: Store) -> None:
        done = take(store, "chatgpt")
        assert (done.conversations, done.messages, done.unreadable, done.added) == (3, 4, 1, 4)
        assert set(live(store)) == {
            "I live in Porto.", "My favourite tea is sencha.", "I live in Lisbon now.", "I am a pilot.",
        }  # fmt: skip
        assert live(store)["I live in Porto."].source_date == 1736209410.0
        assert (done.first, done.last) == (1736209400.0, 1767225600.0)

    def test_claude_ai_conversations_and_beside_them_memories_and_projects(self, store: Store) -> None:
        done = take(store, "claude-ai")
        assert (done.conversations, done.messages, done.added) == (2, 3, 3)
        assert set(live(store)) == {"I live in Ghent.", "My dog is called Rex.", "My sister Ida works at a bakery."}
        notes = talks("claude-ai", store).notes
        assert notes is not None
        assert bring_in(store, notes).added == notes.total == 4
        assert {"Ada restores violins in Ghent.", "Project Shop: Texts for the violin shop."} <= set(live(store))
        assert not any("Mondays" in text for text in live(store)), "documents of a project are no memories"

    def test_claude_code_what_was_typed_and_nothing_else(self, store: Store) -> None:
        done = take(store, "claude-code")
        assert (done.conversations, done.messages, done.added) == (2, 3, 3)
        assert set(live(store)) == {
            "I prefer tabs over spaces.", "My birthday is on 3 May.", "My brother Tom lives in Oslo.",
        }  # fmt: skip

    def test_codex_what_was_typed_and_nothing_else(self, store: Store) -> None:
        done = take(store, "codex")
        assert (done.conversations, done.messages, done.added) == (3, 2, 2)
        assert set(live(store)) == {"I work at Brightline.", "My cat is called Mia."}

    def test_what_the_hooks_captured_is_left_alone(self, store: Store) -> None:
        with store.write(AUTHOR) as tx:
            tx.move_cursor("user:owner\0aaaa", "k1:0")
        assert (take(store, "codex").known, set(live(store))) == (1, {"My cat is called Mia."})

    def test_what_is_said_of_a_repository_belongs_to_its_project(self, store: Store, tmp_path: Path) -> None:
        line = json.loads((FORMATS / "claude-code/-home-ada-site/0c2d.jsonl").read_text().splitlines()[0])
        line["message"]["content"] = "The staging database is called heron. My birthday is on 3 May."
        (tmp_path / "one").mkdir()
        (tmp_path / "one" / "s.jsonl").write_text(json.dumps(line) + "\n")
        take(store, tmp_path / "one", project=lambda folder: f"project:{Path(folder).name}")
        assert {fact.scope_target: fact.text for fact in live(store).values()} == {
            "site": "The staging database is called heron.", "owner": "My birthday is on 3 May.",
        }  # fmt: skip


class TestTrust:
    @pytest.mark.parametrize("name", TALKS)
    def test_nothing_comes_up_unasked_by_itself(self, name: str, store: Store) -> None:
        take(store, name)
        assert {fact.channel for fact in all_facts(store).values()} == {Channel.IMPORT}

    def test_what_is_mine_counts_as_mine_and_the_newest_wins(self, store: Store) -> None:
        done = take(store, "chatgpt", mine=True)
        assert done.mine
        assert {fact.channel for fact in all_facts(store).values()} == {Channel.TRANSCRIPT_USER}
        assert "I live in Porto." not in live(store)
        assert live(store)["I live in Lisbon now."].source_date == 1767225600.0

    def test_the_newest_wins_whichever_is_read_first(self, store: Store, tmp_path: Path) -> None:
        for old, new in (("conversations-000.json", "conversations-001.json"), ("conversations-001.json",) * 2):
            shutil.copy(FORMATS / "chatgpt" / (old if old != new else "conversations-000.json"), tmp_path / new)
        take(store, tmp_path, mine=True)
        shutil.copy(FORMATS / "chatgpt" / "conversations-001.json", tmp_path / "conversations-000.json")
        take(store, tmp_path, mine=True)
        assert "I live in Porto." not in live(store)

    def test_what_the_user_said_since_stays(self, store: Store) -> None:
        add(store, Fact("I live in Berlin.", channel=Channel.USER, scope="user", scope_target="owner", entity="user",
                        key="location", value="Berlin", source_date=LATEST))  # fmt: skip
        take(store, "chatgpt", mine=True)
        assert "I live in Berlin." in live(store)
        take(store, "claude-ai")
        assert "I live in Berlin." in live(store)

    def test_an_import_is_mine_when_it_is_repeated_so(self, store: Store) -> None:
        take(store, "codex")
        take(store, "codex", mine=True)
        assert {fact.channel for fact in live(store).values()} == {Channel.TRANSCRIPT_USER}


class TestOnce:
    @pytest.mark.parametrize("mine", [False, True])
    @pytest.mark.parametrize("name", TALKS)
    def test_a_second_import_adds_nothing(self, name: str, mine: bool, store: Store) -> None:
        take(store, name, mine=mine)
        before = all_facts(store)
        again = take(store, name, mine=mine)
        assert (again.messages, again.added, again.batch) == (0, 0, None)
        assert all_facts(store) == before

    def test_a_conversation_that_went_on_brings_what_is_new(self, store: Store, tmp_path: Path) -> None:
        shutil.copytree(FORMATS / "codex", tmp_path / "codex")
        take(store, tmp_path / "codex")
        file = next((tmp_path / "codex").rglob("*cccc.jsonl"))
        line = json.loads(file.read_text().splitlines()[-1])
        line["payload"]["content"][0]["text"] = "My dog is called Rex."
        file.write_text(file.read_text() + json.dumps(line) + "\n")
        assert take(store, tmp_path / "codex").added == 1

    def test_a_dry_run_writes_nothing(self, store: Store) -> None:
        done = take(store, "chatgpt", dry_run=True)
        assert (done.messages, done.statements, done.added, done.batch) == (4, 4, None, None)
        assert all_facts(store) == {}
        assert take(store, "chatgpt").added == 4

    def test_what_was_forgotten_does_not_come_back(self, store: Store) -> None:
        [fact] = add(store, Fact("My cat is called Mia.", channel=Channel.USER, scope="user", scope_target="owner"))
        with store.write(AUTHOR) as tx:
            tx.change(fact.id, "forget", {"forgotten_at": tx.now})
        take(store, "codex", mine=True)
        assert set(live(store)) == {"I work at Brightline."}


class TestSecrets:
    def test_they_are_left_out_and_counted(self, store: Store, tmp_path: Path) -> None:
        done = take(store, "chatgpt", mine=True)
        assert done.secrets.total() == 1
        assert not any(b"hunter2" in file.read_bytes() for file in (tmp_path / "store").rglob("*") if file.is_file())


class TestUndo:
    @pytest.mark.parametrize("name", TALKS)
    def test_an_import_is_one_change_and_undone_nothing_of_it_is_recalled(
        self, name: str, open_memory: OpenMemory, home: Path
    ) -> None:
        with open_memory(embedder="none") as memory:
            opened = Store(home)
            done = take(opened, name, mine=True)
            kept = list(live(opened))
            with opened.write(Author(Channel.LIBRARY)) as tx:
                undone = undo(tx, str(done.batch), Audience.of())
            assert not undone.conflicts
            assert live(opened) == {}
            opened.close()
            for text in kept:
                assert not memory.recall(text)
                assert not memory.admin.search(text)


class TestMemory:
    def test_an_export_of_megabytes_is_read_in_a_few(self, tmp_path: Path) -> None:
        text = "Nothing of this is worth a word. " * 300
        talk = json.loads((FORMATS / "chatgpt" / "conversations-001.json").read_text())[0]
        with (tmp_path / "conversations.json").open("w") as file:
            file.write("[")
            for number in range(1500):
                talk["id"] = f"c-{number}"
                talk["mapping"]["n-1"]["message"]["author"]["role"] = "assistant" if number % 500 else "user"
                talk["mapping"]["n-1"]["message"]["content"]["parts"] = [text if number % 500 else "I like tea."]
                file.write(("," if number else "") + json.dumps(talk))
            file.write("]")
        assert (tmp_path / "conversations.json").stat().st_size > 15_000_000
        code = (
            "import sys, tracemalloc; from pathlib import Path\n"
            "from perdure.importers.chatgpt import load_chatgpt\n"
            "from perdure.importers.conversation_import import hear\n"
            "from perdure.store.store import Store\n"
            "store = Store(Path(sys.argv[2])); tracemalloc.start()\n"
            "done = hear(store, load_chatgpt(Path(sys.argv[1])))\n"
            "print(done.conversations, done.messages, tracemalloc.get_traced_memory()[1])\n"
            "store.close()\n"
        )
        command = [sys.executable, "-c", code, str(tmp_path), str(tmp_path / "store")]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        conversations, messages, peak = map(int, done.stdout.split())
        assert (conversations, messages) == (1500, 3)
        assert peak < 12_000_000


class TestElements:
    def read(self, path: Path) -> list[Any]:
        [member] = members(path, ".json")
        return [value for value, _ in elements(member)]

    def test_values_longer_than_what_is_read_at_once(self, tmp_path: Path) -> None:
        values = [{"a": "é" * 3_000_000}, {"b": [1, 2]}, {}]
        (tmp_path / "a.json").write_text(json.dumps(values, ensure_ascii=False))
        assert self.read(tmp_path / "a.json") == values

    @pytest.mark.parametrize("text", ["[{}", '[{"a": 1}, {"b"', "", "nothing", '{"a": 1}', "[" * 100_000])
    def test_what_is_cut_off_is_told(self, text: str, tmp_path: Path) -> None:
        (tmp_path / "a.json").write_text(text)
        with pytest.raises(InputError, match="export it anew"):
            self.read(tmp_path / "a.json")


KEYS = st.sampled_from([
    "id", "uuid", "mapping", "current_node", "message", "author", "role", "content", "parts", "parent", "children",
    "chat_messages", "sender", "text", "type", "payload", "sessionId", "cwd", "timestamp", "created_at", "create_time",
    "metadata", "parent_message_uuid", "content_type", "source", "origin", "memory", "user_id", "categories",
])  # fmt: skip
WORDS = st.sampled_from([
    "user", "human", "text", "session_meta", "event_msg", "response_item", "user_message", "message", "input_text",
    "tool_result", "I like tea.", "2026-01-15T10:00:00Z", "9" * 400, "root", "",
])  # fmt: skip
ODD = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | WORDS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=6),
    max_leaves=25,
)  # fmt: skip
CONVERSATION = st.fixed_dictionaries(
    {"mapping": ODD, "id": ODD, "current_node": ODD, "uuid": ODD, "chat_messages": ODD}
)
LINE = st.fixed_dictionaries({
    "type": WORDS, "sessionId": ODD, "message": ODD, "payload": ODD, "timestamp": ODD, "uuid": ODD, "cwd": ODD,
})  # fmt: skip


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(CONVERSATION | ODD, max_size=3), st.lists(LINE | ODD, max_size=4))
def test_whatever_is_in_a_file_it_is_read_or_passed_over(conversations: list[Any], records: list[Any]) -> None:
    with TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "conversations.json").write_text(json.dumps(conversations))
        (folder / "memories.json").write_text(json.dumps(conversations))
        (folder / "rollout-a.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))
        for load in (load_chatgpt, load_claude_ai, load_claude_code, load_codex):
            talks = load(folder)
            for talk in talks.read():
                assert all(isinstance(message["content"], str) for message in talk.messages)
            assert talks.notes is None or all(each.fact.text for each in talks.notes.facts())
        for _ in load_mem0(folder).facts():
            pass
        for _, told in FORMS.items():
            told.fits(folder)
