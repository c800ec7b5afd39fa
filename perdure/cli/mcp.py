"""`perdure mcp`: memory for a client of the Model Context Protocol."""

from __future__ import annotations

import gc
from pathlib import Path

import click

from perdure.cli.options import agent_option, home_option, user_option
from perdure.hosts.extras import need


@click.command()
@click.option("--workspace", type=click.Path(path_type=Path), help="Folder with MEMORY.md and memory/.")
@home_option
@agent_option
@user_option
def mcp(home: Path | None, agent: str | None, user: str | None, workspace: Path | None) -> int:
    """Serve memory over stdin and stdout to a client of the Model Context Protocol.

    The client starts it itself, once it is told to: `claude mcp add perdure -- perdure mcp`

    Example: perdure mcp
    """
    # Hundreds of models are built at import and all are kept: the collector would take a sixth of the time for nothing.
    gc.disable()
    need("mcp.server.lowlevel", "mcp")
    from perdure.hosts.mcp.server import serve

    gc.enable()
    serve(home, agent=agent, user=user, workspace=workspace)
    return 0
