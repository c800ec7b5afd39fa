"""`perdure openclaw`: perdure as the memory of OpenClaw."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from perdure.cli.operation import operation
from perdure.cli.output import Output
from perdure.hosts.openclaw.install import Change, Installation, OpenClaw
from perdure.secrets.redact import redact

_program = click.option(
    "--openclaw", "program", type=click.Path(path_type=Path), help="OpenClaw's program, if it is not on the PATH."
)


@click.group()
def openclaw() -> None:
    """Make perdure the memory of OpenClaw, or take it out again.

    Example: perdure openclaw install --dry-run
    """


@operation(openclaw)
@_program
def install(output: Output, program: Path | None, dry_run: bool, home: Path | None) -> None:
    """Make perdure the memory of OpenClaw. A running gateway takes it up when it is restarted.

    Its data folder is the one in OpenClaw's state, if --home names none.

    Example: perdure openclaw install --dry-run
    """
    installation = Installation(OpenClaw.find(program))
    plan = installation.plan_install(home)
    _show(output, installation, plan.changes)
    if not dry_run:
        installation.install(home)
        output.line("Done. Restart the gateway: openclaw gateway restart")
    _json(output, installation, plan.changes, done=not dry_run)


@operation(openclaw)
@_program
def uninstall(output: Output, program: Path | None, dry_run: bool) -> None:
    """Take perdure out of OpenClaw's config. Memories stay where they are.

    Example: perdure openclaw uninstall
    """
    installation = Installation(OpenClaw.find(program))
    plan = installation.plan_uninstall()
    _show(output, installation, plan.changes)
    if plan.restored:
        output.line("The config was not edited since the install: it becomes what it was, byte for byte.")
    if not dry_run:
        installation.uninstall()
        output.line("Done. Restart the gateway: openclaw gateway restart")
    _json(output, installation, plan.changes, done=not dry_run)


@operation(openclaw)
@_program
def status(output: Output, program: Path | None) -> int:
    """Show whether OpenClaw is set up for perdure; exit code 1 if something is missing.

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
