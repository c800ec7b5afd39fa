"""Importing the LanceDB table of memory-lancedb-pro."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from perdure.errors import InputError
from perdure.importers.records import fact_of, json_object, seconds
from perdure.maintenance.importing import Incoming, Load
from perdure.store.fact import Fact
from perdure.text.lexicon import table

TABLE = "memories"
_FOLDERS = ("lancedb-pro", "lancedb")
"""Where it stands below the folder that its user knows."""
_NAMES: Mapping[str, str] = table("importers", "columns")["lancedb"]
"""Metadata that stands in columns of ours by another name."""
_SAME = ("confidence", "source", "access_count", "injected_count", "valid_from", "superseded_by")
_TIERS = {"core": "hot", "working": "warm", "peripheral": "cold"}
_STATES = {"pending": "pending", "confirmed": "approved"}


def is_lancedb_pro(path: Path) -> bool:
    """Return whether this folder is a LanceDB database with a table of memories."""
    return (_table_in(path) / f"{TABLE}.lance").is_dir()


def _table_in(path: Path) -> Path:
    places = (path, *(path / name for name in _FOLDERS))
    return next((place for place in places if (place / f"{TABLE}.lance").is_dir()), path)


def load_lancedb_pro(path: Path) -> Load:
    """Return what the table of memories in a LanceDB folder holds, without its vectors: they are of another space."""
    rows = _rows(_table_in(path))
    times = {row["id"]: row["timestamp"] for row in rows}
    return Load("lancedb-pro", len(rows), lambda: (Incoming(_fact(row, times)) for row in rows), lambda: ())


def _rows(path: Path) -> list[dict[str, Any]]:
    try:
        import lancedb

        table = lancedb.connect(path).open_table(TABLE)
        missing = {"id", "text", "timestamp"} - set(table.schema.names)
        if missing:
            raise InputError(f"{path} has no column {', '.join(sorted(missing))}; it is no table of lancedb-pro")
        names = [name for name in table.schema.names if name != "vector"]
        rows: list[dict[str, Any]] = table.search().select(names).limit(None).to_arrow().to_pylist()
    except (ImportError, OSError, RuntimeError, ValueError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"LanceDB folder {path} cannot be read ({type(error).__name__}); check the path") from error
    return sorted(rows, key=lambda row: (row["timestamp"] or 0, row["id"]))


def _fact(row: Mapping[str, Any], times: Mapping[str, Any]) -> Fact:
    metadata = json_object(row.get("metadata"))
    values = {name: metadata.pop(name) for name in _SAME if name in metadata}
    values |= {ours: metadata.pop(name) for name, ours in _NAMES.items() if name in metadata}
    if metadata.get("tier") in _TIERS:
        values["tier"] = _TIERS[metadata.pop("tier")]
    if "state" in metadata:
        # What was archived there came up for nobody who did not search for it.
        values["review_state"] = _STATES.get(metadata["state"], "rejected")
        if metadata["state"] in _STATES:
            del metadata["state"]
    ended = metadata.get("invalidated_at")
    if seconds(ended) is not None:
        del metadata["invalidated_at"]
    elif values.get("superseded_by"):
        ended = times.get(values["superseded_by"], row["timestamp"])
    rest = {name: value for name, value in row.items() if name not in ("metadata", "timestamp")}
    return fact_of(
        {
            **rest,
            **values,
            "created_at": row["timestamp"],
            "superseded_at": ended,
            "valid_until": ended,
            "decay_class": "permanent",  # nothing expires there
            "metadata": metadata,
        }
    )
