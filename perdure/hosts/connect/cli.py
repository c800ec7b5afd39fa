"""`perdure connect` and `perdure disconnect`: memory for other programs, by their hooks and an MCP server."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from pathlib import Path

import click

from perdure.cli.operation import operation
from perdure.cli.output import Output
from perdure.engine.paths import HOME_VARIABLE
from perdure.errors import HostError, InputError
from perdure.hosts.connect.connection import Connection, Edit
from perdure.hosts.connect.hermes import Hermes
from perdure.hosts.connect.hook_hosts import PLAIN, ClaudeCode, Codex, PlainHost, plain_hosts, refuse_committed
from perdure.hosts.connect.parts import Wiring
from perdure.hosts.connect.survey import CONNECTED, Found, connect_command, survey
from perdure.secrets.redact import redact

STYLES = {"-": "red", "+": "green"}
USER_ONLY = {
    Hermes.name: "Hermes is connected for all that you do in it",
    Codex.name: "Codex has no settings of a project that git ignores",
}

_host = click.Choice(CONNECTED)
_project_option = click.option(
    "--project",
    type=click.Path(path_type=Path),
    help="For one project only, in its settings that git ignores; for Cursor a rule in it.",
)
_plugin_option = click.option(
    "--plugin", type=click.Path(path_type=Path), help="Through a plugin for Claude Code, in this folder."
)


@operation()
@click.argument("host", required=False, type=_host)
@_project_option
@_plugin_option
def connect(
    output: Output, host: str | None, project: Path | None, plugin: Path | None, dry_run: bool, home: Path | None
) -> None:
    """Give a host memory; without HOST show which agents are here, which are connected, and how they remember.

    Claude Code, Codex, Gemini CLI and Hermes remember by themselves from then on. Of Cursor and VS Code what you say
    is kept as well, but their model is shown memories only when a session begins; later it asks for them by tools.

    Its data folder is named in the agent's config only if --home or PERDURE_HOME names one.

    Example: perdure connect claude-code --dry-run
    """
    if host is None:
        if project or plugin or home:
            raise InputError(f"name what to connect: {' or '.join(_host.choices)}")
        _list(output)
        return
    connection = _connection(host, project, plugin, home)
    edits = connection.plan_connect()
    _check(host, connection, project, plugin)
    _show(output, edits)
    switch = Hermes().switch(on=True) if host == Hermes.name else ()
    if switch:
        output.line(f"{'Would run' if dry_run else 'Runs'}: {shlex.join(switch)}")
    if not dry_run:
        connection.connect()
        if switch:
            Hermes().run(switch)
    notes = [] if dry_run else list(_next_steps(host, plugin, project, changed=bool(edits)))
    _end(output, host, edits, notes, done=not dry_run)


@operation()
@click.argument("host", type=_host)
@_project_option
@_plugin_option
def disconnect(output: Output, host: str, project: Path | None, plugin: Path | None, dry_run: bool) -> None:
    """Take perdure out of a host's config. Memories stay where they are.

    A file that was not edited since becomes what it was, byte for byte; of another only our own keys go.

    Example: perdure disconnect codex
    """
    connection = _connection(host, project, plugin, None)
    edits = connection.plan_disconnect()
    notes = list(_afterwards(host))
    _show(output, edits)
    for edit in edits:
        if edit.restored and edit.after is not None:
            output.line(f"{edit.file.path} was not edited since: it becomes what it was, byte for byte.")
    switch = Hermes().switch(on=False) if host == Hermes.name and edits else ()
    if switch:
        output.line(f"{'Would run' if dry_run else 'Runs'}: {shlex.join(switch)}")
    if not dry_run:
        if switch:
            Hermes().run(switch)
        connection.disconnect()
        notes += [f"{host} is still connected: {place}" for found in survey(names=[host]) for place in found.places]
    _end(output, host, edits, [] if dry_run else notes, done=not dry_run)


def _connection(name: str, project: Path | None, plugin: Path | None, home: Path | None) -> Connection:
    if project and plugin:
        raise InputError("--project and --plugin exclude each other")
    named = home or os.environ.get(HOME_VARIABLE)
    wiring = Wiring(name, Path(named).expanduser().absolute() if named else None)
    if plugin and name != ClaudeCode.name:
        raise InputError(f"{name} knows no such plugins; leave --plugin out")
    if project and name in USER_ONLY:
        raise InputError(f"{USER_ONLY[name]}; leave --project out")
    host = _host_of(name)
    if isinstance(host, ClaudeCode) and (plugin or project):
        return host.as_plugin(plugin, wiring) if plugin else host.for_project(project or Path(), wiring)
    if isinstance(host, PlainHost) and project:
        return host.for_project(project)
    return host.for_user(wiring.home) if isinstance(host, Hermes) else host.for_user(wiring)


def _host_of(name: str) -> ClaudeCode | Codex | Hermes | PlainHost:
    hosts: Sequence[ClaudeCode | Codex | Hermes | PlainHost]
    hosts = (ClaudeCode(), Codex(), Hermes(), *plain_hosts().values())
    return next(host for host in hosts if host.name == name)


def _check(name: str, connection: Connection, project: Path | None, plugin: Path | None) -> None:
    """See that a host may be connected like this."""
    host = _host_of(name)
    if not plugin and not host.program and not host.folder.is_dir():
        raise HostError(f"{name} was not found: its program is not on the PATH, and {host.folder} is missing")
    if isinstance(host, ClaudeCode):
        host.refuse_twice(project=project, plugin=plugin)
    if isinstance(host, Hermes):
        host.refuse_without_perdure()
    if isinstance(host, ClaudeCode) and (project or plugin):
        refuse_committed([target.path for target in connection.targets if target.inside])


def _next_steps(host: str, plugin: Path | None, project: Path | None, *, changed: bool) -> Iterator[str]:
    if plugin and plugin.expanduser().resolve().parent != (ClaudeCode().folder / "skills").resolve():
        yield f"Start it with: claude --plugin-dir {shlex.quote(str(plugin))}"
    if host in PLAIN and not plain_hosts()[host].remembers:
        yield "With a prompt it takes nothing: later than at its start a session's model has to look things up."
        if host == "cursor" and not project:
            yield "A rule that tells the model so goes into each project: perdure connect cursor --project FOLDER"
    if changed:
        yield "Sessions that are open take it up when they are started again."
    yield from (f"{host}: {problem}" for found in survey(names=[host]) for problem in found.problems)


def _afterwards(host: str) -> Iterator[str]:
    if host == Codex.name and Codex().overtaken():
        yield "Hooks of others stood behind ours and have moved up: Codex asks to trust them again, with /hooks."


def _show(output: Output, edits: Sequence[Edit]) -> None:
    if not edits:
        output.line("Nothing to change.")
    for edit in edits:
        for line in _diff(edit):
            output.line(line, STYLES.get(line[:1]))


def _diff(edit: Edit) -> list[str]:
    return redact("\n".join(edit.diff())).text.split("\n")


def _end(output: Output, host: str, edits: Sequence[Edit], notes: Iterable[str], *, done: bool) -> None:
    notes = list(notes)
    for line in ["Done.", *notes] if done and edits else notes:
        output.line(line)
    if output.as_json:
        files = [{"path": str(each.file.path), "restored": each.restored, "diff": _diff(each)} for each in edits]
        output.json({"host": host, "files": files, "notes": notes, "done": done})


def _list(output: Output) -> None:
    found = survey()
    hosts = [asdict(each) | {"connect": connect_command(each.name)} for each in found]
    output.both({"hosts": hosts}, ("host", "installed", "connected", "memory", "what is wrong"), map(_row, found))
    for each in found:
        if each.installed and not each.places:
            output.line(f"To connect {each.name}: {connect_command(each.name)}")


def _row(found: Found) -> Sequence[str]:
    places, problems = ", ".join(found.places), "; ".join(found.problems)
    return found.name, found.installed or "not found", places or "no", found.memory, problems
