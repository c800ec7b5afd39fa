"""A short version of `python -m tests.e2e.ui`, where Chromium is there."""

from __future__ import annotations

import shutil

import pytest

from tests.e2e import ui

CHROMIUM = shutil.which("chromium")
WORDS = (
    "keyboard", "edited", "forgotten", "explained", "for good", "approved", "without a script", "telephone", "twice",
)  # fmt: skip


@pytest.mark.skipif(CHROMIUM is None, reason="Debian's chromium is not installed")
def test_a_person_finds_edits_forgets_removes_and_marks() -> None:
    pytest.importorskip("playwright", reason="the extra `browser` is not installed")
    assert CHROMIUM is not None
    with ui.story(CHROMIUM, None, embedder="hash") as told:
        assert ui.step.run(told, WORDS)
