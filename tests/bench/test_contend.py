"""The contention bench in short: no change is lost, doubled or seen late, and rivals make one fact."""

from __future__ import annotations

from bench.contend import bench


def test_processes_that_contend_lose_nothing_and_see_everything() -> None:
    result = bench(processes=2, seconds=2.0, rounds=3)
    assert result["problems"] == []
    assert result["lost"] == result["duplicated"] == result["stale"] == result["errors"] == result["diverged"] == 0
    assert result["operations"] > result["looks"] > 0
