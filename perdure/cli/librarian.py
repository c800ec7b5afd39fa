"""`perdure librarian`: a language model that reads what was said, at rest."""

from __future__ import annotations

from pathlib import Path

import click

from perdure.api import consent
from perdure.api.memory import Memory
from perdure.cli.operation import operation
from perdure.cli.output import Output, minute, steps
from perdure.engine.settings import Settings
from perdure.text.pluralize import counted


@click.group()
def librarian() -> None:
    """Have a language model read what was said, at rest.

    What it proposes takes effect only if your own words prove it. Off until you switch it on.

    Example: perdure librarian on
    """


@operation(librarian)
def on(folder: Path, output: Output) -> None:
    """Switch it on, and see its terms.

    Example: perdure librarian on
    """
    _answered(output, consent.keep(folder, True))
    output.line(consent.terms_of(folder))


@operation(librarian)
def off(folder: Path, output: Output) -> None:
    """Switch it off.

    Example: perdure librarian off
    """
    _answered(output, consent.keep(folder, False))


@operation(librarian, reads=True)
def status(memory: Memory, output: Output) -> None:
    """Show whether it is on, and what waits for it.

    Example: perdure librarian status
    """
    found, wanted = memory.admin.librarian(), Settings.load().librarian
    output.json({"librarian": wanted, **found})
    failed = f"; failed {counted(found['failures'], 'time')}" if found.get("failures") else ""
    output.line(f"{'On' if wanted else 'Off'}; {counted(found['waiting'], 'turn')} waiting{failed}.")


@operation(librarian, model=True)
def run(memory: Memory, output: Output) -> None:
    """Have it read now what waits.

    Example: perdure librarian run
    """
    with steps("librarian", quiet=output.as_json):
        found = memory.admin.librarian(run=True)
    output.json(found)
    output.line(found["did"])


@operation(librarian, reads=True)
def log(memory: Memory, output: Output) -> None:
    """Show what its last runs did.

    `perdure undo --batch` takes one back.

    Example: perdure librarian log
    """
    runs = memory.admin.librarian().get("runs", ())
    rows = [(minute(each["at"]), each["turns"], each["did"], each["batch"][:8]) for each in reversed(runs)]
    output.both({"runs": runs}, ("when", "turns", "did", "batch"), rows)


def _answered(output: Output, holds: bool) -> None:
    output.json({"librarian": holds})
    output.line("On." if holds else "Off.")
