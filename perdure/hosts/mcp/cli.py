"""`perdure mcp`: memory for a client of the Model Context Protocol."""

from __future__ import annotations

import gc
import os
from pathlib import Path

import click

from perdure.cli.options import agent_option, home_option, user_option
from perdure.engine.repository import project_of
from perdure.extras import need
from perdure.hosts.mcp.client import McpClient


@click.command()
@click.option("--workspace", type=click.Path(path_type=Path), help="Folder with MEMORY.md and memory/.")
@click.option("--host", default="mcp", show_default=True, help="The client's name, for the journal.")
@home_option
@agent_option
@user_option
def mcp(home: Path | None, agent: str | None, user: str | None, workspace: Path | None, host: str) -> int:
    """Serve memory over stdin and stdout to a client of the Model Context Protocol.

    The client starts it itself, once it is told to: `claude mcp add perdure -- perdure mcp`. What belongs to the
    repository that it starts it in comes up there alone.

    Example: perdure mcp
    """
    # Hundreds of models are built at import and all are kept: the collector would take a sixth of the time for nothing.
    gc.disable()
    need("mcp.server.lowlevel", "mcp")
    from perdure.hosts.mcp.server import serve

    gc.enable()
    # Claude Code starts it wherever it likes, and names the folder that it works in.
    project = project_of(os.environ.get("CLAUDE_PROJECT_DIR") or Path.cwd())
    folder = str(workspace.absolute()) if workspace else None
    serve(home, McpClient(agent=agent, user=user, workspace=folder, project=project, host=host))
    return 0
