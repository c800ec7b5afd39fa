"""The host's side of the hooks: fire them, and survive whatever the plugins do."""

from __future__ import annotations

import asyncio
import functools
import importlib.metadata
import inspect
import logging
import threading
from collections.abc import Callable, Coroutine, Iterable, Mapping
from typing import Any, Concatenate, ParamSpec, TypeVar

from pluggy import HookImpl, PluginManager

from perdure.errors import InputError
from perdure.hooks.registry import call, implementations, register_plugin
from perdure.hooks.spec import DEFAULT_PROJECT, host_hooks
from perdure.hooks.types import Messages, Recall, TurnContext

P = ParamSpec("P")
R = TypeVar("R")

_log = logging.getLogger("perdure.hooks")


def _recalls(results: Iterable[object]) -> tuple[Recall, ...]:
    return tuple(result for result in results if isinstance(result, Recall))


def _nothing(results: Iterable[object]) -> None:
    return None


def _async(
    method: Callable[Concatenate[HookRunner, P], R], collect: Callable[[Iterable[object]], R]
) -> Callable[Concatenate[HookRunner, P], Coroutine[Any, Any, R]]:
    """Make the async twin of a hook's method: the same parameters, the same result."""
    signature = inspect.signature(method)

    @functools.wraps(method)
    async def twin(runner: HookRunner, /, *args: P.args, **kwargs: P.kwargs) -> R:
        arguments = signature.bind(runner, *args, **kwargs).arguments
        del arguments["self"]
        return collect(await runner._fire_async(method.__name__, arguments))

    twin.__name__ = f"a_{method.__name__}"
    twin.__qualname__ = f"HookRunner.{twin.__name__}"
    return twin


class HookRunner:
    """Calls the hooks of a host on its plugins, one by one.

    A plugin that raises is named in one log line of the logger "perdure.hooks", and the others are called all
    the same. Every hook has an async twin, `a_...`, that calls the plugins side by side in threads (an async
    implementation on the event loop), each for `timeout` seconds at most. A plugin that is late is left
    alone: its answer is dropped, and that hook of it is skipped until the late call has ended, so that a
    plugin that hangs holds one thread and not all of them.

    Attributes:
        manager: the pluggy manager, for what this class does not do (block a name, unregister, trace).
    """

    def __init__(self, project_name: str = DEFAULT_PROJECT, *, timeout: float = 1.0) -> None:
        """Create a runner without plugins.

        Args:
            project_name: the project name with which the plugins' `HookimplMarker` was made.
            timeout: seconds for which an async hook waits for a plugin.

        Raises:
            InputError: the timeout is not above 0.
        """
        if not timeout > 0:
            raise InputError(f"timeout is {timeout!r}; it must be above 0 seconds; the default is 1.0")
        self.manager = PluginManager(project_name)
        self.manager.add_hookspecs(host_hooks(project_name))
        self._timeout = timeout
        self._started: list[TurnContext] = []
        self._late: dict[tuple[str, str], threading.Event] = {}

    def register(self, plugin: object, name: str | None = None) -> str | None:
        """Register a plugin, and notify it that the host has started, if it has.

        Args:
            plugin: a module or an object with hook implementations.
            name: its name in log lines; None for its `__name__`, or its id if it has none.

        Returns:
            The name it is registered under; None if the manager blocks that name.

        Raises:
            ExtensionError: it is already registered, or its implementations do not match the hooks.
        """
        registered = register_plugin(self.manager, plugin, name)
        for impl in implementations(self.manager, "host_started", plugin):
            for context in self._started:
                self._call(impl, "host_started", {"context": context})
        return registered

    def load_entry_points(self, group: str) -> tuple[str, ...]:
        """Register every plugin that installed distributions offer in an entry-point group.

        One that cannot be imported or registered is named in one log line and skipped.

        Args:
            group: the entry-point group.

        Returns:
            The names registered by this call.
        """
        loaded = []
        for entry in importlib.metadata.entry_points(group=group):
            try:
                registered = self.register(entry.load(), entry.name)
            except (Exception, SystemExit) as error:  # noqa: BLE001 - foreign code at import may raise anything
                _log.warning("plugin %r could not be loaded: %s", entry.name, type(error).__name__)
            else:
                loaded += [registered] if registered else []
        return tuple(loaded)

    def host_started(self, context: TurnContext) -> None:
        """Tell the plugins that the host runs, also those that register before it stops."""
        self._fire("host_started", {"context": context})

    def session_start(self, context: TurnContext) -> None:
        """Tell the plugins that a conversation begins."""
        self._fire("session_start", {"context": context})

    def foresee(self, prompt: str, context: TurnContext) -> None:
        """Tell the plugins about a prompt before `before_agent_start` asks for its memories."""
        self._fire("foresee", {"prompt": prompt, "context": context})

    def before_agent_start(self, prompt: str, messages: Messages, context: TurnContext) -> tuple[Recall, ...]:
        """Ask the plugins what the model should see with `prompt`.

        Args:
            prompt: the newest user message.
            messages: the history before it.
            context: what the host knows about the turn.

        Returns:
            The recalls, in pluggy's order: tryfirst ones first, then the latest registered first.
        """
        arguments = {"prompt": prompt, "messages": messages, "context": context}
        return _recalls(self._fire("before_agent_start", arguments))

    def agent_end(self, messages: Messages, success: bool, context: TurnContext) -> None:
        """Tell the plugins that a turn is over; `messages` is the whole history with it."""
        self._fire("agent_end", {"messages": messages, "success": success, "context": context})

    def before_compaction(self, messages: Messages, context: TurnContext) -> None:
        """Tell the plugins that the history is about to be shortened; `messages` is all of it."""
        self._fire("before_compaction", {"messages": messages, "context": context})

    def session_end(self, context: TurnContext) -> None:
        """Tell the plugins that a conversation ends."""
        self._fire("session_end", {"context": context})

    def host_stopping(self, context: TurnContext) -> None:
        """Tell the plugins that the host stops."""
        self._fire("host_stopping", {"context": context})

    a_host_started = _async(host_started, _nothing)
    a_session_start = _async(session_start, _nothing)
    a_foresee = _async(foresee, _nothing)
    a_before_agent_start = _async(before_agent_start, _recalls)
    a_agent_end = _async(agent_end, _nothing)
    a_before_compaction = _async(before_compaction, _nothing)
    a_session_end = _async(session_end, _nothing)
    a_host_stopping = _async(host_stopping, _nothing)

    def _begin(self, hook: str, arguments: Mapping[str, Any]) -> list[HookImpl]:
        # pluggy's own history would let an exception out of `register`, so it is kept here.
        if hook == "host_started":
            self._started.append(arguments["context"])
        elif hook == "host_stopping":
            self._started.clear()
        return implementations(self.manager, hook)

    def _fire(self, hook: str, arguments: Mapping[str, Any]) -> list[object]:
        return [self._call(impl, hook, arguments) for impl in self._begin(hook, arguments)]

    def _call(self, impl: HookImpl, hook: str, arguments: Mapping[str, Any]) -> object:
        result = self._guarded(impl, hook, arguments)
        if inspect.iscoroutine(result):
            result.close()
            _log.warning("plugin %r has an async hook %s, which a synchronous host cannot run", impl.plugin_name, hook)
            return None
        return result

    def _guarded(self, impl: HookImpl, hook: str, arguments: Mapping[str, Any]) -> object:
        try:
            return call(impl, arguments)
        except Exception as error:  # noqa: BLE001 - the hook boundary: the host must survive any plugin
            _log_failure(impl, hook, error)
            return None

    async def _fire_async(self, hook: str, arguments: Mapping[str, Any]) -> list[object]:
        attempts = [self._attempt(impl, hook, arguments) for impl in self._begin(hook, arguments)]
        return list(await asyncio.gather(*attempts))

    async def _attempt(self, impl: HookImpl, hook: str, arguments: Mapping[str, Any]) -> object:
        key = (impl.plugin_name, hook)
        if key in self._late and not self._late[key].is_set():
            _log.warning("plugin %r is still busy with an earlier hook %s: skipped", *key)
            return None
        idle = threading.Event()
        idle.set()
        try:
            return await asyncio.wait_for(self._settle(impl, hook, arguments, idle), self._timeout)
        except TimeoutError:
            self._late[key] = idle
            _log.warning("plugin %r did not answer hook %s within %g s", *key, self._timeout)
            return None

    async def _settle(self, impl: HookImpl, hook: str, arguments: Mapping[str, Any], idle: threading.Event) -> object:
        def work() -> object:
            idle.clear()
            try:
                return self._guarded(impl, hook, arguments)
            finally:
                idle.set()

        result = await asyncio.to_thread(work)
        if not inspect.isawaitable(result):
            return result
        try:
            return await result
        except (Exception, asyncio.CancelledError) as error:
            # The host's own cancellation goes on; one that the plugin let out is a failure of the plugin.
            task = asyncio.current_task()
            if isinstance(error, asyncio.CancelledError) and (task is None or task.cancelling()):
                raise
            _log_failure(impl, hook, error)
            return None


def _log_failure(impl: HookImpl, hook: str, error: BaseException) -> None:
    # The type alone: an error's message may quote what a person said.
    _log.warning("plugin %r failed in hook %s: %s", impl.plugin_name, hook, type(error).__name__)
