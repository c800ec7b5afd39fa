"""`perdure librarian`: a language model that reviews idle conversations."""

from __future__ import annotations

from pathlib import Path

import click

from perdure.api.memory import Memory
from perdure.cli.operation import operation
from perdure.cli.output import Output, minute, steps
from perdure.engine.config_file import set_setting, unset_setting
from perdure.engine.paths import config_file
from perdure.engine.setting_sources import PREFIX
from perdure.engine.settings import Settings
from perdure.text.pluralize import counted

SETTING = "librarian"
CONSENT = (
    "On, in your settings file. When a conversation goes idle or ends, and after every 20 turns, what you said in it, "
    "the surrounding text and up to 60 memories near it are sent to a language model: claude -p for Claude Code, the "
    "agent's own for OpenClaw, llm_endpoint for everything else. That counts against your plan and may be billed, up "
    "to {tokens} tokens a day (llm.daily_tokens)."
)
HOW = {
    "claude-code": "put `claude` on the PATH",
    "openclaw": "update it, run `perdure openclaw install`, and restart the gateway",
}
ELSEWHERE = "set llm_endpoint"
"""What lets a host have one."""


@click.group()
def librarian() -> None:
    """Have a language model review idle conversations.

    What it proposes takes effect only if your own words support it. Off until you switch it on.

    Example: perdure librarian on
    """


@operation(librarian)
def on(output: Output, home: Path | None) -> None:
    """Switch it on, in your settings file.

    Example: perdure librarian on
    """
    before = Settings.load().librarian
    set_setting(config_file(), SETTING, "true")
    if not before:
        # What still waits was said before this yes, and another way to switch it off may have left it.
        _switch(home, on=True)
    output.say({SETTING: True}, CONSENT.format(tokens=Settings.load().llm.daily_tokens))


@operation(librarian)
def off(output: Output, home: Path | None) -> int:
    """Switch it off.

    Waiting turns are dropped.

    Example: perdure librarian off
    """
    unset_setting(config_file(), SETTING)
    dropped, still = _switch(home, on=False), Settings.load().librarian
    told = "Off" if not still else f"Still on where {PREFIX}{SETTING.upper()} says so: unset it. Off where it runs now"
    output.say({SETTING: still, "dropped": dropped}, f"{told}; {counted(dropped, 'waiting turn')} dropped.")
    return int(still)


@operation(librarian, reads=True)
def status(memory: Memory, output: Output) -> None:
    """Show whether the librarian is on and what is waiting.

    Example: perdure librarian status
    """
    found, wanted = memory.admin.librarian(), Settings.load().librarian
    output.json({SETTING: wanted, **found})
    waits = f"{'On' if wanted else 'Off'}; {counted(found['waiting'], 'turn')} waiting"
    failing = (f"{host} failed {counted(each['failures'], 'time')}: {each['why'].rstrip('.')}"
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


def _switch(home: Path | None, *, on: bool) -> int:
    """Drop what waits, and have it rest or not in all processes that have the store open now."""
    with Memory.open(home, timers=False, watch=False, embedder="none") as memory:
        dropped: int = memory.admin.librarian(on=on)["dropped"]
        return dropped
