"""`perdure anchor`: where the store is, as a line to keep elsewhere."""

from __future__ import annotations

from pathlib import Path

import click

from perdure.cli.options import home_option, json_option
from perdure.cli.output import OK, Output
from perdure.engine.opening import open_store
from perdure.engine.paths import data_folder
from perdure.maintenance.anchor import anchor as anchor_of


@click.command()
@home_option
@json_option
def anchor(home: Path | None, as_json: bool) -> int:
    """Print where the store is, as a line to keep elsewhere; `perdure verify` can compare it with the store later.

    Example: perdure anchor --json
    """
    store = open_store(data_folder(home))
    try:
        line = anchor_of(store)
    finally:
        store.close()
    output = Output(as_json)
    output.json({"anchor": line}) if as_json else output.line(line)
    return OK
