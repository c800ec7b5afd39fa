"""One server for all tests here, and a tenant for each."""

from __future__ import annotations

import uuid
from collections.abc import Iterator

import pytest

from tests.postgres.server import Server, running


@pytest.fixture(scope="session")
def server() -> Iterator[Server]:
    with running() as started:
        yield started


@pytest.fixture
def tenant() -> str:
    return uuid.uuid4().hex
