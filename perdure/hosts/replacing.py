"""Writing a file of a host."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path


def replace_file(path: Path, content: bytes) -> None:
    """Write a file so that it is whole at any moment; it keeps its mode, a new one is for its owner alone.

    Raises:
        OSError: it cannot be written; what was there is there still.
    """
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        if path.exists():
            shutil.copymode(path, name)
        Path(name).replace(path)
    except OSError:
        Path(name).unlink(missing_ok=True)
        raise
