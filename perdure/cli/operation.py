"""A command, declared once: by a function, its parameters and its docstring.

    @operation(reads=True)
    @click.option("--session", help="Of this conversation alone.")
    def undo(memory: Memory, output: Output, fact_id: str | None, session: str | None, dry_run: bool) -> None:
        "Take back the last change."

The function's parameters choose what it gets and the options that come with it: `memory` is the open store that --home,
--agent and --user name, `folder` the data folder of --home, `output` prints as --json says. Any other parameter is an
option or argument declared above the function, else the option of that name in `COMMON`, else an argument; one that
may be None is optional.

The function returns its exit code or None. `perdure.cli.main` prints its errors.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from pathlib import Path
from types import NoneType
from typing import TYPE_CHECKING, Any, get_args

import click

from perdure.cli.options import (
    agent_option,
    caller_of,
    dry_run_option,
    home_option,
    json_option,
    limit_option,
    project_option,
    scope_option,
    user_option,
    yes_option,
)
from perdure.cli.output import Output, notice

if TYPE_CHECKING:
    from perdure.api.memory import Memory

Run = Callable[..., int | None]
COMMON = {
    "dry_run": [dry_run_option],
    "yes": [yes_option],
    "scope": [scope_option, project_option],
    "home": [home_option],
    "agent": [agent_option],
    "user": [user_option],
}
"""Options by parameter name; `limit` also takes the parameter's default."""
_LENT = ("memory", "folder", "output")
"""Parameters that the decorator fills."""


def operation(
    group: click.Group | None = None,
    name: str | None = None,
    *,
    model: bool = False,
    reads: bool = False,
    **given: Any,
) -> Callable[[Run], Any]:
    """Make a function a command, in a group or on its own.

    With `model` it waits for the embedding model; commands that only read or change facts are quicker without. With
    `reads`, as with --dry-run, no store is created, nothing is captured, and notices go to stderr. Further keywords
    are click's.
    """

    def decorate(function: Run) -> click.Command:
        asked = inspect.signature(function, eval_str=True).parameters
        make: Callable[[Run], click.Command] = click.command(name, **given)
        command = make(_working(function, set(asked), model=model, reads=reads))
        known = {*_LENT, *(each.name for each in command.params)}
        more = [each for each in asked.values() if each.name not in known and each.kind is not each.VAR_KEYWORD]
        for add in [option for each in more for option in _parameter(each)] + _ways(set(asked)):
            add(command)
        if group is not None:
            group.add_command(command)
        return command

    return decorate


def _working(function: Run, asked: set[str], *, model: bool, reads: bool) -> Run:
    """Return the function as click calls it."""

    @functools.wraps(function)
    def run(home: Path | None = None, as_json: bool = False, **arguments: Any) -> int | None:
        lent = {"output": Output(as_json), "home": home}
        arguments |= {name: value for name, value in lent.items() if name in asked}
        if "folder" in asked:
            from perdure.engine.paths import data_folder

            arguments["folder"] = data_folder(home)
        if "memory" not in asked:
            return function(**arguments)
        guest = reads or bool(arguments.get("dry_run"))
        with _opened(home, arguments, model=model, guest=guest) as memory:
            if guest:
                notice(memory.admin.notices())
            if model:
                memory.ready()
            return function(memory=memory, **arguments)

    return run


def _opened(home: Path | None, arguments: dict[str, Any], *, model: bool, guest: bool) -> Memory:
    """Open the store for the caller that the options name."""
    # Commands without a store must not pay for this import.
    from perdure.api.memory import Memory

    # A command ends before a file could change under it.
    settings: dict[str, Any] = {"timers": False, "watch": False} | ({} if model else {"embedder": "none"})
    return Memory.open(home, guest=guest, **caller_of(home, arguments), **settings)


def _parameter(asked: inspect.Parameter) -> list[Callable[[Any], Any]]:
    """Return the options of this name, or an argument."""
    if asked.name == "limit":
        return [limit_option(asked.default)]
    if asked.name in COMMON:
        return COMMON[asked.name]
    of = get_args(asked.annotation) or (asked.annotation,)
    several, left_out = ... in of, NoneType in of
    called = "ID" if asked.name.rpartition("_")[2] in ("id", "ids") else asked.name.upper()
    called += "..." * several
    return [
        click.argument(
            asked.name,
            type=click.Path(path_type=Path) if of[0] is Path else of[0],
            nargs=-1 if several else 1,
            required=not left_out,
            metavar=f"[{called}]" if left_out else called,
        )
    ]


def _ways(asked: set[str]) -> list[Callable[[Any], Any]]:
    """Return the options that come with what a function gets."""
    home = [home_option] if asked & {"memory", "folder"} else []
    whose = [agent_option, user_option] if "memory" in asked else []
    return [*home, *whose, *([json_option] if "output" in asked else [])]
