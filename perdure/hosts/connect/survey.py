"""Which hosts are on this machine, and whether they remember by themselves."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal

from perdure.api.doctor import Checkup
from perdure.errors import HostError
from perdure.hosts.command.dialects import DIALECTS
from perdure.hosts.connect.claude_code import ClaudeCode
from perdure.hosts.connect.codex import Codex
from perdure.hosts.connect.hermes import Hermes
from perdure.hosts.connect.parts import interpreter
from perdure.hosts.connect.plain import PLAIN, PlainHost, plain_hosts
from perdure.hosts.openclaw.host import OpenClaw, config_file
from perdure.hosts.openclaw.install import Installation
from perdure.hosts.openclaw.manifest import ID

ByHooks = ClaudeCode | Codex | PlainHost
Remembering = Literal["automatic", "on request", "none"]
OPENCLAW = "openclaw"
CONNECTED = (ClaudeCode.name, Codex.name, Hermes.name, *PLAIN)
"""Hosts that `perdure connect` connects by files of theirs."""
HOSTS = (*CONNECTED[:2], OPENCLAW, *CONNECTED[2:])
NOT_TRUSTED = "its hooks are not trusted yet, so none runs: start `codex` and type /hooks"


@dataclass(frozen=True, slots=True)
class Found:
    """A host.

    Attributes:
        name: what `perdure connect` calls it.
        places: where it is connected.
        memory: "automatic" by hooks, "on request" by tools alone, or "none".
        problems: what is wrong with how it is connected.
        installed: its program, else its folder; None: neither is here.
    """

    name: str
    places: tuple[str, ...] = ()
    memory: Remembering = "none"
    problems: tuple[str, ...] = ()
    installed: str | None = None


def survey(environ: Mapping[str, str] = os.environ, names: Sequence[str] = HOSTS) -> list[Found]:
    """Look for hosts that can be connected.

    Args:
        environ: the environment by which hosts find their programs and configs.
        names: which hosts; OpenClaw's own commands take seconds.
    """
    claude_code, codex, hermes, config = ClaudeCode(environ), Codex(environ), Hermes(environ), config_file(environ)
    openclaw = shutil.which("openclaw", path=environ.get("PATH"))
    looks: Mapping[str, tuple[str | None, Path, Callable[[], Found]]] = {
        claude_code.name: (claude_code.program, claude_code.folder, lambda: _claude_code(claude_code)),
        codex.name: (codex.program, codex.folder, lambda: _codex(codex)),
        OPENCLAW: (openclaw, config.parent, lambda: _openclaw(config, environ)),
        hermes.name: (hermes.program, hermes.folder, lambda: _hermes(hermes)),
        **{name: (host.program, host.folder, partial(_plain, host)) for name, host in plain_hosts(environ).items()},
    }
    return [_looked(name, *looks[name]) for name in names]


def connect_command(name: str) -> str:
    """Return the command that connects a host."""
    return "perdure openclaw install" if name == OPENCLAW else f"perdure connect {name}"


def _looked(name: str, program: str | None, folder: Path, look: Callable[[], Found]) -> Found:
    try:
        found = look()
    except HostError as error:
        found = Found(name, problems=(str(error),))
    return replace(found, installed=program or (str(folder) if folder.is_dir() else None))


def _claude_code(host: ClaudeCode) -> Found:
    hooks, plugins, projects = host.hooks(), host.plugins(), host.projects()
    places = [str(host.settings)] * bool(hooks) + [str(path) for path in (*plugins, *projects)]
    flaws = list(_server_flaws(host, hooks))
    if hooks and plugins:
        flaws.append(f"the hooks are in {host.settings} and in the plugin {plugins[0]}, and both run")
    return _found(host, places, list(_hook_problems(host, hooks)), flaws)


def _codex(host: Codex) -> Found:
    hooks = host.hooks()
    problems = list(_hook_problems(host, hooks))
    try:
        problems += [NOT_TRUSTED] if host.distrusted() else []
    except HostError as error:
        problems.append(f"whether its hooks are trusted cannot be read: {error}")
    return _found(host, [str(host.hooks_file)] * bool(hooks), problems, list(_server_flaws(host, hooks)))


def _openclaw(config: Path, environ: Mapping[str, str]) -> Found:
    if not config.is_file():
        return Found(OPENCLAW)
    installation = Installation(OpenClaw.find(environ=environ))
    if ID not in installation.host.plugins().get("entries", {}):
        return Found(OPENCLAW)
    problems = tuple(f"{name}: {problem}" for name, problem in installation.checks().items() if problem)
    return Found(OPENCLAW, (str(config),), "none" if problems else "automatic", problems)


def _plain(host: PlainHost) -> Found:
    hooks = host.hooks()
    problems = list(_hook_problems(host, hooks))
    found = _found(host, [str(host.hooks_file)] * bool(hooks), problems, list(_server_flaws(host, hooks)))
    # What comes up in a session that begins, and by its tools, is not what each prompt needs.
    return found if host.remembers or found.memory != "automatic" else replace(found, memory="on request")


def _hermes(host: Hermes) -> Found:
    if not host.connected:
        return Found(host.name)
    problems = () if host.chosen() else (f"its config does not name perdure; run `{connect_command(host.name)}`",)
    return Found(host.name, (str(host.plugin),), "none" if problems else "automatic", problems)


def _found(host: ByHooks, places: list[str], problems: list[str], flaws: list[str]) -> Found:
    """Put together what was found; flaws do not keep a host from remembering by itself."""
    by_tools = host.has_server()
    memory: Remembering = "automatic" if places and not problems else "on request" if by_tools else "none"
    places = places or ["its MCP server"] * by_tools
    return Found(host.name, tuple(places), memory, (*problems, *flaws))


def _hook_problems(host: ByHooks, hooks: list[dict[str, Any]]) -> Iterator[str]:
    again = f"run `{connect_command(host.name)}`"
    events = len(DIALECTS[host.name].names)
    if hooks and len(hooks) != events:
        yield f"{len(hooks)} of {events} hooks are there; {again}"
    for python in sorted({interpreter(hook["command"]) or "" for hook in hooks}):
        if not os.access(python, os.X_OK):
            yield f"{python!r}, which its hooks run, cannot be run; {again}"
    off = host.switched_off()
    if hooks and off:
        yield f"no hook runs: {off}"


def _server_flaws(host: ByHooks, hooks: list[dict[str, Any]]) -> Iterator[str]:
    here = any(interpreter(hook["command"]) == sys.executable for hook in hooks)
    if hooks and not host.has_server():
        yield f"its MCP server is missing; run `{connect_command(host.name)}`"
    elif here and find_spec("mcp") is None:
        yield "its MCP server cannot start; run: pip install 'perdure[mcp]'"


def checkups(environ: Mapping[str, str] = os.environ) -> Iterator[Checkup]:
    """Look at the hosts that are on this machine; that they are not connected is no fault.

    Args:
        environ: the environment by which hosts find their programs and configs.
    """
    for found in survey(environ, CONNECTED):
        if not found.installed:
            continue
        command = connect_command(found.name)
        for problem in found.problems:
            yield Checkup(found.name, problem, f"see to that, then run `{command}`")
        if not found.problems:
            told = f"memory is {found.memory}" if found.places else f"not connected; it would be with: {command}"
            yield Checkup(found.name, told)
