"""Options that many commands share."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from perdure.cli.output import notice
from perdure.errors import AmbiguousIdError, InputError, NotFoundError, ScopeError
from perdure.store.scope import EVERYONE, OWNERS, SHARED, Audience, Scope

if TYPE_CHECKING:
    from pydantic.fields import FieldInfo

    from perdure.api.tool_arguments import Arguments
    from perdure.store.store import Absent, Store

Command = TypeVar("Command", bound=Callable[..., Any])

MAX_LIMIT = 10_000
_CALLED = {
    "decay_class": "decay", "include_superseded": "superseded", "minScore": "min-score", "triggers": "trigger"
}  # fmt: skip
"""Options that are not called as the argument is."""
HERE = "here"
"""The project name that means the current folder."""

dry_run_option = click.option("--dry-run", is_flag=True, help="Show what would be done, without doing it.")
yes_option = click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
home_option = click.option("--home", type=click.Path(path_type=Path), help="Data folder, if not the default one.")
agent_option = click.option("--agent", help="Act as this agent.")
user_option = click.option("--user", help="Act as this user instead of the owner.")
project_option = click.option(
    "--project", metavar="NAME", help="Only this repository; `here` means the current folder's repository."
)
scope_option = click.option("--scope", help="Only this scope.")
json_option = click.option("--json", "as_json", is_flag=True, help="Print one JSON object and nothing else.")


def limit_option(default: int | None = 20, most: int = MAX_LIMIT) -> Callable[[Command], Command]:
    """Return `--limit`; without a default the setting applies."""
    told = "Maximum number of results" + ("; default: from settings." if default is None else ".")
    return click.option("--limit", type=click.IntRange(1, most), default=default, show_default=True, help=told)


def arguments_option(names: str, *takes: type[Arguments]) -> Callable[[Command], Command]:
    """Return options for tool arguments, which say and accept what the tools do; of several models the first wins."""
    known: dict[str, tuple[FieldInfo, Mapping[str, Any]]] = {}
    for each in reversed(takes):
        told = each.model_json_schema()["properties"]
        known |= {name: (field, told[field.alias or name]) for name, field in each.model_fields.items()}

    def decorate(command: Command) -> Command:
        for name in reversed(names.split()):
            command = _argument_option(name, *known[name])(command)
        return command

    return decorate


def _argument_option(name: str, field: FieldInfo, told: Mapping[str, Any]) -> Callable[[Command], Command]:
    """Return the option for one argument. One called in the singular is repeated for a list, or empty for none."""
    called, default = _CALLED.get(name, field.alias or name), told.get("default")
    several = told.get("type") == "array" and called != name
    # The rest is examples for a model.
    said = f"{(field.description or '').partition('. ')[0].rstrip('.')}.{' Repeatable.' * several}"
    return click.option(
        f"--{called.replace('_', '-')}", name, type=_kind(field, told), default=default, multiple=several,
        is_flag=told.get("type") == "boolean", show_default=default not in (None, "", False), help=said,
        callback=(lambda _context, _option, texts: list(filter(None, texts)) if texts else None) if several else None,
    )  # fmt: skip


class _Names(click.Choice[str]):
    """The names that an argument shows. It takes others for the same."""

    def __init__(self, names: Sequence[str], field: FieldInfo) -> None:
        super().__init__(names)
        self._field = field

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the name that a value means."""
        from pydantic import TypeAdapter, ValidationError

        try:
            return str(TypeAdapter(self._field.rebuild_annotation()).validate_python(value))
        except ValidationError as error:
            self.fail(str(error.errors()[0]["ctx"]["error"]), param, ctx)


def _kind(field: FieldInfo, told: Mapping[str, Any]) -> click.ParamType[Any] | None:
    """Return the type of the option for an argument."""
    if "enum" in told:
        return _Names(told["enum"], field)
    kind, ends = told.get("type"), (told.get("minimum"), told.get("maximum"))
    return click.IntRange(*ends) if kind == "integer" else click.FloatRange(*ends) if kind == "number" else None


def store_options(command: Command) -> Command:
    """Add `--home`, `--agent`, `--user` and `--json`."""
    return home_option(agent_option(user_option(json_option(command))))


@contextmanager
def existing_store(folder: Path, absent: Absent = "refuse") -> Iterator[Store]:
    """Lend the store of a data folder, read-only with a notice if it cannot be written."""
    from perdure.engine.store_opening import open_store

    with closing(open_store(folder, absent=absent)) as store:
        notice([store.refusal] if store.refusal else [])
        yield store


def caller_of(home: Path | None, arguments: dict[str, Any]) -> dict[str, Any]:
    """Take the caller out of a command's options and return it as arguments of `Memory.open`; --project is a scope.

    Raises:
        ScopeError: the caller may not read the scope that the command names.
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
    """Return the scope of a repository, named as it is shown, by its folder's name, or as "here"."""
    from perdure.engine.paths import data_folder
    from perdure.engine.repository import DIGITS, project_of
    from perdure.store.sql import run

    if name == HERE:
        found = project_of(Path.cwd())
        if found is None:
            raise InputError(
                "the current folder is your home folder or above it, so it is not a project; change to a repository"
            )
        return found
    if name is None or name.startswith("project:"):
        return name
    with existing_store(data_folder(home)) as store, store.database.read() as connection:
        rows = run(connection, "SELECT DISTINCT scope_target FROM facts WHERE scope = 'project'")
    known = [target for (target,) in rows if target == name or target[: -DIGITS - 1] == name]
    if not known:
        raise NotFoundError(f"no memories of project {name[:60]!r}; list projects with: perdure stats --all")
    if len(known) > 1:
        raise AmbiguousIdError(f"project {name[:60]!r} is ambiguous; name one of: {', '.join(sorted(known))}")
    return f"project:{known[0]}"


def _shared(arguments: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the scope that a command names, if anyone may read it."""
    scope = arguments.get("scope")
    return (scope,) if scope and Scope.parse(scope).kind in SHARED else ()


def _check(scope: str | None, agent: str | None, user: str | None) -> None:
    """Refuse a scope that the caller may not read; it would look empty."""
    if scope is None:
        return
    audience = OWNERS if user is None and agent is None else Audience.of(user=user, agent=agent)
    wanted = audience.meant(Scope.parse(scope))
    if wanted.kind not in SHARED and not audience.may_read(wanted):
        how = f"; add {naming(wanted)}" if wanted.kind != "session" else ""
        raise ScopeError(f"scope {wanted} is readable only by that {wanted.kind}{how}")


def naming(scope: Scope) -> str:
    """Return the options that name the agent and user of a scope."""
    names = {"--agent": scope.agent, "--user": None if scope.user == EVERYONE else scope.user}
    return " ".join(f"{option} {shlex.quote(name)}" for option, name in names.items() if name is not None)
