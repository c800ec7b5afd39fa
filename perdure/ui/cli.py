"""`perdure ui`: the local page."""

from __future__ import annotations

from pathlib import Path

import click

from perdure.cli.operation import operation
from perdure.cli.output import Output
from perdure.extras import need


@operation()
@click.option("--port", type=click.IntRange(0, 65_535), default=0, show_default=True, help="Port; 0 picks a free one.")
@click.option("--no-browser", is_flag=True, help="Print the one-time address instead of opening a browser.")
def ui(port: int, no_browser: bool, home: Path | None, agent: str | None, user: str | None) -> None:
    """Browse and edit memories in your browser.

    It runs on this machine until you press Ctrl-C; nobody else can open it.

    Example: perdure ui
    """
    for module in ("jinja2", "starlette", "uvicorn", "multipart"):
        need(module, "ui")
    from perdure.ui.server import serve

    serve(home, agent=agent, user=user, port=port, browser=not no_browser, told=Output().line)
