"""Which hosts are here and which are connected, told in a moment: `survey` also looks at what is wrong with each."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Mapping

from perdure.engine.paths import recorded_host
from perdure.errors import HostError
from perdure.hosts.connect.hermes import Hermes
from perdure.hosts.connect.hook_hosts import ClaudeCode, Codex, plain_hosts
from perdure.hosts.connect.parts import HookHost, folder_of

OPENCLAW = "openclaw"


def glance(environ: Mapping[str, str] = os.environ) -> Iterator[tuple[str, bool]]:
    """Yield each host on this machine, and whether it is connected; raises HostError if the user has no home folder."""
    hosts: list[HookHost] = [ClaudeCode(environ), Codex(environ), *plain_hosts(environ).values()]
    for host in hosts:
        if host.program or host.folder.is_dir():
            yield host.name, _connected(host)
    hermes = Hermes(environ)
    if hermes.program or hermes.folder.is_dir():
        yield hermes.name, hermes.connected
    folder = folder_of(environ, "OPENCLAW_STATE_DIR", ".openclaw")
    if shutil.which(OPENCLAW, path=environ.get("PATH")) or folder.is_dir():
        yield OPENCLAW, (recorded_host() or ("",))[0] == OPENCLAW


def _connected(host: HookHost) -> bool:
    try:
        return bool(host.hooks() or host.elsewhere())
    except HostError:
        return False
