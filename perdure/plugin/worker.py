"""The worker process: `python -m perdure.plugin.worker`, started by a host's process when there is work.

Reads one line of JSON on stdin: {"home": ..., "settings": {...}}. Ends when it has been idle, when its
stdin closes (the host is gone), or when another worker has the store. It may be killed at any moment.
"""

from __future__ import annotations

import json
import os
import sys
import threading
from collections.abc import Callable
from functools import cache
from pathlib import Path

from filelock import FileLock, Timeout

from perdure.background.indexer import Indexer
from perdure.embed.base import Embedder
from perdure.embed.guarded import GuardedEmbedder
from perdure.errors import PerdureError
from perdure.plugin.engine import embedder_factory, load_extensions
from perdure.plugin.settings import Settings
from perdure.store.store import Store

IDLE_SECONDS = 5.0


def main() -> int:
    """Run until there is nothing to do; return the exit code."""
    os.umask(0o077)  # LanceDB makes files by the umask
    order = json.loads(sys.stdin.readline())
    home = Path(order["home"])
    stop = threading.Event()
    threading.Thread(target=_watch_host, args=(stop,), daemon=True).start()
    try:
        with FileLock(home / "worker.lock", timeout=0, mode=0o600):
            work(home, Settings.load(order["settings"], environ={}), stop)
    except Timeout:
        return 0
    except PerdureError as error:
        sys.stderr.write(f"perdure worker: {type(error).__name__}: {error}\n")
        return 1
    return 0


def work(home: Path, settings: Settings, stop: threading.Event, idle_seconds: float = IDLE_SECONDS) -> None:
    """Do what there is to do, until it is idle or told to stop.

    Raises:
        PerdureError: the store or LanceDB cannot be used.
    """
    store = Store(home)
    indexer = Indexer(store, _embedder_of(store, settings), settings.index_batch)
    try:
        while not stop.is_set():
            if not indexer.step() and stop.wait(idle_seconds):
                break
            if not indexer.step():
                break
    finally:
        indexer.close()
        store.close()


def _watch_host(stop: threading.Event) -> None:
    sys.stdin.read()
    stop.set()
    # Whatever is being done can be done again: the host must not leave an orphan behind.
    threading.Timer(2.0, os._exit, args=(0,)).start()


def _embedder_of(store: Store, settings: Settings) -> Callable[[], Embedder | None]:
    @cache
    def load() -> Embedder | None:
        factory = embedder_factory(settings, load_extensions(settings))
        space = store.space()
        if factory is None or space is None:
            return None
        embedder = GuardedEmbedder(factory())
        return embedder if embedder.identity.id == space.id else None

    return load


if __name__ == "__main__":
    sys.exit(main())
