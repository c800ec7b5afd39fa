"""`python -m perdure.hosts.openclaw`: the child process of the gateway, which answers by stdin and stdout."""

from __future__ import annotations

import logging
import os
import signal
import sys
import threading
from types import FrameType

from perdure.cli.log_lines import line_handler
from perdure.hosts.openclaw.hooks import OpenClawHooks
from perdure.hosts.openclaw.server import Server, Writer

PARENT_SECONDS = 1.0
"""How often is looked whether the host is still there."""
LAST_SECONDS = 4.0
"""After this the process ends, whatever still holds it."""


def main() -> None:
    """Run the child: until stdin closes, the host is gone, or SIGTERM."""
    out = _reserve_stdout()
    stop = _wake_on_signals()
    logging.basicConfig(level=logging.INFO, handlers=[line_handler("%(levelname)s %(name)s: %(message)s")])
    signal.signal(signal.SIGTERM, _stop)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_watch_parent, args=(os.getppid(),), daemon=True, name="perdure-parent").start()
    hooks = OpenClawHooks()
    server = Server(hooks, Writer(out))
    try:
        server.serve(0, stop)
    except (SystemExit, BrokenPipeError):
        pass
    finally:
        _end_in_time()
        server.close()
        hooks.close()
    # Threads of the pools that hang would keep the interpreter waiting at its end.
    sys.stderr.flush()
    os._exit(0)


def _reserve_stdout() -> int:
    """Keep stdout for the protocol: whatever else is printed goes to stderr."""
    out = os.dup(1)
    os.set_inheritable(out, False)
    os.dup2(2, 1)
    return out


def _wake_on_signals() -> int:
    """Return a pipe in which every signal leaves a byte."""
    stop, woken = os.pipe()
    os.set_blocking(woken, False)
    signal.set_wakeup_fd(woken, warn_on_full_buffer=False)
    return stop


def _stop(number: int, frame: FrameType | None) -> None:
    raise SystemExit(0)


def _watch_parent(parent: int) -> None:
    # The end of stdin tells the same, unless another process has inherited its other side.
    pause = threading.Event()
    while os.getppid() == parent:
        pause.wait(PARENT_SECONDS)
    os.kill(os.getpid(), signal.SIGTERM)


def _end_in_time() -> None:
    timer = threading.Timer(LAST_SECONDS, lambda: os._exit(1))
    timer.daemon = True
    timer.start()


if __name__ == "__main__":
    main()
