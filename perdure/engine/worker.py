"""The worker process: `python -m perdure.engine.worker`, started by a host's process when there is work.

Reads one line of JSON on stdin: {"home": ..., "settings": {...}}. Ends when it has been idle, when its
stdin closes (the host is gone), or when another worker has the store. It may be killed at any moment.
The interpreter is not wound up: native threads and other people's code can abort or hold up its end.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
import traceback
from pathlib import Path
from typing import NoReturn

NICE = 10
"""Steps by which its priority is below the host's (POSIX): turns come first on the processor as well."""
GRACE = 1.0
"""Seconds for which what is being done may go on when the host is gone."""


def main() -> int:
    """Run until there is nothing to do; return the exit code."""
    os.umask(0o077)  # LanceDB makes files by the umask
    if hasattr(os, "nice"):
        os.nice(NICE)
    line = sys.stdin.readline()
    if not line.endswith("\n"):
        return 0  # the host was gone before it had said what is to be done
    order = json.loads(line)
    begun, stop = threading.Event(), threading.Event()
    threading.Thread(target=_watch_host, args=(begun, stop), daemon=True).start()
    # Behind the watching: a host that goes while all this is imported is not outlived for that long.
    from filelock import FileLock, Timeout

    from perdure.engine.settings import Settings
    from perdure.engine.work import work
    from perdure.errors import PerdureError

    home = Path(order["home"])
    try:
        with FileLock(home / "worker.lock", timeout=0, mode=0o600):
            begun.set()
            work(home, Settings.load(order["settings"], environ={}), stop)
    except Timeout:
        return 0
    except PerdureError as error:
        sys.stderr.write(f"perdure worker: {type(error).__name__}: {error}\n")
        return 1
    return 0


def _watch_host(begun: threading.Event, stop: threading.Event) -> None:
    sys.stdin.read()
    stop.set()
    # One that is still importing has nothing to bring to an end, and the host waits for it.
    if begun.is_set():
        time.sleep(GRACE)
    # Whatever is being done can be done again: the host must not leave an orphan behind.
    os._exit(0)


def _run() -> NoReturn:
    code = 1
    try:
        code = main()
    finally:
        if sys.exception() is not None:
            traceback.print_exc()
        sys.stderr.flush()
        os._exit(code)


if __name__ == "__main__":
    _run()
