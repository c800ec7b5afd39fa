"""What a host that runs for months holds in memory has an end."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perdure.recent import Recent

keys = st.integers(0, 6)


@pytest.fixture
def hasty() -> Iterator[None]:
    """Let threads take turns as often as can be."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


@given(st.integers(1, 4), st.lists(st.tuples(st.sampled_from(["get", "put", "first", "drop"]), keys)))
def test_what_was_used_last_stays(limit: int, steps: list[tuple[str, int]]) -> None:
    recent: Recent[int, int] = Recent(limit)
    model: dict[int, int] = {}
    for at, (step, key) in enumerate(steps):
        known = model.pop(key, None)
        if step == "get":
            assert recent.get(key) == known
        elif step == "first":
            known = at if known is None else known
            assert recent.first(key, at) == known
        elif step == "put":
            recent.put(key, known := at)
        else:
            recent.drop(key)
            known = None
        if known is not None:
            model[key] = known
        for gone in list(model)[:-limit]:
            del model[gone]
        assert recent.keys() == model.keys()


@pytest.mark.usefixtures("hasty")
def test_threads_may_use_it_at_once() -> None:
    recent: Recent[int, int] = Recent(3)

    def work(number: int) -> None:
        for at in range(3_000):
            recent.put(number * at % 7, at)
            recent.first(at % 5, at)
            recent.get(at % 7)
            recent.drop(number)
            assert len(recent.keys()) <= 3

    with ThreadPoolExecutor(4) as threads:
        list(threads.map(work, range(4)))
