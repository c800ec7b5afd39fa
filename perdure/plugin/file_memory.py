"""File memory put together: the index, its search, what keeps it fresh, and perdure's record of conversations."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace
from functools import partial

from perdure.background.file_sync import FileSync
from perdure.background.keeper import Keeper
from perdure.background.turn_gate import TurnGate
from perdure.capture.intake import as_sequence
from perdure.clock import Clock
from perdure.embed.base import Embedder
from perdure.errors import InputError, StoreError
from perdure.files import registry
from perdure.files.chunking import Chunking
from perdure.files.flush import DEFAULT_PROMPT, DEFAULT_SYSTEM_PROMPT, FlushPolicy
from perdure.files.index import FileIndex
from perdure.files.options import MEGABYTE, FilesOptions
from perdure.files.roots import Kind
from perdure.files.search import Answer, Ask, FileSearch
from perdure.files.transcript_log import TranscriptLog
from perdure.files.turns import Threshold
from perdure.hooks.types import Messages, TurnContext
from perdure.plugin.file_purge import recordable
from perdure.plugin.recall_source import RecallSource
from perdure.plugin.settings import Settings
from perdure.ranking.calibration import Scale
from perdure.recent import Recent
from perdure.store.scope import Audience, Scope
from perdure.store.store import Store

DEFAULTS = FilesOptions()
KNOWN = 1024
"""Conversations and folders that are remembered, those met last: of others it is found out or noted once more."""
_log = logging.getLogger("perdure.plugin")


class FileMemory:
    """Files and conversations of one store, for its engine. Usable from any thread."""

    def __init__(
        self,
        store: Store,
        settings: Settings,
        clock: Clock,
        keeper: Keeper,
        gate: TurnGate,
        *,
        embedder: Callable[[], Embedder | None],
        scale: Callable[[], Scale],
        start_worker: Callable[[], None],
    ) -> None:
        self._store = store
        self._settings = settings
        self._keeper = keeper
        self._roots_known: Recent[tuple[str, str], bool] = Recent(KNOWN)
        self.flushed: Recent[str, int] = Recent(KNOWN)
        self.index = FileIndex(store, files_options(settings))
        self.log = TranscriptLog(store.folder, recordable(store))
        self.sync = FileSync(
            store, self.index, self.log, keeper, gate, clock,
            embedder=embedder, start_worker=start_worker,
            debounce=settings.watch_debounce_ms / 1000, watch=settings.watch,
        )  # fmt: skip
        self._search = FileSearch(self.index, embedder, clock, scale)
        self.source = RecallSource(self._search, settings.recall_passages, settings.recall_passage_floor)

    def start(self, audience: Audience) -> None:
        """Take in the folders that the settings name, for whom the store was opened, and begin to watch."""
        if audience.home is not None:
            if self._settings.workspace is not None:
                registry.add_root(self._store, audience.home, self._settings.workspace, "workspace")
            for path in self._settings.extra_paths:
                registry.add_root(self._store, audience.home, path, "extra")
        self._keeper.submit("watch files", self.sync.start)

    def meet(self, context: TurnContext, audience: Audience) -> None:
        """Take in the folders that a host names in a turn. One that cannot be used is logged: the turn goes on."""
        named: tuple[tuple[str | None, Kind], ...] = (
            (context.workspace, "workspace"),
            (context.sessions_folder, "sessions"),
        )
        for path, kind in named:
            if path is None or audience.home is None:
                continue
            place = (str(audience.home), f"{kind} {path}")
            add = partial(self._add, audience.home, path, kind, place)
            known = self._roots_known.get(place)
            if known is None:
                add()
            elif not known:
                # A store that is busy holds up one turn, not every one.
                self._roots_known.put(place, True)
                self._keeper.submit("folder", add)

    def _add(self, home: Scope, path: str, kind: Kind, place: tuple[str, str]) -> None:
        try:
            registry.add_root(self._store, home, path, kind)
        except (InputError, StoreError) as error:
            again = isinstance(error, StoreError)
            when = " yet" if again else ""
            _log.warning("the %s folder of the host is not searched%s: %s", kind, when, type(error).__name__)
            self._roots_known.put(place, not again)
        else:
            self._roots_known.put(place, True)
            self._keeper.submit("watch files", self.sync.start)

    def record(self, messages: Messages, context: TurnContext, audience: Audience) -> None:
        """Record a turn's conversation in the background, unless the host keeps its conversations itself."""
        home, session = audience.home, context.session_id
        wanted = self._settings.record_sessions and "sessions" in self._settings.sources
        if wanted and home is not None and session and context.sessions_folder is None:
            # The host may go on with its own list before the background comes to it.
            kept = tuple(as_sequence(messages))
            self._keeper.submit("transcript", lambda: self.sync.note(home, session, kept))

    def ended(self, session: str) -> None:
        """Have all of a conversation indexed, once what was said in it is recorded."""
        self._keeper.submit("session end", lambda: self.sync.ended(session))

    def search(self, ask: Ask, audience: Audience) -> Answer:
        """Search, with the index brought up to date before."""
        return self._search.search(ask, audience, self.sync.roots(), self.sync.fresh)

    def close(self) -> None:
        """Stop watching and close the index."""
        self.sync.close()
        self._search.close()
        self.index.close()


def files_options(settings: Settings) -> FilesOptions:
    """Return the options of the index that the settings name."""
    return FilesOptions(
        sources=settings.sources,
        chunking=Chunking(settings.chunk_tokens, settings.chunk_overlap),
        threshold=Threshold(settings.session_delta_bytes, settings.session_delta_messages),
        max_bytes=int(settings.file_max_mb * MEGABYTE),
        cache_entries=settings.embedding_cache_entries,
        candidates=settings.search_candidates,
        files=replace(DEFAULTS.files, keyword=settings.file_keyword_weight, vector=settings.file_vector_weight),
        turns=replace(DEFAULTS.turns, keyword=settings.session_keyword_weight, vector=settings.session_vector_weight),
        half_life_days=settings.half_life_days,
        mmr=settings.mmr_lambda,
        citations=settings.citations,
    )


def flush_policy(settings: Settings) -> FlushPolicy:
    """Return when and with which words a host is asked to flush."""
    return FlushPolicy(
        settings.flush_enabled,
        settings.flush_reserve_tokens,
        settings.flush_soft_tokens,
        settings.flush_prompt or DEFAULT_PROMPT,
        settings.flush_system_prompt or DEFAULT_SYSTEM_PROMPT,
    )
