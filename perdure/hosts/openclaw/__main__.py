"""`python -m perdure.hosts.openclaw`: the child process of the gateway, which answers by stdin and stdout."""

from __future__ import annotations

import logging
import os
import signal
import threading

from perdure.cli.log_lines import line_handler
from perdure.hosts.openclaw.asking import Caller
from perdure.hosts.openclaw.hooks import OpenClawHooks
from perdure.hosts.openclaw.server import Server, Writer

PARENT_SECONDS = 1.0
"""How often is looked whether the host is still there."""


def main() -> None:
    """Run the child: until stdin closes, the host is gone, or SIGTERM."""
    out = _reserve_stdout()
    logging.basicConfig(level=logging.INFO, handlers=[line_handler("%(levelname)s %(name)s: %(message)s")])
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_watch_parent, args=(os.getppid(),), daemon=True, name="perdure-parent").start()
    writer = Writer(out)
    caller = Caller(writer)
    hooks = OpenClawHooks(own_model=caller.own_model)
    server = Server(hooks.handle, writer, caller.answered)

    def close() -> None:
        server.close()
        hooks.close()

    server.run(lambda: server.serve(0), close, signal.SIGTERM)


def _reserve_stdout() -> int:
    """Keep stdout for the protocol: whatever else is printed goes to stderr."""
    out = os.dup(1)
    os.set_inheritable(out, False)
    os.dup2(2, 1)
    return out


def _watch_parent(parent: int) -> None:
    # The end of stdin tells the same, unless another process has inherited its other side.
    pause = threading.Event()
    while os.getppid() == parent:
        pause.wait(PARENT_SECONDS)
    os.kill(os.getpid(), signal.SIGTERM)


if __name__ == "__main__":
    main()
