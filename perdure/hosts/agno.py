"""perdure in an Agno agent."""

from __future__ import annotations

from collections.abc import Callable
from inspect import iscoroutinefunction
from typing import Any

from perdure.extras import need
from perdure.hooks.types import Recall
from perdure.hosts.carrier import HostMemory, exchange

need("agno.agent", "agno")

from agno.agent import Agent  # noqa: E402 - after the check that it is there
from agno.run.agent import RunInput, RunOutput  # noqa: E402
from agno.run.base import RunContext  # noqa: E402
from agno.utils.agent import aexecute_instructions, execute_instructions  # noqa: E402


class PerdureMemory(HostMemory):
    """Recalls before a run and captures after it. The block is in the instructions, which Agno rebuilds for each run.

    Example:
        agent = PerdureMemory().attach(Agent(model=...))
    """

    _host = "agno"

    def attach(self, agent: Agent) -> Agent:
        """Add memory to an agent, after its own instructions and hooks, and return it."""
        agent.pre_hooks = [*(agent.pre_hooks or ()), self.recall]
        agent.post_hooks = [*(agent.post_hooks or ()), self.capture]
        agent.instructions = self._instructions(agent.instructions)
        return agent

    def recall(self, run_input: RunInput, run_context: RunContext) -> None:
        """Recall memories for the user's message; a pre-run hook."""
        self._before(run_input.input_content_string(), run_context)

    def capture(self, run_output: RunOutput, run_context: RunContext) -> None:
        """Capture what the user said; a post-run hook."""
        asked = run_output.input.input_content_string() if run_output.input else ""
        messages = exchange(asked, str(run_output.content or ""), own=not run_output.tools)
        self._carrier.after(messages, run_context.session_id, run_context.user_id)

    def _before(self, asked: str, run: RunContext) -> Recall:
        return self._carrier.before(asked, run.session_id, run.user_id, turn=run.run_id)

    def _instructions(self, theirs: Any) -> Callable[..., Any]:
        """Return instructions for each run: those that were there, a function perhaps, and the block behind them."""

        def behind(given: Any, run_context: RunContext) -> list[str]:
            found = self._before("", run_context)
            blocks = filter(None, (found.for_system, found.for_message))
            return [*([given] if isinstance(given, str) else given or ()), *blocks]

        def instructions(agent: Agent, run_context: RunContext, session_state: dict[str, Any]) -> list[str]:
            given = (
                execute_instructions(theirs, agent, None, session_state, run_context) if callable(theirs) else theirs
            )
            return behind(given, run_context)

        async def a_instructions(agent: Agent, run_context: RunContext, session_state: dict[str, Any]) -> list[str]:
            given = await aexecute_instructions(theirs, agent, None, session_state, run_context)
            return behind(given, run_context)

        return a_instructions if iscoroutinefunction(theirs) else instructions
