"""Whoever follows a result reads what was found there, and nothing that is no memory."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from perdure.errors import InputError, UnsafePathError
from perdure.files.roots import MAX_BYTES, Reading, Root, read_memory, read_text, root_of, split_lines
from perdure.store.scope import Scope
from tests.kit import for_each

pytestmark = pytest.mark.skipif(os.name != "posix", reason="builds links and FIFOs")

SCOPE = Scope("agent", "main")
CANARY = "the heron's nest lies outside"
NOTE = "one\ntwo\nthree\nfour\nfive"


@pytest.fixture
def roots(tmp_path: Path) -> list[Root]:
    """Return the roots of a workspace, an extra folder, an extra file and sessions, among files that are no memory."""
    for name in (
        "outside/secret.md",
        "ws/README.md",
        "ws/.env",
        "ws/secret.md",
        "ws/memory-evil/a.md",
        "ws/memory/a.md.txt",
        "ws/memory/.hidden.md",
        "ws/memory/.git/a.md",
        "ws/memory/a.txt",
        "ws/src/memory/a.md",
        "ws/sessions/a.md",
        "notes-evil/a.md",
        "notes/private.txt",
        "sessions/s1.jsonl",
        "sessions/a.md",
        "other.md",
    ):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(CANARY)
    for name in ("ws/MEMORY.md", "ws/memory/a.md", "notes/deep/b.md", "one.md"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(NOTE)
    memory = tmp_path / "ws" / "memory"
    (memory / "link.md").symlink_to(tmp_path / "outside" / "secret.md")
    (memory / "linked").symlink_to(tmp_path / "outside")
    (memory / "loop.md").symlink_to("loop.md")
    os.link(tmp_path / "other.md", memory / "hard.md")
    os.mkfifo(memory / "fifo.md")
    (memory / "folder.md").mkdir()
    return [
        root_of(SCOPE, tmp_path / "ws", "workspace"),
        root_of(SCOPE, tmp_path / "notes", "extra"),
        root_of(SCOPE, tmp_path / "one.md", "extra"),
        root_of(SCOPE, tmp_path / "sessions", "sessions"),
    ]


def memory_file(roots: list[Root], content: bytes) -> str:
    (roots[0].path / "memory" / "x.md").write_bytes(content)
    return "memory/x.md"


class TestPlaces:
    @pytest.mark.parametrize("path", ["MEMORY.md", "memory/a.md", "notes/deep/b.md", "one.md"])
    def test_memory_is_read(self, roots: list[Root], path: str) -> None:
        assert read_memory(roots, path) == Reading(path, NOTE, 1, 5, 5)

    @for_each(
        "path",
        [
            "README.md",
            ".env",
            "secret.md",
            "memory-evil/a.md",
            "memory/a.md.txt",
            "memory/.hidden.md",
            "memory/.git/a.md",
            "memory/a.txt",
            "memory",
            "src/memory/a.md",
            "notes-evil/a.md",
            "notes/private.txt",
            "notes",
            "other.md",
            "one.md/other.md",
            "sessions/s1.jsonl",
            "sessions/a.md",
            "s1.jsonl",
            "Memory.md",
            "MEMORY.MD",
            "memory/link.md",
            "memory/linked/secret.md",
            "memory/loop.md",
            "memory/hard.md",
            "memory/fifo.md",
            "memory/folder.md",
            "memory/../README.md",
            "memory/../memory-evil/a.md",
            "notes/../other.md",
            "../outside/secret.md",
            "../other.md",
            "notes/../../other.md",
            "memory/%2e%2e/secret.md",
            "memory\\..\\secret.md",
            "~/other.md",
            "memory/a.md\0",
            "#L1",
            "README.md#L1-L2",
            "../other.md#L1",
            "",
        ],
    )
    def test_nothing_else_is(self, roots: list[Root], path: str) -> None:
        with pytest.raises(InputError):
            read_memory(roots, path)

    def test_absolute_paths_are_refused_even_to_memory(self, roots: list[Root]) -> None:
        with pytest.raises(UnsafePathError):
            read_memory(roots, str(roots[0].path / "MEMORY.md"))

    def test_a_missing_file_is_no_error(self, roots: list[Root]) -> None:
        for path in ("USER.md", "memory/none.md", "memory/none/none.md", "notes/none.md"):
            assert read_memory(roots, path) == Reading(path, "", 1, 0, 0, missing=True)
        assert read_memory(roots, "USER.md#L4-L6") == Reading("USER.md", "", 4, 3, 0, missing=True)

    def test_without_roots_nothing_is_memory(self) -> None:
        with pytest.raises(InputError, match="not a memory file"):
            read_memory([], "MEMORY.md")

    def test_of_two_roots_with_the_name_the_first_that_has_the_file(self, tmp_path: Path) -> None:
        both = [root_of(SCOPE, tmp_path / folder / "notes", "extra") for folder in ("x", "y")]
        for root in both:
            root.path.mkdir(parents=True)
        (both[1].path / "a.md").write_text("second")
        assert read_memory(both, "notes/a.md").text == "second"
        (both[0].path / "a.md").write_text("first")
        assert read_memory(both, "notes/a.md").text == "first"


class TestLines:
    @pytest.mark.parametrize(
        ("start", "lines", "text", "end"),
        [
            (None, None, NOTE, 5),
            (1, 1, "one", 1),
            (2, 2, "two\nthree", 3),
            (4, None, "four\nfive", 5),
            (5, 9, "five", 5),
            (None, 2, "one\ntwo", 2),
            (6, 1, "", 5),
            (10**12, 10**12, "", 10**12 - 1),
        ],
    )
    def test_are_those_asked_for(
        self, roots: list[Root], start: int | None, lines: int | None, text: str, end: int
    ) -> None:
        assert read_memory(roots, "MEMORY.md", start, lines) == Reading("MEMORY.md", text, start or 1, end, 5)

    @pytest.mark.parametrize(
        ("citation", "start", "end"),
        [("#L2", 2, 2), ("#L2-L4", 2, 4), ("#L2-4", 2, 4), ("#L4-L99", 4, 5), ("#L7-L9", 7, 6)],
    )
    def test_may_be_named_by_a_citation(self, roots: list[Root], citation: str, start: int, end: int) -> None:
        found = read_memory(roots, f"MEMORY.md{citation}")
        assert (found.path, found.start, found.end) == ("MEMORY.md", start, end)
        assert found.text == "\n".join(NOTE.split("\n")[start - 1 : end])

    def test_of_a_citation_give_way_to_the_arguments(self, roots: list[Root]) -> None:
        assert read_memory(roots, "MEMORY.md#L4-L5", start=1).text == NOTE
        assert read_memory(roots, "MEMORY.md#L4-L5", lines=2).text == "one\ntwo"

    @pytest.mark.parametrize(
        ("path", "start", "lines", "chars"),
        [
            ("MEMORY.md", 0, None, 9),
            ("MEMORY.md", -1, None, 9),
            ("MEMORY.md", 1, 0, 9),
            ("MEMORY.md", 1, -5, 9),
            ("MEMORY.md", 1, 1, 0),
            ("MEMORY.md#L0", None, None, 9),
            ("USER.md", 0, None, 9),
        ],
    )
    def test_out_of_range_are_refused(
        self, roots: list[Root], path: str, start: int | None, lines: int | None, chars: int
    ) -> None:
        with pytest.raises(InputError):
            read_memory(roots, path, start, lines, chars)

    def test_in_the_wrong_order_are_named(self, roots: list[Root]) -> None:
        with pytest.raises(InputError, match=r"#L4-L2.* ends before it begins"):
            read_memory(roots, "MEMORY.md#L4-L2")

    def test_a_name_may_look_like_a_citation_in_its_middle(self, roots: list[Root]) -> None:
        (roots[0].path / "memory" / "a#L3.md").write_text("odd")
        assert read_memory(roots, "memory/a#L3.md#L1").text == "odd"


class TestLimit:
    @pytest.mark.parametrize(
        ("chars", "text"),
        [(23, NOTE), (22, "one\ntwo\nthree\nfour"), (13, "one\ntwo\nthree"), (12, "one\ntwo"), (3, "one"), (2, "on")],
    )
    def test_cuts_at_the_end_of_a_line(self, roots: list[Root], chars: int, text: str) -> None:
        found = read_memory(roots, "MEMORY.md", max_chars=chars)
        assert found == Reading("MEMORY.md", text, 1, text.count("\n") + 1, 5, truncated=text != NOTE)

    def test_counts_only_what_was_asked_for(self, roots: list[Root]) -> None:
        assert not read_memory(roots, "MEMORY.md", 1, 2, max_chars=7).truncated
        assert read_memory(roots, "MEMORY.md", 1, 3, max_chars=7).truncated

    def test_a_line_of_five_megabytes_is_cut(self, roots: list[Root]) -> None:
        path = memory_file(roots, b"first\n" + b"x" * 5_000_000 + b"\nlast")
        assert read_memory(roots, path) == Reading(path, "first", 1, 1, 3, truncated=True)
        assert read_memory(roots, path, 2) == Reading(path, "x" * 20_000, 2, 2, 3, truncated=True)
        assert read_memory(roots, path, 3) == Reading(path, "last", 3, 3, 3)

    texts = st.lists(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0\r\n"), max_size=9))

    @settings(max_examples=150, deadline=None)
    @given(texts, st.integers(1, 12), st.integers(1, 12) | st.none(), st.integers(1, 40))
    def test_every_reading_is_true(
        self, tmp_path_factory: pytest.TempPathFactory, every: list[str], start: int, lines: int | None, chars: int
    ) -> None:
        folder = tmp_path_factory.mktemp("ws")
        (folder / "MEMORY.md").write_text("\n".join(every), encoding="utf-8")
        every = [line.removeprefix("\ufeff") if number == 0 else line for number, line in enumerate(every)] or [""]
        found = read_memory([root_of(SCOPE, folder, "workspace")], "MEMORY.md", start, lines, chars)
        asked = every[start - 1 :][:lines]
        assert found.total_lines == len(every)
        assert len(found.text) <= chars
        shown = every[found.start - 1 : found.end]
        assert "\n".join(shown).startswith(found.text)
        if not found.truncated:
            assert shown == asked
            assert found.text == "\n".join(asked)
        else:
            # One line more would not have fitted, or not even one did.
            assert len("\n".join(asked[: len(shown) + 1])) > chars
            assert found.text == "\n".join(shown) or len(shown) == 1


class TestText:
    @pytest.mark.parametrize(
        ("content", "text"),
        [
            (b"\xef\xbb\xbfone\r\ntwo\r\n", "one\ntwo\n"),
            (b"one\rtwo\x0b\x0c\xe2\x80\xa8three", "one\rtwo\x0b\x0c\u2028three"),
            (b"caf\xe9", "caf\ufffd"),
            (b"", ""),
            ("été 日記".encode(), "été 日記"),
        ],
    )
    def test_is_decoded_as_it_is_indexed(self, roots: list[Root], content: bytes, text: str) -> None:
        found = read_memory(roots, memory_file(roots, content))
        assert found.text == text
        assert found.total_lines == text.count("\n") + 1

    def test_is_whole_for_the_index(self, roots: list[Root]) -> None:
        path = memory_file(roots, b"\xef\xbb\xbfone\r\ntwo")
        assert read_text(roots[0], path, 100) == "one\r\ntwo"
        assert read_text(roots[2], "one.md", 100) == NOTE
        assert read_text(roots[3], "s1.jsonl", 100) == CANARY

    def test_lines_are_counted_by_newlines_alone(self) -> None:
        assert split_lines("a\r\nb\rc\u2028d\n") == ["a", "b\rc\u2028d", ""]

    @pytest.mark.parametrize("content", [b"\0", b"PNG\0\1\2", b"x" * 8_191 + b"\0", "utf-16".encode("utf-16")])
    def test_is_refused_if_it_is_none(self, roots: list[Root], content: bytes) -> None:
        path = memory_file(roots, content)
        with pytest.raises(InputError, match="NUL"):
            read_text(roots[0], path, 100_000)
        with pytest.raises(InputError, match="NUL"):
            read_memory(roots, path)

    def test_a_late_nul_is_kept(self, roots: list[Root]) -> None:
        assert read_text(roots[0], memory_file(roots, b"x" * 8_192 + b"\0"), 100_000).endswith("\0")

    def test_too_large_is_refused(self, roots: list[Root]) -> None:
        path = memory_file(roots, b"0123456789")
        assert read_text(roots[0], path, 10) == "0123456789"
        with pytest.raises(InputError, match="10 bytes; the limit is 9"):
            read_text(roots[0], path, 9)
        os.truncate(roots[0].path / path, 1_000_000_000)
        with pytest.raises(InputError, match=f"the limit is {MAX_BYTES}"):
            read_memory(roots, path)

    def test_missing_is_told(self, roots: list[Root]) -> None:
        with pytest.raises(FileNotFoundError):
            read_text(roots[0], "memory/none.md", 100)

    def test_forbidden_is_told(self, roots: list[Root]) -> None:
        path = memory_file(roots, b"x")
        (roots[0].path / path).chmod(0)
        if os.access(roots[0].path / path, os.R_OK):
            pytest.skip("this user may read every file")
        with pytest.raises(InputError, match="Permission denied"):
            read_memory(roots, path)
