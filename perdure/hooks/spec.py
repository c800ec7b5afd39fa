"""The hooks that a host fires, as pluggy hookspecs."""

from __future__ import annotations

import pluggy

from perdure.hooks.types import Messages, Recall, TurnContext

DEFAULT_PROJECT = "perdure"
"""The pluggy project name of a host that has no manager of its own."""

HOOK_NAMES: tuple[str, ...] = (
    "host_started", "session_start", "foresee", "before_agent_start",
    "agent_end", "before_compaction", "session_end", "host_stopping",
)  # fmt: skip
"""Every hook, in the order of a host's life."""


def host_hooks(project_name: str) -> type:
    """Return the hookspecs, marked for the plugin manager of `project_name`.

    An implementation may take any subset of the parameters, in any order.
    """
    hookspec = pluggy.HookspecMarker(project_name)

    class HostHooks:
        """What a host tells its plugins, and the one thing it asks them."""

        @hookspec(historic=True)
        def host_started(self, context: TurnContext) -> None:
            """The host runs. A plugin that registers later is told so, too."""

        @hookspec
        def session_start(self, context: TurnContext) -> None:
            """A conversation begins or is taken up again."""

        @hookspec
        def foresee(self, prompt: str, context: TurnContext) -> None:
            """The model will soon see `prompt`: what it alone decides can be done meanwhile."""

        @hookspec
        def before_agent_start(self, prompt: str, messages: Messages, context: TurnContext) -> Recall | None:
            """The model is about to see `prompt`; `messages` is the history before it."""

        @hookspec
        def agent_end(self, messages: Messages, success: bool, context: TurnContext) -> None:
            """The turn is over; `messages` is the whole history with it."""

        @hookspec
        def before_compaction(self, messages: Messages, context: TurnContext) -> None:
            """The host is about to shorten the history; `messages` is all of it."""

        @hookspec
        def session_end(self, context: TurnContext) -> None:
            """The conversation ends."""

        @hookspec
        def host_stopping(self, context: TurnContext) -> None:
            """The host stops: stop threads, write what is pending, close files."""

    return HostHooks
