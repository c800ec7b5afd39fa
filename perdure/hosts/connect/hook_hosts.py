"""Hosts with hooks and MCP servers of the user: Claude Code, Codex, and those that plain files connect."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any, ClassVar

from perdure.engine.repository import root_of
from perdure.errors import HostError
from perdure.hosts.command.dialects import DIALECTS, TOOL
from perdure.hosts.connect.config_file import recorded
from perdure.hosts.connect.connection import Connection, Target, WholeFile
from perdure.hosts.connect.parts import (
    MISSING,
    NAME,
    SECONDS,
    HookHost,
    Hooks,
    Keys,
    Part,
    Server,
    Values,
    Version,
    Wiring,
    at,
    folder_of,
    home_of,
    our_hooks,
    read_values,
)
from perdure.hosts.mcp.client import INSTRUCTIONS

LOCAL = Path(".claude", "settings.local.json")
HOOKS = Path("hooks", "hooks.json")
MANIFEST = Path(".claude-plugin", "plugin.json")
_STDIO = {"type": "stdio"}
LONGEST = {"session-end": 3}
"""Codex gives this event so many seconds, and warns at each start if a hook asks for more."""
NOT_TRUSTED = "its hooks are not trusted yet, so none of them run: start `codex` and type /hooks"
REMINDS_NOT = "only its pre-tool reminder hook is not trusted yet: start `codex` and type /hooks"
_TOOLS = {DIALECTS["codex"].names[TOOL]}
_STATE: Keys = ("hooks", "state")
_FORWARDED = ["PERDURE_CONFIG", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_RUNTIME_DIR"]
"""Codex hides these from its servers, but not from its hooks: the two would look for memories in different folders."""
PLAIN = ("cursor", "vscode", "gemini")
PROJECT_RULE = Path(".cursor", "rules", "perdure.mdc")
_COMMAND = {"type": "command"}
_CURSOR_RULE = f"---\ndescription: Long-term memory\nalwaysApply: true\n---\n\n{INSTRUCTIONS}\n"
_CODE_RULE = f'---\napplyTo: "**"\n---\n\n{INSTRUCTIONS}\n'


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
        targets = [Target(self.settings, [Hooks(wiring)]), Target(self.config, [server], locks=True)]
        return Connection(self.name, targets)

    def for_project(self, folder: Path, wiring: Wiring) -> Connection:
        """Return the connection for one project, in files that git ignores."""
        folder = _project(folder)
        # Where Claude Code itself keeps the servers of "local" scope.
        server = Server(wiring, ("projects", str(root_of(folder)), *self.servers), _STDIO)
        settings = Target(folder / LOCAL, [Hooks(wiring)], inside=folder)
        return Connection(self.name, [settings, Target(self.config, [server], locks=True)])

    def as_plugin(self, folder: Path, wiring: Wiring) -> Connection:
        """Return the connection by a plugin in a folder."""
        folder = _whole(folder)
        if folder.exists() and (not folder.is_dir() or (any(folder.iterdir()) and not _is_ours(folder))):
            raise HostError(f"{folder} already contains other files; choose an empty or new folder")
        about = "Long-term memory kept on this machine."
        manifest = {"name": NAME, "version": version(NAME), "description": about, "author": {"name": NAME}}
        return Connection(self.name, [
            Target(folder / MANIFEST, [Manifest(manifest)], inside=folder),
            Target(folder / HOOKS, [Hooks(wiring)], inside=folder),
            Target(folder / ".mcp.json", [Server(wiring, self.servers)], inside=folder),
        ])  # fmt: skip

    def plugins(self) -> list[Path]:
        """Return the folders of plugins with our hooks that Claude Code loads, or that we have written."""
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
        return [f"the hooks run twice: from {self.settings} and the plugin {plugins[0]}"] if plugins else ()

    def refuse_twice(self, *, project: Path | None = None, plugin: Path | None = None) -> None:
        """See that one place alone has the hooks: Claude Code would run those of each.

        Without a `project` to be connected, and without the folder of a `plugin` to be written, it is the user who is
        connected.
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
                f"{what} {path} already has the hooks, and Claude Code would run both; first run"
                f" `{' '.join(filter(None, (undo, option)))}`"
            )


def refuse_committed(files: Sequence[Path]) -> None:
    """See that git leaves out files that name a path of this machine."""
    for file in files:
        folder = next(each for each in file.parents if each.is_dir())
        if not any((each / ".git").exists() for each in (folder, *folder.parents)):
            continue
        git = shutil.which("git")
        if git is None:
            raise HostError(
                f"{file} is in a git repository, but git is not on the PATH to check whether it is ignored; install git"
            )
        # A repository's own settings must not make git start a program.
        command = [git, "-c", "core.fsmonitor=false", "-C", str(folder), "check-ignore", "-q", "--", str(file)]
        environ = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
        done = subprocess.run(  # noqa: S603 - git itself
            command, env=environ, capture_output=True, text=True, check=False
        )
        if done.returncode == 1:
            raise HostError(
                f"git does not ignore {file}; committing it would publish a path on this machine. Add it to"
                " .git/info/exclude or .gitignore, and if it is tracked: git rm --cached"
            )
        if done.returncode:
            raise HostError(
                f"git cannot tell whether {file} is ignored ({done.stderr.strip()[-300:]}); fix that, then retry"
            )


def _has_ours(file: Path) -> bool:
    try:
        return any(our_hooks(read_values(file)))
    except HostError:
        return False  # a file of somebody else that Claude Code cannot read either


def _is_ours(folder: Path) -> bool:
    return bool(at(read_values(folder / MANIFEST), "name") == NAME)


def _project(folder: Path) -> Path:
    folder = _whole(folder)
    if not folder.is_dir():
        raise HostError(f"{folder} is not a folder; pass the project's folder")
    return folder


def _whole(path: Path) -> Path:
    return path.expanduser().resolve()


class Codex(HookHost):
    """Codex on this machine."""

    name, servers = "codex", ("mcp_servers",)
    off: ClassVar[Mapping[Keys, bool]] = {("features", "hooks"): False, ("features", "codex_hooks"): False}

    def __init__(self, environ: Mapping[str, str] = os.environ) -> None:
        self.folder = folder_of(environ, "CODEX_HOME", ".codex")
        self.program = shutil.which("codex", path=environ.get("PATH"))
        self.config = self.folder / "config.toml"
        self.hooks_file = self.folder / "hooks.json"

    def for_user(self, wiring: Wiring) -> Connection:
        """Return the connection for all of the user's projects."""
        server = Server(wiring, self.servers, {"env_vars": _FORWARDED})
        # The record of trust is read by what the hooks are, so it is taken out before them.
        return Connection(self.name, [
            Target(self.config, [server, _Trust(self, wiring)]),
            Target(self.hooks_file, [Hooks(wiring, LONGEST)]),
        ])  # fmt: skip

    def doubts(self) -> Sequence[str]:
        """Return that Codex does not trust our hooks."""
        try:
            return [NOT_TRUSTED] if set(self.distrusted()) - _TOOLS else []
        except HostError as error:
            return [f"cannot read whether its hooks are trusted: {error}"]

    def flaws(self) -> Sequence[str]:
        """Return that Codex trusts all our hooks but the one before tools."""
        with suppress(HostError):
            return [REMINDS_NOT] if set(self.distrusted()) == _TOOLS else []
        return []

    def distrusted(self) -> list[str]:
        """Return the events whose hook of ours Codex does not run until a person has trusted it with `/hooks`."""
        state = at(read_values(self.config), *_STATE)
        if state is not MISSING and not isinstance(state, Mapping):
            raise HostError(
                f"{'.'.join(_STATE)} in {self.config} is in a form that perdure does not recognise; trust "
                "the hooks with /hooks in Codex, or report this"
            )
        found = []
        for event, keys, digest in self.identities():
            records = [at(state, key) for key in keys]
            if not any(at(each, "trusted_hash") == digest and at(each, "enabled") is not False for each in records):
                found.append(event)
        return found

    def identities(self) -> Iterator[tuple[str, list[str], str]]:
        """Yield of each hook of ours its event, the names that Codex may know it by, and the hash of what it is."""
        values = read_values(self.hooks_file)
        # Codex resolves the folder if CODEX_HOME names it, and does not otherwise.
        folders = dict.fromkeys((self.folder, Path(os.path.realpath(self.folder))))
        for event, group, place, hook in our_hooks(values):
            label = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", event).lower()
            matcher = at(values["hooks"][event][group], "matcher")
            names = [f"{folder / self.hooks_file.name}:{label}:{group}:{place}" for folder in folders]
            yield event, names, _hash(label, hook, matcher)

    def overtaken(self) -> bool:
        """Return whether hooks of others stand behind ours: their places, and so their names, change without us."""
        values = read_values(self.hooks_file)
        last = {event: group for event, group, _, _ in our_hooks(values)}
        return any(group + 1 < len(values["hooks"][event]) for event, group in last.items())


@dataclass(frozen=True, slots=True)
class _Trust(Part):
    """What Codex has noted of our hooks. It is never put in: that is for a person to do, in Codex."""

    codex: Codex
    wiring: Wiring

    @property
    def containers(self) -> Sequence[Keys]:
        return (_STATE, _STATE[:1])

    def put(self, values: Values) -> None:
        """Take out what is noted of a hook of ours that is wanted no more."""
        self._drop(values, set(DIALECTS[self.codex.name].names.values()) - set(self.wiring.events().values()))

    def take(self, values: Values, former: Values) -> None:
        self._drop(values, set(DIALECTS[self.codex.name].names.values()))

    def _drop(self, values: Values, events: Collection[str]) -> None:
        for event, names, digest in self.codex.identities():
            for name in names if event in events else ():
                if at(values, *_STATE, name, "trusted_hash") == digest:
                    at(values, *_STATE).pop(name)


def _hash(label: str, hook: Mapping[str, Any], matcher: object) -> str:
    """Return the hash that Codex trusts a hook by: of the JSON of what it does, with sorted keys."""
    does = {key: hook[key] for key in ("command", "type", "statusMessage") if key in hook}
    usual, most = (1, LONGEST["session-end"]) if label == "session_end" else (600, sys.maxsize)
    timeout = hook.get("timeout", usual)
    if isinstance(timeout, int):
        timeout = max(1, min(timeout, most))
    does |= {"async": bool(hook.get("async")), "timeout": timeout}
    identity: dict[str, Any] = {"event_name": label, "hooks": [does]}
    # At these events Codex does not look at matchers.
    if isinstance(matcher, str) and label not in ("user_prompt_submit", "stop"):
        identity["matcher"] = matcher
    text = json.dumps(identity, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"


@dataclass
class PlainHost(HookHost):
    """A host on this machine."""

    name: str
    folder: Path
    program: str | None
    config: Path
    hooks_file: Path
    form: Mapping[str, Any]  # of a hook, beside its command
    servers: Keys = ("mcpServers",)
    extra: Mapping[str, str] = field(default_factory=dict)  # what the host wants to know of a server besides
    grouped: bool = False  # whether hooks stand in groups
    version: int | None = None  # of the form of the file with the hooks, if it names one
    rule: Path | None = None  # where the host looks for rules for all of the user's projects, if there is such a place

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
        """Return the connection of one project to what the user has: a rule that names no path of this machine."""
        if self.remembers or self.rule:
            raise HostError(f"{self.name} is connected for all your projects; omit --project")
        folder = _project(folder)
        return Connection(self.name, [WholeFile(folder / PROJECT_RULE, _CURSOR_RULE, inside=folder)])


def plain_hosts(environ: Mapping[str, str] = os.environ) -> Mapping[str, PlainHost]:
    """Return these hosts by name, as the environment places them."""
    home, path = home_of(environ), environ.get("PATH")
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
