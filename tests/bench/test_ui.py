"""The bench of the local page, in small."""

from __future__ import annotations

from bench.ui import bench


def test_every_page_is_asked_for() -> None:
    found = bench(200, 2)["pages"]
    assert {
        "today",
        "memories",
        "memories, searched",
        "one memory",
        "memories, after a change",
        "turns",
        "review",
        "health",
    } <= found.keys()
    assert found["today"]["bytes"] < 60_000
    assert all(each["ratio"] > 0 for each in found.values())
