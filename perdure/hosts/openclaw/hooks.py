"""What OpenClaw's hooks and tools come to here."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any

from perdure.hooks.types import Messages, Placement, Recall, TurnContext
from perdure.hosts.openclaw.mapping import HOST, data_home, messages_of, owner_asks, prompt_of, turn_context, work_of
from perdure.hosts.openclaw.server import INTERNAL_ERROR, INVALID_PARAMS, INVALID_REQUEST, METHOD_NOT_FOUND, RpcError
from perdure.llm import Lent
from perdure.plugin.plugin import PerdurePlugin, hookimpls_for
from perdure.recent import Recent

PROTOCOL = 2
SESSIONS = 512
"""Conversations whose prompt is remembered, those that went on last."""
OWN_SETTINGS = ("python", "home", "recallTimeoutMs", "captureTimeoutMs")
"""Settings of the plugin's config that are for the JavaScript entry, or for where the store is."""
FIELDS = {Placement.HEAD: "prependContext", Placement.TAIL: "appendContext", Placement.SYSTEM: "appendSystemContext"}
"""Where OpenClaw puts the block."""
HOST_CONTEXT = TurnContext(host=HOST)
NOTHING = Recall("")

Params = Mapping[str, Any]
Handler = Callable[[PerdurePlugin, Params], Any]


class OpenClawHooks:
    """Hands what comes through the pipe to perdure's plugin. Usable from any thread."""

    def __init__(self, environ: Mapping[str, str] = os.environ, own_model: Lent | None = None) -> None:
        """Prepare; `own_model` asks the host's model, where the host lends it."""
        self._own_model = own_model
        self._environ = environ
        self._prompts: Recent[str, str] = Recent(SESSIONS)
        self._plugin: PerdurePlugin | None = None
        self._methods: Mapping[str, Handler] = {
            "ping": lambda plugin, params: "pong",
            "gateway_start": lambda plugin, params: plugin.host_started(HOST_CONTEXT),
            "foresee": _foresee,
            "before_prompt_build": self._before_prompt_build,
            "agent_end": _agent_end,
            "before_compaction": _before_compaction,
            "before_reset": _before_compaction,
            "session_start": lambda plugin, params: plugin.session_start(turn_context(_object(params, "ctx"))),
            "session_end": lambda plugin, params: plugin.session_end(turn_context(_object(params, "ctx"))),
            "tool": self._tool,
        }

    def handle(self, method: str, params: Params) -> Any:
        """Do what a request asks and return its result, as JSON values."""
        if method == "initialize":
            return self._initialize(params)
        handler = self._methods.get(method)
        if handler is None:
            raise RpcError(METHOD_NOT_FOUND, f"unknown method {method[:40]!r}")
        if self._plugin is None:
            raise RpcError(INVALID_REQUEST, "the first request must be initialize")
        return handler(self._plugin, params)

    def close(self) -> None:
        """Finish what was begun and close the store."""
        if self._plugin is not None:
            self._plugin.host_stopping(HOST_CONTEXT)

    def _initialize(self, params: Params) -> Any:
        if params.get("protocol") != PROTOCOL:
            raise RpcError(
                INVALID_PARAMS, f"this perdure uses protocol {PROTOCOL}; run `perdure openclaw install` again"
            )
        if self._plugin is not None:
            raise RpcError(INVALID_REQUEST, "initialize must be sent once")
        config = _object(params, "config")
        settings = {key: value for key, value in config.items() if key not in OWN_SETTINGS}
        lent = {HOST: self._own_model} if self._own_model and params.get("lends") is True else {}
        self._plugin = hookimpls_for(config=settings, home=data_home(config, self._environ), lent=lent)
        return {"protocol": PROTOCOL, "pid": os.getpid()}

    def _before_prompt_build(self, plugin: PerdurePlugin, params: Params) -> Any:
        context, prompt = _asking(_object(params, "ctx")), prompt_of(_object(params, "event"))
        self._prompts.put(_key(context), prompt)
        found = plugin.before_agent_start(prompt, (), context) or NOTHING
        parts = {FIELDS[found.placement]: found.for_message, FIELDS[Placement.SYSTEM]: found.for_system}
        return {field: text for field, text in parts.items() if text}

    def _tool(self, plugin: PerdurePlugin, params: Params) -> Any:
        name, context = params.get("name"), _asking(_object(params, "ctx"))
        if not isinstance(name, str):
            raise RpcError(INVALID_PARAMS, "name must be a string")
        said = self._prompts.get(_key(context)) or ""
        result = plugin.call_tool(name, _object(params, "arguments"), context, said)
        return {"content": [{"type": "text", "text": result.text}], "details": result.details}


def _foresee(plugin: PerdurePlugin, params: Params) -> Any:
    plugin.foresee(prompt_of(_object(params, "event")), _asking(_object(params, "ctx")))
    return {}


def _agent_end(plugin: PerdurePlugin, params: Params) -> Any:
    went_well, ctx = _object(params, "event").get("success") is True, _object(params, "ctx")
    messages = messages_of(params.get("messages"), ctx)
    if went_well:
        _note_work(plugin, params, ctx)
    return _kept(plugin.agent_end(messages, went_well, turn_context(ctx)), messages)


def _before_compaction(plugin: PerdurePlugin, params: Params) -> Any:
    ctx = _object(params, "ctx")
    messages = messages_of(params.get("messages"), ctx)
    _note_work(plugin, params, ctx)
    return _kept(plugin.before_compaction(messages, turn_context(ctx)), messages)


def _note_work(plugin: PerdurePlugin, params: Params, ctx: Params) -> None:
    """Keep what was done by tools, told beside what was said: no person's words count less for it."""
    if work := work_of(params.get("messages"), ctx):
        plugin.did(lambda: work, turn_context(ctx))


def _kept(taken: int | None, messages: Messages) -> Any:
    # The entry leaves out what was answered with a result, so that only a refusal brings it again.
    if taken is None:
        raise RpcError(INTERNAL_ERROR, "the turn could not be kept; send it again with the next one")
    return {"messages": len(messages)}


def _asking(ctx: Mapping[str, Any]) -> TurnContext:
    """Return who asks. Others than the owner get no agent's memories: an empty agent id closes them all."""
    return turn_context(ctx if owner_asks(ctx) else {**ctx, "agentId": ""})


def _key(context: TurnContext) -> str:
    return f"{context.agent_id}\0{context.session_id}"


def _object(params: Params, name: str) -> Mapping[str, Any]:
    value = params.get(name, {})
    if not isinstance(value, dict):
        raise RpcError(INVALID_PARAMS, f"{name} must be an object")
    return value
