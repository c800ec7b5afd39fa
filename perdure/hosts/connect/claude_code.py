"""Claude Code: its settings, its MCP servers, its plugins."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any, ClassVar

from perdure.engine.repository import root_of
from perdure.errors import HostError
from perdure.hosts.connect.config_file import recorded
from perdure.hosts.connect.connection import Connection, Target
from perdure.hosts.connect.parts import (
    NAME,
    HookHost,
    Hooks,
    Keys,
    Part,
    Server,
    Values,
    Wiring,
    at,
    folder_of,
    home_of,
    our_hooks,
    read_values,
)

LOCAL = Path(".claude", "settings.local.json")
HOOKS = Path("hooks", "hooks.json")
MANIFEST = Path(".claude-plugin", "plugin.json")
_STDIO = {"type": "stdio"}


@dataclass(frozen=True, slots=True)
class Manifest(Part):
    """What a plugin says of itself; all of the file is ours."""

    values: Mapping[str, Any]

    def put(self, values: Values) -> None:
        """Put it in."""
        values.update(self.values)

    def take(self, values: Values, former: Values) -> None:
        """Take all of it out."""
        values.clear()


class ClaudeCode(HookHost):
    """Claude Code on this machine; its folder holds its settings and plugins."""

    name, servers = "claude-code", ("mcpServers",)
    off: ClassVar[Mapping[Keys, bool]] = {("disableAllHooks",): True}

    def __init__(self, environ: Mapping[str, str] = os.environ) -> None:
        self.folder = folder_of(environ, "CLAUDE_CONFIG_DIR", ".claude")
        self.program = shutil.which("claude", path=environ.get("PATH"))
        self.hooks_file = self.folder / "settings.json"
        # The servers of one user in a project are there as well. An old name counts if it is used.
        old = self.folder / ".config.json"
        state = self.folder if environ.get("CLAUDE_CONFIG_DIR") else home_of(environ)
        self.config = old if old.is_file() and old.stat().st_size else state / ".claude.json"

    @property
    def settings(self) -> Path:
        """The user's settings."""
        return self.hooks_file

    def for_user(self, wiring: Wiring) -> Connection:
        """Return the connection for all of the user's projects."""
        server = Server(wiring, self.servers, _STDIO)
        return Connection(
            self.name, [Target(self.settings, [Hooks(wiring)]), Target(self.config, [server], locks=True)]
        )

    def for_project(self, folder: Path, wiring: Wiring) -> Connection:
        """Return the connection for one project, in files that git ignores.

        Raises:
            HostError: there is no such folder.
        """
        folder = _whole(folder)
        if not folder.is_dir():
            raise HostError(f"{folder} is no folder")
        # Where Claude Code itself keeps the servers of "local" scope.
        server = Server(wiring, ("projects", str(root_of(folder)), *self.servers), _STDIO)
        settings = Target(folder / LOCAL, [Hooks(wiring)], inside=folder)
        return Connection(self.name, [settings, Target(self.config, [server], locks=True)])

    def as_plugin(self, folder: Path, wiring: Wiring) -> Connection:
        """Return the connection by a plugin in a folder.

        Raises:
            HostError: something else lies there.
        """
        folder = _whole(folder)
        if folder.exists() and (not folder.is_dir() or (any(folder.iterdir()) and not _is_ours(folder))):
            raise HostError(f"{folder} is in use for something else; name a folder that is empty or missing")
        manifest = {
            "name": NAME,
            "version": version(NAME),
            "description": "Long-term memory that is kept on this machine.",
            "author": {"name": NAME},
        }
        return Connection(self.name, [
            Target(folder / MANIFEST, [Manifest(manifest)], inside=folder),
            Target(folder / HOOKS, [Hooks(wiring)], inside=folder),
            Target(folder / ".mcp.json", [Server(wiring, self.servers)], inside=folder),
        ])  # fmt: skip

    def plugins(self) -> list[Path]:
        """Return the folders of plugins with our hooks that Claude Code loads, or that we have written.

        Raises:
            HostError: a file of Claude Code cannot be read.
        """
        enabled = at(read_values(self.settings), "enabledPlugins")
        installed = at(read_values(self.folder / "plugins" / "installed_plugins.json"), "plugins")
        found = [
            (name, Path(str(at(each, "installPath"))))
            for name, copies in (installed.items() if isinstance(installed, dict) else ())
            for each in (copies if isinstance(copies, list) else ())
        ]
        found += [(f"{path.name}@skills-dir", path) for path in sorted((self.folder / "skills").glob("*"))]
        loaded = [path for name, path in found if at(enabled, name) is not False]
        written = [path.parents[1] for path in recorded(self.name) if path.name == HOOKS.name]
        return [path for path in dict.fromkeys([*loaded, *written]) if _has_ours(path / HOOKS)]

    def projects(self) -> list[Path]:
        """Return the projects that are connected by themselves."""
        found = [path for path in recorded(self.name) if path.name == LOCAL.name]
        return [path.parents[1] for path in found if _has_ours(path)]

    def elsewhere(self) -> Sequence[Path]:
        """Return the plugins and the projects with our hooks."""
        return [*self.plugins(), *self.projects()]

    def flaws(self) -> Sequence[str]:
        """Return that hooks stand in two places of the user."""
        plugins = self.plugins() if self.hooks() else ()
        return [f"the hooks are in {self.settings} and in the plugin {plugins[0]}, and both run"] if plugins else ()

    def refuse_twice(self, *, project: Path | None = None, plugin: Path | None = None) -> None:
        """See that one place alone has the hooks: Claude Code would run those of each.

        Args:
            project: the project that is to be connected; without it, and without a plugin, the user is.
            plugin: the folder of the plugin that is to be written.

        Raises:
            HostError: another place has them.
        """
        undo = f"perdure disconnect {self.name}"
        written = _whole(plugin) if plugin else None
        others = [("the plugin in", path, f"--plugin {path}") for path in self.plugins() if path != written]
        if project is None:
            others += [("the project", path, f"--project {path}") for path in self.projects()]
        if (project or plugin) and self.hooks():
            others.append(("the user's settings", self.settings, ""))
        for what, path, option in others:
            raise HostError(
                f"{what} {path} has the hooks already, and Claude Code would run both; first run"
                f" `{' '.join(filter(None, (undo, option)))}`"
            )


def refuse_committed(files: Sequence[Path]) -> None:
    """See that git leaves out files that name a path of this machine.

    Raises:
        HostError: git would commit one, or cannot be asked.
    """
    for file in files:
        folder = next(each for each in file.parents if each.is_dir())
        if not any((each / ".git").exists() for each in (folder, *folder.parents)):
            continue
        git = shutil.which("git")
        if git is None:
            raise HostError(f"{file} lies in a repository, and git is not on the PATH to tell whether it is ignored")
        # A repository's own settings must not make git start a program.
        command = [git, "-c", "core.fsmonitor=false", "-C", str(folder), "check-ignore", "-q", "--", str(file)]
        environ = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
        done = subprocess.run(  # noqa: S603 - git itself
            command, env=environ, capture_output=True, text=True, check=False
        )
        if done.returncode == 1:
            raise HostError(
                f"git does not ignore {file}, which would name a path of this machine to everybody; add it to"
                " .git/info/exclude or .gitignore, and if it is tracked: git rm --cached"
            )
        if done.returncode:
            raise HostError(f"git cannot tell whether it ignores {file}: {done.stderr.strip()[-300:]}")


def _has_ours(file: Path) -> bool:
    try:
        return any(our_hooks(read_values(file)))
    except HostError:
        return False  # a file of somebody else that Claude Code cannot read either


def _is_ours(folder: Path) -> bool:
    return bool(at(read_values(folder / MANIFEST), "name") == NAME)


def _whole(path: Path) -> Path:
    return path.expanduser().resolve()
