"""Hosts that take memory as tools alone: they remember on request, by an MCP server in the user's own config."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from perdure.hosts.connect.connection import Connection, Target
from perdure.hosts.connect.formats import MISSING, at, read_values
from perdure.hosts.connect.parts import NAME, Keys, Server, Wiring

BY_TOOLS = ("cursor", "vscode", "gemini")
_SERVERS: Keys = ("mcpServers",)


@dataclass(frozen=True, slots=True)
class ByTools:
    """A host on this machine.

    Attributes:
        name: what `perdure connect` calls it.
        config: the file with the MCP servers of the user.
        folder: what is there if the host was ever started.
        program: its program; None: it is not on the PATH.
        servers: where the config has its servers.
        extra: what the host wants to know of a server besides.
    """

    name: str
    config: Path
    folder: Path
    program: str | None
    servers: Keys = _SERVERS
    extra: Mapping[str, str] = field(default_factory=dict)

    def for_user(self, wiring: Wiring) -> Connection:
        """Return the connection for all of the user's projects."""
        return Connection(self.name, [Target(self.config, [Server(wiring, self.servers, self.extra)])])

    def has_server(self) -> bool:
        """Return whether the config has our MCP server.

        Raises:
            HostError: the config cannot be read.
        """
        return at(read_values(self.config), *self.servers, NAME) is not MISSING


def hosts_by_tools(environ: Mapping[str, str] = os.environ) -> Mapping[str, ByTools]:
    """Return these hosts by name, as the environment places them."""
    home, path = Path(environ.get("HOME") or Path.home()), environ.get("PATH")
    cursor, code, gemini = home / ".cursor", _code(home, environ), home / ".gemini"
    found = (
        ByTools("cursor", cursor / "mcp.json", cursor, shutil.which("cursor", path=path)),
        ByTools("vscode", code / "User" / "mcp.json", code, shutil.which("code", path=path), ("servers",),
                {"type": "stdio"}),
        ByTools("gemini", gemini / "settings.json", gemini, shutil.which("gemini", path=path)),
    )  # fmt: skip
    return {host.name: host for host in found}


def _code(home: Path, environ: Mapping[str, str]) -> Path:
    """Return where VS Code keeps what belongs to the user."""
    if sys.platform == "darwin":
        return home / "Library" / "Application Support" / "Code"
    if sys.platform == "win32":
        return Path(environ.get("APPDATA") or home / "AppData" / "Roaming") / "Code"
    return Path(environ.get("XDG_CONFIG_HOME") or home / ".config") / "Code"
