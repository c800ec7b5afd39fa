"""`perdure jobs`: what looks after the store in the background."""

from __future__ import annotations

import datetime as dt
from dataclasses import asdict
from pathlib import Path

import click

from perdure.api.memory import Memory
from perdure.cli.options import on_memory, store_options
from perdure.cli.output import Output, steps


@click.group(invoke_without_command=True)
@store_options
@click.pass_context
def jobs(context: click.Context, home: Path | None, agent: str | None, user: str | None, as_json: bool) -> int:
    """Show the background jobs: how they went, and when they are due.

    Example: perdure jobs
    """
    if context.invoked_subcommand is not None:
        return 0
    output = Output(as_json)
    with Memory.open(home, agent=agent, user=user, embedder="none", timers=False, guest=True) as memory:
        found = memory.admin.jobs()
        timers = memory.status().timers
    if as_json:
        states = {name: asdict(state) if state else None for name, state in found.items()}
        output.json({"timers": timers, "jobs": states})
        return 0
    rows = [
        (name, _moment(state.last_run), _moment(state.next_run), state.failures or "", state.result or state.state)
        if state
        else (name, "", "", "", "not yet due")
        for name, state in found.items()
    ]
    output.table(("job", "last run", "next run", "failures", "result"), rows)
    output.line({"none": "No host looks after this store now."}.get(timers, f"Looked after by {timers}."))
    return 0


@jobs.command(name="run")
@click.argument("name")
@on_memory(model=True)
def run_(memory: Memory, output: Output, name: str) -> int:
    """Run a background job now. Exit code 1: it failed.

    Example: perdure jobs run backup
    """
    with steps(name, quiet=output.as_json):
        result = memory.admin.run_job(name)
    if output.as_json:
        output.json({"job": name, "result": result})
    else:
        output.line(result)
    state = memory.admin.jobs()[name]
    return int(state is not None and state.failures > 0)


def _moment(seconds: float | None) -> str:
    return "" if seconds is None else dt.datetime.fromtimestamp(seconds).astimezone().strftime("%Y-%m-%d %H:%M")
