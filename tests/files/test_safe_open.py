"""No path, link or rename leads out of the folder."""

from __future__ import annotations

import os
import socket
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from perdure.errors import InputError, UnsafePathError
from perdure.files.safe_open import MAX_PATH, OPENER, Opener, open_by_descriptor, open_by_name, read_inside
from tests.kit import for_each

pytestmark = pytest.mark.skipif(os.name != "posix", reason="builds links, FIFOs and sockets")

CANARY = b"the heron's nest lies outside"
INSIDE = b"a note"
LIMIT = 1_000_000
READS = 10_000
OPENERS = [open_by_descriptor, open_by_name]


@dataclass(frozen=True)
class Place:
    root: Path
    outside: Path


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    with built(tmp_path) as place:
        yield place


@contextmanager
def built(base: Path) -> Iterator[Place]:
    """Build a root with good files and every kind of trap, beside a folder that holds the canary."""
    root, outside = base / "root", base / "outside"
    memory = root / "memory"
    (memory / "deep" / "er").mkdir(parents=True)
    outside.mkdir()
    (outside / "secret.md").write_bytes(CANARY)
    (base / "secret.md").write_bytes(CANARY)
    (base / "root-evil").mkdir()
    (base / "root-evil" / "secret.md").write_bytes(CANARY)
    for name in ("MEMORY.md", "memory/a.md", "memory/deep/er/b.md", "memory/été 日記.md", "memory/x~1 (2).md"):
        (root / name).write_bytes(INSIDE)
    (memory / "link.md").symlink_to(outside / "secret.md")
    (memory / "relative.md").symlink_to("../../outside/secret.md")
    (memory / "chain.md").symlink_to("link.md")
    (memory / "home.md").symlink_to("a.md")
    (memory / "linked").symlink_to(outside)
    (memory / "up").symlink_to("../..")
    (memory / "here").symlink_to(".")
    (memory / "deep" / "linked").symlink_to(outside)
    (memory / "dangling.md").symlink_to(outside / "none.md")
    (memory / "loop.md").symlink_to("loop.md")
    (memory / "ping").symlink_to("pong")
    (memory / "pong").symlink_to("ping")
    (memory / "device.md").symlink_to("/dev/zero")
    (memory / "slash").symlink_to("/")
    (memory / "self").symlink_to("/proc/self/root")
    # Of its own: a second name would hide the secret from every other way out.
    (outside / "twice.md").write_bytes(CANARY)
    os.link(outside / "twice.md", memory / "hard.md")
    os.mkfifo(memory / "fifo.md")
    (memory / "folder.md").mkdir()
    (root / "looped").mkdir()
    (root / "looped" / "back").symlink_to(root / "looped")
    here = os.open(".", os.O_RDONLY)
    with socket.socket(socket.AF_UNIX) as server, (outside / "secret.md").open("rb") as held:
        (memory / "fd.md").symlink_to(f"/proc/self/fd/{held.fileno()}")
        (memory / "dev-fd.md").symlink_to(f"/dev/fd/{held.fileno()}")
        (memory / "fds").symlink_to("/proc/self/fd")
        os.chdir(memory)  # a socket's name may have a hundred bytes only
        try:
            server.bind("socket.md")
        finally:
            os.fchdir(here)
            os.close(here)
        yield Place(root, outside)


ATTACKS = [
    "",
    "/",
    "//",
    ".",
    "..",
    "./MEMORY.md",
    "../secret.md",
    "../outside/secret.md",
    "../root-evil/secret.md",
    "../root/MEMORY.md",
    "memory/../../secret.md",
    "memory/../../outside/secret.md",
    "memory/deep/../../../secret.md",
    "memory/./a.md",
    "memory/.. /secret.md",
    "memory/../../outside/./secret.md",
    "memory/...",
    "memory//a.md",
    "memory/a.md/",
    "memory/",
    "/etc/passwd",
    "//etc/passwd",
    "/proc/self/root/etc/passwd",
    "~",
    "~/secret.md",
    "~root/secret.md",
    "%2e%2e/secret.md",
    "..%2fsecret.md",
    "%2E%2E%2Fsecret.md",
    "memory/%2e%2e%2f%2e%2e%2fsecret.md",
    "..%5csecret.md",
    "%252e%252e/secret.md",
    "memory/a.md%00.png",
    "..\\secret.md",
    "memory\\..\\..\\secret.md",
    "\\\\host\\share\\secret.md",
    "C:/secret.md",
    "C:secret.md",
    "c:\\secret.md",
    "file:///etc/passwd",
    "memory/a.md:stream",
    "memory/a.md::$DATA",
    "memory/a.md\0",
    "\0/../secret.md",
    "memory/a.md\n",
    "memory/\x1b[2Ja.md",
    "memory/a.md\x7f",
    "memory/a.md.",
    "memory/a.md ",
    "memory./a.md",
    "memory/\ud800.md",
    "memory/\udce9.md",
    "memory/link.md",
    "memory/relative.md",
    "memory/chain.md",
    "memory/home.md",
    "memory/linked/secret.md",
    "memory/deep/linked/secret.md",
    "memory/up/secret.md",
    "memory/up/outside/secret.md",
    "memory/here/a.md",
    "memory/here/linked/secret.md",
    "memory/dangling.md",
    "memory/loop.md",
    "memory/ping",
    "memory/ping/a.md",
    "memory/device.md",
    "memory/hard.md",
    "memory/fd.md",
    "memory/dev-fd.md",
    "memory/fds/0",
    "memory/slash/etc/passwd",
    "memory/self/etc/passwd",
    "memory/fifo.md",
    "memory/socket.md",
    "memory/folder.md",
    "memory",
    "memory/a.md/b.md",
    "looped/back/back/back/MEMORY.md",
    "a/" * (MAX_PATH // 2) + "b.md",
    "x" * 300 + ".md",
]

ABSENT = [
    "secret.md",
    "memory-evil/secret.md",
    "root-evil/secret.md",
    "none/none/none.md",
    "memory/none.md",
    "MEMORY",
    "memory/a.md.txt",
    "memory/a.md#L1",
    "\uff2demory/a.md",
    "\uff0e\uff0e/secret.md",
    "memory/%c0%ae%c0%ae/secret.md",
    "$HOME/secret.md",
    "memory/*.md",
]


def descriptors() -> int:
    return len(os.listdir("/dev/fd"))


class TestGoodPaths:
    @pytest.mark.parametrize("opener", OPENERS)
    @pytest.mark.parametrize(
        "path", ["MEMORY.md", "memory/a.md", "memory/deep/er/b.md", "memory/été 日記.md", "memory/x~1 (2).md"]
    )
    def test_are_read(self, place: Place, opener: Opener, path: str) -> None:
        assert read_inside(place.root, path, LIMIT, opener=opener) == INSIDE

    def test_the_safest_way_is_the_default(self) -> None:
        assert OPENER is open_by_descriptor

    def test_no_descriptor_stays_open(self, place: Place) -> None:
        before = descriptors()
        for opener in OPENERS:
            read_inside(place.root, "memory/deep/er/b.md", LIMIT, opener=opener)
            for path in ("memory/link.md", "memory/fifo.md", "memory/folder.md", "memory/hard.md", "memory/linked/x"):
                with pytest.raises(UnsafePathError):
                    read_inside(place.root, path, LIMIT, opener=opener)
            with pytest.raises(FileNotFoundError):
                read_inside(place.root, "memory/deep/none.md", LIMIT, opener=opener)
        assert descriptors() == before


@pytest.mark.parametrize("opener", OPENERS)
class TestAttacks:
    @for_each("path", ATTACKS)
    def test_are_refused(self, place: Place, opener: Opener, path: str) -> None:
        with pytest.raises(UnsafePathError) as caught:
            read_inside(place.root, path, LIMIT, opener=opener)
        assert len(str(caught.value)) < 500

    @for_each("path", ABSENT)
    def test_names_that_only_resemble_others_are_missing(self, place: Place, opener: Opener, path: str) -> None:
        with pytest.raises(FileNotFoundError):
            read_inside(place.root, path, LIMIT, opener=opener)

    def test_another_case_of_letters_is_no_way_out(self, place: Place, opener: Opener) -> None:
        # Where the file system knows no case, this is just another name of the file inside.
        for path in ("memory.MD", "MEMORY/A.MD", "Memory.md"):
            try:
                assert read_inside(place.root, path, LIMIT, opener=opener) == INSIDE
            except FileNotFoundError:
                assert not (place.root / path).exists()

    def test_a_device_is_refused(self, place: Place, opener: Opener) -> None:
        with pytest.raises(UnsafePathError):
            read_inside(Path("/dev"), "zero", LIMIT, opener=opener)

    def test_a_hard_link_is_named(self, place: Place, opener: Opener) -> None:
        with pytest.raises(UnsafePathError, match="hard link"):
            read_inside(place.root, "memory/hard.md", LIMIT, opener=opener)
        (place.outside / "twice.md").unlink()
        assert read_inside(place.root, "memory/hard.md", LIMIT, opener=opener) == CANARY


def test_a_root_that_became_a_link_is_refused(place: Place) -> None:
    place.root.rename(place.root.with_name("moved"))
    place.root.symlink_to(place.outside)
    with pytest.raises(UnsafePathError):
        read_inside(place.root, "secret.md", LIMIT)


def test_a_missing_root_is_a_missing_file(tmp_path: Path) -> None:
    for opener in OPENERS:
        with pytest.raises(FileNotFoundError):
            read_inside(tmp_path / "none", "MEMORY.md", LIMIT, opener=opener)


class TestSize:
    def test_the_limit_itself_is_read(self, tmp_path: Path) -> None:
        (tmp_path / "a.md").write_bytes(b"x" * 10)
        assert read_inside(tmp_path, "a.md", 10) == b"x" * 10
        with pytest.raises(InputError, match="10 bytes; the limit is 9"):
            read_inside(tmp_path, "a.md", 9)

    def test_an_empty_file_is_empty(self, tmp_path: Path) -> None:
        (tmp_path / "a.md").touch()
        assert read_inside(tmp_path, "a.md", 0) == b""

    def test_a_sparse_gigabyte_is_not_read(self, tmp_path: Path) -> None:
        with (tmp_path / "a.md").open("wb") as file:
            file.truncate(1_000_000_000)
        with pytest.raises(InputError, match="1000000000"):
            read_inside(tmp_path, "a.md", LIMIT)


@contextmanager
def at_calls_of(name: str, before: Callable[[], object], after: Callable[[], object] = bool) -> Iterator[None]:
    """Do something at the very moment that a function of the system's is called, or has returned."""

    def notice(_frame: FrameType, event: str, called: object) -> None:
        if event.startswith("c_") and getattr(called, "__name__", "") == name:
            (before if event == "c_call" else after)()

    sys.setprofile(notice)
    try:
        yield
    finally:
        sys.setprofile(None)


class Changing:
    """A file that changes when it is told to, for so many times."""

    def __init__(self, path: Path, times: int) -> None:
        self.path = path
        self.times = times
        self.done = 0

    def grow(self) -> None:
        """Make it longer, by a clock so coarse that its time stays the same."""
        if self.done < self.times:
            before = self.path.stat()
            self.path.write_bytes(self.path.read_bytes() + b"x")
            os.utime(self.path, ns=(before.st_atime_ns, before.st_mtime_ns))
            self.done += 1

    def rewrite(self) -> None:
        """Give it other bytes of the same number."""
        if self.done < self.times:
            before = self.path.stat()
            self.path.write_bytes(bytes([65 + self.done]) * before.st_size)
            os.utime(self.path, ns=(before.st_atime_ns, before.st_mtime_ns + 1_000_000))
            self.done += 1


@pytest.mark.parametrize("change", [Changing.grow, Changing.rewrite])
class TestChangingFiles:
    @pytest.mark.parametrize("times", [1, 2, 3])
    def test_are_read_again(self, tmp_path: Path, times: int, change: Callable[[Changing], None]) -> None:
        file = Changing(tmp_path / "a.md", times)
        file.path.write_bytes(b"y" * 1_000)
        with at_calls_of("read", bool, lambda: change(file)):
            content = read_inside(tmp_path, "a.md", LIMIT)
        assert file.done == times
        assert content == file.path.read_bytes()

    def test_are_given_up_if_they_never_rest(self, tmp_path: Path, change: Callable[[Changing], None]) -> None:
        file = Changing(tmp_path / "a.md", 100)
        file.path.write_bytes(b"y" * 1_000)
        with at_calls_of("read", bool, lambda: change(file)), pytest.raises(InputError, match="each of 4 reads"):
            read_inside(tmp_path, "a.md", LIMIT)
        assert file.done == 4


@pytest.fixture
def swappable(place: Place) -> Place:
    """Give the root swap/note.md, and links to put in the place of the folder and of the file."""
    (place.root / "swap").mkdir()
    (place.root / "swap" / "note.md").write_bytes(INSIDE)
    (place.outside / "note.md").write_bytes(CANARY)
    (place.root / "swap" / "link").symlink_to(place.outside / "note.md")
    (place.root / "link").symlink_to(place.outside)
    return place


class Swap:
    """Puts a link in the place of swap/note.md, or of the folder, and takes it away again."""

    def __init__(self, place: Place, *names: str) -> None:
        self._name = place.root.joinpath(*names)
        self._link = self._name.with_name("link")
        self._real = self._name.with_name("real")

    def to_link(self) -> None:
        if not self._real.exists():
            self._name.rename(self._real)
            self._link.rename(self._name)

    def to_real(self) -> None:
        if self._real.exists():
            self._name.rename(self._link)
            self._real.rename(self._name)


SWAPPED = [("swap",), ("swap", "note.md")]


@pytest.mark.parametrize("names", SWAPPED)
class TestRenames:
    @pytest.mark.parametrize("opener", OPENERS)
    @pytest.mark.parametrize("back", [False, True])
    def test_at_the_moment_of_opening_are_found_out(
        self, swappable: Place, names: tuple[str, ...], opener: Opener, back: bool
    ) -> None:
        swap = Swap(swappable, *names)
        held = descriptors()
        with at_calls_of("open", swap.to_link, swap.to_real if back else bool), pytest.raises(UnsafePathError):
            read_inside(swappable.root, "swap/note.md", LIMIT, opener=opener)
        assert descriptors() == held
        swap.to_real()
        assert read_inside(swappable.root, "swap/note.md", LIMIT, opener=opener) == INSIDE

    def test_at_any_moment_open_no_way_out(self, swappable: Place, names: tuple[str, ...]) -> None:
        swap = Swap(swappable, *names)
        stop = threading.Event()

        def swapping() -> None:
            while not stop.is_set():
                swap.to_link()
                swap.to_real()

        thread = threading.Thread(target=swapping)
        outcomes = {"read": 0, "refused": 0, "missing": 0}
        interval = sys.getswitchinterval()
        sys.setswitchinterval(1e-5)
        thread.start()
        try:
            for _ in range(READS):
                try:
                    assert read_inside(swappable.root, "swap/note.md", LIMIT) == INSIDE
                    outcomes["read"] += 1
                except UnsafePathError:
                    outcomes["refused"] += 1
                except FileNotFoundError:
                    outcomes["missing"] += 1
        finally:
            stop.set()
            thread.join()
            sys.setswitchinterval(interval)
        assert outcomes["read"]
        assert outcomes["refused"], "the link never stood there: nothing was tried"


on_the_way = st.sampled_from(["memory", "linked", "up", "here", "slash", "..", "outside", "", ".", "%2e%2e", "..\\.."])
at_the_end = st.sampled_from(["secret.md", "link.md", "hard.md", "fifo.md", "a.md", "twice.md"])
paths = st.tuples(st.lists(on_the_way, max_size=3).map("/".join), at_the_end).map("/".join)
anything = st.text(st.characters(), max_size=60)


@pytest.fixture(scope="module")
def lasting() -> Iterator[Place]:
    with tempfile.TemporaryDirectory() as folder, built(Path(folder).resolve()) as place:
        yield place


@settings(max_examples=400, deadline=None)
@given(path=paths | anything | st.tuples(paths, anything).map("/".join), opener=st.sampled_from(OPENERS))
def test_no_path_shows_what_lies_outside(lasting: Place, path: str, opener: Opener) -> None:
    for attempt in (path, f"{lasting.outside}/{path}", f"memory/{path}"):
        try:
            content = read_inside(lasting.root, attempt, LIMIT, opener=opener)
        except (UnsafePathError, FileNotFoundError):
            continue
        assert content == INSIDE
