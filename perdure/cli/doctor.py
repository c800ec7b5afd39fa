"""`perdure doctor`: what is wrong, and what to do about it."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import click

from perdure.api.doctor import examine
from perdure.cli.options import home_option, json_option
from perdure.cli.output import Output, progress
from perdure.parts import part


@click.command()
@click.option(
    "--foreign",
    type=click.Path(path_type=Path),
    help="Look through what could be imported from here instead: secrets, injections, stale, double and contradicting.",
)
@home_option
@json_option
def doctor(foreign: Path | None, home: Path | None, as_json: bool) -> int:
    """Find out what is wrong, and say what to do about each. Exit code: 0 all is well, 1 something is wrong.

    Example: perdure doctor --foreign ~/notes
    """
    output = Output(as_json)
    if foreign is not None:
        with progress("looking", None, quiet=as_json) as advance:
            audit = part("importers.audit").audit_source(foreign, time.time(), advance=advance)
        return _show_foreign(audit, output)
    found = [*examine(home), *part("hosts.openclaw.install").checkups(), *part("hosts.connect.survey").checkups()]
    wrong = [each for each in found if each.wrong]
    rows = [("WRONG" if each.wrong else "ok", each.name, each.state) for each in found]
    told = {"healthy": not wrong, "checks": [each.to_dict() for each in found]}
    output.both(told, ("", "what", "how it is"), rows)
    if wrong:
        output.line("")
        output.title("What to do")
    for each in wrong:
        output.line(f"{each.name}: {each.fix}")
    return int(bool(wrong))


def _show_foreign(audit: Any, output: Output) -> int:
    output.json(audit.to_dict())
    rows = [(each.kind, each.where, each.text, each.evidence) for each in audit.findings]
    if rows:
        output.table(("what", "where", "text", "why"), rows)
    counts = [f"{count} {kind}" for kind, count in audit.to_dict()["counts"].items() if count]
    counts += [f"{audit.unreadable} unreadable"] if audit.unreadable else []
    output.line(f"{audit.texts} texts of {audit.kind} looked at: {', '.join(counts) or 'nothing is wrong'}.")
    return 1 if audit.findings or audit.unreadable else 0
