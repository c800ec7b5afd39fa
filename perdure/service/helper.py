"""The process that keeps a store open and its model loaded, for all hooks and MCP servers of a data folder.

python -I -m perdure.service.helper FOLDER

One for each data folder. It listens on a Unix socket, answers its own user alone, and ends when nobody has asked for
ten minutes, or when a hook of another version of perdure does.
"""

from __future__ import annotations

import logging
import os
import selectors
import signal
import socket
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path

from perdure.service.client import OK, PAUSE, STALE, STOP, endpoint, lock_of, peer, received, stamp
from perdure.service.service import Refusal, Service

IDLE_SECONDS = 600.0
LOOK_SECONDS = 5.0
"""How often is looked whether it is idle, or its socket is gone."""
WAITING = 64
"""Connections that wait to be taken."""
THREADS = 8
TRIES = 5
SEND_SECONDS = 5.0
"""For which a hook may take to send its event."""
Method = Callable[[bytes], bytes]


class Helper(Service):
    """Answers one request per connection to a socket until `stop`, or until nobody asks any more."""

    def __init__(
        self,
        path: str,
        methods: Mapping[str, Method],
        idle: float = IDLE_SECONDS,
        look: Callable[[], None] = lambda: None,
    ) -> None:
        """Listen on a socket; end after `idle` seconds without a request, and call `look` every few seconds.

        A method may block, and may be called from any thread.
        """
        super().__init__(self._asked, {"helper": THREADS})
        self._path, self._methods, self._idle, self._look = path, methods, idle, look
        self._stamp = stamp()
        self._busy, self._last = 0, time.monotonic()
        made = f"{path}.new"
        with suppress(FileNotFoundError):
            os.unlink(made)  # noqa: PTH108 - paths as the hooks have them
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._listener.bind(made)
        os.chmod(made, 0o600)  # noqa: PTH101 - as above
        self._listener.listen(WAITING)
        # Who finds it can connect. A former one's is replaced: the lock is held, so nobody listens there any more.
        os.rename(made, path)  # noqa: PTH104 - as above
        self._own = os.stat(path).st_ino  # noqa: PTH116 - as above

    def serve(self) -> None:
        """Answer until the end."""
        looked = time.monotonic()
        with selectors.DefaultSelector() as ready:
            ready.register(self._listener, selectors.EVENT_READ)
            ready.register(self.stopped, selectors.EVENT_READ)
            while True:
                found = [key.fd for key, _ in ready.select(LOOK_SECONDS)]
                if self.stopped in found or (not found and self._is_over()):
                    break
                if time.monotonic() - looked >= LOOK_SECONDS:
                    looked = time.monotonic()
                    self._look()
                if found:
                    with suppress(OSError):
                        taken, _ = self._listener.accept()
                        with self._lock:
                            self._busy += 1
                        self._pools["helper"].submit(self._answer, taken)
        with suppress(OSError):
            if os.stat(self._path).st_ino == self._own:  # noqa: PTH116 - as above
                os.unlink(self._path)  # noqa: PTH108 - as above
        self._listener.close()
        self._pools["helper"].shutdown(wait=True)

    def _is_over(self) -> bool:
        with self._lock:
            idle = not self._busy and time.monotonic() - self._last > self._idle
        try:
            return idle or os.stat(self._path).st_ino != self._own  # noqa: PTH116 - as above
        except OSError:
            return True

    def _answer(self, taken: socket.socket) -> None:
        try:
            with taken:
                if peer(taken) == os.getuid():
                    taken.settimeout(SEND_SECONDS)
                    head, body = self._answered(*received(taken).split(b"\n", 1))
                    taken.sendall(head.encode() + b"\n" + body)
        except (OSError, TypeError):
            pass  # who asked is gone, or sent half a request
        finally:
            with self._lock:
                self._busy -= 1
                self._last = time.monotonic()

    def _answered(self, head: bytes, body: bytes) -> tuple[str, bytes]:
        name, _, said = head.decode("utf-8", "replace").partition("\t")
        if said != self._stamp or name == STOP:
            self.stop()
            return OK if said == self._stamp else STALE, b""
        try:
            return OK, self.done(name, body)
        except Refusal as error:
            return error.kind or "HostError", error.message.encode("utf-8", "replace")

    def _asked(self, name: str, body: bytes) -> bytes:
        if name not in self._methods:
            raise Refusal(f"unknown method {name[:40]!r}")
        return self._methods[name](body)


def main() -> None:
    """Run the helper of a data folder, unless there is one."""
    # Whatever else a host had open when it ran the hook.
    os.closerange(3, os.sysconf("SC_OPEN_MAX"))
    with suppress(PermissionError):
        os.setsid()
    os.umask(0o077)
    home = sys.argv[1]
    path = endpoint(home)
    for _ in range(TRIES):
        if lock_of(path) is not None:
            break
        # A hook that looks whether there is a helper holds it for a moment as well.
        time.sleep(PAUSE)
    else:
        return
    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    from perdure.parts import part

    hooks = part("hosts.command.hooks").CommandHooks(Path(home))
    desks = part("hosts.mcp.desk").SharedDesks(hooks.store, hooks.said)
    hooks.open()
    os.chdir(home)
    helper = Helper(f"{path}.sock", {"hook": hooks.answer, "desk": desks.answer}, look=hooks.adopt)
    helper.run(helper.serve, hooks.close, signal.SIGTERM, signal.SIGINT)


if __name__ == "__main__":
    main()
