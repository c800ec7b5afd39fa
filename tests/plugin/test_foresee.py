"""A prompt that a host tells beforehand goes one way, whether by pluggy, by the runner or by the entry of OpenClaw."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pluggy
import pytest

from perdure.embed.deterministic import HashEmbedder
from perdure.hooks.host import HookRunner
from perdure.hooks.spec import host_hooks
from perdure.hooks.types import TurnContext
from perdure.hosts.openclaw.hooks import PROTOCOL, OpenClawHooks
from perdure.plugin.plugin import PerdurePlugin, hookimpls_for
from tests.loopback import Loopback, Reply, Request, loopback

ASKED = "Where does the heron nest?"
CTX = {"agentId": "main", "sessionId": "s", "sessionKey": "agent:main:main"}
CONTEXT = TurnContext(session_id="s", agent_id="main")
Told = Callable[[str], None]


@pytest.fixture
def server() -> Iterator[Loopback]:
    def answer(request: Request) -> Reply:
        rows = HashEmbedder(32).embed(request.body["input"]).tolist()
        return Reply({"data": [{"index": index, "embedding": row} for index, row in enumerate(rows)]})

    with loopback(answer) as running:
        yield running


def asked(server: Loopback) -> int:
    return sum(ASKED in request.body["input"] for request in server.requests)


def by_pluggy(plugin: PerdurePlugin) -> Told:
    manager = pluggy.PluginManager("perdure")
    manager.add_hookspecs(host_hooks("perdure"))
    manager.register(plugin)
    return lambda prompt: manager.hook.foresee(prompt=prompt, context=CONTEXT)


def by_runner(plugin: PerdurePlugin) -> Told:
    runner = HookRunner()
    runner.register(plugin)
    return lambda prompt: runner.foresee(prompt, CONTEXT)


@pytest.mark.parametrize("way", [by_pluggy, by_runner])
def test_a_prompt_told_by_a_hook_is_embedded_before_its_turn(
    way: Callable[[PerdurePlugin], Told], home: Path, server: Loopback
) -> None:
    plugin = hookimpls_for(
        home=home, embedder="openai-compatible", embedder_endpoint=server.url, embedder_model="m", timers=False
    )
    told = way(plugin)
    plugin.host_started(CONTEXT)
    ready(plugin)
    told(ASKED)
    assert asked(server) == 1
    plugin.before_agent_start(ASKED, (), CONTEXT)
    assert asked(server) == 1
    plugin.host_stopping(CONTEXT)


def test_the_entry_of_openclaw_tells_it_by_the_same_hook(home: Path, server: Loopback) -> None:
    config = {
        "home": str(home), "embedder": "openai-compatible", "embedder_endpoint": server.url, "embedder_model": "m",
    }  # fmt: skip
    hooks = OpenClawHooks({})
    hooks.handle("initialize", {"protocol": PROTOCOL, "config": config})
    hooks.handle("gateway_start", {})
    assert hooks._plugin is not None
    ready(hooks._plugin)
    assert hooks.handle("foresee", {"event": {"prompt": ASKED}, "ctx": CTX}) == {}
    assert asked(server) == 1
    hooks.handle("before_prompt_build", {"event": {"prompt": ASKED}, "ctx": CTX})
    assert asked(server) == 1
    hooks.close()


@pytest.mark.parametrize("prompt", [None, 3, [], {"text": "x"}])
def test_no_prompt_stops_a_host(home: Path, prompt: object, caplog: pytest.LogCaptureFixture) -> None:
    plugin = hookimpls_for(home=home, embedder="hash")
    by_pluggy(plugin)(prompt)  # type: ignore[arg-type]
    assert not caplog.records
    plugin.host_stopping(CONTEXT)


def ready(plugin: PerdurePlugin) -> None:
    assert plugin._memory is not None
    assert plugin._memory.ready(60.0)
