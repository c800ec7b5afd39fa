"""What OpenClaw's hooks and tools come to here."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any

from perdure.hooks.host import HookRunner
from perdure.hooks.types import Placement, TurnContext
from perdure.hosts.openclaw.mapping import HOST, data_home, messages_of, prompt_of, turn_context
from perdure.hosts.openclaw.rpc import HISTORY_UNKNOWN, INVALID_PARAMS, INVALID_REQUEST, METHOD_NOT_FOUND, RpcError
from perdure.plugin.plugin import UNAVAILABLE, PerdurePlugin, hookimpls_for
from perdure.recent import Recent

PROTOCOL = 1
SESSIONS = 512
"""Conversations whose prompt and place in the history are remembered, those that went on last."""
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
        self._histories: Recent[str, str] = Recent(SESSIONS)
        self._runner = HookRunner()
        self._plugin: PerdurePlugin | None = None
        self._methods: Mapping[str, Handler] = {
            "ping": lambda params: "pong",
            "gateway_start": lambda params: self._runner.host_started(HOST_CONTEXT),
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

    def _before_prompt_build(self, params: Params) -> Any:
        context, prompt = _context(params), prompt_of(_object(params, "event"))
        self._prompts.put(_key(context), prompt)
        recalls = self._runner.before_agent_start(prompt, (), context)
        found = next((recall for recall in recalls if recall.block), None)
        return {FIELDS[found.placement]: found.block} if found else {}

    def _agent_end(self, params: Params) -> Any:
        event, context = _object(params, "event"), _context(params)
        messages = self._resumed(params, context)
        self._runner.agent_end(messages, event.get("success") is True, context)
        return {"messages": len(messages)}

    def _before_compaction(self, params: Params) -> Any:
        context = _context(params)
        messages = self._resumed(params, context)
        self._runner.before_compaction(messages, context)
        return {"messages": len(messages)}

    def _tool(self, params: Params) -> Any:
        name, ctx = params.get("name"), _object(params, "ctx")
        if not isinstance(name, str):
            raise RpcError(INVALID_PARAMS, "name must be a string")
        context = turn_context(ctx)
        # Only the owner's own words count as the user's wish.
        said = self._prompts.get(_key(context)) if ctx.get("senderIsOwner") is not False else None
        plugin = self._plugin
        result = plugin.call_tool(name, _object(params, "arguments"), context, said or "") if plugin else UNAVAILABLE
        return {"content": [{"type": "text", "text": result.text}], "details": result.details}

    def _resumed(self, params: Params, context: TurnContext) -> Any:
        """Return the messages that are sent; what was sent before them must be known here."""
        history = _object(params, "history")
        before, after = history.get("before", ""), history.get("after", "")
        if not isinstance(before, str) or not isinstance(after, str):
            raise RpcError(INVALID_PARAMS, "history.before and history.after must be strings")
        if before and self._histories.get(_key(context)) != before:
            raise RpcError(HISTORY_UNKNOWN, "the history before these messages is not known here; send all of it")
        self._histories.put(_key(context), after)
        return messages_of(history.get("messages"))


def _key(context: TurnContext) -> str:
    return f"{context.agent_id}\0{context.session_id}"


def _context(params: Params) -> TurnContext:
    return turn_context(_object(params, "ctx"))


def _object(params: Params, name: str) -> Mapping[str, Any]:
    value = params.get(name, {})
    if not isinstance(value, dict):
        raise RpcError(INVALID_PARAMS, f"{name} must be an object")
    return value
