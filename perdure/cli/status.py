"""`perdure status`: how the store is."""

from __future__ import annotations

from pathlib import Path

import click

from perdure.api.memory import Memory
from perdure.api.status import LostStatus, Status, lost_status
from perdure.cli.options import home_option, json_option
from perdure.cli.output import Output


@click.command()
@home_option
@json_option
def status(home: Path | None, as_json: bool) -> int:
    """Show how the store is, and what is wrong with it. Exit code 1: facts.db is lost, older, foreign or damaged.

    Example: perdure status
    """
    state: Status | LostStatus | None = lost_status(home)
    if state is None:
        with Memory.open(home, timers=False, guest=True) as memory:
            memory.ready()
            state = memory.status()
    output = Output(as_json)
    if as_json:
        output.json(state.to_dict())
    else:
        told = {name: value for name, value in state.to_dict().items() if value not in (None, ())}
        output.table(("", ""), [(name.replace("_", " "), value) for name, value in told.items()])
    return int(isinstance(state, LostStatus))
