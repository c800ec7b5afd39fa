"""What `perdure doctor` says of OpenClaw: whether it is here, and whether it calls perdure."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping

from perdure.api.doctor import Checkup
from perdure.engine.paths import recorded_host
from perdure.errors import HostError, SettingsError
from perdure.hosts.openclaw.host import OpenClaw, config_file
from perdure.hosts.openclaw.install import Installation
from perdure.hosts.openclaw.manifest import ID
from perdure.hosts.openclaw.mapping import HOST

NAME = "openclaw"


def checkups(environ: Mapping[str, str] = os.environ) -> Iterator[Checkup]:
    """Look at OpenClaw, if it has a config on this machine; that perdure is not installed into it is no fault.

    Args:
        environ: the environment; the variables of `OpenClaw.find` count.
    """
    config = config_file(environ)
    if not config.is_file():
        return
    try:
        installation = Installation(OpenClaw.find(environ=environ))
        plugins = installation.host.plugins()
        if not _ours(plugins):
            yield Checkup(NAME, f"perdure is not its memory; it would be with: perdure openclaw install ({config})")
            return
        problems = {name: problem for name, problem in installation.checks().items() if problem}
    except HostError as error:
        fix = "see to that, then run `perdure openclaw status`" if _recorded() else ""
        yield Checkup(NAME, str(error), fix)
        return
    for name, problem in problems.items():
        yield Checkup(NAME, f"{name}: {problem}", "perdure openclaw install")
    if not problems:
        yield Checkup(NAME, f"version {installation.host.version} is set up for perdure ({config})")


def _ours(plugins: Mapping[str, object]) -> bool:
    entries = plugins.get("entries")
    return _recorded() or (isinstance(entries, Mapping) and ID in entries)


def _recorded() -> bool:
    try:
        recorded = recorded_host()
    except SettingsError:
        return False  # said by the look at the host's record
    return recorded is not None and recorded[0] == HOST
