"""`perdure move`: from the data folder to a server, and back."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import click

from perdure.cli.options import dry_run_option, home_option, json_option
from perdure.cli.output import Output, progress
from perdure.engine.paths import data_folder
from perdure.engine.settings import Settings
from perdure.service.client import dismiss


@click.command()
@click.option("--to", required=True, help="postgresql://... without a password, or a folder.")
@dry_run_option
@home_option
@json_option
def move(to: str, dry_run: bool, home: Path | None, as_json: bool) -> int:
    """Move the memories to a PostgreSQL server, or from one into a folder. A move that was killed goes on.

    Example: perdure move --to postgresql://perdure@db.example/perdure
    """
    from perdure.api import moving

    folder = data_folder(home)
    if not dry_run:
        dismiss(folder)
    with progress("copying", None, quiet=as_json) as advance:
        done = moving.move(folder, to, Settings.load(), dry_run=dry_run, progress=advance)
    output = Output(as_json)
    name, value = done.setting
    if as_json:
        output.json({"dry_run": dry_run, **asdict(done), "setting": {name: value}})
        return 0
    facts, changes = done.rows["facts"], done.rows["journal"]
    output.line(f"{facts} facts and {changes} changes {'would be' if dry_run else 'are'} moved to {done.to}")
    if dry_run:
        return 0
    output.line(
        f"{done.conversations} conversations went along; {done.asked} figures of recall are as before or better"
    )
    what = f"perdure config set {name} {value}" if value else f"perdure config unset {name}"
    output.line(f"From now on: {what} (or set PERDURE_STORE_URL), and restart what uses the store")
    return 0
