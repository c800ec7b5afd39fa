"""Options that many commands share."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from perdure.cli.output import notice
from perdure.errors import AmbiguousIdError, InputError, NotFoundError, ScopeError
from perdure.ranking.decay import LIFETIMES
from perdure.store.scope import EVERYONE, OWNERS, SHARED, Audience, Scope

if TYPE_CHECKING:
    from pydantic import BaseModel

    from perdure.store.store import Absent, Store

Command = TypeVar("Command", bound=Callable[..., Any])

MAX_LIMIT = 10_000
HERE = "here"
"""As a project: that of the current folder."""

dry_run_option = click.option("--dry-run", is_flag=True, help="Only show what would be done.")
yes_option = click.option("--yes", is_flag=True, help="Do not ask.")
home_option = click.option("--home", type=click.Path(path_type=Path), help="The data folder, if not the usual one.")
agent_option = click.option("--agent", help="Act for this agent.")
user_option = click.option("--user", help="Another user than the owner of this machine.")
project_option = click.option("--project", metavar="NAME", help="Of this repository only; here: the current folder's.")


scope_option = click.option("--scope", help="Of this scope only.")
json_option = click.option("--json", "as_json", is_flag=True, help="Print one JSON object and nothing else.")


def limit_option(default: int | None = 20, most: int = MAX_LIMIT) -> Callable[[Command], Command]:
    """Return `--limit`; without a default it is as the settings say."""
    told = "So many at the most" + ("; without it as the settings say." if default is None else ".")
    return click.option("--limit", type=click.IntRange(1, most), default=default, show_default=True, help=told)


def arguments_option(names: str, *takes: type[BaseModel]) -> Callable[[Command], Command]:
    """Return options for arguments of tools, told and left out as there; of several models the first counts."""
    known = {name: field for each in reversed(takes) for name, field in each.model_fields.items()}

    def decorate(command: Command) -> Command:
        for name in reversed(names.split()):
            field, default = known[name], known[name].get_default()
            kind = click.Choice(list(LIFETIMES)) if name == "decay_class" else float if name == "importance" else None
            option = f"--{name.removesuffix('_class').replace('_', '-')}"
            command = click.option(
                option, name, type=kind, default=default, show_default=default is not None, help=field.description
            )(command)
        return command

    return decorate


def store_options(command: Command) -> Command:
    """Add `--home`, `--agent`, `--user` and `--json`."""
    return home_option(agent_option(user_option(json_option(command))))


@contextmanager
def existing_store(folder: Path, absent: Absent = "refuse") -> Iterator[Store]:
    """Lend the store of a data folder; one that cannot be written is opened to be read, and a person is told."""
    from perdure.engine.opening import open_store

    with closing(open_store(folder, absent=absent)) as store:
        notice([store.refusal] if store.refusal else [])
        yield store


def caller_of(home: Path | None, arguments: dict[str, Any]) -> dict[str, Any]:
    """Take from the options of a command who calls, and return it as `Memory.open` is told; --project is a scope.

    Raises:
        ScopeError: the command is about a scope that the caller may not read.
    """
    agent, user = arguments.pop("agent"), arguments.pop("user")
    project = _project(home, arguments.pop("project", None))
    if project and "scope" in arguments:
        arguments["scope"] = project
    _check(arguments.get("scope"), agent, user)
    named = agent is not None or user is not None
    scopes = (project,) if project else _shared(arguments) if named else ()
    return {"agent": agent, "user": user, "scopes": scopes, "whole": True}


def _project(home: Path | None, name: str | None) -> str | None:
    """Return the scope of the repository that is named: as it is shown, by its folder's name, or "here"."""
    from perdure.engine.paths import data_folder
    from perdure.engine.repository import DIGITS, project_of
    from perdure.store.sql import run

    if name == HERE:
        found = project_of(Path.cwd())
        if found is None:
            raise InputError("the current folder is no project: it is your home folder, or above it")
        return found
    if name is None or name.startswith("project:"):
        return name
    with existing_store(data_folder(home)) as store, store.database.read() as connection:
        rows = run(connection, "SELECT DISTINCT scope_target FROM facts WHERE scope = 'project'")
    known = [target for (target,) in rows if target == name or target[: -DIGITS - 1] == name]
    if not known:
        raise NotFoundError(f"no memory is of a project {name[:60]!r}; perdure scope list shows them")
    if len(known) > 1:
        raise AmbiguousIdError(f"several projects are called {name[:60]!r}: {', '.join(sorted(known))}")
    return f"project:{known[0]}"


def _shared(arguments: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the scope that a command is about, if anyone may name it: it is read, too, then."""
    scope = arguments.get("scope")
    return (scope,) if scope and Scope.parse(scope).kind in SHARED else ()


def _check(scope: str | None, agent: str | None, user: str | None) -> None:
    """See that a scope may be read: one that may not would look as if it were empty."""
    if scope is None:
        return
    audience = OWNERS if user is None and agent is None else Audience.of(user=user, agent=agent)
    wanted = audience.meant(Scope.parse(scope))
    if wanted.kind not in SHARED and not audience.may_read(wanted):
        how = f"; add {naming(wanted)}" if wanted.kind != "session" else ""
        raise ScopeError(f"scope {wanted} is read by its own {wanted.kind} only{how}")


def naming(scope: Scope) -> str:
    """Return the options by which a caller names the agent and the user that a scope belongs to."""
    names = {"--agent": scope.agent, "--user": None if scope.user == EVERYONE else scope.user}
    return " ".join(f"{option} {shlex.quote(name)}" for option, name in names.items() if name is not None)
