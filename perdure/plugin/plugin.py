"""The pluggy plugin: the hooks of a host, answered by a store that is opened when it is first needed.

Turns of a host whose store cannot be opened are acknowledged in the inbox all the same, and captured when it can be.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Self, TypeVar

import pluggy

from perdure.api.memory import Memory
from perdure.capture.intake import Intake, as_sequence
from perdure.clock import Clock, SystemClock
from perdure.engine.audiences import audience_of
from perdure.engine.file_memory import is_recorded
from perdure.engine.paths import data_folder
from perdure.engine.settings import Settings
from perdure.engine.turn_intake import TurnIntake
from perdure.errors import PerdureError, StoreLostError, StoreUnavailableError
from perdure.files.transcript_log import TranscriptLog
from perdure.hooks.spec import DEFAULT_PROJECT, HOOK_NAMES
from perdure.hooks.types import Messages, Opening, Recall, ToolResult, TurnContext
from perdure.recent import Recent
from perdure.speech.author import vouched_for
from perdure.store.folder import prepare_folder
from perdure.store.inbox import Inbox
from perdure.store.inbox_lines import Entry
from perdure.store.rollback_guard import Remembered
from perdure.store.server_key import known_key
from perdure.store.store import machine_prefix
from perdure.text.fence import strip_fenced

RETRY_SECONDS = 60.0
COMPLAINTS = 64
"""Messages that are not repeated within a minute: some name a caller, and there may be any number of these."""
UNAVAILABLE = ToolResult(
    "Memory is not available at the moment. Continue without it.", {"error": "unavailable"}, refused=True
)
LOST = (
    "Memory is halted: {}. Nothing is recalled or changed until the user has run `perdure recover`; "
    "what the user says meanwhile is kept. Tell them, and continue without memory."
)
_abandoned: list[Holding] = []
_log = logging.getLogger("perdure.plugin")
Result = TypeVar("Result")


class Holding:
    """Takes turns in for a store that the folder remembers, or that is on a server. Usable from any thread.

    It opens nothing but the inbox.
    """

    def __init__(self, folder: Path, key: bytes, settings: Settings, clock: Clock, machine: str = "") -> None:
        """Prepare; the inbox is opened with the first turn. A `machine` is that of `Inbox`."""
        self._folder, self._machine = folder, machine
        self._settings = settings
        # How far conversations were read stands in the store: what is taken in twice is recognised by capture.
        self._log = TranscriptLog(folder, lambda text, session: strip_fenced(text, key, session))
        self._intake = TurnIntake(self._append, key, settings, clock, lambda name: "", self._said)
        self._inbox: Inbox | None = None
        self._lock = threading.Lock()

    @classmethod
    def of(
        cls, home: str | Path | None = None, *, clock: Clock | None = None,
        host_config: Mapping[str, Any] | None = None, agent: str | None = None, user: str | None = None,
        scopes: object = (), guest: bool = False, load_model: bool = True, llm: object = None,
        lent: object = None, **settings: Any,
    ) -> Self | None:  # fmt: skip
        """Return what holds the turns of a data folder; None if it remembers no store. The arguments: `Memory.open`'s.

        A store on a server need not have been opened here, if its key is there.

        Raises:
            SettingsError: a setting is unknown or does not fit.
            StoreUnavailableError: the folder is another store's, or cannot be written.
        """
        del agent, user, scopes, guest, load_model, llm, lent  # each turn names its own caller; nothing is loaded
        folder, loaded = data_folder(home), Settings.load(settings, host_config=host_config)
        if loaded.store_url is not None:
            key = known_key(folder)
            if key is None:
                return None
            machine = machine_prefix(prepare_folder(folder), loaded.store_tenant, key)
            return cls(folder, key, loaded, clock or SystemClock(), machine)
        remembered = Remembered.read(folder)
        if remembered is None or not remembered.key:
            return None
        return cls(folder, remembered.key, loaded, clock or SystemClock())

    def after(self, messages: Messages, success: bool, context: TurnContext) -> int:
        """Take in a host's turn, as `Turns.after` does; return how many messages were taken in.

        Raises:
            StoreError: they could not be written.
        """
        audience = audience_of(context)
        wanted = success and self._settings.heeds(context.trigger) and self._settings.auto_capture
        if not wanted or audience.home is None:
            return 0
        return self._intake.take(vouched_for(messages, context), context, audience.home).messages

    def release(self) -> None:
        """Leave what was taken in to the next start of the store. A later turn goes into another file."""
        with self._lock:
            inbox, self._inbox = self._inbox, None
        if inbox is not None:
            inbox.close()

    def abandon(self) -> None:
        """Let go of the inbox in a forked child: what is in it is the parent's."""
        if self._inbox is not None:
            self._inbox.abandon()

    def _said(self, intake: Intake, context: TurnContext, at: float) -> Sequence[Mapping[str, Any]]:
        # What was purged is taken out when it is recorded.
        if not is_recorded(self._settings, context):
            return ()
        return self._log.said(intake.fresh, context.session_id or "", at, intake.redacted)

    def _append(self, entry: Entry) -> Entry:
        with self._lock:
            if self._inbox is None:
                self._inbox = Inbox(self._folder / "inbox", machine=self._machine)
            return self._inbox.append(entry)


class PerdurePlugin:
    """perdure as a plugin of a host. No hook ever raises: a turn goes on whatever happens to its memory."""

    def __init__(self, open_memory: Callable[[], Memory], hold: Callable[[], Holding | None] = lambda: None) -> None:
        """Prepare; nothing is opened before the first hook.

        Args:
            open_memory: opens the store.
            hold: makes what takes turns in while that fails; None: nothing can.
        """
        self._open = open_memory
        self._hold = hold
        self._memory: Memory | None = None
        self._holding: Holding | None = None
        self._lost: StoreLostError | None = None
        self._lock = threading.Lock()
        self._process = os.getpid()
        self._retry_at = 0.0
        self._complaints: Recent[str, float] = Recent(COMPLAINTS)

    def host_started(self, context: TurnContext) -> None:
        """Open the store, so that the model is loading before the first turn."""
        self._guarded("host_started", lambda memory: None)

    def foresee(self, prompt: str, context: TurnContext) -> None:
        """Have at hand what a prompt alone decides, before the host asks about it."""
        self._guarded("foresee", lambda memory: memory.turns.foresee(_text(prompt), context))

    def opening(self, context: TurnContext) -> Opening | None:
        """Return what a session should begin with. No hook: a host that has a place for it asks."""
        return self._guarded("opening", lambda memory: memory.turns.opening(context))

    def did(self, messages: Callable[[], Messages], context: TurnContext) -> None:
        """Keep what the agent did, as the host's own record of the session tells. No hook, either."""
        self._guarded("did", lambda memory: memory.turns.did(messages, context))

    def before_tool(self, given: Mapping[str, Any], context: TurnContext, **told: Any) -> Recall | None:
        """Return what the model should see before a tool runs; see `Turns.before_tool`. No hook, either."""
        return self._guarded("before_tool", lambda memory: memory.turns.before_tool(given, context, **told))

    def before_agent_start(self, prompt: str, messages: Messages, context: TurnContext) -> Recall | None:
        """Return what the model should see with this prompt, which alone decides: `messages` are not looked at."""
        return self._guarded("before_agent_start", lambda memory: memory.turns.before(_text(prompt), context))

    def agent_end(self, messages: Messages, success: bool, context: TurnContext) -> int | None:
        """Take in what the user said; return how many messages were taken in, None if they could not be kept."""
        return self._guarded(
            "agent_end",
            lambda memory: memory.turns.after(as_sequence(messages), success, context),
            lambda held: held.after(messages, success, context),
        )

    def session_start(self, context: TurnContext) -> None:
        """Take note of a conversation that begins."""
        self._guarded("session_start", lambda memory: memory.turns.session_start(context))

    def before_compaction(self, messages: Messages, context: TurnContext) -> int | None:
        """Take in what the host is about to drop; the result is as that of `agent_end`."""
        return self._guarded(
            "before_compaction",
            lambda memory: memory.turns.before_compaction(as_sequence(messages), context),
            lambda held: held.after(messages, True, context),
        )

    def session_end(self, context: TurnContext) -> None:
        """Make all of the conversation findable."""
        self._guarded("session_end", lambda memory: memory.turns.session_end(context))

    def host_stopping(self, context: TurnContext) -> None:
        """Finish what was begun and close the store; a later hook opens it again."""
        if self._process != os.getpid():
            return
        with self._lock:
            memory, self._memory = self._memory, None
            self._release()
        if memory is not None:
            self._shielded("host_stopping", memory.close)

    def opened(self) -> Memory:
        """Return the open store, for what the host does with it beside its hooks.

        Raises:
            PerdureError: it cannot be opened.
        """
        memory = self._opened()
        if memory is None:
            raise StoreUnavailableError("memory could not be opened a moment ago; try again in a minute")
        return memory

    def call_tool(
        self, name: str, values: Mapping[str, Any], context: TurnContext, user_message: str = ""
    ) -> ToolResult:
        """Call a tool for the host's model, as `perdure.api.tools.call_tool` does. This never raises, either."""
        from perdure.api.tools import call_tool

        done = self._guarded("tool", lambda memory: call_tool(memory, name, values, context, user_message))
        return done or (UNAVAILABLE if self._lost is None else lost_result(self._lost))

    def _guarded(
        self, hook: str, work: Callable[[Memory], Result], instead: Callable[[Holding], Result] | None = None
    ) -> Result | None:
        memory = self._shielded(hook, self._opened)
        if memory is not None:
            return self._shielded(hook, lambda: work(memory))
        held = self._shielded(hook, self._held) if instead is not None else None
        return self._shielded(hook, lambda: instead(held)) if instead is not None and held is not None else None

    def _held(self) -> Holding | None:
        with self._lock:
            if self._memory is None and self._holding is None:
                self._holding = self._hold()
            return self._holding

    def _release(self) -> None:
        if self._holding is not None:
            self._shielded("hold", self._holding.release)

    def _opened(self) -> Memory | None:
        if self._process != os.getpid():
            # Forked: the memory is the parent's, and the lock may be held by a thread that is not here.
            self._process, self._memory, self._lock = os.getpid(), None, threading.Lock()
            if self._holding is not None:
                self._holding.abandon()
                # Tidied up here, it would let go of the lock that the parent holds.
                _abandoned.append(self._holding)
            self._holding = None
        with self._lock:
            if self._memory is None and time.monotonic() >= self._retry_at:
                self._retry_at = time.monotonic() + RETRY_SECONDS
                # What was held is taken in by the store that opens now.
                self._release()
                try:
                    self._memory = self._open()
                    self._lost = None
                except StoreLostError as error:
                    self._lost = error
                    raise
                self._retry_at = 0.0
            return self._memory

    def _shielded(self, hook: str, work: Callable[[], Result]) -> Result | None:
        try:
            return work()
        except PerdureError as error:
            self._say(hook, f"{type(error).__name__}: {error}")
        except Exception as error:  # noqa: BLE001 - the hook boundary: the host must survive us
            self._say(hook, f"unexpected {type(error).__name__}; please report it")
        return None

    def _say(self, hook: str, what: str) -> None:
        """Tell the operator, the same thing at most once a minute."""
        now = time.monotonic()
        last = self._complaints.get(what)
        if last is None or now - last >= RETRY_SECONDS:
            self._complaints.put(what, now)
            _log.error("memory failed in %s; the turn continues without it: %s", hook, what)


def _text(prompt: object) -> str:
    return prompt if isinstance(prompt, str) else ""


def lost_result(error: StoreLostError) -> ToolResult:
    """Return what a tool answers while the store is not what its folder remembers."""
    return ToolResult(LOST.format(error), {"error": "lost", "truth": error.truth}, refused=True)


def hookimpls_for(
    project_name: str = DEFAULT_PROJECT, memory: Memory | None = None, *, config: Mapping[str, Any] | None = None,
    **settings: Any,
) -> PerdurePlugin:  # fmt: skip
    """Return a plugin for a host that has a pluggy manager of its own.

    Args:
        project_name: the name of the host's manager; hook markers match only a manager of the same name.
        memory: an open store to use; None: one is opened at the first hook.
        config: the plugin's section of the host's config.
        settings: arguments of `Memory.open`.
    """
    plugin = PerdurePlugin(
        lambda: memory or Memory.open(host_config=config, **settings),
        lambda: None if memory else Holding.of(host_config=config, **settings),
    )
    mark = pluggy.HookimplMarker(project_name)
    for name in HOOK_NAMES:
        # A mark is an attribute named after the project, so one method can carry many.
        mark(getattr(PerdurePlugin, name))
    return plugin
