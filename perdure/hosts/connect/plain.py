"""Hosts that are connected by plain files of the user: their MCP servers, their hooks, and a rule for the model."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from perdure.errors import HostError
from perdure.hosts.connect.connection import Connection, Target, WholeFile
from perdure.hosts.connect.parts import SECONDS, HookHost, Hooks, Keys, Part, Server, Version, Wiring
from perdure.hosts.mcp.client import INSTRUCTIONS

PLAIN = ("cursor", "vscode", "gemini")
PROJECT_RULE = Path(".cursor", "rules", "perdure.mdc")
_COMMAND = {"type": "command"}
_CURSOR_RULE = f"---\ndescription: Long-term memory\nalwaysApply: true\n---\n\n{INSTRUCTIONS}\n"
_CODE_RULE = f'---\napplyTo: "**"\n---\n\n{INSTRUCTIONS}\n'


@dataclass
class PlainHost(HookHost):
    """A host on this machine.

    Attributes:
        form: of a hook, beside its command.
        extra: what the host wants to know of a server besides.
        grouped: whether hooks stand in groups.
        version: of the form of the file with the hooks, if it names one.
        rule: where the host looks for rules for all of the user's projects, if there is such a place.
    """

    name: str
    folder: Path
    program: str | None
    config: Path
    hooks_file: Path
    form: Mapping[str, Any]
    servers: Keys = ("mcpServers",)
    extra: Mapping[str, str] = field(default_factory=dict)
    grouped: bool = False
    version: int | None = None
    rule: Path | None = None

    def for_user(self, wiring: Wiring) -> Connection:
        """Return the connection for all of the user's projects."""
        hooks: list[Part] = [Hooks(wiring, form=self.form, grouped=self.grouped)]
        if self.version is not None:
            hooks.append(Version(self.version))
        server = Server(wiring, self.servers, self.extra)
        targets: list[Target | WholeFile]
        if self.hooks_file == self.config:
            targets = [Target(self.config, [server, *hooks])]
        else:
            targets = [Target(self.config, [server]), Target(self.hooks_file, hooks)]
        return Connection(self.name, [*targets, *([WholeFile(self.rule, _CODE_RULE)] if self.rule else [])])

    def for_project(self, folder: Path) -> Connection:
        """Return the connection of one project to what the user has: a rule that names no path of this machine.

        Raises:
            HostError: there is no such folder, or the host needs no rule there.
        """
        if self.remembers or self.rule:
            raise HostError(f"{self.name} is connected for all projects of yours; leave --project out")
        folder = folder.expanduser().resolve()
        if not folder.is_dir():
            raise HostError(f"{folder} is no folder")
        return Connection(self.name, [WholeFile(folder / PROJECT_RULE, _CURSOR_RULE, inside=folder)])


def plain_hosts(environ: Mapping[str, str] = os.environ) -> Mapping[str, PlainHost]:
    """Return these hosts by name, as the environment places them."""
    home, path = Path(environ.get("HOME") or Path.home()), environ.get("PATH")
    programs: Sequence[str | None] = [shutil.which(each, path=path) for each in ("cursor", "code", "gemini")]
    cursor, code, gemini = home / ".cursor", _code(home, environ), home / ".gemini"
    settings = gemini / "settings.json"
    found = (
        # What it counts a hook's time in, its documents tell in two ways.
        PlainHost("cursor", cursor, programs[0], cursor / "mcp.json", cursor / "hooks.json", {}, version=1),
        PlainHost(
            "vscode", code, programs[1], code / "User" / "mcp.json", home / ".copilot" / "hooks" / "perdure.json",
            _COMMAND | {"timeout": SECONDS}, ("servers",), {"type": "stdio"},
            rule=code / "User" / "prompts" / "perdure.instructions.md",
        ),
        PlainHost(
            "gemini", gemini, programs[2], settings, settings, _COMMAND | {"timeout": SECONDS * 1000}, grouped=True
        ),
    )  # fmt: skip
    return {host.name: host for host in found}


def _code(home: Path, environ: Mapping[str, str]) -> Path:
    """Return where VS Code keeps what belongs to the user."""
    if sys.platform == "darwin":
        return home / "Library" / "Application Support" / "Code"
    if sys.platform == "win32":
        return Path(environ.get("APPDATA") or home / "AppData" / "Roaming") / "Code"
    return Path(environ.get("XDG_CONFIG_HOME") or home / ".config") / "Code"
