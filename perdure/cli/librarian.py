"""`perdure librarian`: a language model that reads what was said, at rest."""

from __future__ import annotations

import click

from perdure.api.memory import Memory
from perdure.cli.operation import operation
from perdure.cli.output import Output, minute, steps
from perdure.engine.config_file import set_setting, unset_setting
from perdure.engine.paths import config_file
from perdure.engine.settings import Settings
from perdure.text.pluralize import counted

SETTING = "librarian"
CONSENT = (
    "On, in your settings file. When a conversation rests, what you said in it, its surroundings and up to 60 of its "
    "memories go to a language model: from Claude Code to claude -p, from OpenClaw to the agent's own, from elsewhere "
    "to llm_endpoint. That counts against your plan and may be billed, up to {tokens} tokens a day (llm.daily_tokens)."
)
HOW = {
    "claude-code": "put `claude` on the PATH",
    "openclaw": "update it, run `perdure openclaw install`, and restart the gateway",
}
ELSEWHERE = "set llm_endpoint"
"""What lets a host have one."""


@click.group()
def librarian() -> None:
    """Have a language model read what was said, at rest.

    What it proposes takes effect only if your own words prove it. Off until you switch it on.

    Example: perdure librarian on
    """


@operation(librarian)
def on(output: Output) -> None:
    """Switch it on, in your settings file.

    Example: perdure librarian on
    """
    set_setting(config_file(), SETTING, "true")
    output.json({SETTING: True})
    output.line(CONSENT.format(tokens=Settings.load().llm.daily_tokens))


@operation(librarian)
def off(output: Output) -> None:
    """Switch it off.

    Example: perdure librarian off
    """
    unset_setting(config_file(), SETTING)
    output.json({SETTING: False})
    output.line("Off.")


@operation(librarian, reads=True)
def status(memory: Memory, output: Output) -> None:
    """Show whether it is on, and what waits for it.

    Example: perdure librarian status
    """
    found, wanted = memory.admin.librarian(), Settings.load().librarian
    output.json({SETTING: wanted, **found})
    why = f": {found['why'].rstrip('.')}" if found.get("why") else ""
    failed = f"; failed {counted(found['failures'], 'time')}{why}" if found.get("failures") else ""
    output.line(f"{'On' if wanted else 'Off'}; {counted(found['waiting'], 'turn')} waiting{failed}.")
    for host in found["without"]:
        output.line(f"{host}: no model to ask; {HOW.get(host, ELSEWHERE)}")


@operation(librarian, model=True)
def run(memory: Memory, output: Output) -> None:
    """Have it read now what waits.

    Example: perdure librarian run
    """
    with steps(SETTING, quiet=output.as_json):
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
