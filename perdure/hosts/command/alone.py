"""A hook without a helper: recall by words, and what was said into the inbox, all in a process of the hook's own."""

from __future__ import annotations

from pathlib import Path

from perdure.hosts.command.hooks import CommandHooks
from perdure.store.folder import was_opened


def handled(home: str, body: bytes) -> bytes:
    """Do what an event asks for. The process may end when this returns: what was taken in is on disk.

    Args:
        home: the data folder.
        body: the event, as the helper would be sent it.

    Returns:
        What the host is to read, if anything.
    """
    folder = Path(home)
    # A guest leaves the housekeeping to the helper that is being started; only a first one may make the store.
    guest = was_opened(folder)
    return CommandHooks(folder, embedder="none", guest=guest, timers=False, watch=False).answer(body)
