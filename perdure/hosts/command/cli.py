"""`perdure hook`: what hosts run at each event."""

from __future__ import annotations

from pathlib import Path

import click

from perdure.cli.options import home_option
from perdure.hosts.command.dialects import DIALECTS, EVENTS


@click.command()
@click.argument("event", type=click.Choice(EVENTS))
@click.option("--host", type=click.Choice(tuple(DIALECTS)), required=True, help="The program whose event it is.")
@home_option
def hook(event: str, host: str, home: Path | None) -> None:
    """Hand an event of a host to memory: JSON on stdin, on stdout what the model is to see, if anything.

    The host runs it itself, once it is connected. It ends with exit code 0 within a second, whatever happens.

    Example: perdure hook prompt --host claude-code < event.json
    """
    from perdure.service.client import main

    main([event, "--host", host, *(["--home", str(home)] if home else [])])
