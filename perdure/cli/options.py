"""Options that many commands share."""

from __future__ import annotations

import datetime as dt
import functools
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import click

from perdure.cli.output import Output
from perdure.errors import InputError
from perdure.store.scope import SHARED, Scope

Command = TypeVar("Command", bound=Callable[..., Any])

dry_run_option = click.option("--dry-run", is_flag=True, help="Only show what would be done.")
yes_option = click.option("--yes", is_flag=True, help="Do not ask.")
home_option = click.option("--home", type=click.Path(path_type=Path), help="The data folder, if not the usual one.")
agent_option = click.option("--agent", help="Act for this agent.")
user_option = click.option("--user", help="Another user than the owner of this machine.")
json_option = click.option("--json", "as_json", is_flag=True, help="Print one JSON object and nothing else.")


def store_options(command: Command) -> Command:
    """Add `--home`, `--agent`, `--user` and `--json`."""
    for option in (json_option, user_option, agent_option, home_option):
        command = option(command)
    return command


def on_memory(*, model: bool = False) -> Callable[[Callable[..., int]], Callable[..., int]]:
    """Give a command `store_options`, and call it with the open store and its output as first arguments.

    Args:
        model: whether the command needs the embedding model; one that only reads or changes facts is quicker without.
    """

    def decorate(function: Callable[..., int]) -> Callable[..., int]:
        @store_options
        @functools.wraps(function)
        def run(home: Path | None, agent: str | None, user: str | None, as_json: bool, **arguments: Any) -> int:
            # Options alone, as of the commands that go without a store, need nothing of it.
            from perdure.plugin.memory import Memory

            settings: dict[str, Any] = {"timers": False} | ({} if model else {"embedder": "none"})
            with Memory.open(home, agent=agent, user=user, scopes=_shared(arguments), **settings) as memory:
                if model:
                    memory.ready()
                return function(memory, Output(as_json), **arguments)

        return run

    return decorate


def _shared(arguments: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the scope that a command is about, if anyone may name it: it is read, too, then."""
    scope = arguments.get("scope")
    return (scope,) if scope and Scope.parse(scope).kind in SHARED else ()


def moment(text: str | None) -> float | None:
    """Read a time: ISO 8601 (local time if it names no zone), or epoch seconds.

    Raises:
        InputError: it is neither.
    """
    if text is None:
        return None
    try:
        return float(text)
    except ValueError:
        pass
    try:
        return dt.datetime.fromisoformat(text).timestamp()
    except ValueError:
        raise InputError(f"{text!r} is no time; write 2026-01-15, 2026-01-15T10:00 or epoch seconds") from None


def confirm(question: str) -> None:
    """Ask on stderr before something that cannot be undone.

    Raises:
        click.Abort: the answer is no.
        InputError: nobody answers.
    """
    try:
        agreed = click.confirm(question, err=True)
    except click.Abort:
        if sys.stdin.isatty():
            raise
        raise InputError("nobody is there to be asked; if you mean it, repeat this with --yes") from None
    if not agreed:
        raise click.Abort
