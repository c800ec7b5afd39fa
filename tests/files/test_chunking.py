"""Chunks of Markdown: every line is found, ranges are exact, sizes are kept."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from perdure.errors import InputError
from perdure.files.chunking import Chunk, Chunking, chunk_markdown
from perdure.text.tokens import estimate_tokens

MEMORY_MD = """\
## User Preferences

- Preferred language: TypeScript
- Style: functional, minimal dependencies
- Testing: Vitest with >80% coverage
"""
SMALL = Chunking(20, 6)
LONG_WORD = "".join(chr(0x400 + number) for number in range(50))


def words(count: int, word: str = "word") -> str:
    return " ".join(f"{word}{number}" for number in range(count))


def ranges(chunks: list[Chunk]) -> list[tuple[int, int]]:
    return [(chunk.start_line, chunk.end_line) for chunk in chunks]


def sections(text: str, chunking: Chunking = SMALL) -> list[str]:
    return [chunk.section for chunk in chunk_markdown(text, chunking)]


def lines_of(text: str) -> list[str]:
    return [line.removesuffix("\r") for line in text.removeprefix("\ufeff").split("\n")]


class TestExamples:
    def test_a_small_file_is_one_chunk(self) -> None:
        [chunk] = chunk_markdown(MEMORY_MD)
        assert chunk == Chunk(1, 5, "User Preferences", MEMORY_MD.rstrip("\n"))

    @pytest.mark.parametrize("text", ["", "\n", " \n\t\n\r\n", "\ufeff", "\ufeff\n\n", "\u00a0\n\u2003"])
    def test_a_blank_file_has_none(self, text: str) -> None:
        assert chunk_markdown(text) == []

    def test_blank_lines_belong_to_the_chunk_before_and_at_the_top_to_the_first(self) -> None:
        assert ranges(chunk_markdown("\n\none\n\n\n# Two\ntwo\n\n")) == [(1, 5), (6, 8)]

    def test_more_blank_lines_than_fit_are_left_out(self) -> None:
        [first, last] = chunk_markdown("one\n" + "\n" * 200 + "# Two", Chunking(10, 0))
        assert (first.start_line, last.end_line) == (1, 202)
        assert [chunk.text.strip() for chunk in (first, last)] == ["one", "# Two"]

    def test_a_byte_order_mark_and_carriage_returns_are_dropped(self) -> None:
        [chunk] = chunk_markdown("\ufeff## A\r\n\r\ntext\r\n")
        assert chunk == Chunk(1, 3, "A", "## A\n\ntext")

    def test_a_lone_carriage_return_ends_no_line(self) -> None:
        chunks = chunk_markdown("one\rtwo\n\n# A\nthree")
        assert chunks == [Chunk(1, 2, "", "one\rtwo\n"), Chunk(3, 4, "A", "# A\nthree")]

    def test_other_line_separators_end_no_line(self) -> None:
        text = "a\x0bb\x0cc\u2028d\x85e\n\n# A"
        assert ranges(chunk_markdown(text)) == [(1, 2), (3, 3)]


class TestHeadings:
    def test_the_section_is_the_path_of_headings(self) -> None:
        text = f"# A\n{words(8)}\n## B\n{words(8)}\n### C\n{words(8)}\n## D\n{words(8)}\n# E\n{words(8)}"
        assert sections(text) == ["A", "A > B", "A > B > C", "A > D", "E"]

    def test_a_skipped_level_is_no_part_of_the_path(self) -> None:
        assert sections(f"# A\n{words(8)}\n#### B\n{words(8)}\n## C\n{words(8)}") == ["A", "A > B", "A > C"]

    def test_headings_without_content_go_with_what_follows(self) -> None:
        [chunk] = chunk_markdown(f"# A\n\n## B\n\n### C\n{words(5)}", SMALL)
        assert (chunk.start_line, chunk.section) == (1, "A > B > C")

    def test_a_heading_at_the_end_stands_for_itself(self) -> None:
        assert sections(f"# A\n{words(8)}\n# End") == ["A", "End"]

    def test_small_sections_are_merged(self) -> None:
        text = "".join(f"## S{number}\ntiny\n" for number in range(4))
        assert ranges(chunk_markdown(text, SMALL)) == [(1, 8)]

    def test_a_chunk_that_is_half_full_takes_no_further_section(self) -> None:
        assert ranges(chunk_markdown(f"## A\n{words(6)}\n## B\ntiny", SMALL)) == [(1, 2), (3, 4)]

    def test_a_section_is_not_merged_in_part(self) -> None:
        text = f"## A\ntiny\n## B\n{words(6)}\n\n{words(6)}\n\n{words(6)}"
        assert ranges(chunk_markdown(text, SMALL))[0] == (1, 2)

    def test_level_one_always_starts_a_chunk(self) -> None:
        assert ranges(chunk_markdown("tiny\n# A\ntiny\n# B\n# C\ntiny")) == [(1, 1), (2, 3), (4, 4), (5, 6)]

    def test_underlined_headings(self) -> None:
        text = f"Over\nall\n===\n{words(8)}\n\nPart\n---\n{words(8)}"
        assert sections(text) == ["Over all", "Over all > Part"]

    @pytest.mark.parametrize(
        "text",
        [
            "```\n# no\n```",
            "~~~md\n# no\n~~~",
            "```\n# no, and the fence stays open",
            "    # no",
            "- item\n  # no",
            "> # no",
            "<pre>\n# no\n</pre>",
            "#no",
            "\\# no",
        ],
    )
    def test_what_is_no_heading_of_the_file(self, text: str) -> None:
        [chunk] = chunk_markdown(f"above\n\n{text}\n")
        assert chunk.section == ""

    def test_a_long_title_is_cut_in_the_path(self) -> None:
        [chunk] = chunk_markdown(f"# {'x' * 500}\ntext")
        assert chunk.section == "x" * 120


class TestBlocks:
    def test_a_fence_that_fits_is_kept_whole(self) -> None:
        fence = "```py\n" + "x = 1\n\n" * 8 + "```"
        text = f"# A\n{words(7)}\n\n{fence}\n\n{words(7)}"
        assert any(fence in chunk.text for chunk in chunk_markdown(text, SMALL))

    def test_a_fence_in_a_long_list_is_kept_whole(self) -> None:
        fence = "  ```\n  a\n\n  b\n  ```"
        text = "".join(f"- {words(4)}\n\n{fence}\n\n" for _ in range(6))
        assert sum(chunk.text.count(fence) for chunk in chunk_markdown(text, Chunking(22, 0))) == 6

    def test_items_of_several_lines_are_kept_whole(self) -> None:
        item = f"- {words(3)}\n  {words(3)}\n"
        text = item * 6
        assert all(chunk.start_line % 2 for chunk in chunk_markdown(text, Chunking(25, 0)))

    def test_a_long_fence_and_a_long_table_are_cut_at_lines(self) -> None:
        table = "| a | b |\n|---|---|\n" + "| 1 | 2 |\n" * 40
        for text in ("```\n" + "x = 1\n" * 40 + "```\n", table):
            chunks = chunk_markdown(text, Chunking(20, 0))
            assert len(chunks) > 2
            assert "\n".join(chunk.text for chunk in chunks) == text.rstrip("\n")

    def test_front_matter_is_one_block_and_has_no_headings(self) -> None:
        front = "---\ntitle: x\n# a comment\n\ntags: [a]\n---"
        [first, second] = chunk_markdown(f"{front}\n# A\ntext")
        assert (first.text, first.section) == (front, "")
        assert (second.start_line, second.section) == (7, "A")

    @pytest.mark.parametrize("text", ["---\n# A\ntext", "\n---\n# A\n---", "text\n---\n# A\n---"])
    def test_other_rules_are_no_front_matter(self, text: str) -> None:
        assert "A" in chunk_markdown(text)[-1].section

    def test_reference_definitions_are_lines_like_others(self) -> None:
        [chunk] = chunk_markdown("[a]: http://example.org\n")
        assert chunk.text == "[a]: http://example.org"


class TestOverlap:
    def test_the_last_whole_lines_are_repeated(self) -> None:
        text = "\n".join(f"line {number:02}" for number in range(20))
        assert ranges(chunk_markdown(text, Chunking(20, 5))) == [(1, 10), (9, 18), (17, 20)]

    def test_there_is_none_at_a_heading(self) -> None:
        text = "\n".join(f"## S{number}\n{words(8)}" for number in range(3))
        assert ranges(chunk_markdown(text, Chunking(20, 19))) == [(1, 2), (3, 4), (5, 6)]

    def test_it_gives_way_to_a_block_that_fits_only_without(self) -> None:
        fence = "```\n" + "x = 1\n" * 11 + "```"
        chunks = chunk_markdown(f"{words(7)}\n\n{words(3)}\n\n{fence}", Chunking(20, 10))
        assert chunks[-1].text == fence


class TestLongLines:
    def test_is_cut_at_spaces_and_repeats_whole_words(self) -> None:
        said = words(60).split()
        chunks = chunk_markdown(" ".join(said), SMALL)
        assert set(ranges(chunks)) == {(1, 1)}
        assert all(set(chunk.text.split()) <= set(said) for chunk in chunks)
        for first, second in pairwise(chunks):
            shared = set(first.text.split()) & set(second.text.split())
            assert 0 < estimate_tokens(" ".join(shared)) <= SMALL.overlap

    def test_a_space_in_the_first_half_is_too_early(self) -> None:
        line = "ab " + "x" * 150
        assert [chunk.text for chunk in chunk_markdown(line, Chunking(20, 0))] == [line[:80], line[80:]]

    @pytest.mark.parametrize("line", [words(30, "w"), "a bb cc dd ee " + LONG_WORD, "aaaaaaaaa " + LONG_WORD])
    def test_every_piece_brings_something_new(self, line: str) -> None:
        pieces = [chunk.text for chunk in chunk_markdown(line, Chunking(4, 3))]
        for first, second in pairwise(pieces):
            assert second not in first
            assert first not in second

    def test_without_spaces_it_is_cut_where_it_is_full(self) -> None:
        line = "".join(chr(0x4E00 + number) for number in range(50))
        assert [chunk.text for chunk in chunk_markdown(line, SMALL)] == [
            line[:20],
            line[14:34],
            line[28:48],
            line[42:],
        ]

    def test_its_neighbours_stand_alone(self) -> None:
        text = f"## A\nabove\n\n{'x' * 200}\n\nbelow"
        chunks = chunk_markdown(text, SMALL)
        assert chunks[0].text == "## A\nabove\n"
        assert chunks[-1].text == "\nbelow"
        assert {chunk.section for chunk in chunks} == {"A"}

    def test_a_gap_of_spaces_gives_no_blank_chunk(self) -> None:
        chunks = chunk_markdown("a" + " " * 1000 + "b", SMALL)
        assert [chunk.text.strip() for chunk in chunks] == ["a", "b"]


class TestLimits:
    @pytest.mark.parametrize(("tokens", "overlap"), [(0, 0), (-1, 0), (10, 10), (10, -1), (1, 1)])
    def test_sizes_that_cannot_be_are_refused(self, tokens: int, overlap: int) -> None:
        with pytest.raises(InputError):
            Chunking(tokens, overlap)

    @pytest.mark.parametrize("line", [">" * 10_000, "- " * 10_000 + "x", "> - " * 5_000 + "x", "[" * 10_000])
    def test_deep_nesting_is_only_text(self, line: str) -> None:
        text = f"{line}\n\n# A\ntext"
        chunks = chunk_markdown(text)
        assert chunks[-1].text.endswith("# A\ntext")
        assert all(estimate_tokens(chunk.text) <= 400 for chunk in chunks)

    @pytest.mark.parametrize("unit", ["x", "word ", "漢", "a漢 "])
    def test_a_line_of_five_megabytes(self, unit: str) -> None:
        line = unit * (5_000_000 // len(unit.encode()))
        chunks = chunk_markdown(line, Chunking(400, 0))
        assert "".join(chunk.text for chunk in chunks) == line

    def test_a_file_of_a_megabyte(self) -> None:
        part = "## Day\n\n- did this\n- and that\n\nSome prose.\n\n"
        chunks = chunk_markdown(part * (1_000_000 // len(part)))
        assert len(chunks) > 600
        assert all(estimate_tokens(chunk.text) <= 400 for chunk in chunks)


loose_lines = st.text("ab  #->`~=|:*1.\t\u00a0漢\ré", max_size=30) | st.sampled_from(
    ["", "", "---", "```", "# H", "## H", "===", "<div>"]
)
pages = st.lists(loose_lines, max_size=40).map("\n".join) | st.text(max_size=200)
chunkings = st.integers(1, 30).flatmap(
    lambda tokens: st.builds(Chunking, st.just(tokens), st.integers(0, min(tokens - 1, 12)))
)
texts = st.lists(st.text("abc de漢", min_size=1, max_size=20).map(str.strip).filter(bool), min_size=1, max_size=4)
whole_blocks = texts.map("\n".join) | texts.map(lambda said: "```\n" + "\n".join(said) + "\n```")


def whole_sections(least: int) -> st.SearchStrategy[str]:
    """Sections of at least so many blocks."""
    blocks = st.lists(whole_blocks, min_size=least, max_size=4)
    return st.builds(
        lambda level, said: "\n\n".join([f"{'#' * level} Title", *said]) + "\n\n", st.integers(1, 4), blocks
    )


class TestAnyText:
    @settings(max_examples=300, deadline=None)
    @given(pages, chunkings)
    def test_every_line_is_found_and_every_range_is_exact(self, text: str, chunking: Chunking) -> None:
        lines = lines_of(text)
        pieces: dict[int, list[str]] = {}
        found: set[int] = set()
        for chunk in chunk_markdown(text, chunking):
            assert 1 <= chunk.start_line <= chunk.end_line <= len(lines)
            assert chunk.text.strip()
            assert estimate_tokens(chunk.text) <= chunking.tokens
            found.update(range(chunk.start_line, chunk.end_line + 1))
            exact = "\n".join(lines[chunk.start_line - 1 : chunk.end_line])
            if chunk.text != exact:
                assert chunk.start_line == chunk.end_line
                assert estimate_tokens(exact) > chunking.tokens
                pieces.setdefault(chunk.start_line, []).append(chunk.text)
        assert {number for number, line in enumerate(lines, 1) if line.strip()} <= found
        for number, said in pieces.items():
            assert covers(said, lines[number - 1])

    @settings(max_examples=300, deadline=None)
    @given(pages, chunkings)
    def test_chunks_are_in_order_and_overlap_is_bounded(self, text: str, chunking: Chunking) -> None:
        lines = lines_of(text)
        for first, second in pairwise(chunk_markdown(text, chunking)):
            if (first.start_line, first.end_line) == (second.start_line, second.end_line):
                continue  # pieces of one line
            assert second.start_line > first.start_line
            assert second.end_line > first.end_line
            shared = lines[second.start_line - 1 : first.end_line]
            assert estimate_tokens("\n".join(shared)) <= chunking.overlap
            assert not shared or first.section == second.section

    @settings(max_examples=50, deadline=None)
    @given(pages, chunkings)
    def test_the_same_text_gives_the_same_chunks(self, text: str, chunking: Chunking) -> None:
        assert chunk_markdown(text, chunking) == chunk_markdown(text, chunking)

    @settings(max_examples=200, deadline=None)
    @given(st.lists(whole_sections(0), max_size=5).map("".join), whole_sections(1), whole_sections(0), chunkings)
    def test_a_section_at_the_end_changes_the_last_chunk_at_most(
        self, before: str, last: str, added: str, chunking: Chunking
    ) -> None:
        old, new = chunk_markdown(before + last, chunking), chunk_markdown(before + last + added, chunking)
        unchanged = len(old) if added.startswith("# ") else len(old) - 1
        assert new[:unchanged] == old[:unchanged]


def covers(pieces: list[str], line: str) -> bool:
    """Return whether the pieces, in order, leave nothing but white space of the line out."""
    done = 0
    for piece in pieces:
        # The last place without a gap before it: no other one could reach further.
        gap = len(line[done:]) - len(line[done:].lstrip())
        at = line.rfind(piece, 0, done + gap + len(piece))
        if at < 0:
            return False
        done = max(done, at + len(piece))
    return not line[done:].strip()
