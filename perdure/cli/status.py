"""`perdure status`: how the store is."""

from __future__ import annotations

from pathlib import Path

import click

from perdure.cli.options import home_option, json_option
from perdure.cli.output import Output
from perdure.plugin.memory import Memory


@click.command()
@home_option
@json_option
def status(home: Path | None, as_json: bool) -> int:
    """Show how the store is, and what is wrong with it.

    Example: perdure status
    """
    with Memory.open(home, timers=False) as memory:
        memory.ready()
        state = memory.status()
    output = Output(as_json)
    if as_json:
        output.json(state.to_dict())
    else:
        output.table(("", ""), [(name.replace("_", " "), value) for name, value in state.to_dict().items()])
    return 0
