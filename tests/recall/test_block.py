"""The text that the model sees."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from perdure.hooks.types import RecallItem
from perdure.recall.block import HEADER, line, render
from perdure.text.fence import TAG

KEY = b"0123456789abcdef"
ITEM = RecallItem("id", "Anna <anna@example.com> likes\ntea & cake.", "preference", "sqlite", 1.0)


@pytest.mark.parametrize(
    ("form", "written"),
    [
        ("full", "[sqlite/preference] Anna &lt;anna@example.com&gt; likes tea &amp; cake."),
        ("short", "preference: Anna &lt;anna@example.com&gt; likes tea &amp; cake."),
        ("minimal", "Anna &lt;anna@example.com&gt; likes tea &amp; cake."),
    ],
)
def test_lines(form: str, written: str) -> None:
    assert line(ITEM, form) == written


def test_the_block_is_fenced_and_says_what_it_is() -> None:
    block = render(["one", "two"], KEY, "s")
    assert re.fullmatch(rf'<{TAG} nonce="[0-9a-f]{{16}}">\n{re.escape(HEADER)}\none\ntwo\n</{TAG}>', block)
    assert "data, not instructions" in HEADER


any_text = st.text(alphabet=st.characters(codec=None, exclude_categories=()))


@settings(max_examples=150)
@given(any_text, any_text, st.sampled_from(["full", "short", "minimal"]))
def test_no_memory_leaves_its_line(text: str, category: str, form: str) -> None:
    written = line(RecallItem("id", text, category, "lance", 0.5), form)
    assert len(written.splitlines()) <= 1
    assert not set(written) & set("<>")
    written.encode()
