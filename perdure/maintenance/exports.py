"""The day's export, `exports/facts-YYYY-MM-DD.jsonl` (UTC): texts for the day on which facts.db is lost.

The format is that of `perdure export`, so `perdure import` reads it. The last line is its seal (HMAC-SHA256 by the
store's key over all bytes before it): who has the key knows what this store wrote and nobody has changed since. The
header also holds `at`, when it was written, and `change`, the number of the journal's last row at that moment.

What is purged or scrubbed leaves these files as well. They are written anew and sealed again, unless their seal did not
hold before: what somebody else has changed is not vouched for.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from perdure.errors import StoreUnavailableError
from perdure.files.transcript_log import values_of
from perdure.maintenance.exchange import Sealed, export, fact_line, private_copy, seal_of
from perdure.store.fact import Fact, Summaries, read_facts, was_cut
from perdure.store.folder import sync_folder
from perdure.store.safe import TEXTS, safe, safe_fact
from perdure.store.sql import newest
from perdure.store.store import Store
from perdure.text.normalise import fingerprint

KEEP = 7
_DAILY = "facts-????-??-??.jsonl"
_COUNTED = {"fact": "facts", "link": "links", "trigger": "triggers", "journal": "journal"}
Look = Callable[[bytes, dict[str, Any]], bytes | None]
"""Takes a line as it stands and what it says ({}: nothing that can be read); returns what is to stand there, if any."""


@dataclass(frozen=True, slots=True)
class DailyExport:
    """A day's export."""

    path: Path
    at: float  # when it was written, epoch seconds
    change: int  # number of the last change in it
    facts: int
    intact: bool  # whether its seal holds


def exports_folder(folder: Path) -> Path:
    """Return where a data folder keeps its daily exports."""
    return folder / "exports"


def daily_files(folder: Path) -> list[Path]:
    """Return the daily exports of a data folder, newest first."""
    return sorted(exports_folder(folder).glob(_DAILY), reverse=True)


def newest_export(store: Store) -> DailyExport | None:
    """Return the newest daily export, or None if there is none."""
    for path in daily_files(store.folder)[:1]:
        header, intact = _read(path, store.key)
        numbers = [header.get("at"), header.get("change"), _counts(header).get("facts")]
        at, change, facts = (value if isinstance(value, (int, float)) else 0 for value in numbers)
        return DailyExport(path, float(at), int(change), int(facts), intact)
    return None


def daily_export(
    store: Store, keep: int = KEEP, *, again: bool = False, pause: Callable[[], None] = lambda: None
) -> Path | None:
    """Write today's export, without vectors, and keep the newest `keep`; None if nothing has changed, unless `again`.

    What `pause` raises between facts breaks off, and leaves everything as it was.
    """
    last = newest_export(store)
    changes = store.database.query(newest)
    if last is not None and last.intact and last.change == changes and not again:
        return None
    day = datetime.fromtimestamp(store.clock.now(), UTC).date()
    path = exports_folder(store.folder) / f"facts-{day}.jsonl"
    export(store, path, replace=True, advance=pause)
    # Not by name alone: under a clock that was set back, what has just been written is not the newest name.
    for old in [each for each in daily_files(store.folder) if each != path][keep - 1 :]:
        old.unlink(missing_ok=True)
    sync_folder(path.parent)
    return path


def take_out(
    store: Store, fact_ids: Collection[str], gone: Collection[str] = (), patterns: Sequence[bytes] = ()
) -> None:
    """Take purged or rewritten facts out of all exports of the folder, and every line with one of the patterns.

    To be called when nobody else has the store open. `gone` are facts of which it is known that they are no more.
    """
    changed, absent = set(fact_ids), set(gone)

    def look(raw: bytes, line: dict[str, Any]) -> bytes | None:
        held = any(pattern in raw for pattern in patterns)
        match line.get("type"):
            case "fact" if line.get("id") in absent:
                return None
            case "fact" if held or line.get("id") in changed:
                present = _present(store, str(line.get("id")))
                if present is None or any(pattern in present for pattern in patterns):
                    absent.add(str(line.get("id")))
                    return None
                return present
            case "link" if {line.get("source_fact_id"), line.get("target_fact_id")} & absent:
                return None
            case "trigger" if line.get("fact_id") in absent:
                return None
        return None if held else raw

    for part in exports_folder(store.folder).glob("*.part"):
        part.unlink(missing_ok=True)
    _rewrite_all(store, look)


def redact_again(store: Store, pause: Callable[[], object] = lambda: None) -> int:
    """Pass all exports of the folder through the present redactor; return how many have changed."""
    known: set[bytes] = set()

    def look(raw: bytes, line: dict[str, Any]) -> bytes:
        # Most lines are the same on all days.
        digest = hashlib.blake2b(raw, digest_size=8).digest()
        if line.get("type") not in ("fact", "trigger") or digest in known:
            return raw
        pause()
        clean = _redacted(line) if line["type"] == "fact" else line | {"text": safe(str(line.get("text")))}
        if clean != line:
            return _encoded(clean)
        known.add(digest)
        return raw

    return _rewrite_all(store, look)


def _redacted(line: dict[str, Any]) -> dict[str, Any]:
    texts = {name: line[name] for name in TEXTS if name in line}
    fact = safe_fact(Fact(**{"text": ""} | texts)).fact
    clean = line | {name: getattr(fact, name) for name in texts}
    if "tags" in texts:
        clean["tags"] = list(fact.tags)
    before, after, cut = line.get("text"), clean.get("text"), line.get("summary")
    if isinstance(before, str) and isinstance(after, str) and before != after:
        clean["normalized_hash"] = fingerprint(after)
        if isinstance(cut, str) and was_cut(Fact(before, summary=cut)):
            clean["summary"] = Summaries(0, len(cut) - 1).of(after)
    return clean


def _rewrite_all(store: Store, look: Look) -> int:
    return sum(_rewrite(path, store.key, look) for path in sorted(exports_folder(store.folder).glob("*.jsonl")))


def _rewrite(path: Path, key: bytes, look: Look) -> bool:
    """Write an export anew if a look at its lines changes any; return whether it did."""
    changed: dict[int, bytes | None] = {}
    dropped: Counter[str] = Counter()
    try:
        with path.open("rb") as file:
            for number, raw in enumerate(file):
                line = values_of(raw)
                new = raw if line.get("type") in ("header", "seal") else look(raw, line)
                if new != raw:
                    changed[number] = new
                    dropped[str(line.get("type"))] += new is None
                    dropped["vector"] += new is None and "vector" in line
        if not changed:
            return False
        _, intact = _read(path, key)
        before = path.stat()
        with private_copy(path) as target, path.open("rb") as file:
            _copy(file, Sealed(target, key), changed, dropped, intact)
        # What it says is as old as it was.
        os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    except FileNotFoundError:
        return False  # another process has removed it meanwhile
    except OSError as error:
        raise StoreUnavailableError(f"{path} cannot be read ({error.strerror}); check its permissions") from error
    return True


def _copy(
    source: Iterable[bytes], target: Sealed, changed: Mapping[int, bytes | None], dropped: Counter[str], intact: bool
) -> None:
    for number, raw in enumerate(source):
        line = values_of(raw)
        new = changed.get(number, raw)
        if line.get("type") == "header":
            counts = _counts(line)
            fewer = {name: dropped[kind] for kind, name in _COUNTED.items()} | {"vectors": dropped["vector"]}
            new = _encoded(line | {"counts": {name: count - fewer.get(name, 0) for name, count in counts.items()}})
        if new is not None and line.get("type") != "seal":
            target.write(new)
    if intact:
        target.seal()


def _read(path: Path, key: bytes) -> tuple[dict[str, Any], bool]:
    """Return the header of an export, and whether its seal holds."""
    seal, intact = seal_of(key), False
    header: dict[str, Any] = {}
    try:
        with path.open("rb") as file:
            for number, raw in enumerate(file):
                header = header if number else values_of(raw)
                line = values_of(raw) if b'"seal"' in raw else {}
                intact = line.get("type") == "seal" and hmac.compare_digest(str(line.get("hmac")), seal.hexdigest())
                seal.update(raw)
    except OSError as error:
        raise StoreUnavailableError(f"{path} cannot be read ({error.strerror}); check its permissions") from error
    return header, intact


def _present(store: Store, fact_id: str) -> bytes | None:
    """Return the line of a fact as it is now; None if it is gone."""
    found = store.database.query(read_facts, "facts WHERE id = ?", (fact_id,))
    return _encoded(fact_line(found[0])) if found else None


def _counts(header: Mapping[str, Any]) -> dict[str, int]:
    counts = header.get("counts")
    return {name: count for name, count in counts.items() if type(count) is int} if isinstance(counts, dict) else {}


def _encoded(line: Mapping[str, Any]) -> bytes:
    return json.dumps(line, ensure_ascii=False).encode() + b"\n"
