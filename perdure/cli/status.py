"""`perdure status`: how the store is."""

from __future__ import annotations

from pathlib import Path

import click

from perdure.api.memory import Memory
from perdure.api.status import LostStatus, Status, lost_status
from perdure.cli.options import home_option, json_option
from perdure.cli.output import FOUND_NOTHING, OK, Output
from perdure.engine.paths import data_folder
from perdure.engine.settings import Settings
from perdure.errors import StoreBusyError, StorePurgedError, StoreUnavailableError
from perdure.store.inbox import waiting_in


@click.command()
@home_option
@json_option
def status(home: Path | None, as_json: bool) -> int:
    """Show how the store is, and what is wrong with it.

    Exit code 1: facts.db is lost, older, foreign or damaged, or the database of `store_url` cannot be used.

    Example: perdure status
    """
    state = lost_status(home) or _asked(home)
    output = Output(as_json)
    if as_json:
        output.json(state.to_dict())
    else:
        told = {name: value for name, value in state.to_dict().items() if value not in (None, ())}
        output.table(("", ""), [(name.replace("_", " "), value) for name, value in told.items()])
    return OK if isinstance(state, Status) else FOUND_NOTHING


def _asked(home: Path | None) -> Status | LostStatus:
    try:
        with Memory.open(home, timers=False, guest=True) as memory:
            memory.ready()
            return memory.status()
    except StorePurgedError:
        raise
    except (StoreBusyError, StoreUnavailableError) as error:
        if Settings.load().store_url is None:
            raise
        folder = data_folder(home)
        return LostStatus(str(folder), "unavailable", str(error), waiting_in(folder / "inbox"))
