"""Turns of a host whose store cannot be opened: acknowledged in the inbox all the same, and captured when it can be."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Self

from perdure.capture.intake import Intake
from perdure.clock import Clock, SystemClock
from perdure.engine.engine import audience_of
from perdure.engine.file_memory import is_recorded
from perdure.engine.paths import data_folder
from perdure.engine.settings import Settings
from perdure.engine.turn_intake import TurnIntake
from perdure.files.transcript_log import TranscriptLog
from perdure.hooks.types import Messages, TurnContext
from perdure.store.folder import prepare_folder
from perdure.store.inbox import Inbox
from perdure.store.inbox_lines import Entry
from perdure.store.rollback_guard import Remembered
from perdure.store.server_key import known_key
from perdure.store.store import machine_prefix
from perdure.text.fence import strip_fenced


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
        cls,
        home: str | Path | None = None,
        *,
        clock: Clock | None = None,
        host_config: Mapping[str, Any] | None = None,
        agent: str | None = None,
        user: str | None = None,
        scopes: object = (),
        **settings: Any,
    ) -> Self | None:
        """Return what holds the turns of a data folder; None if it remembers no store. The arguments: `Memory.open`'s.

        A store on a server need not have been opened here, if its key is there.

        Raises:
            SettingsError: a setting is unknown or does not fit.
            StoreUnavailableError: the folder is another store's, or cannot be written.
        """
        del agent, user, scopes  # each turn names its own caller
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
        wanted = success and context.trigger == "user" and self._settings.auto_capture
        if not wanted or audience.home is None:
            return 0
        return self._intake.take(messages, context, audience.home).messages

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
