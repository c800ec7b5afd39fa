"""What answers requests in a process that keeps a store open: in threads, until it is to end, whatever a request does.

How requests come in, and how answers go out, is told by what is made of it: a socket for programs that come and go,
the pipes of a host that has started the process.
"""

from __future__ import annotations

import logging
import os
import signal
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any, NoReturn

from perdure.errors import PerdureError

LAST_SECONDS = 4.0
"""After these a process that closes what is open ends, whatever still holds it."""
_log = logging.getLogger("perdure.service")


class Refusal(Exception):
    """What a request is answered with instead of a result."""

    def __init__(self, message: str, kind: str = "") -> None:
        super().__init__(f"{kind}: {message}" if kind else message)
        self.message = message
        self.kind = kind  # the name of the error that it was here; empty: it was none of ours


class Service:
    """Does what is asked for by name."""

    def __init__(self, do: Callable[[str, Any], Any], threads: Mapping[str, int]) -> None:
        """Prepare.

        `do` may block, and may be called from any thread. `threads`: slots, and how many requests each does at a time.
        """
        self._do = do
        self._pools = {slot: ThreadPoolExecutor(count, f"perdure-{slot}") for slot, count in threads.items()}
        self._lock = threading.Lock()
        # What can be read from the first once it is to end.
        self.stopped, self._stop = os.pipe()
        os.set_blocking(self._stop, False)

    def stop(self) -> None:
        """End after what is under way."""
        with suppress(OSError):
            os.write(self._stop, b".")

    def run(self, serve: Callable[[], None], close: Callable[[], None], *signals: signal.Signals) -> NoReturn:
        """Serve until the end, which these signals bring as well; close what is open, in time, and end the process."""
        # The system itself writes to the pipe, which ends `serve`: a handler may not run while a wait begins.
        signal.set_wakeup_fd(self._stop, warn_on_full_buffer=False)
        for number in signals:
            signal.signal(number, lambda *_: None)
        try:
            serve()
        finally:
            timer = threading.Timer(LAST_SECONDS, lambda: os._exit(1))
            timer.daemon = True
            timer.start()
            close()
        # Threads of the pools that hang would keep the interpreter waiting at its end.
        os._exit(0)

    def done(self, name: str, given: Any) -> Any:
        """Return what a request comes to; Refusal if nothing does."""
        try:
            return self._do(name, given)
        except Refusal:
            raise
        except PerdureError as error:
            raise Refusal(str(error), type(error).__name__) from error
        except Exception as error:
            _log.exception("request %s failed", name[:40])
            raise Refusal(f"unexpected {type(error).__name__}; please report it") from error
