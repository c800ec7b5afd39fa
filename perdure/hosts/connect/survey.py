"""Which hosts are on this machine, and whether they remember by themselves."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Literal

from perdure.api.doctor import Checkup
from perdure.engine.settings import Settings
from perdure.errors import HostError
from perdure.extras import absent, how_to_install
from perdure.hosts.command.dialects import DIALECTS
from perdure.hosts.connect.hermes import Hermes
from perdure.hosts.connect.hook_hosts import PLAIN, ClaudeCode, Codex, plain_hosts
from perdure.hosts.connect.parts import HookHost, Wiring, home_of, interpreter, reminds
from perdure.hosts.openclaw.install import Installation, OpenClaw, config_file
from perdure.hosts.openclaw.manifest import ID
from perdure.hosts.openclaw.mapping import HOST

OPENCLAW = HOST
Remembering = Literal["automatic", "on request", "none"]
CONNECTED = (ClaudeCode.name, Codex.name, Hermes.name, *PLAIN)
"""Hosts that `perdure connect` connects by files of theirs."""
HOSTS = (*CONNECTED[:2], OPENCLAW, *CONNECTED[2:])


@dataclass(frozen=True, slots=True)
class Found:
    """A host."""

    name: str  # what `perdure connect` calls it
    places: tuple[str, ...] = ()  # where it is connected
    memory: Remembering = "none"  # "automatic" by hooks, "on request" by tools alone, or "none"
    problems: tuple[str, ...] = ()  # what is wrong with how it is connected
    installed: str | None = None  # its program, else its folder; None: neither is here


def survey(environ: Mapping[str, str] = os.environ, names: Sequence[str] = HOSTS) -> list[Found]:
    """Look for hosts that can be connected.

    Of OpenClaw its own commands are asked, which takes seconds.
    """
    try:
        home_of(environ)
    except HostError:
        return []
    hosts: Sequence[HookHost] = (ClaudeCode(environ), Codex(environ), *plain_hosts(environ).values())
    looks: dict[str, tuple[str | None, Path, Callable[[], Found]]] = {
        host.name: (host.program, host.folder, partial(_by_hooks, host)) for host in hosts
    }
    hermes, config = Hermes(environ), config_file(environ)
    looks[hermes.name] = (hermes.program, hermes.folder, partial(_hermes, hermes))
    openclaw = shutil.which("openclaw", path=environ.get("PATH"))
    looks[OPENCLAW] = (openclaw, config.parent, partial(_openclaw, config, environ))
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


def _by_hooks(host: HookHost) -> Found:
    """Look at a host; its flaws do not keep it from remembering by itself, and its problems do."""
    hooks = host.hooks()
    places = [*[str(host.hooks_file)] * bool(hooks), *map(str, host.elsewhere())]
    problems = [*_hook_problems(host, hooks), *host.doubts()]
    flaws = [*_server_flaws(host, hooks), *_reminder_flaws(host, hooks), *host.flaws()]
    by_tools = host.has_server()
    # What comes up in a session that begins, and by its tools, is not what each prompt needs.
    hooked = bool(places) and not problems
    memory: Remembering = "automatic" if hooked and host.remembers else "on request" if hooked or by_tools else "none"
    return Found(host.name, tuple(places or ["its MCP server"] * by_tools), memory, (*problems, *flaws))


def _openclaw(config: Path, environ: Mapping[str, str]) -> Found:
    if not config.is_file():
        return Found(OPENCLAW)
    installation = Installation(OpenClaw.find(environ=environ))
    if ID not in installation.host.plugins().get("entries", {}):
        return Found(OPENCLAW)
    problems = tuple(f"{name}: {problem}" for name, problem in installation.checks().items() if problem)
    return Found(OPENCLAW, (str(config),), "none" if problems else "automatic", problems)


def _hermes(host: Hermes) -> Found:
    if not host.connected:
        return Found(host.name)
    problems = () if host.chosen() else (f"its config does not name perdure; run `{connect_command(host.name)}`",)
    return Found(host.name, (str(host.plugin),), "none" if problems else "automatic", problems)


def _hook_problems(host: HookHost, hooks: list[dict[str, Any]]) -> Iterator[str]:
    again = f"run `{connect_command(host.name)}`"
    events, there = len(Wiring(host.name).events()), sum(not reminds(hook) for hook in hooks)
    if hooks and there != events:
        yield f"{there} of {events} hooks are present; {again}"
    for python in sorted({interpreter(hook["command"]) or "" for hook in hooks}):
        if not os.access(python, os.X_OK):
            yield f"{python!r}, which its hooks run, cannot be started; {again}"
    off = host.switched_off()
    if hooks and off:
        yield f"no hook runs: {off}"


def _server_flaws(host: HookHost, hooks: list[dict[str, Any]]) -> Iterator[str]:
    here = any(interpreter(hook["command"]) == sys.executable for hook in hooks)
    if hooks and not host.has_server():
        yield f"its MCP server is missing; run `{connect_command(host.name)}`"
    elif here and absent("mcp"):
        yield f"its MCP server cannot start; run: {how_to_install('mcp')}"


def _reminder_flaws(host: HookHost, hooks: list[dict[str, Any]]) -> Iterator[str]:
    there = any(map(reminds, hooks))
    if hooks and DIALECTS[host.name].tools and there != (Settings.load().agent_log == "remind"):
        told = 'not "remind", but its hook is installed' if there else '"remind", but its hook is missing'
        yield f"agent_log is {told}; run `{connect_command(host.name)}`"


def checkups(environ: Mapping[str, str] = os.environ) -> Iterator[Checkup]:
    """Look at the hosts that are on this machine; that they are not connected is no fault."""
    for found in survey(environ, CONNECTED):
        if not found.installed:
            continue
        command = connect_command(found.name)
        for problem in found.problems:
            yield Checkup(found.name, problem, f"fix that, then run `{command}`")
        if not found.problems:
            told = f"memory is {found.memory}" if found.places else f"not connected; connect it with: {command}"
            if found.places and found.name in Settings.load().private_hosts:
                told += "; sessions also begin with private memories"
            yield Checkup(found.name, told)
