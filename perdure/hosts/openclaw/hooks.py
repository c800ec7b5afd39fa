"""What OpenClaw's hooks and tools come to here."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any

from perdure.hooks.host import HookRunner
from perdure.hooks.types import Placement, TurnContext
from perdure.hosts.openclaw.mapping import HOST, data_home, messages_of, owner_asks, prompt_of, turn_context
from perdure.hosts.openclaw.rpc import INVALID_PARAMS, INVALID_REQUEST, METHOD_NOT_FOUND, RpcError
from perdure.plugin.plugin import UNAVAILABLE, PerdurePlugin, hookimpls_for
from perdure.recent import Recent

PROTOCOL = 2
SESSIONS = 512
"""Conversations whose prompt is remembered, those that went on last."""
OWN_SETTINGS = ("python", "home", "recallTimeoutMs", "captureTimeoutMs")
"""Settings of the plugin's config that are for the JavaScript entry, or for where the store is."""
FIELDS = {Placement.HEAD: "prependContext", Placement.TAIL: "appendContext", Placement.SYSTEM: "appendSystemContext"}
"""Where OpenClaw puts the block."""
HOST_CONTEXT = TurnContext(host=HOST)

Params = Mapping[str, Any]
Handler = Callable[[Params], Any]


class OpenClawHooks:
    """The host's side of perdure's hooks, fired by what comes through the pipe. Usable from any thread."""

    def __init__(self, environ: Mapping[str, str] = os.environ) -> None:
        self._environ = environ
        self._prompts: Recent[str, str] = Recent(SESSIONS)
        self._runner = HookRunner()
        self._plugin: PerdurePlugin | None = None
        self._methods: Mapping[str, Handler] = {
            "ping": lambda params: "pong",
            "gateway_start": lambda params: self._runner.host_started(HOST_CONTEXT),
            "foresee": self._foresee,
            "before_prompt_build": self._before_prompt_build,
            "agent_end": self._agent_end,
            "before_compaction": self._before_compaction,
            "before_reset": self._before_compaction,
            "session_start": lambda params: self._runner.session_start(_context(params)),
            "session_end": lambda params: self._runner.session_end(_context(params)),
            "tool": self._tool,
        }

    def handle(self, method: str, params: Params) -> Any:
        """Do what a request asks and return its result, as JSON values.

        Raises:
            RpcError: it cannot be done.
        """
        if method == "initialize":
            return self._initialize(params)
        handler = self._methods.get(method)
        if handler is None:
            raise RpcError(METHOD_NOT_FOUND, f"there is no method {method[:40]!r}")
        if self._plugin is None:
            raise RpcError(INVALID_REQUEST, "the first request must be initialize")
        return handler(params)

    def close(self) -> None:
        """Finish what was begun and close the store."""
        self._runner.host_stopping(HOST_CONTEXT)

    def _initialize(self, params: Params) -> Any:
        if params.get("protocol") != PROTOCOL:
            raise RpcError(
                INVALID_PARAMS,
                f"this perdure speaks protocol {PROTOCOL}; run `perdure openclaw install` again",
            )
        if self._plugin is not None:
            raise RpcError(INVALID_REQUEST, "initialize comes once")
        config = _object(params, "config")
        settings = {key: value for key, value in config.items() if key not in OWN_SETTINGS}
        self._plugin = hookimpls_for(config=settings, home=data_home(config, self._environ))
        self._runner.register(self._plugin)
        return {"protocol": PROTOCOL, "pid": os.getpid()}

    def _foresee(self, params: Params) -> Any:
        if self._plugin:
            self._plugin.foresee(prompt_of(_object(params, "event")), _asking(_object(params, "ctx")))
        return {}

    def _before_prompt_build(self, params: Params) -> Any:
        context, prompt = _asking(_object(params, "ctx")), prompt_of(_object(params, "event"))
        self._prompts.put(_key(context), prompt)
        recalls = self._runner.before_agent_start(prompt, (), context)
        found = next((recall for recall in recalls if recall.block), None)
        return {FIELDS[found.placement]: found.block} if found else {}

    def _agent_end(self, params: Params) -> Any:
        event, ctx = _object(params, "event"), _object(params, "ctx")
        messages = messages_of(params.get("messages"), ctx)
        self._runner.agent_end(messages, event.get("success") is True, turn_context(ctx))
        return {"messages": len(messages)}

    def _before_compaction(self, params: Params) -> Any:
        ctx = _object(params, "ctx")
        messages = messages_of(params.get("messages"), ctx)
        self._runner.before_compaction(messages, turn_context(ctx))
        return {"messages": len(messages)}

    def _tool(self, params: Params) -> Any:
        name, ctx = params.get("name"), _object(params, "ctx")
        context = _asking(ctx)
        if not isinstance(name, str):
            raise RpcError(INVALID_PARAMS, "name must be a string")
        # Only the owner's own words count as the user's wish.
        said = self._prompts.get(_key(context)) if ctx.get("senderIsOwner") is not False else None
        plugin = self._plugin
        result = plugin.call_tool(name, _object(params, "arguments"), context, said or "") if plugin else UNAVAILABLE
        return {"content": [{"type": "text", "text": result.text}], "details": result.details}


def _asking(ctx: Mapping[str, Any]) -> TurnContext:
    """Return who asks. Others than the owner get no agent's memories: an empty agent id closes them all."""
    return turn_context(ctx if owner_asks(ctx) else {**ctx, "agentId": ""})


def _key(context: TurnContext) -> str:
    return f"{context.agent_id}\0{context.session_id}"


def _context(params: Params) -> TurnContext:
    return turn_context(_object(params, "ctx"))


def _object(params: Params, name: str) -> Mapping[str, Any]:
    value = params.get(name, {})
    if not isinstance(value, dict):
        raise RpcError(INVALID_PARAMS, f"{name} must be an object")
    return value
