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
from perdure.importers.agents import load_claude_code, load_codex
from perdure.importers.archive import elements, members
from perdure.importers.chats import load_chatgpt, load_claude_ai
from perdure.importers.conversation_import import Heard, Talks, hear
from perdure.importers.sources import FORMATS as FORMS
from perdure.importers.sources import KINDS, kind_of, load_source, open_source
from perdure.importers.systems import load_mem0
from perdure.maintenance.importing import bring_in
from perdure.store.fact import Fact
from perdure.store.scope import Audience
from perdure.store.store import Store
from perdure.store.transaction import Author
from perdure.store.undo import undo
from tests.kit import AUTHOR, OpenMemory, add, all_facts, for_each

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


def said_to_chatgpt(*messages: Any, **about: Any) -> dict[str, Any]:
    """A conversation in an export, of messages one after the other: texts of the person's, or whole ones."""
    nodes: dict[str, Any] = {"0": {"id": "0", "parent": None, "message": None}}
    for number, each in enumerate(messages, 1):
        content = {"content_type": "text", "parts": [each]}
        message = {"author": {"role": "user"}, "content": content} if isinstance(each, str) else each
        nodes[str(number)] = {"id": str(number), "parent": str(number - 1), "message": message}
    return {"id": "c", "create_time": LATEST, "current_node": str(len(messages)), "mapping": nodes, **about}


def voice(text: str, direction: str) -> dict[str, Any]:
    part = {"content_type": "audio_transcription", "text": text, "direction": direction}
    parts = [part, {"content_type": "real_time_user_audio_video_asset_pointer"}]
    return {"author": {"role": "user"}, "content": {"content_type": "multimodal_text", "parts": parts}}


def rollout(*records: Any) -> bytes:
    return "".join(json.dumps(record) + "\n" for record in records).encode()


def zstd(data: bytes) -> bytes:
    """Compress, or rather wrap: one frame with one block as it is."""
    size = len(data)
    return b"\x28\xb5\x2f\xfd\xa0" + size.to_bytes(4, "little") + (size << 3 | 1).to_bytes(3, "little") + data


OLD_ROLLOUT = rollout(
    {"id": "5973b6c0", "timestamp": "2025-06-15T10:00:00Z", "instructions": None}, {"record_type": "state"},
    {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "<environment_context />"}]},
    {"type": "message", "role": "user", "content": [
        {"type": "input_text", "text": "<image name=[Image #1]>"}, {"type": "input_text", "text": "</image>"},
        {"type": "input_text", "text": "## Open tabs:\n- a.py\n\n## My request for Codex:\nI sing in a choir."}]},
    {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "My cat is called Mia."}]},
    {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "I live in Botville."}]},
)  # fmt: skip
"""Of the time before session_meta."""


def program(source: Any, by: str = "codex_cli_rs") -> bytes:
    meta = {"type": "session_meta", "payload": {"id": "p", "source": source, "originator": by}}
    said = {"type": "event_msg", "payload": {"type": "user_message", "message": "I live in Progville."}}
    return rollout(meta, said)


class TestWhatIsNotRead:
    """What cannot be read is counted and named; what no person said is counted as that."""

    def test_voice_and_custom_instructions_of_chatgpt_are_the_persons(self, store: Store, tmp_path: Path) -> None:
        profile = "The user says:\n```Preferred name: Miriam\nRole: nurse\nOther Information: I have two cats.```"
        context = {
            "content_type": "user_editable_context",
            "user_profile": profile,
            "user_instructions": "```British spelling```",
        }
        given = {"author": {"role": "user"}, "content": context, "metadata": {"is_user_system_message": True}}
        first = said_to_chatgpt(given, voice("My doctor is called Ruiz.", "in"), voice("I live in Outville.", "out"))
        again = said_to_chatgpt(given, "I play the cello.", id="d")
        (tmp_path / "conversations.json").write_text(json.dumps([first, again]))
        for dry_run in (True, False):
            done = take(store, tmp_path, dry_run=dry_run)
            assert (done.conversations, done.messages, done.statements) == (2, 6, 6), "told once, and of each reading"
        texts = set(live(store))
        assert {"My name is Miriam.", "My role is nurse.", "I have two cats.", "My doctor is called Ruiz."} <= texts
        assert any("British spelling" in text for text in texts)
        assert not any("Outville" in text for text in texts)

    @for_each("name", ["conversations (1).json", "Chat History.json", "Conversations__abc-0001.json"])
    def test_an_export_is_read_whatever_it_is_called(self, name: str, tmp_path: Path) -> None:
        folder = tmp_path / name.partition(".")[0]
        folder.mkdir()
        (folder / name).write_text(json.dumps([None, said_to_chatgpt("I play the cello.")]))
        (folder / "user.json").write_text('{"id": 1}')
        with zipfile.ZipFile(folder / "inner.zip", "w") as inner:
            inner.write(folder / name, name)
        with zipfile.ZipFile(folder / "outer.zip", "w") as outer:
            outer.write(folder / "inner.zip", "User Online Activity/Conversations__abc-0001.zip")
        for path in (folder / name, folder, folder / "inner.zip", folder / "outer.zip"):
            assert kind_of(path) == "chatgpt"
            assert "I play the cello." in [
                each["content"] for talk in load_chatgpt(path).read() for each in talk.messages
            ]

    def test_one_odd_message_is_counted_and_the_others_are_read(self, store: Store, tmp_path: Path) -> None:
        chatgpt = said_to_chatgpt("I play the cello.", {"author": "me"}, "My dog is called Bruno.")
        chatgpt["mapping"]["odd"] = "a node"
        (tmp_path / "conversations.json").write_text(json.dumps([chatgpt]))
        done = take(store, tmp_path)
        assert (done.messages, done.unreadable, list(done.unread)) == (2, 2, ["c"])
        human = {"sender": "human", "text": "My cat is called Mia.", "content": ["a part"]}
        claude = {"uuid": "e", "chat_messages": ["odd", {"sender": "human", "content": 5}, human]}
        (tmp_path / "conversations.json").write_text(json.dumps([claude]))
        done = take(store, tmp_path)
        assert (done.messages, done.unreadable, "My cat is called Mia." in live(store)) == (1, 2, True)

    def test_a_shard_that_is_cut_off_does_not_lose_the_others(self, store: Store, tmp_path: Path) -> None:
        (tmp_path / "conversations-000.json").write_text(json.dumps([said_to_chatgpt("I play the cello.")])[:-1])
        (tmp_path / "conversations-001.json").write_text(json.dumps([said_to_chatgpt("I sing.", id="d")]))
        done = take(store, tmp_path)
        assert (done.messages, done.unreadable, list(done.unread)) == (2, 1, ["conversations-000.json"])

    def test_the_starter_project_of_claude_is_nobodys(self, tmp_path: Path) -> None:
        about = "An example project that also doubles as a how-to guide. Chat with it!"
        values = [{"name": "How to use Claude", "description": about}, {"name": "Shop", "description": "Violins."},
                  {"name": "Start", "description": "Anew.", "is_starter_project": True}]  # fmt: skip
        (tmp_path / "projects.json").write_text(json.dumps(values))
        notes = load_claude_ai(tmp_path).notes
        assert notes is not None
        assert [each.fact.text for each in notes.facts()] == ["Project Shop: Violins."]

    def test_rollouts_of_every_age_are_read(self, store: Store, tmp_path: Path) -> None:
        pytest.importorskip("zstandard" if sys.version_info < (3, 14) else "compression.zstd")
        (tmp_path / "rollout-a.jsonl").write_bytes(OLD_ROLLOUT)
        new = {"type": "event_msg", "payload": {"type": "user_message", "message": "My dog is called Bruno."}}
        (tmp_path / "rollout-b.jsonl.zst").write_bytes(zstd(rollout(new)))
        (tmp_path / "rollout-c.jsonl.zst").write_bytes(b"no such thing")
        done = take(store, tmp_path)
        assert set(live(store)) == {"My cat is called Mia.", "My dog is called Bruno.", "I sing in a choir."}
        assert live(store)["My cat is called Mia."].source_date == day("2025-06-15T10:00:00")
        assert (done.unreadable, list(done.unread)) == (1, ["rollout-c.jsonl.zst"])

    def test_a_rollout_that_nothing_unpacks_is_named(self, tmp_path: Path) -> None:
        (tmp_path / "rollout-b.jsonl.zst").write_bytes(zstd(OLD_ROLLOUT))
        code = (
            "import sys; sys.modules.update({'zstandard': None, 'compression.zstd': None})\n"
            "from pathlib import Path; from perdure.importers.sources import open_source\n"
            "print([(talk.session, talk.broken) for talk in open_source(Path(sys.argv[1]), b'').read()])\n"
        )
        done = subprocess.run([sys.executable, "-c", code, tmp_path], capture_output=True, text=True, check=True)
        assert "rollout-b.jsonl.zst" in done.stdout
        assert "pip install" in done.stdout

    @for_each(("source", "by", "passed"), [
        ("exec", "codex_cli_rs", "headless runs"), ("mcp", "codex_cli_rs", "headless runs"),
        ("vscode", "codex_exec", "headless runs"), (None, "codex_sdk_ts", "headless runs"),
        ({"subagent": "review"}, "codex_cli_rs", "sub-agents"), ("cli", "codex_cli_rs", ""), ("vscode", "", ""),
    ])  # fmt: skip
    def test_codex_run_by_a_program_is_no_person(self, source: Any, by: str, passed: str, tmp_path: Path) -> None:
        (tmp_path / "rollout-a.jsonl").write_bytes(program(source, by))
        [talk] = load_codex(tmp_path).read()
        assert (talk.passed, bool(talk.messages)) == (passed, not passed)

    @for_each(("record", "texts"), [
        ({"entrypoint": "sdk-ts"}, []), ({"entrypoint": "sdk-cli"}, []), ({"entrypoint": "mcp"}, []),
        ({"entrypoint": "cli"}, ["Hi"]), ({"entrypoint": "claude-vscode"}, ["Hi"]), ({}, ["Hi"]),
        ({"planContent": "x"}, []), ({"isMeta": True}, []), ({"isSidechain": True}, []), ({"toolUseResult": "x"}, []),
        ({"isCompactSummary": True}, []), ({"sourceToolUseID": "t"}, []),
    ])  # fmt: skip
    def test_claude_code_tells_in_the_record_who_typed(
        self, record: dict[str, Any], texts: list[str], tmp_path: Path
    ) -> None:
        whole = {"type": "user", "sessionId": "s", "message": {"role": "user", "content": "Hi"}, **record}
        (tmp_path / "s.jsonl").write_bytes(rollout(whole))
        [talk] = load_claude_code(tmp_path).read()
        assert [message["content"] for message in talk.messages] == texts


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

    @pytest.mark.parametrize("mine", [True, False])
    @for_each("text", ["My cat is called Mia.", "My cat is called Mia (since 2026-05-01)."])
    def test_what_was_forgotten_does_not_come_back(self, tmp_path: Path, text: str, mine: bool) -> None:
        store = Store(tmp_path / text)
        [fact] = add(store, Fact(text, channel=Channel.USER, scope="user", scope_target="owner"))
        with store.write(AUTHOR) as tx:
            tx.change(fact.id, "forget", {"forgotten_at": tx.now})
        take(store, "codex", mine=mine)
        assert set(live(store)) == {"I work at Brightline."}
        store.close()


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
            "from perdure.importers.chats import load_chatgpt\n"
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
        with pytest.raises(InputError, match="export it again"):
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
