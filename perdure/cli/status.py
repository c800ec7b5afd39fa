"""`perdure status`: how the store is."""

from __future__ import annotations

from pathlib import Path

import click

from perdure.cli.output import Output
from perdure.plugin.memory import Memory


@click.command()
@click.option("--home", type=click.Path(path_type=Path), help="The data folder, if it is not the usual one.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
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
