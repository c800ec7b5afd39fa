"""`perdure mcp`: a Model Context Protocol server."""

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
@click.option("--host", default="mcp", show_default=True, help="Name of the client, for the journal.")
@home_option
@agent_option
@user_option
def mcp(home: Path | None, agent: str | None, user: str | None, workspace: Path | None, host: str) -> int:
    """Run an MCP server on stdin and stdout; MCP clients start this.

    For example: `claude mcp add perdure -- perdure mcp`. Memories of the repository in which it is started are recalled
    only there.

    Example: perdure mcp
    """
    # The import builds hundreds of models and keeps all: collecting garbage would take a sixth of the time for nothing.
    gc.disable()
    need("mcp.server.lowlevel", "mcp")
    from perdure.hosts.mcp.server import serve

    gc.enable()
    # Claude Code starts it anywhere and names its working folder.
    project = project_of(os.environ.get("CLAUDE_PROJECT_DIR") or Path.cwd())
    folder = str(workspace.absolute()) if workspace else None
    serve(home, McpClient(agent=agent, user=user, workspace=folder, project=project, host=host))
    return 0
