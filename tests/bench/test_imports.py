"""The figures of an import come from a real one."""

from __future__ import annotations

from bench.imports import bench


def test_a_small_export_is_imported_once() -> None:
    figures = bench(1)
    assert figures["conversations"] > 0
    assert figures["messages"] == 4 * figures["conversations"]
    assert figures["added"] == -(-figures["conversations"] // 5)
    assert figures["added_again"] == 0
