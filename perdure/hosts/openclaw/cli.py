"""`perdure openclaw`: perdure as OpenClaw's memory."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from perdure.cli.operation import operation
from perdure.cli.output import Output
from perdure.extras import absent, how_to_install
from perdure.hosts.openclaw.install import Change, Installation, OpenClaw, bring_table
from perdure.index.feeding import PACKAGES
from perdure.secrets.redact import redact

_program = click.option(
    "--openclaw", "program", type=click.Path(path_type=Path), help="OpenClaw's executable, if not on the PATH."
)


@click.group()
def openclaw() -> None:
    """Set up perdure as OpenClaw's memory, or remove it.

    Example: perdure openclaw install --dry-run
    """


@operation(openclaw)
@_program
def install(output: Output, program: Path | None, dry_run: bool, home: Path | None) -> None:
    """Set up perdure as OpenClaw's memory. Restart a running gateway afterwards.

    LanceDB, used to search stores of more than 200,000 memories, is installed with pip if it is
    missing. Without --home, the data folder is in OpenClaw's state folder.

    Example: perdure openclaw install --dry-run
    """
    installation = Installation(OpenClaw.find(program))
    plan = installation.plan_install(home)
    _show(output, installation, plan.changes)
    if absent(*PACKAGES):
        output.line(f"+ LanceDB, 350 MB: {how_to_install('lancedb')}", style="green")
    if not dry_run:
        installation.install(home)
        if failed := bring_table():
            output.line(f"LanceDB, which only large stores need, could not be installed: {failed}")
            output.line(f"Once the store exceeds 200,000 memories: {how_to_install('lancedb')}")
        output.line("Done. Restart the gateway: openclaw gateway restart")
    _json(output, installation, plan.changes, done=not dry_run)


@operation(openclaw)
@_program
def uninstall(output: Output, program: Path | None, dry_run: bool) -> None:
    """Remove perdure from OpenClaw's config. Memories stay.

    Example: perdure openclaw uninstall
    """
    installation = Installation(OpenClaw.find(program))
    plan = installation.plan_uninstall()
    _show(output, installation, plan.changes)
    if plan.restored:
        output.line("The config has not been edited since the install: it is restored byte for byte.")
    if not dry_run:
        installation.uninstall()
        output.line("Done. Restart the gateway: openclaw gateway restart")
    _json(output, installation, plan.changes, done=not dry_run)


@operation(openclaw)
@_program
def status(output: Output, program: Path | None) -> int:
    """Check OpenClaw's setup. Exit code 1: something is missing.

    Example: perdure openclaw status
    """
    installation = Installation(OpenClaw.find(program))
    checks, host = installation.checks(), installation.host
    output.line(f"OpenClaw {host.version}, config {host.config}")
    output.table(("", ""), [(name, problem or "ok") for name, problem in checks.items()])
    output.json({"version": host.version, "config": host.config, "problems": checks})
    return int(any(checks.values()))


def _show(output: Output, installation: Installation, changes: tuple[Change, ...]) -> None:
    output.line(f"{installation.host.config} (OpenClaw {installation.host.version})")
    if not changes:
        output.line("Nothing to change.")
    for change in changes:
        if change.before is not None:
            output.line(f"- {change.path}: {_value(change.before)}", style="red")
        if change.after is not None:
            output.line(f"+ {change.path}: {_value(change.after)}", style="green")


def _json(output: Output, installation: Installation, changes: tuple[Change, ...], *, done: bool) -> None:
    rows = [{"path": each.path, "before": each.before, "after": each.after} for each in changes]
    output.json({"config": installation.host.config, "changes": rows, "done": done})


def _value(value: Any) -> str:
    return redact(json.dumps(value, ensure_ascii=False)).text
