"""Short versions of the benches of a shared store: outages, tenants behind a pooler, two versions side by side."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench import outage, rollout, tenants
from tests.postgres.server import running

pytestmark = [pytest.mark.postgres, pytest.mark.timeout(400)]
FORMER = """
import perdure.store.postgres.migrate as made
made.STEPS = made.STEPS[:-1]
made._see_near = lambda raw: None
"""
"""Makes of this perdure one that knows the schema only up to the step before the last, and no pgvector."""


def test_nothing_is_lost_when_the_server_or_a_process_ends() -> None:
    result = outage.bench(stops=2, kills=2, corrections=40)
    assert result["acknowledged"] > 20
    assert [result[name] for name in ("lost", "doubled", "diverged")] == [0, 0, 0]
    assert result["corrections"] == {"versions": 40, "current": 1, "failed": 0, "damaged": 0}


def test_tenants_behind_a_pooler_see_their_own_alone() -> None:
    result = tenants.bench(tenants=40, scopes=1_000)
    assert (result["reads"], result["foreign"], result["without_a_tenant"]) == (120, 0, 0)
    names = result["names"]
    assert names["kept"] > 200
    assert (names["found"], names["foreign"]) == (names["kept"], 0)


def test_the_former_schema_goes_on_beside_this_one() -> None:
    with running() as server:
        result = rollout.bench(Path(__file__).parents[2], 40, server, FORMER)
    assert result == {
        "operations": 40, "not_found": 0, "slots_with_several": 0, "not_current": 0, "damaged": [0, 0],
    }  # fmt: skip
