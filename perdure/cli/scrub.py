"""`perdure scrub`: secrets that the redactor has learned of since, out of what is stored."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import click

from perdure.cli.options import dry_run_option, existing_store, home_option, json_option
from perdure.cli.output import Output, steps
from perdure.engine.file_memory import files_options
from perdure.engine.scrubbing import scrub_folder
from perdure.engine.settings import Settings
from perdure.hooks.types import Channel
from perdure.maintenance.purge import PENDING
from perdure.store.transaction import Author


@click.command()
@dry_run_option
@home_option
@json_option
def scrub(home: Path | None, dry_run: bool, as_json: bool) -> int:
    """Take the secrets out of what is stored; this cannot be undone. Exit code 1: old bytes are still there.

    Example: perdure scrub --dry-run
    """
    output = Output(as_json)
    with existing_store(home) as store, steps("looking for secrets", quiet=as_json):
        done = scrub_folder(store, files_options(Settings.load()), Author(Channel.CLI, "cli"), dry_run)
    if as_json:
        output.json(asdict(done))
    else:
        output.table(
            ("", ""), [(name, len(done.facts) if name == "facts" else value) for name, value in asdict(done).items()]
        )
    if done.waiting:
        output.line(f"waits: {done.waiting}. Repeat with: perdure purge --status")
    return int(done.state == PENDING)
