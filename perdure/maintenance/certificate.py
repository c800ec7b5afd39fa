"""Looking for what was purged in the bytes of every file, and saying what was found."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from perdure.text.normalise import fts_text

MIN_TEXT = 12
"""Characters. A shorter text is found by chance, so looking for its bytes says nothing."""
WHOLE = 384
_PIECE = 48
MAX_PIECES = 32
"""A text above 384 characters may lie in several pages, so it is looked for by up to 32 pieces of 48."""
VECTOR_PIECE = 64
BLOCK = 1 << 20
OURS = (
    "facts.db", "facts.db-wal", "inbox", "lancedb", "lancedb-purged", "lancedb.sha256", "presence", "remembered.json",
    "transcripts",
)  # fmt: skip
"""What a purge cleans, and the exports in exports/. Anything else in the folder it only names."""
KINDS = {
    "backups": "backup or export",
    "index": "index: the text is in a file or session file that perdure does not own",
    "vault": "vault",
    "exports": "export",
    "facts.db": "a store that is no longer in use",
}
BEYOND = (
    "transcripts and session files kept by the host",
    "Markdown files that the text was written to",
    "backups and exports that were copied out of the data folder",
)
"""What no search of the data folder can see."""
SERVER = "the server's log and its backups, until they expire"
OTHERS = "folders of other machines, until a program there has exclusive use of its folder"
OBJECTS = "versions and backups kept by the object storage of the LanceDB table"


@dataclass(frozen=True, slots=True)
class Needles:
    """What must not be found any more: texts, and the bytes of vectors."""

    texts: tuple[str, ...]
    vectors: tuple[bytes, ...]

    def patterns(self) -> list[bytes]:
        """Return every form in which the texts and vectors could lie in a file."""
        forms = [form for text in self.texts for piece in pieces(text) for form in _forms(piece)]
        halves = [vector[start : start + VECTOR_PIECE] for vector in self.vectors for start in (0, len(vector) // 2)]
        # A piece of zeros would be found everywhere.
        return list(dict.fromkeys([*forms, *(half for half in halves if len(set(half)) > 8)]))

    def masked(self, key: bytes, name: str) -> bytes:
        """Return them as bytes in which nothing of them can be found."""
        values = [self.texts, [vector.hex() for vector in self.vectors]]
        return _mask(json.dumps(values).encode(), key, name)

    @staticmethod
    def unmasked(masked: bytes, key: bytes, name: str) -> Needles:
        """Return what `masked` was made of."""
        texts, vectors = json.loads(_mask(masked, key, name))
        return Needles(tuple(texts), tuple(bytes.fromhex(vector) for vector in vectors))


@dataclass(frozen=True, slots=True)
class Searched:
    """What a search of the data folder found."""

    files: int  # that were looked at
    size: int
    ours: tuple[str, ...]  # files that a purge must clean and that still hold something
    kept: dict[str, str]  # other files that hold something, by path from the folder, with what they are


def beyond(*, shared: bool, elsewhere: bool) -> tuple[str, ...]:
    """Return what no search of the folder can see: of a store that several share, of a LanceDB table elsewhere."""
    return (*BEYOND, *((SERVER, OTHERS) if shared else ()), *((OBJECTS,) if elsewhere else ()))


def pieces(text: str) -> list[str]:
    """Return the parts of a text that are looked for: itself, or samples of it if it is long."""
    if len(text) < MIN_TEXT:
        return []
    if len(text) <= WHOLE:
        return [text]
    step = max(_PIECE, len(text) // MAX_PIECES)
    return [text[start : start + _PIECE] for start in range(0, len(text) - _PIECE, step)]


def search(
    folder: Path, needles: Iterable[Needles], only: Iterable[str] | None = None, *, shared: bool = False
) -> Searched:
    """Look for the needles in the bytes of every file of a data folder, or of the `only` names in it.

    With `shared` the truth is on a server, and a facts.db is one that nobody opens any more.
    """
    patterns = [pattern for some in needles for pattern in some.patterns()]
    names = None if only is None else set(only)
    ours: list[str] = []
    kept: dict[str, str] = {}
    files = size = 0
    for path in _files(folder):
        relative = path.relative_to(folder)
        if names is not None and relative.parts[0] not in names:
            continue
        looked, found = _holds(path, patterns)
        files, size = files + 1, size + looked
        if found and _is_ours(relative) and not (shared and relative.name.startswith("facts.db")):
            ours.append(relative.as_posix())
        elif found:
            kept[relative.as_posix()] = _kind(relative)
    return Searched(files, size, tuple(ours), kept)


def _files(folder: Path) -> Iterator[Path]:
    # -shm files hold numbers of pages only, and SQLite's locks.
    files = (path for path in sorted(folder.rglob("*")) if not path.name.endswith("-shm"))
    return (path for path in files if path.is_file() and not path.is_symlink())


def _holds(path: Path, patterns: Sequence[bytes]) -> tuple[int, bool]:
    size = overlap = 0
    longest = max(map(len, patterns), default=1)
    window = b""
    try:
        for block in _database(path) if path.suffix == ".db" else _file(path):
            size += len(block)
            window = window[len(window) - overlap :] + block
            if any(pattern in window for pattern in patterns):
                return size, True
            overlap = min(longest, len(window))
    except FileNotFoundError:
        pass  # another process has removed it meanwhile
    return size, False


def _file(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        while block := file.read(BLOCK):
            yield block


def _database(path: Path) -> Iterator[bytes]:
    # Read through SQLite's own file layer: to close a file that was opened beside it would drop all locks that
    # this process holds on the database.
    import apsw

    try:
        file = apsw.VFSFile("", str(path), [apsw.SQLITE_OPEN_MAIN_DB | apsw.SQLITE_OPEN_READONLY, 0])
    except apsw.CantOpenError:
        raise FileNotFoundError(path) from None
    try:
        for start in range(0, file.xFileSize(), BLOCK):
            yield file.xRead(min(BLOCK, file.xFileSize() - start), start)
    finally:
        file.xClose()


def _is_ours(relative: Path) -> bool:
    return relative.parts[0] in OURS or (relative.parts[0] == "exports" and relative.suffix in (".jsonl", ".part"))


def _kind(relative: Path) -> str:
    first = relative.parts[0]
    return next((kind for start, kind in KINDS.items() if first.startswith(start)), "file of another program")


def _forms(text: str) -> Iterator[bytes]:
    # As it is, as JSON writes it, and as the full-text index was given it.
    yield text.encode()
    yield json.dumps(text)[1:-1].encode()
    yield json.dumps(text, ensure_ascii=False)[1:-1].encode()
    yield fts_text(text).encode()


def _mask(content: bytes, key: bytes, name: str) -> bytes:
    stream = hashlib.shake_256(key + name.encode()).digest(len(content))
    return (int.from_bytes(content, "big") ^ int.from_bytes(stream, "big")).to_bytes(len(content), "big")
