"""`perdure status` while the server is away: it says so, and how many turns this machine keeps meanwhile."""

from __future__ import annotations

from pathlib import Path

import pytest

from perdure import TurnContext
from perdure.hooks.host import HookRunner
from perdure.plugin.plugin import hookimpls_for
from tests.cli.calling import call, call_json
from tests.postgres.server import Server

pytestmark = pytest.mark.postgres
TURN = TurnContext(session_id="s1")


def test_it_is_a_state_that_the_server_is_away(
    server: Server, tenant: str, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in {"HOME": str(home), "STORE_URL": server.url, "STORE_TENANT": tenant, "EMBEDDER": "none"}.items():
        monkeypatch.setenv(f"PERDURE_{name}", value)
    assert call_json("status")["inbox"] == 0
    server.stop()
    try:
        runner = HookRunner()
        runner.register(hookimpls_for(home=home, timers=False))
        for text in ("The staging database is called heron.", "The printer is called Otto."):
            runner.agent_end([{"role": "user", "content": text}], True, TURN)
        runner.host_stopping(TURN)
        told = call_json("status", code=1)
        assert (told["home"], told["truth"], told["inbox"]) == (str(home), "unavailable", 2)
        assert "the database cannot be reached" in told["problem"]
        shown = call("status", code=1).stdout
    finally:
        server.start()
    assert [line.split() for line in shown.splitlines() if line.startswith(("database", "turns"))] == [
        ["database", "unavailable"], ["turns", "to", "capture", "2"],
    ]  # fmt: skip
    assert call_json("status")["truth"] == "sound"


def test_a_database_of_another_key_is_told_as_well(
    server: Server, tenant: str, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PERDURE_STORE_URL", server.url)
    monkeypatch.setenv("PERDURE_STORE_TENANT", tenant)
    call("status", "--home", home)
    monkeypatch.setenv("PERDURE_STORE_KEY", "cd" * 32)
    told = call_json("status", "--home", home, code=1)
    assert (told["truth"], told["inbox"]) == ("unavailable", 0)
    assert "another key" in told["problem"]
