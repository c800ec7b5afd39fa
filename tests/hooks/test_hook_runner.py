"""The runner: isolation, history and order, in both ways of firing."""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pluggy import HookimplMarker, PluginManager

from perdure.errors import ExtensionError, InputError
from perdure.hooks.host import HookRunner
from perdure.hooks.spec import DEFAULT_PROJECT, HOOK_NAMES, host_hooks
from perdure.hooks.types import Messages, Recall, TurnContext

hookimpl = HookimplMarker(DEFAULT_PROJECT)
CONTEXT = TurnContext(session_id="s")
SECRET = "the cat is called Schnurri"

behaviours = st.sampled_from(["recall", "nothing", "raise", "wrong type", "async"])


class Recorder:
    """Writes down every hook it gets."""

    def __init__(self) -> None:
        self.seen: list[tuple[object, ...]] = []

    @hookimpl
    def host_started(self, context: TurnContext) -> None:
        self.seen.append(("host_started", context))

    @hookimpl
    def session_start(self, context: TurnContext) -> None:
        self.seen.append(("session_start", context))

    @hookimpl
    def foresee(self, prompt: str, context: TurnContext) -> None:
        self.seen.append(("foresee", prompt, context))

    @hookimpl
    def before_agent_start(self, prompt: str, messages: Messages, context: TurnContext) -> None:
        self.seen.append(("before_agent_start", prompt, messages, context))

    @hookimpl
    def agent_end(self, messages: Messages, success: bool, context: TurnContext) -> None:
        self.seen.append(("agent_end", messages, success, context))

    @hookimpl
    def before_compaction(self, messages: Messages, context: TurnContext) -> None:
        self.seen.append(("before_compaction", messages, context))

    @hookimpl
    def session_end(self, context: TurnContext) -> None:
        self.seen.append(("session_end", context))

    @hookimpl
    def host_stopping(self, context: TurnContext) -> None:
        self.seen.append(("host_stopping", context))


class Answers:
    """Answers a prompt in one of several ways."""

    def __init__(self, behaviour: str, block: str = "block") -> None:
        self.behaviour = behaviour
        self.recall = Recall(block)

    @hookimpl
    def before_agent_start(self, prompt: str) -> object:
        if self.behaviour == "raise":
            raise ValueError(prompt)
        if self.behaviour == "async":
            return self._later()
        return {"recall": self.recall, "wrong type": "block"}.get(self.behaviour)

    async def _later(self) -> Recall:
        await asyncio.sleep(0)
        return self.recall


class Lines(logging.Handler):
    """Keeps what the runner logs."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        assert record.exc_info is None
        self.lines.append(record.getMessage())

    def __enter__(self) -> list[str]:
        logging.getLogger("perdure.hooks").addHandler(self)
        return self.lines

    def __exit__(self, *_: object) -> None:
        logging.getLogger("perdure.hooks").removeHandler(self)


@pytest.fixture
def lines() -> Iterator[list[str]]:
    with Lines() as kept:
        yield kept


def ask(runner: HookRunner, prompt: str = "hello") -> tuple[Recall, ...]:
    return runner.before_agent_start(prompt, (), CONTEXT)


def ask_async(runner: HookRunner, prompt: str = "hello") -> tuple[Recall, ...]:
    return asyncio.run(runner.a_before_agent_start(prompt, (), CONTEXT))


both_ways = pytest.mark.parametrize("ask", [ask, ask_async])
Ask = Callable[..., tuple[Recall, ...]]


def test_the_specs_name_every_hook_and_nothing_else() -> None:
    specs = host_hooks("some-host")

    assert tuple(name for name in vars(specs) if not name.startswith("_")) == HOOK_NAMES


def test_every_hook_has_a_sync_and_an_async_method_with_the_parameters_of_its_spec() -> None:
    specs = host_hooks("some-host")
    for name in HOOK_NAMES:
        expected = list(inspect.signature(getattr(specs, name)).parameters)
        assert list(inspect.signature(getattr(HookRunner, name)).parameters) == expected
        twin = getattr(HookRunner, f"a_{name}")
        assert list(inspect.signature(twin).parameters) == expected
        assert inspect.iscoroutinefunction(twin)


def test_a_plugin_for_all_hooks_leaves_nothing_pending() -> None:
    manager = PluginManager("some-host")
    manager.add_hookspecs(host_hooks("some-host"))
    runner = HookRunner()
    runner.register(Recorder(), "recorder")

    manager.check_pending()
    runner.manager.check_pending()
    assert runner.manager.list_name_plugin()[0][0] == "recorder"


def test_every_hook_arrives_with_what_the_host_gave() -> None:
    runner, recorder = HookRunner(), Recorder()
    runner.register(recorder)
    messages = ({"role": "user", "content": "hi"},)

    runner.host_started(CONTEXT)
    runner.session_start(CONTEXT)
    runner.foresee("hi", CONTEXT)
    ask(runner, "hi")
    runner.agent_end(messages, False, CONTEXT)
    runner.before_compaction(messages, CONTEXT)
    runner.session_end(CONTEXT)
    runner.host_stopping(CONTEXT)

    by_hand = list(recorder.seen)
    assert by_hand == [
        ("host_started", CONTEXT),
        ("session_start", CONTEXT),
        ("foresee", "hi", CONTEXT),
        ("before_agent_start", "hi", (), CONTEXT),
        ("agent_end", messages, False, CONTEXT),
        ("before_compaction", messages, CONTEXT),
        ("session_end", CONTEXT),
        ("host_stopping", CONTEXT),
    ]

    async def play() -> None:
        await runner.a_host_started(CONTEXT)
        await runner.a_session_start(context=CONTEXT)
        await runner.a_foresee("hi", context=CONTEXT)
        await runner.a_before_agent_start("hi", (), CONTEXT)
        await runner.a_agent_end(messages, success=False, context=CONTEXT)
        await runner.a_before_compaction(messages, CONTEXT)
        await runner.a_session_end(CONTEXT)
        await runner.a_host_stopping(CONTEXT)

    recorder.seen.clear()
    asyncio.run(play())
    assert recorder.seen == by_hand


@both_ways
def test_a_plugin_that_raises_is_named_once_and_disturbs_nobody(ask: Ask, lines: list[str]) -> None:
    runner = HookRunner()
    good = [Answers("recall", "first"), Answers("recall", "last")]
    runner.register(good[0], "first")
    runner.register(Answers("raise"), "broken")
    runner.register(good[1], "last")

    assert [recall.block for recall in ask(runner, SECRET)] == ["last", "first"]
    assert lines == ["plugin 'broken' failed in hook before_agent_start: ValueError"]


@given(st.lists(behaviours, max_size=6))
@settings(max_examples=100, deadline=None)
def test_any_mix_of_plugins_gives_the_answers_of_the_good_ones(mix: list[str]) -> None:
    runner = HookRunner()
    for number, behaviour in enumerate(mix):
        runner.register(Answers(behaviour, str(number)), f"plugin-{number}")

    for ask_once, answering in ((ask, {"recall"}), (ask_async, {"recall", "async"})):
        with Lines() as lines:
            blocks = [recall.block for recall in ask_once(runner, SECRET)]
        assert blocks == [str(i) for i, kind in reversed(list(enumerate(mix))) if kind in answering]
        failing = {"raise", "async"} - answering
        assert sum(kind in failing for kind in mix) == len(lines)
        assert SECRET not in "".join(lines)


@given(st.lists(st.sampled_from(["plain", "tryfirst", "trylast"]), max_size=6))
@settings(max_examples=100, deadline=None)
def test_the_order_is_that_of_pluggy(orders: list[str]) -> None:
    runner = HookRunner(timeout=60.0)  # the order is asked for, not the pace of a busy machine
    manager = PluginManager(DEFAULT_PROJECT)
    manager.add_hookspecs(host_hooks(DEFAULT_PROJECT))
    for number, order in enumerate(orders):

        class Ordered:
            recall = Recall(str(number))

            @hookimpl(tryfirst=order == "tryfirst", trylast=order == "trylast")
            def before_agent_start(self) -> Recall:
                return self.recall

        plugin = Ordered()
        manager.register(plugin)
        runner.register(plugin)

    expected = manager.hook.before_agent_start(prompt="hello", messages=(), context=CONTEXT)
    assert list(ask(runner)) == expected
    assert list(ask_async(runner)) == expected


def test_who_registers_late_is_told_that_the_host_has_started() -> None:
    runner, late, too_late = HookRunner(), Recorder(), Recorder()
    runner.host_started(CONTEXT)
    runner.session_start(CONTEXT)

    runner.register(late)
    assert late.seen == [("host_started", CONTEXT)]

    runner.host_stopping(CONTEXT)
    runner.register(too_late)
    assert too_late.seen == []


def test_a_late_plugin_that_fails_at_the_start_is_still_registered(lines: list[str]) -> None:
    class FailsAtStart(Answers):
        @hookimpl
        def host_started(self) -> None:
            raise OSError

    runner = HookRunner()
    asyncio.run(runner.a_host_started(CONTEXT))

    assert runner.register(FailsAtStart("recall"), "late") == "late"
    assert len(ask(runner)) == 1
    assert lines == ["plugin 'late' failed in hook host_started: OSError"]


def test_an_implementation_for_another_project_is_not_called() -> None:
    class Foreign:
        called = False

        @HookimplMarker("another")
        def before_agent_start(self) -> Recall:
            self.called = True
            return Recall("foreign")

    foreign = Foreign()
    ours, theirs = HookRunner(), HookRunner("another")
    ours.register(foreign)
    theirs.register(foreign)

    assert ask(ours) == ()
    assert not foreign.called
    assert ask(theirs) == (Recall("foreign"),)


def test_what_does_not_fit_the_hooks_is_refused_whole() -> None:
    class Misspelt(Recorder):
        @hookimpl
        def befor_agent_start(self) -> None:
            raise AssertionError

    class WrongParameter(Recorder):
        @hookimpl
        def session_end(self, session: str) -> None:  # type: ignore[override]
            raise AssertionError

    class Wrapper(Recorder):
        @hookimpl(wrapper=True)
        def agent_end(self) -> Iterator[None]:  # type: ignore[override]
            yield

    runner = HookRunner()
    refused: list[tuple[Recorder, str]] = [
        (Misspelt(), "no hook befor_agent_start; known hooks: .*host_started"),
        (WrongParameter(), "session"),
        (Wrapper(), "its agent_end is a wrapper"),
    ]
    for plugin, reason in refused:
        with pytest.raises(ExtensionError, match=reason):
            runner.register(plugin, "refused")
        ask(runner)
        runner.session_start(CONTEXT)
        assert plugin.seen == []
        assert not runner.manager.has_plugin("refused")


def test_a_name_and_a_plugin_register_once() -> None:
    runner, recorder = HookRunner(), Recorder()
    runner.register(recorder, "one")

    with pytest.raises(ExtensionError, match="'one' is already registered"):
        runner.register(Recorder(), "one")
    with pytest.raises(ExtensionError, match="as 'one'"):
        runner.register(recorder, "two")
    with pytest.raises(ExtensionError, match="is None"):
        runner.register(None, "three")
    runner.session_start(CONTEXT)
    assert len(recorder.seen) == 1


def test_a_blocked_name_is_not_registered() -> None:
    runner, recorder = HookRunner(), Recorder()
    runner.manager.set_blocked("unwanted")

    assert runner.register(recorder, "unwanted") is None
    runner.session_start(CONTEXT)
    assert recorder.seen == []


def test_entry_points_are_loaded_one_by_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lines: list[str]) -> None:
    info = tmp_path / "hosted-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: hosted\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(
        "[hosted.plugins]\nbroken = hosted_broken\ngood = hosted_good\nagain = hosted_good\n"
    )
    (tmp_path / "hosted_broken.py").write_text("raise SystemExit(1)")
    (tmp_path / "hosted_good.py").write_text(
        "import pluggy\nfrom perdure.hooks.types import Recall\n"
        "@pluggy.HookimplMarker('perdure')\ndef before_agent_start(prompt):\n    return Recall(prompt)\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    runner = HookRunner()

    assert runner.load_entry_points("hosted.plugins") == ("good",)
    assert runner.load_entry_points("a.group.that.nobody.offers") == ()
    assert ask(runner, "hi") == (Recall("hi"),)
    assert lines == [
        "plugin 'broken' could not be loaded: SystemExit",
        "plugin 'again' could not be loaded: ExtensionError",
    ]


def test_a_coroutine_is_awaited_by_the_async_runner_and_closed_by_the_other(lines: list[str]) -> None:
    runner = HookRunner()
    runner.register(Answers("async"), "later")

    assert ask_async(runner) == (Recall("block"),)
    assert lines == []
    assert ask(runner) == ()
    assert lines == ["plugin 'later' has an async hook before_agent_start, which a synchronous host cannot run"]


@pytest.mark.parametrize("timeout", [0.0, -1.0, float("nan")])
def test_a_timeout_that_cannot_be_is_refused(timeout: float) -> None:
    with pytest.raises(InputError, match="timeout is"):
        HookRunner(timeout=timeout)
