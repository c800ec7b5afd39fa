"""The secret of a store whose rows are on a server: it is never there."""

from __future__ import annotations

import os
import re
import secrets
from pathlib import Path

from perdure.errors import StoreUnavailableError
from perdure.store.folder import make_once

KEY_VARIABLE, KEY_FILE, KEY_BYTES = "PERDURE_STORE_KEY", "store.key", 32


def key_of(folder: Path) -> bytes:
    """Return the secret of the store: from the environment, or the file that is made once."""
    known = known_key(folder)
    if known is not None:
        return known
    make_once(folder / KEY_FILE, secrets.token_hex(KEY_BYTES))
    return _read(folder / KEY_FILE)


def known_key(folder: Path) -> bytes | None:
    """Return the secret of the store; None: it has none yet."""
    named, path = os.environ.get(KEY_VARIABLE), folder / KEY_FILE
    if named:
        return _bytes(named, KEY_VARIABLE)
    return _read(path) if path.exists() else None


def _read(path: Path) -> bytes:
    return _bytes(path.read_text(encoding="ascii", errors="replace"), str(path))


def _bytes(text: str, where: str) -> bytes:
    if re.fullmatch(rf"[0-9a-fA-F]{{{2 * KEY_BYTES}}}", text.strip()) is None:
        raise StoreUnavailableError(
            f"{where} is not a valid key: it must be {2 * KEY_BYTES} hex digits; generate one with:"
            f" openssl rand -hex {KEY_BYTES}"
        )
    return bytes.fromhex(text.strip())
