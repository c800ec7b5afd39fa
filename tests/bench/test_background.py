"""The bench of the background in short: it measures what it says."""

from __future__ import annotations

from bench.background import bench


def test_it_measures_both_stretches() -> None:
    result = bench(3, 0.02, 0.5, "hash")
    assert (result["facts"], result["turns_per_hour"]) == (3, 7200)
    assert {name for name in result if name.endswith("per_hour") and name != "turns_per_hour"} == {
        f"{stretch}_{part}_cpu_s_per_hour" for stretch in ("idle", "talking") for part in ("threads", "worker")
    }
    assert result["talking_threads_cpu_s_per_hour"] > 0
    assert result["talking_worker_cpu_s_per_hour"] == 0
