"""File memory for one caller: search with citations, safe reading, index status."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from perdure.api.facade import Facade
from perdure.api.fact_search import PATIENCE
from perdure.engine.audiences import overheard
from perdure.engine.file_memory import flush_policy
from perdure.errors import InputError, StoreError, expect
from perdure.files import registry
from perdure.files.index import Synced
from perdure.files.notes import append_daily_note
from perdure.files.prompt import FULL, SHOWN_CHARS, prompt_sections
from perdure.files.roots import MAX_BYTES, Kind, Reading, Root, read_memory, read_text, scan
from perdure.files.search import Answer, Ask, Result
from perdure.files.transcript_log import safe_name
from perdure.hooks.types import Messages, PromptSection
from perdure.recall.aliases import Speller
from perdure.recall.query import Query
from perdure.store.listing import Progress
from perdure.store.sql import run
from perdure.text.timestamps import day_of

MEMORY_MD = "MEMORY.md"
SECRET_CHARS = 10_000
"""Longer secrets are none that are written into a prompt by mistake."""


@dataclass(frozen=True, slots=True)
class FilesStatus:
    """The index compared with the disk, as far as the caller may see.

    Attributes:
        roots: the folders searched: kind, path, scope.
        sources: what is indexed: "memory", "sessions".
        files, chunks: numbers in the index.
        added, changed, removed: paths that differ on disk.
        skipped: files not indexed, with the reason.
        without_vector: chunks found by keyword only so far; None: the store has had no model yet.
        generation: number of the index file; 0 if there is none.
        last_synced: when this process last updated it, epoch seconds.
        watcher: "events", "polling" or "stopped"; `watcher_reason` says why not "events".
    """

    roots: tuple[tuple[str, str, str], ...]
    sources: tuple[str, ...]
    files: int
    chunks: int
    added: tuple[str, ...]
    changed: tuple[str, ...]
    removed: tuple[str, ...]
    skipped: Mapping[str, str]
    without_vector: int | None
    generation: int
    last_synced: float | None
    watcher: str
    watcher_reason: str | None

    @property
    def dirty(self) -> int:
        """How many files differ from the index."""
        return len(self.added) + len(self.changed) + len(self.removed)

    def to_dict(self) -> dict[str, Any]:
        """Return the values as JSON can hold them."""
        return {**asdict(self), "dirty": self.dirty}


@dataclass(frozen=True, slots=True)
class FlushRequest:
    """What a host should ask its agent before it compacts."""

    prompt: str
    system_prompt: str


class Files(Facade):
    """Markdown memory and past conversations. Obtained from `Memory.files`."""

    def search(
        self,
        query: str,
        *,
        max_results: int | None = None,
        min_score: float | None = None,
        sources: Sequence[str] | None = None,
    ) -> Answer:
        """Search memory files and past conversations, also under aliases of what the query names.

        Args:
            query: in words.
            max_results: None: as the settings say (6).
            min_score: 0 to 1; None: as the settings say (0.35).
            sources: "memory", "sessions"; None: all that are enabled.

        Raises:
            InputError: a value is out of range.
        """
        expect(query, str, "a text", "query")
        expect(max_results, int | None, "a number", "max_results")
        expect(min_score, int | float | None, "a number from 0 to 1", "min_score")
        expect(sources, list | tuple | None, "a list of sources", "sources")
        settings = self._engine.settings
        ask = Ask(
            query,
            settings.search.max_results if max_results is None else max_results,
            settings.search.min_score if min_score is None else min_score,
            tuple(settings.sources if sources is None else sources),
            self._context.chat,
        )
        found = self._engine.files.search(ask, self._audience)
        # As it was written, if facts.db cannot be read: files are searched without it as well.
        speller, deadline = Speller(self._engine.store.database), time.monotonic() + PATIENCE
        text = query
        with suppress(StoreError):
            text = speller.spell(Query(query, ()), self._audience, self._engine.clock.now(), deadline).text
        if text == query:
            return found
        # A passage has one of the names as a rule: the words of the others would make it less certain, so it keeps the
        # better of both scores.
        return _joined(found, self._engine.files.search(replace(ask, query=text), self._audience), ask.max_results)

    def read(self, path: str, start: int | None = None, lines: int | None = None) -> Reading:
        """Read lines of a memory file, by a path or citation from a search result.

        Args:
            path: such as "MEMORY.md" or "memory/2026-02-24.md#L12-L28".
            start: first line, from 1.
            lines: how many; None: to the end, or as the citation says.

        Raises:
            UnsafePathError: the path could lead out of the memory folders.
            InputError: it is not a memory file, or a number is out of range.
        """
        expect(path, str, "a path or a citation", "path")
        for name, value in {"start": start, "lines": lines}.items():
            expect(value, int | None, "a number of lines", name)
        return read_memory(self._roots(), path, start, lines)

    def paths(self) -> tuple[str, ...]:
        """Return the memory files that `read` reads for the caller, as it names them, in order."""
        index = self._engine.files.index
        roots = [root for root in self._roots() if root.kind != "sessions"]
        found = ((root, each) for root in roots for each in scan(root, index.max_bytes(root)).values())
        return tuple(sorted({root.label(each.relative) for root, each in found if each.skipped is None}))

    def add(self, path: Path | str, kind: Kind = "workspace", *, pattern: str = "**/*.md") -> None:
        """Add a folder to search, in the scope that the caller stores to.

        Args:
            path: a folder; for "extra" also one .md file.
            kind: "workspace" (MEMORY.md, USER.md, memory/), "extra" (all that match the pattern), or "sessions"
                (conversations as JSONL).
            pattern: for "extra".

        Raises:
            InputError: the path cannot be searched.
            ScopeError: the caller may not write.
        """
        expect(path, str | Path, "a folder", "path")
        expect(kind, str, "workspace, extra or sessions", "kind")
        registry.add_root(self._engine.store, self._home(), path, kind, pattern)
        self._engine.files.sync.start()

    def remove(self, path: Path | str) -> bool:
        """Stop searching a folder; its files stay.

        Args:
            path: as it was added.

        Returns:
            Whether it was among the searched ones.

        Raises:
            ScopeError: the caller may not write.
            StoreError: it could not be written.
        """
        expect(path, str | Path, "a folder", "path")
        wanted = _resolved(path)
        gone = [root for root in self._roots() if root.path == wanted]
        for root in gone:
            self._audience.writable(root.scope)
            self._engine.files.sync.folders.drop(root)
        if gone:
            # Nothing on disk has changed, so no later search would have a reason to look.
            self._engine.files.sync.sync()
        return bool(gone)

    def add_transcript(self, messages: Messages, session: str) -> int:
        """Record a conversation, so that it can be searched; messages already recorded are skipped.

        Args:
            messages: `role` ("user" or "assistant") and `content`; also `name` and `timestamp`.
            session: its id.

        Returns:
            The number of messages added. `sync` or the next search indexes them.

        Raises:
            ScopeError: the caller may not write.
            StoreError: it could not be written.
        """
        expect(messages, list | tuple, "a list of messages", "messages")
        expect(session, str, "the id of a session", "session")
        home = self._home()
        added = self._engine.files.log.append(home, session, messages, self._engine.clock.now())
        registry.add_log(self._engine.store, home)
        self._engine.files.sync.start()
        return added

    def sync(self, *, force: bool = False, progress: Progress = lambda done, total: None) -> Synced:
        """Update the index from the disk, for every scope.

        Args:
            force: rebuild the index from the files.
            progress: called with the number of files done and their total.

        Raises:
            StoreError: the index cannot be written; the previous one stays live.
        """
        return self._engine.files.sync.sync(force, progress)

    def embed(self, progress: Progress = lambda done, total: None) -> int:
        """Embed every indexed text that has no vector yet, in this process; return how many.

        Raises:
            ModelError: the model failed.
        """
        self._engine.model.wait(30.0)
        embedder = self._engine.model.embedder()
        if embedder is None:
            return 0
        index, done = self._engine.files.index, 0
        total = index.pending(embedder.identity.id)
        while some := index.embed(embedder, 32):
            done += some
            progress(done, max(done, total))
        return done

    def status(self, *, deep: bool = False) -> FilesStatus:
        """Return the index compared with the disk.

        Args:
            deep: read every file, even if its size and time are unchanged.
        """
        files = self._engine.files
        roots = self._roots()
        differs = files.index.difference(roots, files.sync.running, deep=deep)
        generation = files.index.generations.live()
        space = self._engine.store.space()
        indexed = without_vector = chunks = 0
        if generation is not None:
            in_scopes = generation.database.dialect.in_scopes
            scope, values = self._audience.sql(in_scopes, "files")
            inner, _ = self._audience.sql(in_scopes, "chunks")
            sql = (
                f"SELECT (SELECT count(*) FROM files WHERE {scope}), count(*), count(*) FILTER (WHERE NOT EXISTS"
                " (SELECT 1 FROM embedding_cache e WHERE e.space = ? AND e.hash = chunks.hash))"
                f" FROM chunks WHERE {inner}"
            )
            named = (*values, space.id if space else "", *values)
            [(indexed, chunks, without_vector)] = generation.database.query(run, sql, named)
        watcher = files.sync.watcher
        return FilesStatus(
            tuple((root.kind, str(root.path), str(root.scope)) for root in roots),
            self._engine.settings.sources,
            indexed,
            chunks,
            differs.added,
            differs.changed,
            differs.removed,
            differs.skipped,
            without_vector if space else None,
            generation.number if generation else 0,
            files.sync.last_synced,
            watcher.mode,
            watcher.reason,
        )

    def append_note(self, text: str, title: str = "") -> Path:
        """Append to today's note, `memory/YYYY-MM-DD.md` in the caller's workspace; it is on disk when this returns.

        Raises:
            InputError: there is no workspace, or the text is empty or too long.
            ScopeError: the caller may not write.
            StoreError: it could not be written.
        """
        home = self._home()
        workspace = self._context.workspace or next(
            (root.path for root in self._roots() if root.kind == "workspace" and root.scope == home), None
        )
        if workspace is None:
            raise InputError("there is no workspace to write a note to; set workspace, or add one with files.add")
        now, zone = self._engine.clock.now(), self._engine.store.zone
        return append_daily_note(Path(workspace), text, now, tz=zone, title=title)

    def flush_due(self, total_tokens: int, context_window: int, compactions: int, session: str) -> FlushRequest | None:
        """Return what to ask the agent before the host compacts, once per compaction cycle; None if not due.

        Args:
            total_tokens: of the session so far.
            context_window: of the model, in tokens.
            compactions: how often the session has been compacted.
            session: its id.
        """
        counts = {"total_tokens": total_tokens, "context_window": context_window, "compactions": compactions}
        for name, value in counts.items():
            expect(value, int, "a number", name)
        expect(session, str, "the id of a session", "session")
        policy = flush_policy(self._engine.settings)
        flushed = self._engine.files.flushed
        key = safe_name(f"{self._audience.home} {session}")
        if not policy.due(total_tokens, context_window, compactions, flushed.get(key)):
            return None
        flushed.put(key, compactions)
        today = day_of(self._engine.clock.now(), self._engine.store.zone)
        return FlushRequest(*policy.prompts(today))

    def prompt_sections(self, mode: str = "full") -> tuple[PromptSection, ...]:
        """Return the system prompt sections about memory; none unless `mode` is "full"."""
        settings = self._engine.settings
        if mode != FULL:
            return ()
        embedder = self._engine.model.embedder()
        runtime = {
            "backend": "perdure",
            "provider": embedder.identity.model if embedder else "none",
            "sources": "+".join(settings.sources) or "none",
            "citations": settings.search.citations,
        }
        return prompt_sections(mode, citations=settings.search.citations, memory_md=self._memory_md(), runtime=runtime)

    def _memory_md(self) -> str | None:
        if overheard(self._context, self._engine.settings):
            return None
        for root in self._roots():
            if root.kind == "workspace":
                # What cannot be read is named by `status`; the rest of the prompt does without.
                with suppress(FileNotFoundError, InputError):
                    # More than is shown, so that it is seen to go on, and that a secret at the cut is seen whole.
                    text = read_text(root, MEMORY_MD, MAX_BYTES)
                    return text[: 2 * SHOWN_CHARS + SECRET_CHARS]
        return None

    def _roots(self) -> list[Root]:
        """Return the folders that the caller may read: its own first, beginning with the workspace in use."""
        may = self._engine.files.sync.roots(self._audience)
        named = self._context.workspace or self._engine.settings.workspace
        current = _resolved(named) if named else None
        return sorted(may, key=lambda root: (root.scope != self._audience.home, root.path != current))


def _resolved(path: Path | str) -> Path | None:
    """Return a path in the form that roots are stored in; None if it is impossible."""
    try:
        return Path(path).expanduser().resolve()
    except (OSError, RuntimeError, ValueError):
        return None


def _joined(one: Answer, other: Answer, most: int) -> Answer:
    """Return the best results of two searches, each passage once."""
    best: dict[tuple[str, int], Result] = {}
    for result in (*one.results, *other.results):
        place = result.path, result.start_line
        best[place] = max(best.get(place, result), result, key=lambda each: each.score)
    return replace(one, results=tuple(sorted(best.values(), key=lambda each: -each.score)[:most]))
