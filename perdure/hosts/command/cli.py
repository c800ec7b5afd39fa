"""`perdure hook`: what hosts run at each event."""

from __future__ import annotations

from pathlib import Path

import click

from perdure.cli.options import home_option
from perdure.hosts.command.dialects import DIALECTS, EVENTS


@click.command()
@click.argument("event", type=click.Choice(EVENTS))
@click.option("--host", type=click.Choice(tuple(DIALECTS)), required=True, help="The host that sends the event.")
@home_option
def hook(event: str, host: str, home: Path | None) -> None:
    """Handle a host's event; connected hosts run this.

    It reads JSON from stdin, writes what the model should see to stdout, and always exits with code 0 within a second.

    Example: perdure hook prompt --host claude-code < event.json
    """
    from perdure.service.client import main

    main([event, "--host", host, *(["--home", str(home)] if home else [])])
