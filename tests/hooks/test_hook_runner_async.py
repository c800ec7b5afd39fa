"""The async twins: time-outs, cancellation, foreign errors and context variables."""

from __future__ import annotations

import asyncio
import contextvars
import threading

import pytest
from pluggy import HookimplMarker

from perdure.hooks.host import HookRunner
from perdure.hooks.spec import DEFAULT_PROJECT
from perdure.hooks.types import Recall, TurnContext

hookimpl = HookimplMarker(DEFAULT_PROJECT)
CONTEXT = TurnContext(session_id="s")


def ask(runner: HookRunner) -> tuple[Recall, ...]:
    return asyncio.run(runner.a_before_agent_start("hello", (), CONTEXT))


class Quick:
    """Answers at once."""

    @hookimpl
    def before_agent_start(self) -> Recall:
        return Recall("quick")


class Blocks:
    """Keeps the calling thread until it is let go, the first time."""

    def __init__(self) -> None:
        self.calls = 0
        self.entered = threading.Event()
        self.go = threading.Event()

    @hookimpl
    def before_agent_start(self) -> Recall:
        self.calls += 1
        self.entered.set()
        self.go.wait()
        return Recall("slow")


def test_a_late_plugin_is_left_alone_until_it_has_ended(caplog: pytest.LogCaptureFixture) -> None:
    async def play() -> None:
        blocks = Blocks()
        runner = HookRunner(timeout=0.5)
        runner.register(Quick(), "quick")
        runner.register(blocks, "slow")
        try:
            assert await runner.a_before_agent_start("1", (), CONTEXT) == (Recall("quick"),)
            assert caplog.messages == ["plugin 'slow' did not answer hook before_agent_start within 0.5 s"]
            assert blocks.entered.is_set()

            assert await runner.a_before_agent_start("2", (), CONTEXT) == (Recall("quick"),)
            assert caplog.messages[1:] == [
                "plugin 'slow' is still busy with an earlier hook before_agent_start: skipped"
            ]
            assert blocks.calls == 1
        finally:
            blocks.go.set()
        while len(await runner.a_before_agent_start("3", (), CONTEXT)) < 2:
            await asyncio.sleep(0.01)
        assert blocks.calls > 1

    asyncio.run(play())


def test_an_async_implementation_that_is_late_is_cancelled(caplog: pytest.LogCaptureFixture) -> None:
    cancelled = []

    class Sleeps:
        @hookimpl
        async def before_agent_start(self) -> Recall:
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                cancelled.append(True)
                raise
            raise AssertionError

    runner = HookRunner(timeout=0.5)
    runner.register(Sleeps(), "sleeps")

    assert ask(runner) == ()
    assert cancelled == [True]
    assert caplog.messages == ["plugin 'sleeps' did not answer hook before_agent_start within 0.5 s"]


@pytest.mark.parametrize("error", [ValueError, TimeoutError, StopIteration, asyncio.CancelledError])
@pytest.mark.parametrize("in_coroutine", [False, True])
def test_no_error_of_a_plugin_is_taken_for_one_of_the_runner(
    error: type[BaseException], in_coroutine: bool, caplog: pytest.LogCaptureFixture
) -> None:
    class Raises:
        @hookimpl
        def before_agent_start(self) -> object:
            if in_coroutine or issubclass(error, asyncio.CancelledError):
                return self._later()
            raise error

        async def _later(self) -> None:
            raise error

    runner = HookRunner(timeout=60)
    runner.register(Quick(), "good")
    runner.register(Raises(), "raises")

    assert ask(runner) == (Recall("quick"),)
    # Python turns a StopIteration that leaves a coroutine into a RuntimeError.
    name = "RuntimeError" if in_coroutine and error is StopIteration else error.__name__
    assert caplog.messages == [f"plugin 'raises' failed in hook before_agent_start: {name}"]


def test_the_host_can_cancel_a_hook(caplog: pytest.LogCaptureFixture) -> None:
    async def play() -> None:
        entered = asyncio.Event()

        class Waits:
            @hookimpl
            async def session_start(self) -> None:
                entered.set()
                await asyncio.Event().wait()

        runner = HookRunner(timeout=60)
        runner.register(Waits(), "waits")
        task = asyncio.create_task(runner.a_session_start(CONTEXT))
        await entered.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(play())
    assert caplog.messages == []


def test_plugins_in_threads_see_the_context_variables_of_the_host() -> None:
    request = contextvars.ContextVar("request", default="none")

    class Reads:
        @hookimpl
        def before_agent_start(self) -> Recall:
            seen = request.get()
            request.set("changed by the plugin")
            return Recall(f"{seen} in main thread: {threading.current_thread() is threading.main_thread()}")

    async def play() -> None:
        request.set("number 7")
        runner = HookRunner()
        runner.register(Reads())
        recalls = await runner.a_before_agent_start("hi", (), CONTEXT)
        assert recalls == (Recall("number 7 in main thread: False"),)
        assert request.get() == "number 7"

    asyncio.run(play())
