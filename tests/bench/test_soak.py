"""The soak in short: every job runs beside the turns, none fails, and nothing is left behind."""

from __future__ import annotations

import sys

import pytest

from bench.soak import bench


@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
def test_nothing_fails_and_nothing_is_left() -> None:
    found = bench(20 / 60, pause=0.03)
    assert found["details"] == []
    assert (found["errors"], found["orphans"], found["threads_delta"]) == (0, 0, 0)
    assert found["turns"] > 0
    # The worker may still be starting on a busy machine.
    assert not {"prune", "canary", "files"} & set(found["jobs_never_run"])
