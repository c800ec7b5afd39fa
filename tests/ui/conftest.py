"""The pages of a real store, asked by a browser without a window."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
from starlette.testclient import TestClient

from perdure.api.memory import Memory
from perdure.ui.door import Keys
from perdure.ui.pages import pages

PORT = 43210
HOST = f"http://127.0.0.1:{PORT}"


class Browser:
    """Asks for pages as a browser does that was let in."""

    def __init__(self, memory: Memory) -> None:
        self.memory = memory
        self.keys = Keys()
        self.client = TestClient(pages(memory, self.keys, PORT), base_url=HOST, raise_server_exceptions=True)

    def enter(self) -> httpx2.Response:
        return self.client.get("/enter", params={"token": self.keys.token()})

    def get(self, page: str, **query: Any) -> httpx2.Response:
        return self.client.get(f"{self.keys.prefix}/{page}", params=query)

    def text(self, page: str, **query: Any) -> str:
        answer = self.get(page, **query)
        assert answer.status_code == 200, answer.text
        return answer.text

    def token(self) -> str:
        found = re.search(r'name="form_token" value="(\w+)"', self.text("health"))
        assert found is not None
        return found[1]

    def press(self, action: str, *, origin: str | None = HOST, **values: str) -> httpx2.Response:
        """Press a button: send its form, and go where it leads."""
        values.setdefault("form_token", self.token())
        headers = {"Origin": origin} if origin else {}
        return self.client.post(f"{self.keys.prefix}/{action}", data=values, headers=headers)


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Memory]:
    with Memory.open(tmp_path / "home", embedder="none", timers=False, watch=False) as opened:
        yield opened


@pytest.fixture
def browser(memory: Memory) -> Browser:
    found = Browser(memory)
    assert found.enter().status_code == 200
    return found
