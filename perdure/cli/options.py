"""Options that many commands share."""

from __future__ import annotations

import datetime as dt
import functools
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

import click

from perdure.cli.output import Output
from perdure.errors import InputError, ScopeError
from perdure.store.scope import SHARED, Audience, Scope

Command = TypeVar("Command", bound=Callable[..., Any])

MAX_LIMIT = 10_000

dry_run_option = click.option("--dry-run", is_flag=True, help="Only show what would be done.")
yes_option = click.option("--yes", is_flag=True, help="Do not ask.")
home_option = click.option("--home", type=click.Path(path_type=Path), help="The data folder, if not the usual one.")
agent_option = click.option("--agent", help="Act for this agent.")
user_option = click.option("--user", help="Another user than the owner of this machine.")
scope_option = click.option("--scope", help="Of this scope only.")
json_option = click.option("--json", "as_json", is_flag=True, help="Print one JSON object and nothing else.")


def limit_option(default: int | None = 20, most: int = MAX_LIMIT) -> Callable[[Command], Command]:
    """Return `--limit`.

    Args:
        default: without the option; None: as the settings say.
        most: at the most.
    """
    told = "So many at the most" + ("; without it as the settings say." if default is None else ".")
    return click.option("--limit", type=click.IntRange(1, most), default=default, show_default=True, help=told)


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

            _check(arguments.get("scope"), agent, user)
            # A command is over before a file could change under it.
            settings: dict[str, Any] = {"timers": False, "watch": False} | ({} if model else {"embedder": "none"})
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


def _check(scope: str | None, agent: str | None, user: str | None) -> None:
    """See that a scope may be read: one that may not would look as if it were empty.

    Raises:
        ScopeError: it may not, or is none.
    """
    if scope is None:
        return
    wanted = Scope.parse(scope)
    if wanted.kind not in SHARED and not Audience.of(user=user, agent=agent).may_read(wanted):
        how = f"; add --{wanted.kind} {wanted.target}" if wanted.kind in ("agent", "user") else ""
        raise ScopeError(f"scope {wanted} is read by its own {wanted.kind} only{how}")


def moment(text: str | None) -> float | None:
    """Read a time: ISO 8601 (local time if it names no zone), or epoch seconds.

    Raises:
        InputError: it is neither.
    """
    if text is None:
        return None
    for read in (float, lambda text: dt.datetime.fromisoformat(text).timestamp()):
        # What is read must be the time of some day, too: of years from 1 to 9999.
        with suppress(ValueError, OverflowError):
            return dt.datetime.fromtimestamp(read(text), dt.UTC).timestamp()
    raise InputError(f"{text!r} is no time; write 2026-01-15, 2026-01-15T10:00 or epoch seconds")


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
