"""The tests over PostgreSQL instead of files: each data folder is a tenant of its own on one server."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import Any

VARIABLE = "TEST_STORE_URL"
"""Names the server; unset, the tests keep their stores in files."""
_KEY = "5e" * 32


def kept() -> dict[str, str]:
    """Return the environment by which stores are on the server, if the tests run there."""
    url = os.environ.get(VARIABLE)
    return {"PERDURE_STORE_URL": url, "PERDURE_STORE_KEY": _KEY} if url else {}


def part_by_folder() -> None:
    """Have every store on the server, each data folder a tenant: a folder opened twice is one, and two are two."""
    if VARIABLE not in os.environ:
        return
    from perdure.postgres.database import PostgresDatabase
    from perdure.store.store import Server, Store

    begin, place = PostgresDatabase.__init__, Store.__init__

    def parted(self: PostgresDatabase, url: str, tenant: str, folder: Path, *rest: Any, **named: Any) -> None:
        own = f"{tenant}:{hashlib.sha256(os.fsencode(folder.resolve())).hexdigest()[:16]}"
        begin(self, url, own, folder, *rest, **named)

    def placed(self: Store, folder: Path, **given: Any) -> None:
        place(self, folder, **{**given, "server": given.get("server") or Server(os.environ[VARIABLE])})

    PostgresDatabase.__init__ = parted  # type: ignore[method-assign]
    Store.__init__ = placed  # type: ignore[method-assign]
    os.environ.update(kept())
