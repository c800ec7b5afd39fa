"""`perdure librarian`: a language model that reviews idle conversations."""

from __future__ import annotations

from pathlib import Path

import click

from perdure.api import consent
from perdure.api.consent import SETTING
from perdure.api.memory import Memory
from perdure.cli.operation import operation
from perdure.cli.output import Output, minute, steps
from perdure.engine.setting_sources import PREFIX
from perdure.engine.settings import Settings
from perdure.text.pluralize import counted

HOW = {
    "claude-code": "put `claude` on the PATH",
    "openclaw": "update it, run `perdure openclaw install`, and restart the gateway",
}
ELSEWHERE = "set llm_endpoint"
"""What lets a host have one."""
_VARIABLE = f"{PREFIX}{SETTING.upper()}"


@click.group()
def librarian() -> None:
    """Have a language model review idle conversations.

    What it proposes takes effect only if your own words support it. Off until you switch it on.

    Example: perdure librarian on
    """


@operation(librarian)
def on(folder: Path, output: Output) -> int:
    """Switch it on, in your settings file.

    Example: perdure librarian on
    """
    kept = consent.keep(folder, yes=True)
    told = "On, in your settings file" if kept.on else f"{_VARIABLE} still switches it off: unset it"
    output.say({SETTING: kept.on}, f"{told}. {consent.terms_of(folder)}")
    return int(not kept.on)


@operation(librarian)
def off(folder: Path, output: Output) -> int:
    """Switch it off.

    Waiting turns are dropped.

    Example: perdure librarian off
    """
    kept = consent.keep(folder, yes=False)
    told = "Off" if not kept.on else f"{_VARIABLE} still switches it on: unset it. Running processes have it off"
    output.say({SETTING: kept.on, "dropped": kept.dropped}, f"{told}; {counted(kept.dropped, 'waiting turn')} dropped.")
    return int(kept.on)


@operation(librarian, reads=True)
def status(memory: Memory, output: Output) -> None:
    """Show whether the librarian is on and what is waiting.

    Example: perdure librarian status
    """
    found, wanted = memory.admin.librarian(), Settings.load().librarian
    output.json({SETTING: wanted, **found})
    waits = f"{'On' if wanted else 'Off'}; {counted(found['waiting'], 'turn')} waiting"
    failing = (f"{host}" + f" failed {counted(each['failures'], 'time')}" * bool(each["failures"])
               + f": {each['why'].rstrip('.')}"
               for host, each in found.get("failing", {}).items())  # fmt: skip
    output.line("; ".join([waits, *failing]) + ".")
    for host in found["without"]:
        output.line(f"{host}: no model to ask; {HOW.get(host, ELSEWHERE)}")


@operation(librarian, model=True)
def run(memory: Memory, output: Output) -> None:
    """Process the waiting conversations now.

    Example: perdure librarian run
    """
    with steps(SETTING, quiet=output.as_json):
        found = memory.admin.librarian(run=True)
    output.say(found, found["did"])


@operation(librarian, reads=True)
def log(memory: Memory, output: Output) -> None:
    """Show what its last runs did.

    `perdure undo --batch` reverts a run.

    Example: perdure librarian log
    """
    runs = memory.admin.librarian().get("runs", ())
    rows = [(minute(each["at"]), each["turns"], each["did"], each["batch"][:8]) for each in reversed(runs)]
    output.both({"runs": runs}, ("when", "turns", "did", "batch"), rows)
