"""The exit bench in short: each way to end, with every job busy, is clean and loses nothing."""

from __future__ import annotations

import sys

import pytest

from bench.exits import WAYS, bench

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")


def test_each_end_is_clean_and_loses_nothing() -> None:
    found = bench(len(WAYS))
    assert found["details"] == []
    assert (found["aborts"], found["hangs"], found["orphans"], found["lost"]) == (0, 0, 0, 0)
    assert found["acknowledged"] > 0
