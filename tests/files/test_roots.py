"""What belongs to memory by its place and name, and what differs from the last look."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from dataclasses import replace
from datetime import date
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perdure.errors import InputError
from perdure.files.roots import (
    HARD_LINK,
    LINK,
    SPECIAL,
    UNREADABLE,
    Found,
    Kind,
    Root,
    Stamp,
    changes,
    memory_day,
    racy,
    root_of,
    scan,
)
from perdure.files.safe_open import MAX_PATH
from perdure.store.scope import Scope

pytestmark = pytest.mark.skipif(os.name != "posix", reason="builds links, FIFOs and sockets")

SCOPE = Scope("agent", "main")
LIMIT = 1_000_000


def write(folder: Path, *names: str) -> None:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("a note")


def workspace(path: Path) -> Root:
    return root_of(SCOPE, path, "workspace")


def good(found: dict[str, Found]) -> list[str]:
    return sorted(name for name, item in found.items() if item.skipped is None)


def skipped(found: dict[str, Found]) -> dict[str, str]:
    return {name: item.skipped for name, item in found.items() if item.skipped}


class TestRootOf:
    def test_resolves_the_links_on_the_way_once(self, tmp_path: Path) -> None:
        (tmp_path / "real").mkdir()
        (tmp_path / "link").symlink_to(tmp_path / "real")
        root = root_of(SCOPE, tmp_path / "link" / "ws", "workspace")
        assert root == Root(SCOPE, tmp_path.resolve() / "real" / "ws", "workspace")

    def test_knows_the_home_folder(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("HOME", str(tmp_path))
        assert root_of(SCOPE, "~/notes", "extra").path == tmp_path.resolve() / "notes"

    def test_tells_an_extra_file_from_a_folder(self, tmp_path: Path) -> None:
        write(tmp_path, "a.md", "folder.md/b.md")
        assert root_of(SCOPE, tmp_path / "a.md", "extra").single
        assert root_of(SCOPE, tmp_path / "to-come.md", "extra").single
        assert not root_of(SCOPE, tmp_path / "folder.md", "extra").single
        assert not root_of(SCOPE, tmp_path / "to-come", "extra").single

    def test_refuses_what_it_cannot_use(self, tmp_path: Path) -> None:
        write(tmp_path, "notes.txt")
        (tmp_path / "loop").symlink_to("loop")
        for path in (tmp_path / "notes.txt", "a\0b", tmp_path / "loop" / "x", "/", tmp_path / "a\nb", "~nobody-here/x"):
            with pytest.raises(InputError):
                root_of(SCOPE, path, "extra")
        with pytest.raises(InputError, match="pattern"):
            root_of(SCOPE, tmp_path, "extra", "")


class TestLabels:
    @pytest.mark.parametrize(
        ("kind", "name", "relative", "label"),
        [
            ("workspace", "ws", "MEMORY.md", "MEMORY.md"),
            ("workspace", "ws", "memory/2026-02-24.md", "memory/2026-02-24.md"),
            ("extra", "notes", "a/b.md", "notes/a/b.md"),
            ("extra", "single.md", "single.md", "single.md"),
            ("sessions", "sessions-of-main", "s1.jsonl", "sessions/s1.jsonl"),
        ],
    )
    def test_name_a_file_and_lead_back_to_it(
        self, tmp_path: Path, kind: Kind, name: str, relative: str, label: str
    ) -> None:
        root = root_of(SCOPE, tmp_path / name, kind)
        assert root.label(relative) == label
        assert root.relative(label) == relative

    @pytest.mark.parametrize(
        ("kind", "name", "label"),
        [
            ("workspace", "ws", "README.md"),
            ("workspace", "ws", "Memory.md"),
            ("workspace", "ws", "MEMORY.MD"),
            ("workspace", "ws", "user.md"),
            ("workspace", "ws", "memory-evil/a.md"),
            ("workspace", "ws", "memory/a.md.txt"),
            ("workspace", "ws", "memory/.hidden.md"),
            ("workspace", "ws", "memory/.git/a.md"),
            ("workspace", "ws", "src/memory/a.md"),
            ("extra", "notes", "a.md"),
            ("extra", "notes", "notes-evil/a.md"),
            ("extra", "notes", "notes/a.txt"),
            ("extra", "single.md", "other.md"),
            ("extra", "single.md", "single.md/single.md"),
            ("sessions", "s", "s1.jsonl"),
            ("sessions", "s", "sessions/old/s1.jsonl"),
            ("sessions", "s", "sessions/s1.jsonl.deleted"),
        ],
    )
    def test_of_other_files_lead_nowhere(self, tmp_path: Path, kind: Kind, name: str, label: str) -> None:
        assert root_of(SCOPE, tmp_path / name, kind).relative(label) is None

    @pytest.mark.parametrize(
        ("pattern", "relative", "covered"),
        [
            ("**/*.md", "a.md", True),
            ("**/*.md", "x/y/a.md", True),
            ("*.md", "a.md", True),
            ("*.md", "x/a.md", False),
            ("x/**", "x/y/a.md", True),
            ("x/**", "y/a.md", False),
            ("x/**/z/*.md", "x/z/a.md", True),
            ("x/**/z/*.md", "x/1/2/z/a.md", True),
            ("x/**/z/*.md", "x/1/2/a.md", False),
            ("20??-*.md", "2026-02.md", True),
            ("20??-*.md", "226-02.md", False),
            ("**/*", "a.txt", False),
            ("**/*.md", "x/~a.md", True),
            ("**/*.md", "x~/a.md", False),
        ],
    )
    def test_of_an_extra_folder_follow_its_pattern(
        self, tmp_path: Path, pattern: str, relative: str, covered: bool
    ) -> None:
        assert root_of(SCOPE, tmp_path, "extra", pattern).covers(relative) is covered


class TestScan:
    def test_finds_the_memory_of_a_workspace_and_nothing_else(self, tmp_path: Path) -> None:
        write(tmp_path, "MEMORY.md", "memory.md", "USER.md", "memory/a.md", "memory/2026/02/b.md")
        write(tmp_path, "README.md", "docs/a.md", "memory-evil/a.md", "memory/a.txt", "memory/a.md.txt")
        found = scan(workspace(tmp_path), LIMIT)
        assert sorted(found) == ["MEMORY.md", "USER.md", "memory.md", "memory/2026/02/b.md", "memory/a.md"]
        assert good(found) == sorted(found)
        seen = (tmp_path / "memory" / "a.md").stat()
        item = found["memory/a.md"]
        assert item == Found("memory/a.md", 6, seen.st_mtime_ns, seen.st_ino)
        assert item.stamp == (6, seen.st_mtime_ns, seen.st_ino)

    def test_leaves_out_hidden_files_and_backups_without_a_word(self, tmp_path: Path) -> None:
        names = [
            ".a.md",
            ".#a.md",
            "a.md~",
            "#a.md#",
            ".a.md.swp",
            "a.md.tmp",
            ".git/a.md",
            "older~/a.md",
            "x.tmp/a.md",
        ]
        write(tmp_path, "memory/a.md", *(f"memory/{name}" for name in names))
        write(tmp_path, "memory/.not\nusable/a.md", "src/not\nusable/a.md")
        for link in ("memory/.#lock.md", "memory/old~", "docs"):
            (tmp_path / link).symlink_to("someone@host.123")
        assert list(scan(workspace(tmp_path), LIMIT)) == ["memory/a.md"]

    def test_extra_folders_files_and_sessions(self, tmp_path: Path) -> None:
        write(tmp_path, "notes/a.md", "notes/x/b.md", "notes/c.txt", "one.md")
        write(tmp_path, "s/1.jsonl", "s/2.jsonl.bak", "s/old/3.jsonl", "s/a.md")
        assert good(scan(root_of(SCOPE, tmp_path / "notes", "extra"), LIMIT)) == ["a.md", "x/b.md"]
        assert good(scan(root_of(SCOPE, tmp_path / "notes", "extra", "x/*.md"), LIMIT)) == ["x/b.md"]
        assert good(scan(root_of(SCOPE, tmp_path / "one.md", "extra"), LIMIT)) == ["one.md"]
        assert list(scan(root_of(SCOPE, tmp_path / "s", "sessions"), LIMIT)) == ["1.jsonl"]

    def test_a_missing_root_is_empty(self, tmp_path: Path) -> None:
        for name, kind in (("ws", "workspace"), ("notes", "extra"), ("one.md", "extra"), ("s", "sessions")):
            assert scan(root_of(SCOPE, tmp_path / name, kind), LIMIT) == {}  # type: ignore[arg-type]

    def test_a_root_that_is_no_folder_any_more_is_named(self, tmp_path: Path) -> None:
        write(tmp_path, "file", "real/MEMORY.md", "one.md")
        root, single = workspace(tmp_path / "ws"), root_of(SCOPE, tmp_path / "one.md", "extra")
        (tmp_path / "ws").write_text("")
        assert skipped(scan(root, LIMIT)) == {".": UNREADABLE}
        (tmp_path / "ws").unlink()
        (tmp_path / "ws").symlink_to("real")
        assert skipped(scan(root, LIMIT)) == {".": LINK}
        (tmp_path / "one.md").unlink()
        (tmp_path / "one.md").symlink_to("real/MEMORY.md")
        assert skipped(scan(single, LIMIT)) == {"one.md": LINK}

    def test_the_size_limit_is_in_the_reason(self, tmp_path: Path) -> None:
        write(tmp_path, "MEMORY.md")
        with (tmp_path / "USER.md").open("wb") as file:
            file.truncate(1_000_000_000)
        found = scan(workspace(tmp_path), 5_000_000)
        assert skipped(found) == {"USER.md": "larger than 5 MB"}
        assert found["USER.md"].size == 1_000_000_000
        assert skipped(scan(workspace(tmp_path), 6)) == {"USER.md": "larger than 6e-06 MB"}

    def test_a_forbidden_folder_is_named(self, tmp_path: Path) -> None:
        write(tmp_path, "memory/shut/a.md", "memory/b.md")
        shut = tmp_path / "memory" / "shut"
        shut.chmod(0)
        if os.access(shut, os.R_OK):
            pytest.skip("this user may read every folder")
        found = scan(workspace(tmp_path), LIMIT)
        shut.chmod(0o700)
        assert skipped(found) == {"memory/shut": UNREADABLE}
        assert good(found) == ["memory/b.md"]


class TestWeirdFiles:
    @pytest.fixture
    def weird(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, Found]]:
        root, outside = tmp_path / "ws", tmp_path / "outside"
        memory = root / "memory"
        write(root, "memory/a.md", "memory/deep/b.md")
        write(outside, "secret.md", "twice.md")
        (memory / "link.md").symlink_to(outside / "secret.md")
        (memory / "dangling.md").symlink_to("none.md")
        (memory / "loop.md").symlink_to("loop.md")
        (memory / "device.md").symlink_to("/dev/zero")
        (memory / "linked").symlink_to(outside)
        (memory / "deep" / "back").symlink_to(memory)
        (memory / "picture.png").symlink_to(outside / "secret.md")
        os.link(outside / "twice.md", memory / "hard.md")
        os.mkfifo(memory / "fifo.md")
        (memory / "folder.md").mkdir()
        for name in (b"caf\xe9.md", b"two\nlines.md", b"back\\slash.md", b"a:b.md", b"dot./c.md"):
            path = os.fsencode(memory) + b"/" + name
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "wb") as file:
                file.write(b"a note")
        monkeypatch.chdir(memory)
        with socket.socket(socket.AF_UNIX) as server:
            server.bind("socket.md")
            yield scan(workspace(root), LIMIT)

    def test_only_plain_files_are_to_be_read(self, weird: dict[str, Found]) -> None:
        assert good(weird) == ["memory/a.md", "memory/deep/b.md"]

    def test_the_others_have_a_reason(self, weird: dict[str, Found]) -> None:
        reasons = skipped(weird)
        unusable = {name for name, reason in reasons.items() if reason.startswith("name cannot be used: ")}
        assert unusable == {
            r"memory/caf\udce9.md",
            r"memory/two\nlines.md",
            r"memory/back\\slash.md",
            "memory/a:b.md",
            "memory/dot.",
        }
        assert {name: reason for name, reason in reasons.items() if name not in unusable} == {
            "memory/link.md": LINK,
            "memory/dangling.md": LINK,
            "memory/loop.md": LINK,
            "memory/device.md": LINK,
            "memory/linked": LINK,
            "memory/deep/back": LINK,
            "memory/hard.md": HARD_LINK,
            "memory/fifo.md": SPECIAL,
            "memory/socket.md": SPECIAL,
        }

    def test_every_name_can_be_stored(self, weird: dict[str, Found]) -> None:
        for name, item in weird.items():
            assert item.relative == name
            assert name.encode()
            assert name.isprintable()

    def test_a_linked_memory_folder_is_named(self, tmp_path: Path) -> None:
        write(tmp_path, "outside/secret.md", "ws/MEMORY.md")
        (tmp_path / "ws" / "memory").symlink_to(tmp_path / "outside")
        found = scan(workspace(tmp_path / "ws"), LIMIT)
        assert skipped(found) == {"memory": LINK}
        assert good(found) == ["MEMORY.md"]

    def test_folders_in_folders_without_end_are_left_at_the_longest_path(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        (tmp_path / "memory").mkdir()
        monkeypatch.chdir(tmp_path / "memory")
        for _ in range(30):
            os.mkdir("d" * 200)
            os.chdir("d" * 200)
        Path("a.md").write_text("a note")
        [item] = scan(workspace(tmp_path), LIMIT).values()
        assert item.skipped is not None
        assert str(MAX_PATH) in item.skipped


stamps = st.tuples(st.integers(0, 3), st.integers(0, 3), st.integers(0, 3))
names = st.sampled_from(["MEMORY.md", "memory/a.md", "memory/x/b.md", "memory/x/c.md", "memory/xy.md"])
reasons = st.none() | st.sampled_from([LINK, SPECIAL])


def listed(stamps: dict[str, Stamp], reasons: dict[str, str] | None = None) -> dict[str, Found]:
    return {name: Found(name, *stamp, (reasons or {}).get(name)) for name, stamp in stamps.items()}


class TestChanges:
    def test_each_kind_is_told(self) -> None:
        before = {"same.md": (1, 1, 1), "size.md": (1, 1, 1), "time.md": (1, 1, 1), "inode.md": (1, 1, 1)}
        before |= {"gone.md": (1, 1, 1), "link.md": (1, 1, 1)}
        now = listed({"same.md": (1, 1, 1), "size.md": (2, 1, 1), "time.md": (1, 2, 1), "inode.md": (1, 1, 2)})
        now |= listed({"new.md": (0, 0, 0), "link.md": (1, 1, 1)}, {"link.md": LINK})
        found = changes(before, now)
        assert found.added == ("new.md",)
        assert found.changed == ("inode.md", "size.md", "time.md")
        assert found.removed == ("gone.md", "link.md")
        assert found.skipped == {"link.md": LINK}

    @given(st.dictionaries(names, stamps), st.dictionaries(names, st.tuples(stamps, reasons)))
    def test_what_is_told_leads_from_one_scan_to_the_next(
        self, before: dict[str, Stamp], seen: dict[str, tuple[Stamp, str | None]]
    ) -> None:
        now = {name: Found(name, *stamp, reason) for name, (stamp, reason) in seen.items()}
        found = changes(before, now)
        after = dict(before)
        for name in found.removed:
            del after[name]
        for name in found.changed:
            assert after[name] != now[name].stamp
            after[name] = now[name].stamp
        for name in found.added:
            assert name not in before
            after[name] = now[name].stamp
        assert after == {name: item.stamp for name, item in now.items() if item.skipped is None}
        assert found.skipped == skipped(now)

    @pytest.mark.parametrize(
        ("unreadable", "removed"),
        [
            ("memory/x", ("MEMORY.md", "memory/xy.md")),
            ("memory", ("MEMORY.md",)),
            ("memory/x/b.md", ("MEMORY.md", "memory/x/c.md", "memory/xy.md")),
            (".", ()),
        ],
    )
    def test_nothing_is_gone_that_cannot_be_seen(self, unreadable: str, removed: tuple[str, ...]) -> None:
        before = dict.fromkeys(["MEMORY.md", "memory/x/b.md", "memory/x/c.md", "memory/xy.md"], (1, 1, 1))
        found = changes(before, {unreadable: Found(unreadable, skipped=UNREADABLE)})
        assert found.removed == removed
        assert (found.added, found.changed) == ((), ())

    def test_two_scans_of_the_same_files_differ_in_nothing(self, tmp_path: Path) -> None:
        write(tmp_path, "MEMORY.md", "memory/a.md", "memory/b.md")
        root = workspace(tmp_path)
        before = {name: item.stamp for name, item in scan(root, LIMIT).items()}
        assert changes(before, scan(root, LIMIT)) == changes({}, {})
        write(tmp_path, "memory/new.md")
        (tmp_path / "memory" / "new.md").replace(tmp_path / "memory" / "a.md")
        (tmp_path / "memory" / "b.md").rename(tmp_path / "memory" / "c.md")
        found = changes(before, scan(root, LIMIT))
        assert (found.added, found.changed, found.removed) == (("memory/c.md",), ("memory/a.md",), ("memory/b.md",))


@pytest.mark.parametrize(
    ("age_ns", "expected"),
    [(0, True), (1, True), (1_999_999_999, True), (2_000_000_000, False), (-1_999_999_999, True), (-(10**12), False)],
)
def test_a_file_changed_just_before_the_scan_may_change_unseen(age_ns: int, expected: bool) -> None:
    checked = 1_800_000_000_000_000_000
    found = replace(Found("a.md"), mtime_ns=checked - age_ns)
    assert racy(found, checked) is expected


@pytest.mark.parametrize(
    ("label", "day"),
    [
        ("memory/2026-02-24.md", date(2026, 2, 24)),
        ("memory/2026-02-24-notes.md", date(2026, 2, 24)),
        ("memory/2026/2026-02-24-notes.md", date(2026, 2, 24)),
        ("memory/2024-02-29.md", date(2024, 2, 29)),
        ("memory/2026-02-29.md", None),
        ("memory/2026-13-01.md", None),
        ("memory/0000-01-01.md", None),
        ("memory/2026-02-245.md", None),
        ("memory/notes-2026-02-24.md", None),
        ("memory/2026-02-24/notes.md", None),
        ("memory/٢٠٢٦-٠٢-٢٤.md", None),
        ("2026-02-24.md", None),
        ("notes/memory/2026-02-24.md", None),
        ("memory-evil/2026-02-24.md", None),
        ("MEMORY.md", None),
    ],
)
def test_the_day_of_a_note(label: str, day: date | None) -> None:
    assert memory_day(label) == day
