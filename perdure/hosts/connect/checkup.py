"""What `perdure doctor` says of the hosts that are here."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping

from perdure.api.doctor import Checkup
from perdure.hosts.connect.survey import CONNECTED, connect_command, survey


def checkups(environ: Mapping[str, str] = os.environ) -> Iterator[Checkup]:
    """Look at the hosts that are on this machine; that they are not connected is no fault.

    Args:
        environ: the environment by which hosts find their programs and configs.
    """
    for found in survey(environ, CONNECTED):
        if not found.installed:
            continue
        command = connect_command(found.name)
        for problem in found.problems:
            yield Checkup(found.name, problem, f"see to that, then run `{command}`")
        if not found.problems:
            told = f"memory is {found.memory}" if found.places else f"not connected; it would be with: {command}"
            yield Checkup(found.name, told)
