"""Keeps the index of files and conversations equal to the disk, in one file for each generation.

A rebuild writes the next file and then changes one row of facts.db, so that it happens as a whole or not at all.
Whoever has the former file open goes on reading it until it asks again which one is live.
"""

from __future__ import annotations

import hashlib
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path

from filelock import Timeout

from perdure.embed.base import Embedder
from perdure.errors import InputError, StoreBusyError, StoreCorruptError, StoreError, StoreUnavailableError
from perdure.files import rows
from perdure.files.options import SESSIONS, FilesOptions, source_of
from perdure.files.roots import BINARY_SIGHT, Found, Root, Stamp, changes, memory_day, racy, scan
from perdure.files.rows import markdown_entries, parts, turn_entries
from perdure.files.safe_open import read_inside
from perdure.files.turns import session_of
from perdure.regex import lazy
from perdure.store.database import Database
from perdure.store.folder import file_lock, sync_folder
from perdure.store.listing import Progress
from perdure.store.sql import Connection, put_meta, run
from perdure.store.store import Store
from perdure.text.fence import strip_fenced
from perdure.text.normalise import NORMALISER_VERSION

APPLICATION_ID = 0x70726978  # "prix"
VERSION = 2
BUSY_MS = 1_000
"""`index.lock` keeps writers apart, so nothing holds an index for long but another program; a search does not wait."""
_LIVE = "index_generation"
_NAME = lazy(r"index-([0-9]+)\.db(?:-wal|-shm|-journal)?")

_SCHEMA = Path(__file__).with_name("data") / "index.sql"
_MARK = f"""
INSERT INTO meta VALUES ('normaliser', '{NORMALISER_VERSION}');
PRAGMA application_id = {APPLICATION_ID};
PRAGMA user_version = {VERSION};
"""
BATCH = 50
BATCH_BYTES = 8 << 20
"""Files, and about how many bytes of them, written in one transaction: a kill loses the work on so many at the most."""
SESSION_FACTOR = 10
"""A conversation may be so many times larger than a Markdown file."""
CHANGING = 0
"""Stands for the time of a file that may have been changed again within its clock's tick: it is looked at once more."""
EMBED_BATCH = 4


@dataclass(frozen=True, slots=True)
class Generation:
    """An open index file."""

    number: int
    database: Database


class Generations:
    """The index files of a store. One writer at a time among all processes: the one that holds `writing`."""

    def __init__(self, store: Store) -> None:
        self._store = store
        # Where several machines share the store, each has an index of its own.
        self._row = f"{_LIVE}@{store.machine}" if store.machine else _LIVE
        self._open: Generation | None = None

    def live(self) -> Generation | None:
        """Return the live generation, or None if there is none: never built, lost, or written by another version.

        An absent file is no empty index: the caller must say that nothing was searched.
        """
        while True:
            number = self.number
            opened = self._open
            if opened is not None and opened.number == number and opened.database.path.exists():
                return opened
            # The former one is not closed: another thread may be in the middle of a search. Who lets go of it
            # last closes it.
            self._open = opened = self._opened(number) if number else None
            # A file is removed after the row has changed: if it has not, what was opened was whole.
            if self.number == number:
                return opened

    @contextmanager
    def writing(self, patience: float = 0.0) -> Iterator[bool]:
        """Lend the right to write to the index, or False if another process has it.

        `patience`: seconds to wait for it; negative: for as long as it takes.
        """
        if self._store.refusal is not None:
            raise StoreUnavailableError(self._store.refusal)
        try:
            held = file_lock(self._store.folder / "index.lock").acquire(patience)
        except Timeout:
            yield False
            return
        except OSError as error:
            reason = error.strerror or type(error).__name__
            raise StoreUnavailableError(f"{self._store.folder} cannot be written ({reason})") from error
        with held:
            yield True

    def begin(self) -> Generation:
        """Make the file of the next generation. To be called by the writer."""
        number = max([self.number, *self._files().values()]) + 1
        database = Database(self.path(number), busy_ms=BUSY_MS)
        database.apply(run, _SCHEMA.read_text(encoding="utf-8") + _MARK)
        return Generation(number, database)

    def publish(self, generation: Generation) -> None:
        """Make a finished generation the live one. To be called by the writer."""
        generation.database.query(run, "PRAGMA wal_checkpoint(TRUNCATE)")
        sync_folder(self._store.folder)
        self._store.database.apply(put_meta, self._row, str(generation.number))
        self._open = generation

    def tidy(self) -> None:
        """Remove the files of other generations than the live one. To be called by the writer."""
        live = self.number
        # The database before what lies beside it: without the latter it may lack what was written last.
        for path, number in sorted(self._files().items()):
            if number != live:
                # Some systems keep a file that is open elsewhere: it goes next time.
                with suppress(OSError):
                    path.unlink()

    def forget(self) -> None:
        """Remove the files of all generations: none is live then, and the next search makes one. For the writer."""
        self._store.database.apply(put_meta, self._row, None)
        self.close()
        self.tidy()

    def close(self) -> None:
        """Close the open file."""
        if self._open is not None:
            self._open.database.close()
            self._open = None

    def path(self, number: int) -> Path:
        """Return where the file of a generation is."""
        return self._store.folder / f"index-{number}.db"

    @property
    def number(self) -> int:
        """The number of the live generation; 0: none was ever built."""
        return int(self._store.meta(self._row) or 0)

    def _opened(self, number: int) -> Generation | None:
        path = self.path(number)
        if not path.exists():
            return None
        try:
            opened = Database(
                path, busy_ms=BUSY_MS, check=lambda connection: _check(connection, path), refusal=self._store.refusal
            )
        except StoreError as error:
            if isinstance(error, StoreBusyError):
                raise
            return None
        return Generation(number, opened)

    def _files(self) -> dict[Path, int]:
        """Return the files of all generations, also what a kill left beside one, with their numbers."""
        return {path: int(name[1]) for path in self._store.folder.iterdir() if (name := _NAME.fullmatch(path.name))}


def _check(connection: Connection, path: Path) -> None:
    found = (int(run(connection, f"PRAGMA {name}")[0][0]) for name in ("application_id", "user_version"))
    if tuple(found) != (APPLICATION_ID, VERSION):
        raise StoreCorruptError(f"{path} is not an index of this version; rebuild it: perdure index --force")
    if run(connection, "SELECT value FROM meta WHERE key = 'normaliser'") != [(str(NORMALISER_VERSION),)]:
        raise StoreCorruptError(f"{path} was tokenised by another version; rebuild it: perdure index --force")


@dataclass(frozen=True, slots=True)
class Synced:
    """What a synchronisation did."""

    # `added`, `changed`, `removed`: files.
    added: int = 0
    changed: int = 0
    removed: int = 0
    chunks: int = 0  # number written
    skipped: Mapping[str, str] = field(default_factory=dict)  # files not indexed, reason by path
    waiting: int = 0  # ongoing conversations that are not due yet
    rebuilt: bool = False  # whether a new generation was created
    busy: bool = False  # whether another process was writing, so that nothing was done


@dataclass(frozen=True, slots=True)
class Difference:
    """How the disk differs from the index: paths of files, and why others are left out."""

    # `added`, `changed`, `removed`: paths, as results name them.
    added: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    skipped: Mapping[str, str] = field(default_factory=dict)  # files that are not indexed, with the reason
    unsettled: int = 0  # files that had to be read again, and are as before; a synchronisation takes note of that
    built: bool = True  # whether there is an index

    @property
    def dirty(self) -> int:
        """How many files differ."""
        return len(self.added) + len(self.changed) + len(self.removed)


@dataclass(frozen=True, slots=True)
class _Job:
    """A file to be brought up to date: `row` if the index knows it, `found` if it is on disk."""

    root: Root
    relative: str
    row: rows.FileRow | None
    found: Found | None


class FileIndex:
    """The index of one store. Usable from any thread; one process at a time writes."""

    def __init__(self, store: Store, options: FilesOptions) -> None:
        self.options = options
        self.generations = Generations(store)
        self._store = store

    def difference(self, roots: Sequence[Root], running: Collection[str] = (), *, deep: bool = False) -> Difference:
        """Compare the disk with the index; changes nothing."""
        generation = self.generations.live()
        kinds: dict[str, list[str]] = {"added": [], "changed": [], "removed": []}
        skipped: dict[str, str] = {}
        unsettled = 0
        known = generation.database.query(rows.known) if generation is not None else {}
        for root in self._wanted(roots):
            jobs, reasons = self._jobs(root, known.get(rows.key(root), {}), every=deep)
            skipped |= reasons
            for job in jobs:
                if not self._due(job, running):
                    continue
                if job.found is None:
                    kinds["removed"].append(root.label(job.relative))
                elif job.row is None:
                    kinds["added"].append(root.label(job.relative))
                elif not (deep or job.row.stamp[1] == CHANGING):
                    kinds["changed"].append(root.label(job.relative))
                else:
                    content, stamp = self._read(job, job.found)
                    if content.hash != job.row.hash:
                        kinds["changed"].append(root.label(job.relative))
                    else:
                        unsettled += stamp != job.row.stamp
                    if content.skipped:
                        skipped[root.label(job.relative)] = content.skipped
        added, changed, removed = map(tuple, kinds.values())
        return Difference(added, changed, removed, skipped, unsettled, generation is not None)

    def sync(
        self, roots: Sequence[Root], *, force: bool = False, running: Collection[str] = (), patience: float = 0.0,
        progress: Progress = lambda done, total: None,
    ) -> Synced:  # fmt: skip
        """Bring the index up to date with the disk.

        `patience`: seconds to wait for another process that is writing; negative: as long as it takes.
        """
        with self.generations.writing(patience) as free:
            if not free:
                return Synced(busy=True)
            self.generations.tidy()
            live = self.generations.live()
            if live is not None and not force:
                return self._bring(live, roots, running, progress)
            generation = self.generations.begin()
            try:
                if live is not None:
                    _keep_vectors(live, generation)
                synced = self._bring(generation, roots, (), progress)
                self.generations.publish(generation)
            except BaseException:
                generation.database.close()
                self.generations.tidy()
                raise
            self.generations.tidy()
            return Synced(synced.added, chunks=synced.chunks, skipped=synced.skipped, rebuilt=True)

    def embed(self, embedder: Embedder, limit: int, pause: Callable[[], None] = lambda: None) -> int:
        """Give up to `limit` texts that have none their vectors, those written last first.

        Returns how many were given; 0 also if another process is writing.
        """
        generation = self.generations.live()
        if generation is None:
            return 0
        waiting = list(generation.database.query(rows.pending, embedder.identity.id, limit).items())
        done = 0
        while batch := waiting[done : done + EMBED_BATCH]:
            pause()
            # Outside of the lock: the model takes longest.
            vectors = {digest: embedder.embed(parts(text)) for digest, text in batch}
            with self.generations.writing(1.0) as free:
                live = self.generations.live()
                if not free or live is None or live.number != generation.number:
                    break
                with generation.database.write(durable=False) as connection:
                    for digest, found in vectors.items():
                        rows.put_vectors(connection, embedder.identity, digest, found)
            done += len(vectors)
        return done

    def pending(self, space: str) -> int:
        """Return how many chunks have no vector in this space yet."""
        generation = self.generations.live()
        return generation.database.query(rows.pending_count, space) if generation is not None else 0

    def close(self) -> None:
        """Close the open index file."""
        self.generations.close()

    def _bring(
        self, generation: Generation, roots: Sequence[Root], running: Collection[str], progress: Progress
    ) -> Synced:
        wanted = self._wanted(roots)
        dropped = generation.database.jot(rows.drop_other_roots, wanted)
        known = generation.database.query(rows.known)
        jobs: list[_Job] = []
        skipped: dict[str, str] = {}
        for root in wanted:
            more, reasons = self._jobs(root, known.get(rows.key(root), {}))
            jobs += more
            skipped |= reasons
        due = [job for job in jobs if self._due(job, running)]
        counts = Counter(removed=dropped)
        done = 0
        for batch in _batches(due):
            progress(done, len(due))
            # Read outside of the transaction: a slow disk must not keep readers from a checkpoint.
            read = [self._read(job, job.found) if job.found else None for job in batch]
            with generation.database.write(durable=False) as connection:
                for job, new in zip(batch, read, strict=True):
                    counts += _write(connection, job, new)
                    if new and new[0].skipped:
                        skipped[job.root.label(job.relative)] = new[0].skipped
            done += len(batch)
        if due or dropped:
            # At the end: what is in no file at first may only have moved.
            generation.database.jot(rows.trim_cache, self.options.cache_entries)
        progress(done, len(due))
        return Synced(
            counts["added"], counts["changed"], counts["removed"], counts["chunks"], skipped, len(jobs) - len(due)
        )

    def _jobs(
        self, root: Root, there: Mapping[str, rows.FileRow], every: bool = False
    ) -> tuple[list[_Job], dict[str, str]]:
        """Return what is to be done under a root of which the index knows what is `there`, and what is left out."""
        found = scan(root, self.max_bytes(root))
        seen = changes({name: row.stamp for name, row in there.items()}, found)
        same = sorted(there.keys() & found.keys() - {*seen.changed, *seen.skipped}) if every else ()
        names = (*seen.removed, *seen.added, *seen.changed, *same)
        jobs = [_Job(root, name, there.get(name), None if name in seen.removed else found[name]) for name in names]
        reasons = {name: row.skipped for name, row in sorted(there.items()) if row.skipped and name not in names}
        return jobs, {root.label(name): why for name, why in (reasons | dict(seen.skipped)).items()}

    def _due(self, job: _Job, running: Collection[str]) -> bool:
        if job.root.kind != SESSIONS or job.found is None or Path(job.relative).stem not in running:
            return True
        before = job.row.stamp[0] if job.row else 0
        try:
            with (job.root.path / job.relative).open("rb") as file:
                file.seek(before)
                messages = sum(1 for _ in file)
        except OSError:
            return True
        idle = time.time() - job.found.mtime_ns / 1e9
        return self.options.threshold.due(job.found.size - before, messages, idle)

    def _read(self, job: _Job, found: Found) -> tuple[rows.Content, Stamp]:
        """Return what a file holds, and by which stamp the next scan tells whether it has changed since."""
        now = time.time_ns()
        content = self.content(job.root, found, job.row.hash if job.row else None)
        if job.row is not None and content.hash == job.row.hash:
            content = replace(content, skipped=job.row.skipped)
        size, mtime, inode = found.stamp
        # What could not be read may become readable without any change.
        return content, (size, CHANGING if racy(found, now) or not content.hash else mtime, inode)

    def content(self, root: Root, found: Found, known: str | None = None) -> rows.Content:
        """Read a file and cut it up; what cannot be read says why."""
        try:
            data = read_inside(root.folder, found.relative, self.max_bytes(root))
        except (InputError, OSError) as error:
            return rows.Content("", skipped=str(error) if isinstance(error, InputError) else type(error).__name__)
        digest = hashlib.blake2b(data, digest_size=16).hexdigest()
        if digest == known:
            return rows.Content(digest)
        if b"\0" in data[:BINARY_SIGHT]:
            return rows.Content(digest, skipped="binary")
        text = data.decode("utf-8", "replace").removeprefix("\ufeff")
        if root.kind == SESSIONS:
            session = session_of(text, Path(found.relative).stem)
            entries = turn_entries(
                text, lambda said: strip_fenced(said, self._store.key, session), self.options.chunking
            )
            return rows.Content(digest, entries, session)
        day = memory_day(root.label(found.relative))
        at = datetime(day.year, day.month, day.day, tzinfo=UTC).timestamp() if day else None
        return rows.Content(digest, markdown_entries(text, root.label(found.relative), self.options.chunking), day=at)

    def _wanted(self, roots: Sequence[Root]) -> list[Root]:
        return [root for root in roots if source_of(root) in self.options.sources]

    def max_bytes(self, root: Root) -> int:
        """Return how large a file under a root may be."""
        return self.options.max_bytes * (SESSION_FACTOR if root.kind == SESSIONS else 1)


def _keep_vectors(live: Generation, generation: Generation) -> None:
    # Those of a damaged file are made anew.
    with (
        suppress(StoreCorruptError),
        live.database.read() as source,
        generation.database.write(durable=False) as target,
    ):
        rows.copy_cache(source, target)


def _batches(jobs: Sequence[_Job]) -> Iterator[list[_Job]]:
    batch: list[_Job] = []
    size = 0
    for job in jobs:
        batch.append(job)
        size += job.found.size if job.found else 0
        if len(batch) == BATCH or size >= BATCH_BYTES:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def _write(connection: Connection, job: _Job, new: tuple[rows.Content, Stamp] | None) -> Counter[str]:
    """Bring one file up to date; return what was done."""
    if new is None or job.found is None:
        if job.row is None:
            return Counter()
        rows.drop_file(connection, job.row.id)
        return Counter(removed=1)
    content, stamp = new
    if job.row is not None and job.row.hash == content.hash:
        rows.touch(connection, job.row.id, stamp)
        return Counter()
    chunks = rows.put_file(connection, job.root, job.found, content, stamp)
    return Counter(chunks=chunks, added=job.row is None, changed=job.row is not None)
