"""The sections of the system prompt, byte for byte."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perdure.errors import InputError
from perdure.files.prompt import prompt_sections
from perdure.hooks.types import PromptSection

RECALL = """\
## Memory recall

Before you answer anything about earlier work, decisions, dates, people, preferences or todos:
1. Call `memory_search` with the words of the question. It looks through MEMORY.md and memory/*.md.
2. Call `memory_get` with the path and lines of a result to read what stands around it; read no more than you need.
If nothing fits, say that you looked in memory and found nothing. Do not guess.
In a direct chat end an answer that rests on memory with `Source: path#Lx-Ly`; in a group leave it out."""
MEMORY_MD = "## User Preferences\n\n- Preferred language: TypeScript\n"
RUNTIME = {
    "z": "1",
    "y": "2",
    "provider": "onnx",
    "x": "U\nTC",
    "w": "3",
    "citations": "auto",
    "backend": "hybrid",
    "sources": "memory+sessions",
}


def context(memory_md: str, max_chars: int = 20_000, get_tool: str = "memory_get") -> str:
    """Return what "project context" shows of MEMORY.md."""
    sections = prompt_sections("full", memory_md=memory_md, max_chars=max_chars, get_tool=get_tool, runtime={})
    [text] = [section.text for section in sections if section.name == "project context"]
    return text.removeprefix("## Project context\n\nMEMORY.md of this workspace:\n\n")


def test_all_sections() -> None:
    assert prompt_sections("full", memory_md=MEMORY_MD, runtime=RUNTIME) == (
        PromptSection("memory recall", RECALL),
        PromptSection(
            "project context",
            "## Project context\n\nMEMORY.md of this workspace:\n\n"
            "## User Preferences\n\n- Preferred language: TypeScript",
        ),
        PromptSection(
            "runtime",
            "Memory: backend=hybrid, provider=onnx, sources=memory+sessions, citations=auto, w=3, x=U TC, y=2, z=1",
        ),
    )


@pytest.mark.parametrize("mode", ["minimal", "none", "", "FULL"])
def test_other_modes_have_none(mode: str) -> None:
    assert prompt_sections(mode, memory_md=MEMORY_MD, runtime=RUNTIME) == ()


@pytest.mark.parametrize("memory_md", [None, "", " \n\n"])
def test_without_memory_md_there_is_no_project_context(memory_md: str | None) -> None:
    names = [section.name for section in prompt_sections("full", memory_md=memory_md, runtime=RUNTIME)]
    assert names == ["memory recall", "runtime"]


def test_without_anything_to_name_there_is_no_runtime_line() -> None:
    assert [section.name for section in prompt_sections("full", memory_md=None, runtime={})] == ["memory recall"]


def test_the_tools_are_called_by_their_names() -> None:
    [recall] = prompt_sections("full", search_tool="look", get_tool="read", memory_md=None, runtime={})
    assert recall.text == RECALL.replace("memory_search", "look").replace("memory_get", "read")


@pytest.mark.parametrize(
    ("citations", "last"),
    [
        ("on", "End each answer that rests on memory with `Source: path#Lx-Ly`."),
        ("off", "Do not name file paths or line numbers of memory in an answer, unless the user asks for them."),
    ],
)
def test_the_last_line_depends_on_the_citation_mode(citations: str, last: str) -> None:
    [recall] = prompt_sections("full", citations=citations, memory_md=None, runtime={})
    assert recall.text.splitlines()[:-1] == RECALL.splitlines()[:-1]
    assert recall.text.splitlines()[-1] == last


def test_what_cannot_be_is_refused() -> None:
    with pytest.raises(InputError, match="auto, on, off"):
        prompt_sections("full", citations="always", memory_md=None, runtime={})


class TestCap:
    NOTE = '\n\n[MEMORY.md continues: read the rest with memory_get, path "MEMORY.md", from {}]'

    def test_is_cut_at_a_line_and_says_where_the_rest_begins(self) -> None:
        text = "first\nsecond\nthird\n"
        assert context(text, 18) == text.rstrip()
        assert context(text, 17) == "first\nsecond" + self.NOTE.format(3)
        assert context(text, 12) == "first\nsecond" + self.NOTE.format(3)
        assert context(text, 11) == "first" + self.NOTE.format(2)
        assert "with read, " in context(text, 11, "read")

    def test_a_first_line_that_is_too_long_is_cut_in_itself(self) -> None:
        assert context("x" * 50 + "\nrest", 10) == "x" * 10 + self.NOTE.format(1)

    def test_secrets_are_taken_out_before_the_cut(self) -> None:
        secret = "sk-ant-" + "a1b2c3d4e5f6a7b8c9d0"
        assert context(f"key {secret} end") == "key [redacted anthropic-key] end"
        assert "sk-ant" not in context(f"key {secret} end", 20)

    @given(st.text("ab \n", min_size=1, max_size=80).filter(str.strip), st.integers(1, 60))
    def test_the_named_line_follows_what_is_shown(self, text: str, limit: int) -> None:
        shown, note, line = context(text, limit).partition(self.NOTE.partition("{")[0])
        assert len(shown) <= limit
        if not note:
            assert shown == text.rstrip()
            return
        before = "\n".join(text.split("\n")[: int(line.removesuffix("]")) - 1]).rstrip()
        assert shown == before or (not before and text.startswith(shown))
