"""The index is equal to the disk, costs no more than what changed, and holds nothing that must not be kept."""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from perdure.clock import SystemClock
from perdure.embed.deterministic import HashEmbedder
from perdure.errors import ModelError
from perdure.files.chunking import Chunking
from perdure.files.index import BATCH, Synced
from perdure.files.roots import Found, root_of
from perdure.files.rows import parts
from perdure.files.search import Ask, FileSearch
from perdure.files.turns import Threshold
from perdure.store.scope import Audience, Scope
from perdure.text.fence import fence
from tests.faulty import CountingEmbedder, FailingEmbedder
from tests.files.workshop import LONG_AGO, MINE, Workshop

Open = Callable[..., Workshop]
posix = pytest.mark.skipif(os.name != "posix", reason="builds links and FIFOs")

KEY = "\n".join(
    [
        "-----BEGIN RSA PRIVATE KEY-----",
        *(f"MIIEow{line:02}{'IBAAKCAQEA7bq9' * 4}" for line in range(40)),
        "-----END RSA PRIVATE KEY-----",
    ]
)
TOKEN = "ghp_16C7e42F292c6912E7710c838347Ae178B4a"


@pytest.fixture
def open_workshop(tmp_path: Path) -> Iterator[Open]:
    opened: list[Workshop] = []

    def make(**options: Any) -> Workshop:
        opened.append(Workshop(tmp_path, **options))
        return opened[-1]

    yield make
    for workshop in opened:
        workshop.close()


@pytest.fixture
def workshop(open_workshop: Open) -> Workshop:
    return open_workshop()


def turns(*texts: str, session: str | None = None) -> str:
    """Return a conversation as a host keeps it: one message per line, users and assistants in turn."""
    lines: list[dict[str, Any]] = [{"type": "session", "id": session}] if session else []
    lines += [
        {"role": ("user", "assistant")[number % 2], "content": text, "timestamp": LONG_AGO + number}
        for number, text in enumerate(texts)
    ]
    return "".join(json.dumps(line) + "\n" for line in lines)


def counts(synced: Synced) -> tuple[int, int, int]:
    return synced.added, synced.changed, synced.removed


class TestSync:
    def test_builds_an_index_of_all_files(self, workshop: Workshop) -> None:
        assert workshop.index.generations.live() is None
        workshop.write("workspace/MEMORY.md", "# People\nEva is a pilot.\n")
        workshop.note("2026-02-24", "We moved the database.\n")
        workshop.write("sessions/s1.jsonl", turns("Where is the key?", "Under the mat."))
        assert workshop.index.difference(workshop.roots).added == (
            "MEMORY.md",
            "memory/2026-02-24.md",
            "sessions/s1.jsonl",
        )
        synced = workshop.index.sync(workshop.roots)
        assert (counts(synced), synced.chunks, synced.rebuilt) == ((3, 0, 0), 4, True)
        assert workshop.texts() == [
            "# People\nEva is a pilot.",
            "Under the mat.",
            "We moved the database.",
            "Where is the key?",
        ]
        assert workshop.index.difference(workshop.roots).dirty == 0

    def test_a_second_time_there_is_nothing_to_do(self, workshop: Workshop) -> None:
        workshop.note("a", "heron")
        workshop.index.sync(workshop.roots)
        again = workshop.index.sync(workshop.roots)
        assert again == Synced()
        assert workshop.files() == ["index-1.db", "index-1.db-shm", "index-1.db-wal"]

    def test_follows_what_was_changed_added_and_removed(self, workshop: Workshop) -> None:
        for name in ("stays", "changes", "goes"):
            workshop.note(name, name)
        workshop.index.sync(workshop.roots)
        workshop.note("changes", "changed", old=False)
        workshop.note("comes", "came")
        (workshop.folder / "workspace/memory/goes.md").unlink()
        seen = workshop.index.difference(workshop.roots)
        assert (seen.added, seen.changed, seen.removed) == (
            ("memory/comes.md",),
            ("memory/changes.md",),
            ("memory/goes.md",),
        )
        assert counts(workshop.index.sync(workshop.roots)) == (1, 1, 1)
        assert workshop.texts() == ["came", "changed", "stays"]

    def test_a_file_without_text_is_known_all_the_same(self, workshop: Workshop) -> None:
        workshop.note("empty", "")
        workshop.note("blank", "\n \n")
        assert counts(workshop.index.sync(workshop.roots)) == (2, 0, 0)
        assert workshop.texts() == []
        assert workshop.index.difference(workshop.roots).dirty == 0

    @pytest.mark.parametrize("time", ["0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00", 10**400])
    def test_a_time_that_no_calendar_has_does_not_stop_the_index(self, workshop: Workshop, time: object) -> None:
        workshop.note("a", "heron")
        line = {"role": "user", "content": "egret", "timestamp": time}
        workshop.write("sessions/s1.jsonl", json.dumps(line) + "\n")
        workshop.index.sync(workshop.roots)
        assert workshop.texts() == ["egret", "heron"]

    def test_many_files_are_reported_as_they_are_done(self, workshop: Workshop) -> None:
        for number in range(BATCH + 10):
            workshop.note(str(number), f"note {number}")
        seen: list[tuple[int, int]] = []
        workshop.index.sync(workshop.roots, progress=lambda done, total: seen.append((done, total)))
        assert seen == [(0, 60), (50, 60), (60, 60)]
        assert len(workshop.texts()) == 60

    def test_a_root_that_is_dropped_leaves_the_index(self, workshop: Workshop) -> None:
        workshop.note("a", "of the workspace")
        workshop.write("sessions/s1.jsonl", turns("of the session"))
        workshop.index.sync(workshop.roots)
        synced = workshop.index.sync([workshop.sessions])
        assert synced.removed == 1
        assert workshop.texts() == ["of the session"]
        assert workshop.select("SELECT count(*) FROM files_fts") == [(1,)]

    def test_a_source_that_is_switched_off_leaves_the_index(self, workshop: Workshop, open_workshop: Open) -> None:
        workshop.note("a", "of the workspace")
        workshop.write("sessions/s1.jsonl", turns("of the session"))
        workshop.index.sync(workshop.roots)
        only = open_workshop(sources=("memory",))
        assert only.index.sync(only.roots).removed == 1
        assert only.texts() == ["of the workspace"]

    def test_the_same_folder_may_be_two_roots(self, workshop: Workshop) -> None:
        workshop.write("workspace/MEMORY.md", "memory")
        workshop.write("workspace/docs/a.md", "a document")
        roots = [
            workshop.workspace,
            root_of(MINE, workshop.workspace.path, "extra", "docs/*.md"),
            root_of(Scope("agent", "main"), workshop.workspace.path, "workspace"),
        ]
        assert counts(workshop.index.sync(roots)) == (3, 0, 0)
        assert workshop.index.difference(roots).dirty == 0
        assert counts(workshop.index.sync(roots)) == (0, 0, 0)
        assert workshop.texts() == ["a document", "memory", "memory"]

    def test_a_root_that_goes_and_comes_back(self, workshop: Workshop) -> None:
        workshop.note("a", "heron")
        workshop.index.sync(workshop.roots)
        shutil.rmtree(workshop.workspace.path)
        assert workshop.index.sync(workshop.roots).removed == 1
        assert workshop.texts() == []
        workshop.note("a", "heron")
        assert workshop.index.sync(workshop.roots).added == 1
        assert workshop.texts() == ["heron"]


class TestUnnoticed:
    """Edits that leave size and time as they were."""

    def edit(self, path: Path, text: str) -> None:
        before = path.stat()
        with path.open("r+", encoding="utf-8") as file:
            file.write(text)
        os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
        assert path.stat().st_size == before.st_size

    def test_within_the_tick_of_the_clock_is_found(self, workshop: Workshop) -> None:
        path = workshop.note("a", "heron", old=False)
        workshop.index.sync(workshop.roots)
        assert workshop.index.difference(workshop.roots).dirty == 0
        self.edit(path, "crane")
        assert workshop.index.difference(workshop.roots).changed == ("memory/a.md",)
        assert workshop.index.sync(workshop.roots).changed == 1
        assert workshop.texts() == ["crane"]

    def test_a_file_that_is_quiet_is_read_no_more(self, workshop: Workshop) -> None:
        path = workshop.note("a", "heron", old=False)
        workshop.index.sync(workshop.roots)
        os.utime(path, (LONG_AGO, LONG_AGO))
        seen = workshop.index.difference(workshop.roots)
        assert (seen.dirty, seen.unsettled) == (0, 1)
        assert counts(workshop.index.sync(workshop.roots)) == (0, 0, 0)
        seen = workshop.index.difference(workshop.roots)
        assert (seen.dirty, seen.unsettled) == (0, 0)
        assert workshop.texts() == ["heron"]

    def test_long_after_only_reading_every_file_finds_it(self, workshop: Workshop) -> None:
        path = workshop.note("a", "heron")
        workshop.note("b", "as before")
        workshop.index.sync(workshop.roots)
        self.edit(path, "crane")
        assert workshop.index.difference(workshop.roots).dirty == 0
        deep = workshop.index.difference(workshop.roots, deep=True)
        assert (deep.changed, deep.unsettled) == (("memory/a.md",), 0)
        workshop.index.sync(workshop.roots, force=True)
        assert workshop.texts() == ["as before", "crane"]

    def test_a_time_that_changed_alone_costs_a_look(self, workshop: Workshop) -> None:
        path = workshop.note("a", "heron")
        workshop.index.sync(workshop.roots)
        os.utime(path, (LONG_AGO + 60, LONG_AGO + 60))
        assert workshop.index.difference(workshop.roots).changed == ("memory/a.md",)
        assert workshop.index.difference(workshop.roots, deep=True).dirty == 0
        assert workshop.index.sync(workshop.roots) == Synced()
        assert workshop.index.difference(workshop.roots).dirty == 0

    def test_what_could_not_be_read_is_tried_again(self, workshop: Workshop) -> None:
        path = workshop.note("a", "heron")
        away = path.with_suffix(".away")

        def in_between(done: int, total: int) -> None:
            if not done:
                path.rename(away)

        workshop.index.sync(workshop.roots, progress=in_between)
        assert workshop.texts() == []
        away.rename(path)
        assert workshop.index.difference(workshop.roots).changed == ("memory/a.md",)
        assert workshop.index.sync(workshop.roots).changed == 1
        assert workshop.texts() == ["heron"]


class TestLeftOut:
    @posix
    def test_each_with_its_reason(self, open_workshop: Open) -> None:
        workshop = open_workshop(max_bytes=1_000)
        memory = workshop.note("good", "heron").parent
        workshop.note("large", "x" * 1_001)
        (memory / "binary.md").write_bytes(b"\x00\x01heron")
        os.mkfifo(memory / "fifo.md")
        (memory / "link.md").symlink_to("good.md")
        (workshop.folder / "elsewhere").write_text("of somebody else")
        (memory / "hard.md").hardlink_to(workshop.folder / "elsewhere")
        workshop.write("sessions/large.jsonl", turns("x" * 2_000))
        skipped = {
            "memory/binary.md": "binary",
            "memory/fifo.md": "not a regular file",
            "memory/hard.md": "hard link",
            "memory/large.md": "larger than 0.001 MB",
            "memory/link.md": "link",
        }
        assert workshop.index.sync(workshop.roots).skipped == skipped
        assert [text[0] for text in workshop.texts()] == ["h", "x", "x"]
        # The reasons are told as long as they are there.
        assert workshop.index.difference(workshop.roots).skipped == skipped
        assert workshop.index.sync(workshop.roots).skipped == skipped
        assert workshop.index.sync(workshop.roots, force=True).skipped == skipped

    @posix
    def test_a_file_that_became_a_link_leaves_the_index(self, workshop: Workshop) -> None:
        path = workshop.note("a", "heron")
        workshop.index.sync(workshop.roots)
        (workshop.folder / "elsewhere").write_text("of somebody else")
        path.unlink()
        path.symlink_to(workshop.folder / "elsewhere")
        synced = workshop.index.sync(workshop.roots)
        assert (synced.removed, synced.skipped) == (1, {"memory/a.md": "link"})
        assert workshop.texts() == []

    def test_a_binary_file_that_becomes_text_is_indexed(self, workshop: Workshop) -> None:
        path = workshop.note("a", "\0heron")
        assert workshop.index.sync(workshop.roots).skipped == {"memory/a.md": "binary"}
        workshop.note("a", "a heron", old=False)
        synced = workshop.index.sync(workshop.roots)
        assert (synced.changed, synced.skipped) == (1, {})
        assert workshop.texts() == ["a heron"]
        assert path.exists()

    def test_a_file_that_is_gone_says_so(self, workshop: Workshop) -> None:
        content = workshop.index.content(workshop.workspace, Found("memory/gone.md"))
        assert (content.hash, content.entries, content.skipped) == ("", (), "FileNotFoundError")

    def test_broken_text_costs_only_what_is_broken(self, workshop: Workshop) -> None:
        path = workshop.note("a", "")
        path.write_bytes(b"\xef\xbb\xbfheron \xff crane")
        workshop.index.sync(workshop.roots)
        assert workshop.texts() == ["heron \ufffd crane"]


class TestCost:
    def test_a_chunk_that_is_as_before_costs_no_embedding(self, workshop: Workshop) -> None:
        embedder = CountingEmbedder()
        sections = [f"# Part {number}\n{f'word{number} ' * 300}\n" for number in range(6)]
        workshop.note("a", "".join(sections))
        workshop.index.sync(workshop.roots)
        chunks = workshop.index.pending(embedder.identity.id)
        assert workshop.index.embed(embedder, 100) == chunks > 6
        before = set(workshop.select("SELECT id FROM chunks"))
        embedder.given.clear()
        sections[3] = "# Part 3\nsomething else\n"
        workshop.note("a", "".join(sections), old=False)
        assert workshop.index.sync(workshop.roots).chunks == 1
        assert workshop.index.embed(embedder, 100) == 1
        assert embedder.given == ["Part 3\n# Part 3\nsomething else"]
        assert len(set(workshop.select("SELECT id FROM chunks")) - before) == 1

    def test_lines_that_move_down_keep_their_vectors_and_get_their_numbers(self, workshop: Workshop) -> None:
        embedder = CountingEmbedder()
        old = f"# Old\n{'old ' * 300}"
        workshop.note("a", old)
        workshop.index.sync(workshop.roots)
        workshop.index.embed(embedder, 100)
        workshop.note("a", f"# New\n\n{'new ' * 300}\n{old}", old=False)
        assert workshop.index.sync(workshop.roots).chunks == 1
        assert workshop.index.embed(embedder, 100) == 1
        assert workshop.select("SELECT section, place, start_line, end_line FROM chunks ORDER BY place") == [
            ("New", 0, 1, 3),
            ("Old", 1, 4, 5),
        ]

    def test_a_file_that_moved_costs_no_embedding(self, workshop: Workshop) -> None:
        embedder = CountingEmbedder()
        path = workshop.note("a", "heron")
        workshop.index.sync(workshop.roots)
        assert workshop.index.embed(embedder, 100) == 1
        path.rename(path.with_name("b.md"))
        assert counts(workshop.index.sync(workshop.roots)) == (1, 0, 1)
        assert workshop.select("SELECT path FROM files") == [("memory/b.md",)]
        assert workshop.index.pending(embedder.identity.id) == 0

    def test_not_even_a_whole_root_without_a_spare_place_in_the_cache(self, open_workshop: Open) -> None:
        workshop = open_workshop(cache_entries=0)
        embedder = CountingEmbedder()
        for number in range(5):
            workshop.note(str(number), f"heron {number}")
        workshop.index.sync(workshop.roots)
        assert workshop.index.embed(embedder, 100) == 5
        moved = root_of(MINE, workshop.workspace.path.rename(workshop.folder / "moved"), "workspace")
        assert counts(workshop.index.sync([moved, workshop.sessions])) == (5, 0, 5)
        assert workshop.index.pending(embedder.identity.id) == 0

    def test_building_anew_costs_no_embedding(self, open_workshop: Open) -> None:
        workshop = open_workshop(cache_entries=0)
        embedder = CountingEmbedder()
        for number in range(5):
            workshop.note(str(number), f"heron {number}")
        workshop.index.sync(workshop.roots)
        workshop.index.embed(embedder, 100)
        assert workshop.index.sync(workshop.roots, force=True).chunks == 5
        assert workshop.index.pending(embedder.identity.id) == 0

    def test_of_texts_that_are_in_no_file_the_newest_vectors_are_kept(self, open_workshop: Open) -> None:
        workshop = open_workshop(cache_entries=3)
        embedder = CountingEmbedder()
        for number in range(6):
            workshop.note(str(number), f"heron {number}")
            workshop.index.sync(workshop.roots)
            assert workshop.index.embed(embedder, 100) == 1
        shutil.rmtree(workshop.workspace.path)
        workshop.index.sync(workshop.roots)
        assert workshop.select("SELECT count(*) FROM embedding_cache") == [(3,)]
        embedder.given.clear()
        for number in range(6):
            workshop.note(str(number), f"heron {number}")
        workshop.index.sync(workshop.roots)
        assert workshop.index.embed(embedder, 100) == 3
        assert sorted(embedder.given) == ["heron 0", "heron 1", "heron 2"]

    def test_what_was_written_last_is_embedded_first_and_within_the_limit(self, workshop: Workshop) -> None:
        embedder = CountingEmbedder()
        for number in range(9):
            workshop.note(str(number), f"heron {number}")
            workshop.index.sync(workshop.roots)
        pauses: list[int] = []
        assert workshop.index.embed(embedder, 6, lambda: pauses.append(1)) == 6
        assert sorted(embedder.given) == [f"heron {number}" for number in range(3, 9)]
        assert len(pauses) == 2
        assert workshop.index.pending(embedder.identity.id) == 3

    def test_the_same_text_twice_is_embedded_once(self, workshop: Workshop) -> None:
        embedder = CountingEmbedder()
        workshop.note("a", "heron")
        workshop.note("b", "heron")
        workshop.index.sync(workshop.roots)
        assert workshop.index.pending(embedder.identity.id) == 2
        assert workshop.index.embed(embedder, 100) == 1
        assert workshop.index.pending(embedder.identity.id) == 0

    def test_a_model_that_fails_keeps_what_was_done(self, workshop: Workshop) -> None:
        workshop.note("a", "heron")
        workshop.index.sync(workshop.roots)
        with pytest.raises(ModelError):
            workshop.index.embed(FailingEmbedder(), 100)
        assert workshop.index.embed(HashEmbedder(), 100) == 1

    def test_there_is_nothing_to_embed_without_an_index(self, workshop: Workshop) -> None:
        assert workshop.index.embed(HashEmbedder(), 100) == 0
        assert workshop.index.pending("any") == 0

    def test_a_long_text_has_a_vector_for_each_part(self, open_workshop: Open) -> None:
        workshop = open_workshop(chunking=Chunking(tokens=600, overlap=0))
        text = " ".join(f"word{number}" for number in range(150))
        workshop.note("a", text)
        workshop.index.sync(workshop.roots)
        workshop.index.embed(HashEmbedder(64), 100)
        [(size,)] = workshop.select("SELECT length(vectors) FROM embedding_cache")
        assert len(parts(text)) > 3
        assert size == len(parts(text)) * 64 * 4


class TestConversations:
    THRESHOLD = Threshold(max_bytes=2_000, max_messages=5, idle_seconds=600.0)

    def grow(self, workshop: Workshop, *texts: str) -> None:
        workshop.write("sessions/s1.jsonl", turns(*texts), old=False)

    @pytest.fixture
    def running(self, open_workshop: Open) -> Workshop:
        workshop = open_workshop(threshold=self.THRESHOLD)
        self.grow(workshop, "one", "two", "three", "four", "five")
        assert workshop.index.sync(workshop.roots, running={"s1"}).added == 1
        assert len(workshop.texts()) == 5
        return workshop

    def test_that_go_on_wait_until_enough_was_said(self, running: Workshop) -> None:
        said = ["one", "two", "three", "four", "five", "six", "seven"]
        self.grow(running, *said)
        assert running.index.difference(running.roots, {"s1"}).dirty == 0
        synced = running.index.sync(running.roots, running={"s1"})
        assert (counts(synced), synced.waiting) == ((0, 0, 0), 1)
        assert "six" not in running.texts()
        self.grow(running, *said, "eight", "nine", "ten")
        assert running.index.difference(running.roots, {"s1"}).dirty == 1
        assert running.index.sync(running.roots, running={"s1"}).changed == 1
        assert "ten" in running.texts()

    def test_that_are_new_wait_too(self, running: Workshop) -> None:
        running.write("sessions/s2.jsonl", turns("hello"), old=False)
        assert running.index.sync(running.roots, running={"s1", "s2"}).added == 0
        assert running.index.sync(running.roots, running={"s1"}).added == 1

    def test_that_grow_by_much_do_not(self, running: Workshop) -> None:
        self.grow(running, "one", "two", "three", "four", "five", "x " * 1_000)
        assert running.index.sync(running.roots, running={"s1"}).changed == 1

    def test_that_are_quiet_do_not(self, running: Workshop) -> None:
        self.grow(running, "one", "two", "three", "four", "five", "six")
        idle = time.time() - 601
        os.utime(running.folder / "sessions/s1.jsonl", (idle, idle))
        assert running.index.sync(running.roots, running={"s1"}).changed == 1

    def test_that_ended_do_not(self, running: Workshop) -> None:
        self.grow(running, "one", "two", "three", "four", "five", "six")
        assert running.index.difference(running.roots).dirty == 1
        assert running.index.sync(running.roots).changed == 1
        assert "six" in running.texts()

    def test_that_shrank_do_not(self, running: Workshop) -> None:
        self.grow(running, "one")
        assert running.index.sync(running.roots, running={"s1"}).changed == 1
        assert running.texts() == ["one"]

    def test_that_are_gone_leave_the_index(self, running: Workshop) -> None:
        (running.folder / "sessions/s1.jsonl").unlink()
        assert running.index.sync(running.roots, running={"s1"}).removed == 1

    def test_keep_who_said_what_and_when(self, workshop: Workshop) -> None:
        workshop.write("sessions/s1.jsonl", turns("Where is the key?", "Under the mat.", session="the-talk"))
        workshop.index.sync(workshop.roots)
        columns = "f.session, c.speaker, c.role, c.at, c.start_line, c.end_line"
        assert workshop.select(f"SELECT {columns} FROM chunks c JOIN files f ON f.id = c.file_id ORDER BY place") == [
            ("the-talk", "User", "user", LONG_AGO, 2, 2),
            ("the-talk", "Assistant", "assistant", LONG_AGO + 1, 3, 3),
        ]

    def test_a_recalled_block_is_not_indexed_whoever_made_it(self, workshop: Workshop) -> None:
        ours = fence("- The code is 7431.", workshop.store.key, "the-talk")
        theirs = fence("- The code is 9999.", b"another key", "the-talk")
        workshop.write(
            "sessions/s1.jsonl", turns(f"{ours}\n\nWhat is the code?", f"Look: {theirs}", session="the-talk")
        )
        workshop.index.sync(workshop.roots)
        assert workshop.texts() == ["Look:", "What is the code?"]
        held = b"".join((workshop.store.folder / name).read_bytes() for name in workshop.files())
        assert b"7431" not in held
        assert b"9999" not in held


class TestContent:
    def test_line_ranges_are_exact(self, workshop: Workshop) -> None:
        lines = ["---", "tag: x", "---", ""]
        for part in range(12):
            lines += [f"## Part {part}", "", *(f"- item {part}.{item} of the list" for item in range(part * 4)), ""]
        workshop.note("a", "\r\n".join(lines))
        workshop.note("b", "\n".join(lines))
        workshop.index.sync(workshop.roots)
        chunks = workshop.select("SELECT start_line, end_line, text FROM chunks")
        assert len(chunks) > 10
        for start, end, text in chunks:
            assert text == "\n".join(lines[start - 1 : end])

    def test_and_stay_so_behind_a_secret_of_many_lines(self, workshop: Workshop) -> None:
        text = f"# Keys\n{KEY}\n\n# After\nthe heron stands here\n"
        workshop.note("a", text)
        workshop.index.sync(workshop.roots)
        [(start, end)] = workshop.select("SELECT start_line, end_line FROM chunks WHERE section = 'After'")
        assert text.split("\n")[start - 1 : end] == ["# After", "the heron stands here"]

    def test_no_byte_of_a_secret_is_kept(self, workshop: Workshop) -> None:
        filler = "\n".join(f"line {number} of the notes" for number in range(60))
        workshop.note("key", f"{filler}\n{KEY}\n{filler}")
        workshop.note("token", f"# Token {TOKEN}\nThe token is {TOKEN} for the bot.")
        workshop.write("sessions/s1.jsonl", turns(f"My token is {TOKEN}", "x " * 5_000 + KEY))
        workshop.index.sync(workshop.roots)
        workshop.index.embed(HashEmbedder(), 1_000)
        workshop.index.sync(workshop.roots, force=True)
        held = b"".join((workshop.store.folder / name).read_bytes() for name in workshop.files())
        assert b"line 59 of the notes" in held
        for secret in (TOKEN, TOKEN.lower(), "MIIEow", "mIIEow".lower(), "IBAAKCAQEA7bq9", "ibaakcaqea7bq9"):
            assert secret.encode() not in held

    @pytest.mark.parametrize(
        ("text", "query"),
        [
            ("京都の天気は晴れです", "天気"),
            ("数据库的名字叫做白鹭", "白鹭"),
            ("데이터베이스 이름은 왜가리", "왜가리"),
            ("ชื่อฐานข้อมูลคือนกกระสา", "นกกระสา"),
        ],
    )
    def test_scripts_without_spaces_are_found(self, workshop: Workshop, text: str, query: str) -> None:
        workshop.note("a", text)
        workshop.note("b", "something else in English")
        workshop.index.sync(workshop.roots)
        search = FileSearch(workshop.index, lambda: None, SystemClock())
        found = search.search(Ask(query), Audience.of(), lambda: workshop.roots)
        assert [(result.path, result.snippet) for result in found.results] == [("memory/a.md", text)]
