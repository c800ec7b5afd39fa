"""`perdure uninstall`: perdure off this machine."""

from __future__ import annotations

from pathlib import Path

import click

from perdure.cli.main import COMMANDS
from perdure.cli.options import dry_run_option, home_option, json_option, yes_option
from perdure.cli.output import OK, Output, confirm
from perdure.engine.paths import data_folder, forget_home, recorded_host
from perdure.maintenance.teardown import Contents, contents, remove
from perdure.parts import part
from perdure.service.client import dismiss


@click.command()
@click.option("--purge-data", is_flag=True, help="Also remove every memory, backup and secret in the data folder.")
@dry_run_option
@yes_option
@home_option
@json_option
def uninstall(home: Path | None, purge_data: bool, dry_run: bool, yes: bool, as_json: bool) -> int:
    """Forget which host perdure was installed into and, if asked to, remove the data folder. Memories stay otherwise.

    Example: perdure uninstall --purge-data --dry-run
    """
    output, folder, recorded = Output(as_json), data_folder(home), recorded_host()
    doomed = contents(folder) if purge_data else None
    if not as_json:
        _show(output, folder, recorded, doomed)
    if not dry_run:
        if doomed is not None:
            if not yes:
                confirm("Remove them for good?")
            dismiss(folder)
            remove(folder)
        forget_home()
        output.line("Done. The program itself goes with: pip uninstall perdure")
    if as_json:
        output.json({
            "home": str(folder),
            "host": recorded[0] if recorded else None,
            "removed": [str(path) for path in doomed.made] if doomed else [],
            "kept": [str(path) for path in doomed.others] if doomed else [str(folder)],
            "done": not dry_run,
        })  # fmt: skip
    return OK


def _show(output: Output, folder: Path, recorded: tuple[str, Path] | None, doomed: Contents | None) -> None:
    if recorded is not None:
        output.line(f"{recorded[1]} is no longer the data folder of {recorded[0]}.")
        how = f"; do that first: perdure {recorded[0]} uninstall" if recorded[0] in COMMANDS else ""
        output.line(f"This takes nothing out of the config of {recorded[0]}{how}.")
    for host in part("hosts.connect.survey").CONNECTED:
        if any(part("hosts.connect.config_file").recorded(host)):
            output.line(f"perdure stays in the config of {host}; do that first: perdure disconnect {host}")
    if doomed is None:
        output.line(f"The memories in {folder} stay; --purge-data removes them.")
        return
    output.line(f"In {folder} these go, {doomed.size / 1e6:.1f} MB in all:")
    output.table(("",), [(path.name,) for path in doomed.made])
    if doomed.others:
        output.line("These are not ours, and stay:")
        output.table(("",), [(path.name,) for path in doomed.others])
