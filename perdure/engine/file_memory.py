"""File memory put together: the index, its search, what of it recall is given, and the record of conversations."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, tzinfo
from typing import TYPE_CHECKING, Any

from perdure.background.file_sync import FileSync
from perdure.background.keeper import Keeper, TurnGate
from perdure.capture.intake import Intake, as_sequence
from perdure.clock import Clock
from perdure.embed.base import Embedder
from perdure.engine.settings import Settings
from perdure.engine.turn_intake import RECORD
from perdure.errors import InputError, StoreError, StoreUnavailableError
from perdure.files import registry
from perdure.files.chunking import Chunking
from perdure.files.index import FileIndex
from perdure.files.notes import FlushPolicy
from perdure.files.options import SESSIONS, SOURCES, FilesOptions
from perdure.files.retrievers import Chunk
from perdure.files.roots import Kind
from perdure.files.search import Answer, Ask, Draft, FileSearch, citation
from perdure.files.shared_log import log_of
from perdure.hooks.types import Messages, TurnContext
from perdure.ranking.calibration import Scale
from perdure.recall import retrievers
from perdure.recall.turn import Passage
from perdure.recent import Recent
from perdure.store.forgotten import Forgotten
from perdure.store.inbox_lines import PROJECT
from perdure.store.scope import Audience, Scope
from perdure.store.seals import is_purged
from perdure.store.sql import run
from perdure.store.store import Store
from perdure.text.fence import strip_fenced
from perdure.text.timestamps import day_of, zone_of

if TYPE_CHECKING:
    from perdure.embed.base import Vector

DEFAULTS = FilesOptions()
_FLOOR = 0.55
"""How sure a passage must be (0 to 1, the score of a search) to come up unasked; `python -m bench locomo` prints what
it costs and saves."""
_FLOOR_OF_WORDS = 0.8
"""The same where the model is not there that is to look as well."""
KNOWN = 1024
"""Conversations whose flush is remembered, those met last."""
TEXT = 400
"""Characters of a passage that are brought up; the agent reads the rest where it stands."""
_log = logging.getLogger("perdure.plugin")


def recordable(store: Store) -> Callable[[str, str], str]:
    """Return what takes out of a text of a session what is not to be recorded: our own blocks, and what was purged."""

    def strip(text: str, session: str) -> str:
        text = strip_fenced(text, store.key, session)
        with store.database.read() as connection:
            if not run(connection, "SELECT 1 FROM tombstones LIMIT 1"):
                return text
            from perdure.capture.sentences import clauses, sentences

            said = sentences(text)
            kept = [
                sentence
                for sentence in said
                if not any(is_purged(connection, store.key, part) for part in (sentence, *clauses(sentence)))
            ]
        return text if len(kept) == len(said) else " ".join(kept)

    return strip


class FileMemory:
    """Files and conversations of one store, for its engine. Usable from any thread."""

    def __init__(
        self, store: Store, settings: Settings, clock: Clock, keeper: Keeper, gate: TurnGate, *,
        embedder: Callable[[], Embedder | None], scale: Callable[[], Scale], start_worker: Callable[[], None],
    ) -> None:  # fmt: skip
        self._store = store
        self._settings = settings
        self._keeper = keeper
        self.flushed: Recent[str, int] = Recent(KNOWN)
        self.index = FileIndex(store, files_options(settings))
        self.log = log_of(store, recordable(store))
        self.sync = FileSync(
            store, self.index, self.log, keeper, gate, clock,
            embedder=embedder, start_worker=start_worker, watch=settings.watch,
        )  # fmt: skip
        forgotten = Forgotten(store.database, store.key)
        self._search = FileSearch(self.index, embedder, clock, scale, forgotten.hush, self.sync.rebuild)
        blind = _FLOOR if settings.embedder == "none" else _FLOOR_OF_WORDS
        self.source = ConfidentPassages(self._search, settings.recall_passages, blind)

    def start(self, audience: Audience) -> None:
        """Take in the folders that the settings name, for whom the store was opened, and begin to watch."""
        if audience.home is not None:
            if self._settings.workspace is not None:
                self.sync.folders.name(audience.home, str(self._settings.workspace), "workspace")
            for path in self._settings.extra_paths:
                self.sync.folders.name(audience.home, str(path), "extra")
        self._keeper.submit("watch files", self.sync.start)

    def meet(self, context: TurnContext, audience: Audience) -> None:
        """Take in the folders that a host names in a turn. One that cannot be used is logged: the turn goes on."""
        named: dict[Kind, str | None] = {"workspace": context.workspace, "sessions": context.sessions_folder}
        for kind, path in named.items():
            if path is None or audience.home is None:
                continue
            try:
                self.sync.folders.name(audience.home, path, kind)
            except InputError as error:
                _log.warning("the %s folder of the host is not searched: %s", kind, type(error).__name__)

    def recorder(
        self, messages: Messages, context: TurnContext, audience: Audience, at: float
    ) -> Callable[[], None] | None:
        """Return what records a turn's conversation, or None: the host keeps its conversations itself."""
        home, session = audience.home, context.session_id
        if home is None or not session or not is_recorded(self._settings, context):
            return None
        # The host may go on with its own list before the background comes to it.
        kept, scope = tuple(as_sequence(messages)), Scope.parse(context.project) if context.project else home
        return lambda: self.sync.note(scope, session, kept, at)

    def said(self, intake: Intake, context: TurnContext, at: float) -> Sequence[Mapping[str, Any]]:
        """Return what is to be recorded of a turn; nothing if the host keeps its conversations itself."""
        if not is_recorded(self._settings, context):
            return ()
        try:
            return self.log.said(intake.fresh, context.session_id or "", at, intake.redacted)
        except StoreUnavailableError:
            if not self._store.database.shared:
                raise
            # Nobody can tell now what was purged and must not be recorded again; what is kept is asked later.
            return ()

    def restore(self, entries: Sequence[Mapping[str, Any]]) -> None:
        """Record what entries of the inbox hold of conversations, and is not recorded; on disk when this returns."""
        for entry in entries:
            if entry.get(RECORD):
                scope = Scope.parse(entry.get(PROJECT) or entry["scope"])
                self.log.restore(scope, entry["session"], entry[RECORD], entry["at"])
                registry.add_log(self._store, scope)
        self.log.flush()

    def pull(self) -> None:
        """Take over what other machines have recorded, for the next search."""
        if self.log.pull():
            self.sync.start()

    def follow(self) -> None:
        """Take over what other machines have recorded, and take out what they have purged."""
        self.pull()
        from perdure.maintenance.remote_purges import follow

        follow(self._store, files_options(self._settings))

    def ended(self, session: str) -> None:
        """Have all of a conversation indexed, once what was said in it is recorded."""
        self._keeper.submit("session end", lambda: self.sync.ended(session))

    def search(self, ask: Ask, audience: Audience) -> Answer:
        """Search, with the index brought up to date before."""
        return self._search.search(ask, audience, self.sync.roots, self.sync.fresh)

    def standing(self, places: Collection[str], audience: Audience) -> Mapping[str, str]:
        """Return by citation what stands in places that passages came from, of those that the audience may read."""
        live = self.index.generations.live()
        if not places or live is None:
            return {}
        scope, values = audience.sql(live.database.dialect.in_scopes, "c")
        sql = (
            "SELECT f.path, c.start_line, c.end_line, c.speaker, c.text FROM chunks c JOIN files f ON f.id = c.file_id"
            f" WHERE {scope} AND f.path IN (SELECT value FROM json_each(?))"
        )
        paths = json.dumps([place.rpartition("#")[0] for place in places])
        rows = live.database.query(run, sql, (*values, paths))
        return {citation(*where): _said(speaker, text) for *where, speaker, text in rows}

    def close(self) -> None:
        """Stop watching, have what was recorded on disk, and close the index."""
        self.sync.close()
        with suppress(StoreError):  # it is written, and a kill does not undo it
            self.log.flush()
        self._search.close()
        self.index.close()


def is_recorded(settings: Settings, context: TurnContext) -> bool:
    """Return whether perdure keeps the record of a turn's conversation."""
    wanted = settings.record_sessions and "sessions" in settings.sources
    return wanted and bool(context.session_id) and context.sessions_folder is None


def files_options(settings: Settings) -> FilesOptions:
    """Return the options of the index that the settings name."""
    how = settings.search
    legs = {"keyword": 1.0 - how.vector_weight, "vector": how.vector_weight}
    return FilesOptions(
        sources=settings.sources, chunking=Chunking(how.chunk_tokens, how.chunk_overlap), candidates=how.candidates,
        files=replace(DEFAULTS.files, **legs), turns=replace(DEFAULTS.turns, **legs),
        half_life_days=how.half_life_days, mmr=how.mmr_lambda, citations=how.citations,
        zone=zone_of(settings.timezone),
    )  # fmt: skip


def flush_policy(settings: Settings) -> FlushPolicy:
    """Return when and with which words a host is asked to flush."""
    return FlushPolicy(**{name: value for name, value in settings.flush if value not in (None, "")})


@dataclass(frozen=True, slots=True)
class ConfidentPassages:
    """Passages that are sure enough to be brought up unasked.

    Of conversations only what users said: what an assistant, a tool or a page once said is no memory of the user
    and is found by explicit search alone; what an assistant said, also by who asks what it tried.
    """

    search: FileSearch
    limit: int
    blind: float  # how sure one must be by its words alone, 0 to 1

    def draft(self, query: str, audience: Audience, session: str | None) -> tuple[Draft, Ask] | None:
        """Do what needs no vector; None without an index."""
        begun = self.search.draft(query, audience, SOURCES, self.limit)
        return (begun, Ask(query, self.limit, _FLOOR, skip_session=session)) if begun else None

    def passages(
        self, draft: tuple[Draft, Ask], vector: tuple[Vector, str] | None, *, agents: bool = False
    ) -> Sequence[Passage]:
        """Return the passages, best first."""
        begun, ask = draft
        found = self.search.finish(begun, vector, ask if vector else replace(ask, min_score=self.blind))
        zone = self.search.index.options.zone
        return [_passage(chunk, score, zone) for chunk, score in found if _tells(chunk, agents)]


def _tells(chunk: Chunk, agents: bool) -> bool:
    """Return whether a passage is a file's, what a user said and did not only ask for, or what an agent may have said.

    An order to forget tells what it is about, and is no memory of it.
    """
    if chunk.role is None or (agents and chunk.role == "assistant"):
        return True
    if chunk.role != "user":
        return False
    from perdure.capture.statements import only_asks
    from perdure.speech.forgetting import orders_to_forget

    told = chunk.text
    for order in orders_to_forget(chunk.text):
        told = told.replace(order.sentence, " ")
    return bool(told.strip()) and not only_asks(told)


def _said(speaker: str | None, text: str) -> str:
    text = " ".join(text.split())
    text = text if len(text) <= TEXT else f"{text[: TEXT - 1].rstrip()}…"
    return f"{speaker}: {text}" if speaker else text


def _passage(chunk: Chunk, score: float, zone: tzinfo | None) -> Passage:
    where, at, text = citation(chunk.path, chunk.start_line, chunk.end_line), chunk.at, chunk.text
    # Notes of a day say "tomorrow" as well; their day begins at midnight in UTC.
    said_at, of = (chunk.day, UTC) if at is None else (at, zone)
    if said_at is not None:
        from perdure.capture.lifetimes import dated, in_short

        # The day that stands in front of the passage tells the year.
        text = dated(text, said_at, of, in_short)
    if chunk.source == SESSIONS:
        day = "" if at is None else day_of(at, zone).isoformat()
        return Passage(where, retrievers.SESSIONS, _said(chunk.speaker, text), day, score, at, chunk.text)
    about = f"{chunk.path} {chunk.section}".strip()
    return Passage(where, retrievers.FILES, _said(None, text), about, score, said_at, chunk.text)
