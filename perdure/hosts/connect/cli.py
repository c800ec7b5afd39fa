"""`perdure connect` and `perdure disconnect`: memory for agents, by hooks and an MCP server."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import asdict
from pathlib import Path

import click

from perdure.api import consent
from perdure.cli.operation import operation
from perdure.cli.output import Output, agree, choose, is_asked, notice, tell
from perdure.engine.config_file import set_setting, unset_setting
from perdure.engine.paths import HOME_VARIABLE, config_file, data_folder
from perdure.engine.setting_sources import PREFIX, from_file
from perdure.engine.settings import CODING, Settings
from perdure.errors import HostError, InputError
from perdure.hosts.connect.connection import Connection, Edit
from perdure.hosts.connect.hermes import Hermes
from perdure.hosts.connect.hook_hosts import PLAIN, ClaudeCode, Codex, PlainHost, plain_hosts, refuse_committed
from perdure.hosts.connect.parts import Wiring
from perdure.hosts.connect.survey import CONNECTED, OPENCLAW, Found, connect_command, survey
from perdure.hosts.openclaw.cli import install as install_openclaw
from perdure.parts import part
from perdure.secrets.redact import redact
from perdure.service.client import dismiss
from perdure.text.pluralize import counted

STYLES = {"-": "red", "+": "green"}
USER_ONLY = {
    Hermes.name: "Hermes can only be connected for all projects",
    Codex.name: "Codex has no project settings that git ignores",
}

_PRIVATE = "health, money, faith, relationships, children, food, home and personal life"
"""The private topics, in words."""
_host = click.Choice(CONNECTED)


@operation()
@click.argument("host", required=False, type=_host)
@click.option(
    "--project",
    type=click.Path(path_type=Path),
    help="Connect only this project: in its git-ignored settings, or for Cursor in a rule file.",
)
@click.option("--plugin", type=click.Path(path_type=Path), help="Install as a Claude Code plugin in this folder.")
@click.option(
    "--private/--no-private", default=None, help="Whether a coding host's sessions may start with private memories."
)
@click.option(
    "--librarian/--no-librarian", default=None, help="Whether a language model may review idle conversations."
)
def connect(
    output: Output, host: str | None, project: Path | None, plugin: Path | None, private: bool | None,
    librarian: bool | None, dry_run: bool, home: Path | None,
) -> None:  # fmt: skip
    """Connect a host to perdure; without HOST, choose from a list.

    Claude Code, Codex, Gemini CLI and Hermes then remember automatically. Cursor and VS Code capture what you say, but
    recall only when a session starts; after that, the model must call the memory tools.

    A coding host's session starts with memories about rules, projects, tools and people. Private memories
    from elsewhere are included only if you agree; `perdure opening --host HOST` shows what a session starts with.

    The agent's config names the data folder only if --home or PERDURE_HOME does.

    Example: perdure connect claude-code --dry-run
    """
    if host is not None:
        _connect(output, host, project, plugin, private, librarian, home, dry_run=dry_run)
        return
    if project or plugin or private is not None or librarian is not None:
        raise InputError(f"specify the host to connect: {', '.join(_host.choices)}")
    found = survey()
    _list(output, found)
    free = [each.name for each in found if each.installed and not each.places]
    if output.as_json or not is_asked():
        for name in free:
            output.line(f"To connect {name}: {connect_command(name)}")
    elif free:
        output.table(("", ""), enumerate(free, 1))
        for number in choose("Connect", len(free)):
            output.rule(free[number])
            try:
                if free[number] == OPENCLAW:
                    click.get_current_context().invoke(install_openclaw, home=home, dry_run=dry_run)
                else:
                    _connect(output, free[number], None, None, None, None, home, dry_run=dry_run)
            except HostError as error:
                notice([str(error)])


def _connect(
    output: Output, host: str, project: Path | None, plugin: Path | None, private: bool | None, librarian: bool | None,
    home: Path | None, *, dry_run: bool,
) -> None:  # fmt: skip
    connection = _connection(host, project, plugin, home, reminds=Settings.load().agent_log == "remind")
    if private is not None and host not in CODING:
        raise InputError(f"{host} is not a coding host and gets all memories; omit --private and --no-private")
    if librarian and not consent.has_model(host):
        raise InputError(
            f"no language model can be asked about what is said in {host}; set llm_endpoint, or omit --librarian"
        )
    edits = connection.plan_connect()
    _check(host, connection, project, plugin)
    _show(output, edits)
    switch = Hermes().switch(on=True) if host == Hermes.name else ()
    if switch:
        output.line(f"{'Would run' if dry_run else 'Running'}: {shlex.join(switch)}")
    if not dry_run:
        connection.connect()
        if edits:
            # A running one has read the settings already.
            dismiss(data_folder(home))
        if switch:
            Hermes().run(switch)
    notes = [] if dry_run else list(_next_steps(host, plugin, project, changed=bool(edits)))
    if dry_run:
        notes += _would_answer(private, librarian)
    else:
        notes += _answer(host, private, librarian, home, changed=bool(edits), asks=not output.as_json)
    _end(output, host, edits, notes, done=not dry_run)
    if not dry_run and edits and not output.as_json:
        _offer(output, host, home)


@operation()
@click.argument("host", type=_host)
@click.option("--project", type=click.Path(path_type=Path), help="Disconnect only this project.")
@click.option("--plugin", type=click.Path(path_type=Path), help="Remove the Claude Code plugin from this folder.")
def disconnect(output: Output, host: str, project: Path | None, plugin: Path | None, dry_run: bool) -> None:
    """Remove perdure from a host's config. Memories stay.

    A file you have not edited since connecting is restored byte for byte; from an edited one, only perdure's own keys
    are removed.

    Example: perdure disconnect codex
    """
    connection = _connection(host, project, plugin, None)
    edits = connection.plan_disconnect()
    notes = list(_afterwards(host))
    _show(output, edits)
    for edit in edits:
        if edit.restored and edit.after is not None:
            output.line(f"{edit.file.path} has not been edited since: it is restored byte for byte.")
    switch = Hermes().switch(on=False) if host == Hermes.name and edits else ()
    if switch:
        output.line(f"{'Would run' if dry_run else 'Running'}: {shlex.join(switch)}")
    if not dry_run:
        if switch:
            Hermes().run(switch)
        connection.disconnect()
        places = [place for found in survey(names=[host]) for place in found.places]
        notes += [f"{host} is still connected: {place}" for place in places]
        if host in CODING and not places:
            _told_private(host, False, None)
    _end(output, host, edits, [] if dry_run else notes, done=not dry_run)


def _would_answer(private: bool | None, librarian: bool | None) -> Iterator[str]:
    if private is not None:
        would = "would" if private else "would not"
        yield f"Its sessions {would} start with what you said elsewhere about {_PRIVATE}."
    if librarian is not None:
        yield f"The librarian would be {'on' if librarian else 'off'}."


def _answer(
    host: str, private: bool | None, librarian: bool | None, home: Path | None, *, changed: bool, asks: bool
) -> Iterator[str]:
    """Save what the user answers, now or by an option, and yield the outcome in words."""
    if host in CODING:
        private = _asked(host) if private is None and asks else private
        if changed or private is not None:
            yield _told_private(host, private, home)
    librarian = _may_read(host, home) if librarian is None and asks else librarian
    if librarian is not None:
        kept = consent.keep(data_folder(home), librarian)
        yield f"The librarian is {'on' if kept.on else 'off'} (to change this: perdure librarian on, or off)."


def _asked(host: str) -> bool | None:
    """Ask whether a host may get private memories; None: it does already, or there is no terminal."""
    if not (Settings.load().withholds(host) and is_asked()):
        return None
    return agree(
        f"May a session in {host} also start with what you said elsewhere about {_PRIVATE}?"
        f" It is sent to the model that {host} uses."
    )


def _may_read(host: str, home: Path | None) -> bool | None:
    """Ask, once, whether the librarian may read; None: it is known, or there is no model or no terminal."""
    if consent.is_answered() or not is_asked() or not consent.has_model(host):
        return None
    tell(consent.terms_of(data_folder(home)))
    return agree("May the librarian read what you say?")


def _told_private(host: str, wanted: bool | None, home: Path | None) -> str:
    """Save whether a host's sessions may start with private memories; return the outcome in words."""
    kept = {*from_file(None, os.environ).get("private_hosts", ())}
    if wanted is not None and wanted != (host in kept):
        names = sorted(kept | {host} if wanted else kept - {host})
        if names:
            set_setting(config_file(), "private_hosts", ",".join(names))
        else:
            unset_setting(config_file(), "private_hosts")
        # A running helper has read the settings already.
        dismiss(data_folder(home))
    told = not Settings.load().withholds(host)
    named = f"{PREFIX}PRIVATE_HOSTS in the environment"
    ends, lets = "to change this, pass --no-private", "to change this, pass --private"
    if Settings.origins().get("private_hosts", "").startswith(PREFIX):
        ends, lets = f"set by {named}", f"not in {named}"
    if told:
        return f"Its sessions also start with what you said elsewhere about {_PRIVATE} ({ends})."
    return f"Its sessions do not start with what you said elsewhere about {_PRIVATE} ({lets})."


def _connection(
    name: str, project: Path | None, plugin: Path | None, home: Path | None, *, reminds: bool = False
) -> Connection:
    if project and plugin:
        raise InputError("--project and --plugin cannot be combined; choose one")
    named = home or os.environ.get(HOME_VARIABLE)
    wiring = Wiring(name, Path(named).expanduser().absolute() if named else None, reminds=reminds)
    if plugin and name != ClaudeCode.name:
        raise InputError(f"--plugin is for Claude Code, not {name}; omit it")
    if project and name in USER_ONLY:
        raise InputError(f"{USER_ONLY[name]}; omit --project")
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
    """Refuse a connection that this host cannot have."""
    host = _host_of(name)
    if not plugin and not host.program and not host.folder.is_dir():
        raise HostError(
            f"{name} was not found: its program is not on the PATH, and {host.folder} is missing; install it first"
        )
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
        yield (
            "This host cannot add memories to a prompt: once a session has started, the model must look them up itself."
        )
        if host == "cursor" and not project:
            yield "To tell the model to do so, add a rule to each project: perdure connect cursor --project FOLDER"
    if changed:
        yield "Restart open sessions to use it."
    yield from (f"{host}: {problem}" for found in survey(names=[host]) for problem in found.problems)


def _offer(output: Output, host: str, home: Path | None) -> None:
    """Offer to import the user's own file for a host: ask on a terminal, else name the command."""
    from perdure.hosts.command.context_files import users_files
    from perdure.hosts.command.dialects import DIALECTS

    for path in users_files(DIALECTS[host]) if host in DIALECTS else ():
        shown = f"perdure import {shlex.quote(str(path))} --trust"
        if not is_asked():
            output.line(f"To share {path} with your other agents: {shown}")
        elif agree(f"Import {path} as your own words, to share it with your other agents?"):
            _take_in(output, path, home)


def _take_in(output: Output, path: Path, home: Path | None) -> None:
    from perdure.engine.paths import data_folder
    from perdure.engine.store_opening import open_store
    from perdure.maintenance.importing import bring_in

    with closing(open_store(data_folder(home))) as store:
        report = bring_in(store, part("importers.sources").open_source(path, store.key), trust=True)
    output.line(f"Imported {counted(report.added, 'memory')} from {path}.")
    if report.added and report.batch:
        output.line(f"Undo: perdure undo --batch {report.batch}")


def _afterwards(host: str) -> Iterator[str]:
    if host == Codex.name and Codex().overtaken():
        yield "Other hooks changed position in the file, so Codex will ask you to trust them again (type /hooks)."


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


def _list(output: Output, found: Sequence[Found]) -> None:
    hosts = [asdict(each) | {"connect": connect_command(each.name)} for each in found]
    output.both({"hosts": hosts}, ("host", "installed", "connected", "memory", "problems"), map(_row, found))


def _row(found: Found) -> Sequence[str]:
    places, problems = ", ".join(found.places), "; ".join(found.problems)
    return found.name, found.installed or "not found", places or "no", found.memory, problems
