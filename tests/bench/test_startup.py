"""The bench of starting in short: it measures what it says."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("mcp", reason="the extra `mcp` is not installed")

from bench.startup import bench


def test_it_measures_each_start(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(Path(__file__).parents[2])
    result = bench(1)
    assert result.keys() == {
        "import_cpu_s", "help_cpu_s", "read_cpu_s", "search_cpu_s", "mcp_handshake_s", "mcp_cpu_s",
    }  # fmt: skip
    assert min(result.values()) > 0
