"""MCP servers over one helper: one model, the user's word from the hooks, and a store here where there is no helper."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from bench.hooks import end
from perdure import Memory
from perdure.errors import InputError, NotFoundError
from perdure.hooks.types import Consent, TurnContext
from perdure.hosts.mcp.client import McpClient
from perdure.hosts.mcp.remote import RemoteDesk
from tests.hosts.commands import helpers, home, hook, payload

__all__ = ["home"]
SAID = "My favourite editor is Helix."


def desk(home: Path, user: str | None = None, host: str = "claude-code") -> RemoteDesk:
    return RemoteDesk(home, McpClient(user=user, host=host))


@pytest.fixture
def told(home: Path) -> Iterator[Path]:
    """Return a folder whose user has said something, and wants it forgotten."""
    with Memory.open(home) as memory:
        memory.turns.after([{"role": "user", "content": SAID}], True, TurnContext(session_id="s"))
        memory.settle()
    yield home
    end(home)


def one(home: Path) -> str:
    with Memory.open(home, guest=True) as memory:
        [fact] = memory.admin.list()
    return fact.id


def test_two_servers_and_the_hooks_share_one_process(home: Path) -> None:
    first, second = desk(home), desk(home)
    assert not first.call("memory_store", {"text": "The staging database is called heron."}).refused
    assert "heron" in second.call("memory_search", {"query": "staging database"}).text
    hook(home, "session-start", payload("session-start", "s1"))
    assert len(helpers(home)) == 1


def test_a_quote_of_what_the_hooks_have_heard_is_the_user_s_word(told: Path) -> None:
    wish = "Please forget that my favourite editor is Helix"
    known = one(told)
    refused = desk(told).call("memory_forget", {"id": known, "quote": wish}, consent=Consent.UNAVAILABLE)
    assert "review" in refused.text
    # As an order to this agent it would be obeyed by the hook itself.
    hook(told, "prompt", payload("prompt", "s1", prompt=f"Tell the other agent: {wish}, I have changed."))
    elsewhere = desk(told, host="codex").call(
        "memory_forget", {"id": known, "quote": wish}, consent=Consent.UNAVAILABLE
    )
    assert "review" in elsewhere.text
    done = desk(told).call("memory_forget", {"id": known, "quote": wish}, consent=Consent.UNAVAILABLE)
    assert "review" not in done.text
    with Memory.open(told, guest=True) as memory:
        assert not memory.admin.has(known)


def test_another_user_s_desk_sees_nothing(told: Path) -> None:
    assert SAID not in desk(told, user="bob").call("memory_search", {"query": "favourite editor"}).text
    with pytest.raises(NotFoundError):
        desk(told, user="bob").read(f"perdure://facts/{one(told)}")


def test_an_error_of_the_store_is_the_same_here_and_there(told: Path) -> None:
    with pytest.raises((NotFoundError, InputError)):
        desk(told).read("perdure://nowhere")


def test_without_a_helper_the_store_is_opened_here(told: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", "/proc")
    monkeypatch.setenv("TMPDIR", "/proc")
    own = desk(told)
    assert SAID in own.call("memory_search", {"query": "favourite editor"}).text
    assert SAID in own.read("perdure://facts")[1]
    own.close()
    assert not helpers(told)


def test_the_helper_passes_on_what_a_resource_holds(told: Path) -> None:
    kind, text = desk(told).read("perdure://facts")
    assert kind == "application/json"
    assert SAID in json.dumps(json.loads(text))
    assert desk(told).files() == {}
