"""Short versions of the benches of a shared store: outages, and tenants behind a pooler."""

from __future__ import annotations

import numpy as np
import pytest

from bench import outage, shared, tenants
from perdure.postgres.database import CONNECTIONS

pytestmark = [pytest.mark.postgres, pytest.mark.timeout(400)]


def test_nothing_is_lost_when_the_server_or_a_process_ends() -> None:
    result = outage.bench(stops=2, kills=2, corrections=40)
    assert result["acknowledged"] > 20
    assert [result[name] for name in ("lost", "doubled", "diverged")] == [0, 0, 0]
    assert result["corrections"] == {"versions": 40, "current": 1, "failed": 0, "damaged": 0}


def test_a_shared_store_is_measured_beside_one_in_a_folder() -> None:
    vectors = np.random.default_rng(1).standard_normal((80, 384)).astype(np.float32)
    blended = shared.Blended(vectors, [f"writer {at % 8}" for at in range(80)])
    result = shared.at_size(2_000, [2], blended, queries=3, asks=2, writes=2, beside=True)
    assert [each["rows"] for each in result["vectors"]] == [1, 1, 20, 20, 100, 100, 400, 400]
    # Below the size of a graph all are compared; halves of floats may change places.
    assert all(each["recall_at_10"] >= 0.95 for each in result["vectors"])
    assert 2 <= result["shared"]["2"]["connections"] <= 2 * CONNECTIONS
    assert result["local"]["2"].keys() == {"p50_ms", "p95_ms", "writes_per_s"}


def test_tenants_behind_a_pooler_see_their_own_alone() -> None:
    result = tenants.bench(tenants=40, scopes=1_000)
    assert (result["reads"], result["foreign"], result["without_a_tenant"]) == (120, 0, 0)
    names = result["names"]
    assert names["kept"] > 200
    assert (names["found"], names["foreign"]) == (names["kept"], 0)
