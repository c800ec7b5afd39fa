"""The text that the model sees."""

from __future__ import annotations

import re
from datetime import UTC, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from perdure.hooks.types import RecallItem
from perdure.ranking.decay import DAY
from perdure.recall.block import (
    FIRST_CHARS,
    FIRST_WORDS,
    HEADER,
    OPENING,
    SHORT_TOKENS,
    age,
    dress,
    indexed,
    line,
    render,
)
from perdure.recall.options import FORMATS
from perdure.recall.turn import Candidate
from perdure.store.fact import USUAL, Fact
from perdure.text.fence import TAG
from perdure.text.tokens import estimate_tokens
from tests.recall.conftest import dressed

KEY = b"0123456789abcdef"
ITEM = RecallItem("id", "Anna <anna@example.com> likes\ntea & cake.", "preference", "sqlite", 1.0)
TEXT = "Anna &lt;anna@example.com&gt; likes tea &amp; cake."
NOTE = "yesterday, 2026-11-20"
NOW = datetime(2026, 11, 21, 12, tzinfo=UTC).timestamp()


@pytest.mark.parametrize(
    ("form", "written"),
    [
        ("full", f"[sqlite/preference] {TEXT} ({NOTE})"),
        ("short", f"preference: {TEXT} ({NOTE})"),
        ("minimal", TEXT),
        ("progressive", f"7. [preference] {TEXT} ({NOTE})"),
    ],
)
def test_lines(form: str, written: str) -> None:
    assert line(dressed(ITEM, NOTE), form, 7) == written
    assert line(dressed(ITEM), form, 7) == written.removesuffix(f" ({NOTE})")


@pytest.mark.parametrize("form", FORMATS)
def test_the_block_is_fenced_and_says_what_it_is(form: str) -> None:
    header = f"{HEADER} {OPENING}" if form == "progressive" else HEADER
    block = render(["one", "two"], KEY, "s", form)
    assert re.fullmatch(rf'<{TAG} nonce="[0-9a-f]{{16}}">\n{re.escape(header)}\none\ntwo\n</{TAG}>', block)
    assert "data, not instructions" in HEADER


any_text = st.text(alphabet=st.characters(codec=None, exclude_categories=()))


@settings(max_examples=150)
@given(any_text, any_text, st.sampled_from(FORMATS))
def test_no_memory_leaves_its_line(text: str, category: str, form: str) -> None:
    written = line(dressed(RecallItem("id", text, category, "semantic", 0.5)), form)
    assert len(written.splitlines()) <= 1
    assert not set(written) & set("<>")
    written.encode()


@pytest.mark.parametrize(
    ("days", "words"),
    [
        (-400, ""),
        (-1, ""),
        (0, ""),
        (1, "yesterday, 2026-11-20"),
        (2, "2 days ago, 2026-11-19"),
        (13, "13 days ago, 2026-11-08"),
        (14, "2 weeks ago, 2026-11-07"),
        (21, "3 weeks ago, 2026-10-31"),
        (60, "8 weeks ago, 2026-09-22"),
        (61, "2 months ago, 2026-09-21"),
        (365, "12 months ago, 2025-11-21"),
        (729, "23 months ago, 2024-11-22"),
        (730, "2 years ago, 2024-11-21"),
        (20_000, "54 years ago, 1972-02-18"),
        (30_000, "82 years ago, 1944-10-02"),
    ],
)
def test_an_age_in_words(days: int, words: str) -> None:
    assert age(NOW - days * DAY, NOW) == words


@pytest.mark.parametrize("said", [float("nan"), float("inf"), float("-inf"), -1e15, 1e15, -1e300])
def test_a_time_that_no_calendar_has_is_left_out(said: float) -> None:
    assert age(said, NOW) == ""


@given(st.floats(0, 5e9), st.floats(0, 2 * DAY), st.floats(0, 2 * DAY))
def test_an_age_changes_with_the_day_alone(said: float, one: float, other: float) -> None:
    first, second = said + one, said + other
    if first // DAY == second // DAY:
        assert age(said, first) == age(said, second)
    elif first >= DAY * (said // DAY + 1) and second >= DAY * (said // DAY + 1):
        assert age(said, first) != age(said, second)


@pytest.mark.parametrize("form", FORMATS)
def test_all_formats_but_minimal_say_how_old_a_memory_is(form: str) -> None:
    each = Candidate(Fact(ITEM.text, source_date=NOW - DAY))
    dress(each, form, USUAL, NOW, None, estimate_tokens)
    assert each.note == ("" if form == "minimal" else NOTE)


LONG = "The heron database keeps the ledger of the billing service, and a copy of it is made every night in Vienna."


def test_a_long_memory_stands_in_the_index_by_its_first_words() -> None:
    each = Candidate(Fact(LONG, id=ITEM.id, category="preference"))
    dress(each, "progressive", USUAL, NOW, None, estimate_tokens)
    assert line(each, "progressive", 3) == (
        f"3. [preference] The heron database keeps the ledger of the … ({estimate_tokens(LONG)} tokens)"
    )
    assert each.item.id == ITEM.id


@given(st.text(max_size=400))
def test_an_index_shows_a_beginning_that_is_shorter_than_the_whole(text: str) -> None:
    entry = indexed(text, estimate_tokens)
    if estimate_tokens(text) <= SHORT_TOKENS:
        assert entry is None
    elif entry is not None:
        start = entry[0].removesuffix(" …")
        assert " ".join(text.split()).startswith(start)
        assert len(start) <= FIRST_CHARS
        assert len(start.split()) <= FIRST_WORDS
        assert entry[1] == f"{estimate_tokens(text)} tokens"
    else:
        assert len(" ".join(text.split())) <= FIRST_CHARS
