"""`perdure doctor`: what is wrong, and what to do about it."""

from __future__ import annotations

from pathlib import Path

import click

from perdure.api.doctor import examine
from perdure.cli.options import home_option, json_option
from perdure.cli.output import Output
from perdure.hosts.connect.checkup import checkups as agent_checkups
from perdure.hosts.openclaw.checkup import checkups as openclaw_checkups


@click.command()
@home_option
@json_option
def doctor(home: Path | None, as_json: bool) -> int:
    """Find out what is wrong, and say what to do about each. Exit code: 0 all is well, 1 something is wrong.

    Example: perdure doctor --json
    """
    found = [*examine(home), *openclaw_checkups(), *agent_checkups()]
    wrong = [each for each in found if each.wrong]
    output = Output(as_json)
    if as_json:
        output.json({"healthy": not wrong, "checks": [each.to_dict() for each in found]})
        return 1 if wrong else 0
    output.table(
        ("", "what", "how it is"), [("WRONG" if each.wrong else "ok", each.name, each.state) for each in found]
    )
    if wrong:
        output.line("")
        output.title("What to do")
        for each in wrong:
            output.line(f"{each.name}: {each.fix}")
    return 1 if wrong else 0
