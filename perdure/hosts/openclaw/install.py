"""Putting perdure into OpenClaw and taking it out again."""

from __future__ import annotations

import copy
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from perdure.api.doctor import Checkup
from perdure.engine.paths import record_home, recorded_host
from perdure.errors import HostError, SettingsError
from perdure.extras import absent
from perdure.hosts.connect.config_file import digest, read_record
from perdure.hosts.openclaw.manifest import ID, OLDEST_HOST, plugin_files
from perdure.hosts.openclaw.mapping import HOST, data_home, state_folder
from perdure.index.feeding import PACKAGES
from perdure.regex import lazy
from perdure.store.folder import replace_file

COMMAND_SECONDS = 300.0
"""OpenClaw's commands take some ten seconds of CPU."""
PIP_SECONDS = 900.0
"""Two packages of 120 MB to download."""
INSTALL = f"install it with `npm install -g openclaw` ({OLDEST_HOST} or newer), or name it with --openclaw PATH"
_VERSION = lazy(r"\b(\d{4})\.(\d{1,2})\.(\d{1,3})\b")
CORE = "memory-core"
"""OpenClaw's own memory: it stays loaded, with a job of its own, until it is switched off."""


@dataclass(frozen=True, slots=True)
class OpenClaw:
    """An installed OpenClaw."""

    command: Path  # its program
    version: str  # such as "2026.9.6"
    config: Path  # its config file, which exists
    state: Path  # its state folder
    environ: Mapping[str, str] = field(repr=False)  # what its commands run with

    @classmethod
    def find(cls, command: Path | None = None, environ: Mapping[str, str] = os.environ) -> OpenClaw:
        """Find it by the environment and its defaults.

        `command`: its program; None: `openclaw` on the PATH. OPENCLAW_CONFIG_PATH, OPENCLAW_STATE_DIR and OPENCLAW_HOME
        count.
        """
        found = str(command) if command else shutil.which("openclaw", path=environ.get("PATH"))
        if not found or not Path(found).is_file():
            raise HostError(f"OpenClaw was not found ({found or 'no openclaw on the PATH'}); {INSTALL}")
        version = _version_of(Path(found).absolute(), environ)
        if _number(version) < _number(OLDEST_HOST):
            raise HostError(f"OpenClaw {version} is too old, {OLDEST_HOST} is needed; run `npm install -g openclaw`")
        state, config = state_folder(environ), config_file(environ)
        if not config.is_file():
            raise HostError(
                f"OpenClaw has no config at {config}; run `openclaw onboard` first, or set OPENCLAW_CONFIG_PATH"
            )
        return cls(Path(found).absolute(), version, config, state, environ)

    def plugins(self) -> dict[str, Any]:
        """Return what the config says of plugins."""
        try:
            config = json.loads(self.config.read_text(encoding="utf-8"))
            if isinstance(config, dict) and "$include" not in config:
                plugins: dict[str, Any] = config.get("plugins", {})
                return plugins
        except ValueError:
            # Comments, or what else JSON5 allows: OpenClaw itself reads that.
            pass
        except OSError as error:
            raise HostError(f"{self.config} cannot be read: {error.strerror}") from error
        done = self._run("config", "get", "plugins", "--json")
        if done.returncode:
            return {}
        try:
            read: dict[str, Any] = json.loads(done.stdout[done.stdout.index("{") :])
        except ValueError:
            raise HostError(f"`openclaw config get plugins --json` did not return JSON: {_said(done)}") from None
        return read

    def patch(self, change: Mapping[str, Any]) -> None:
        """Have OpenClaw change its config: objects merge, `None` removes a key. If it refuses, nothing changes."""
        done = self._run("config", "patch", "--stdin", text=json.dumps(change))
        if done.returncode:
            raise HostError(f"OpenClaw rejected the change to {self.config}: {_said(done)}")

    def link(self, folder: Path) -> None:
        """Have OpenClaw record where the plugin comes from; without that it warns of it at every start."""
        done = self._run("plugins", "install", "--link", str(folder), "--force", "--accept-capabilities")
        if done.returncode:
            raise HostError(f"OpenClaw rejected the plugin in {folder}: {_said(done)}")

    def unlink(self, plugin: str) -> None:
        """Have OpenClaw forget that record. It may have none: then there is nothing to do."""
        self._run("plugins", "uninstall", plugin, "--force")

    def _run(self, *arguments: str, text: str = "") -> subprocess.CompletedProcess[str]:
        return run_command(self.command, *arguments, environ=self.environ, text=text)


def config_file(environ: Mapping[str, str] = os.environ) -> Path:
    """Return where OpenClaw's config is, or would be: OPENCLAW_CONFIG_PATH, else in its state folder."""
    return Path(environ.get("OPENCLAW_CONFIG_PATH") or state_folder(environ) / "openclaw.json").expanduser().absolute()


def run_command(
    command: Path, *arguments: str, environ: Mapping[str, str], text: str = ""
) -> subprocess.CompletedProcess[str]:
    """Run a command of OpenClaw to its end."""
    try:
        return subprocess.run(  # noqa: S603 - the user's own OpenClaw
            [str(command), *arguments], input=text, env=dict(environ), capture_output=True, text=True,
            timeout=COMMAND_SECONDS, check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        raise HostError(f"`openclaw {arguments[0]}` took more than {COMMAND_SECONDS:.0f} s; try again") from None
    except OSError as error:
        raise HostError(f"{command} cannot be started ({error.strerror}); {INSTALL}") from error


def bring_table(python: str = sys.executable) -> str:
    """Install LanceDB where it is not, as a gateway's store may grow large; return why that failed, or nothing.

    `python`: absolute path of the interpreter that perdure is installed in.
    """
    if not absent(*PACKAGES):
        return ""
    command = [python, "-m", "pip", "install", "--quiet", "perdure[lancedb]"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=PIP_SECONDS, check=False)  # noqa: S603
    except (OSError, subprocess.TimeoutExpired) as error:
        return type(error).__name__
    return _said(done) if done.returncode else ""


def _version_of(command: Path, environ: Mapping[str, str]) -> str:
    done = run_command(command, "--version", environ=environ)
    match = _VERSION.search(done.stdout)
    if done.returncode or match is None:
        raise HostError(f"`{command} --version` printed no version ({_said(done)}); {INSTALL}")
    return match[0]


def _number(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split("."))


def _said(done: subprocess.CompletedProcess[str]) -> str:
    return " ".join((done.stderr.strip() or done.stdout.strip() or f"exit code {done.returncode}").split())[-500:]


@dataclass(frozen=True, slots=True)
class Change:
    """A place of the config: its path, and what it says before and after; None: nothing."""

    path: str
    before: Any
    after: Any


@dataclass(frozen=True, slots=True)
class Plan:
    """What an install or uninstall changes."""

    changes: tuple[Change, ...]  # of the config
    patch: Mapping[str, Any]  # the same for OpenClaw
    restored: bool = False  # whether the config from before the install is put back, byte for byte


class Installation:
    """perdure in one OpenClaw. The plugin's files, the config's backup and a record lie in `perdure/` of its state."""

    def __init__(self, host: OpenClaw) -> None:
        self.host = host
        self.folder = host.state / ID
        self.plugin = self.folder / "plugin"
        self._backup = self.folder / "config-before"
        self._record = self.folder / "installed.json"

    def plan_install(self, home: Path | None = None, python: str = sys.executable) -> Plan:
        """Return what `install` would change in the config.

        `home`: the data folder, if it is not the one in OpenClaw's state folder. `python`: absolute path of the
        interpreter that perdure is installed in.
        """
        before = self.host.plugins()
        return _plan(before, self._with_us(before, home, python))

    def install(self, home: Path | None = None, python: str = sys.executable) -> Plan:
        """Write the plugin's files, change the config, and note which data folder is in use. Twice is no error."""
        plan = self.plan_install(home, python)
        self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        _write_folder(self.plugin, plugin_files())
        if plan.changes:
            self._change(plan)
        store = data_home({"home": str(home or "")}, self.host.environ)
        if store is not None:
            record_home(HOST, store.expanduser().absolute())
        return plan

    def plan_uninstall(self) -> Plan:
        """Return what `uninstall` would change in the config."""
        before, record = self.host.plugins(), read_record(self._record)
        plan = _plan(before, self._without_us(before, record.get("former", {})))
        untouched = record.get("after") == digest(self.host.config.read_bytes()) and self._backup.is_file()
        return Plan(plan.changes, plan.patch, restored=untouched)

    def uninstall(self) -> Plan:
        """Take perdure out of the config. Memories stay where they are.

        The config becomes what it was, byte for byte, if it was not changed since; else only our keys go.
        """
        plan = self.plan_uninstall()
        wanted = self._without_us(self.host.plugins(), read_record(self._record).get("former", {}))
        self.host.unlink(ID)
        if plan.restored:
            replace_file(self.host.config, self._backup.read_bytes())
        else:
            # OpenClaw has taken out some of it by then, and left other traces.
            rest = _plan(self.host.plugins(), wanted)
            if rest.changes:
                self.host.patch(rest.patch)
        shutil.rmtree(self.folder, ignore_errors=True)
        return plan

    def checks(self) -> Mapping[str, str | None]:
        """Return what is looked at, each with what is wrong with it, or None."""
        plugins = self.host.plugins()
        entry = _at(plugins, "entries", ID, default={})
        files = {self.plugin / name: text for name, text in plugin_files().items()}
        same = all(path.is_file() and path.read_text(encoding="utf-8") == text for path, text in files.items())
        python = _at(entry, "config", "python", default="")
        again = "run `perdure openclaw install`"
        access = f"plugins.entries.{ID}.hooks.allowConversationAccess"
        slot, allow = _at(plugins, "slots", "memory"), plugins.get("allow")
        return {
            "memory slot": None if slot == ID else f"it holds {slot!r}; {again}",
            "plugin files": None if same else f"{self.plugin} is missing or is a different version; {again}",
            "load path": None if str(self.plugin) in _at(plugins, "load", "paths", default=[]) else again,
            "enabled": None if entry.get("enabled") is True else again,
            "allow list": None if allow is None or ID in allow else f"plugins.allow does not list it; {again}",
            "conversation access": None
            if _at(entry, "hooks", "allowConversationAccess") is True
            else f"OpenClaw silently drops perdure's hooks unless {access} is true; {again}",
            "interpreter": None if python and os.access(python, os.X_OK) else f"{python!r} cannot be started; {again}",
        }

    def _change(self, plan: Plan) -> None:
        record = read_record(self._record)
        former = record.get("former")
        original = self.host.config.read_bytes()
        if former is None:
            replace_file(self._backup, original)
            former = {change.path: change.before for change in plan.changes}
        elif record.get("after") != digest(original):
            # Edited by hand between two installs: the first backup is no longer what an uninstall should bring back.
            self._backup.unlink(missing_ok=True)
        self.host.patch(plan.patch)
        self.host.link(self.plugin)
        record = {"former": former, "after": digest(self.host.config.read_bytes())}
        replace_file(self._record, json.dumps(record, indent=2).encode())

    def _with_us(self, before: Mapping[str, Any], home: Path | None, python: str) -> dict[str, Any]:
        after = copy.deepcopy(dict(before))
        if isinstance(after.get("allow"), list) and ID not in after["allow"]:
            after["allow"] = [*after["allow"], ID]
        load = after.setdefault("load", {})
        paths = load.setdefault("paths", [])
        if str(self.plugin) not in paths:
            load["paths"] = [*paths, str(self.plugin)]
        after.setdefault("slots", {})["memory"] = ID
        entries = after.setdefault("entries", {})
        ours = entries.setdefault(ID, {})
        ours["enabled"] = True
        ours.setdefault("hooks", {})["allowConversationAccess"] = True
        # The librarian asks the model of the agent that was spoken to, and no other's.
        ours.setdefault("llm", {}).setdefault("allowAgentIdOverride", True)
        ours.setdefault("config", {})["python"] = python
        if home is not None:
            ours["config"]["home"] = str(home.expanduser().absolute())
        entries.setdefault(CORE, {})["enabled"] = False
        return after

    def _without_us(self, before: Mapping[str, Any], former: Mapping[str, Any]) -> dict[str, Any]:
        after = copy.deepcopy(dict(before))
        _at(after, "entries", default={}).pop(ID, None)
        for path in (("load", "paths"), ("allow",)):
            kept = [name for name in _at(after, *path, default=[]) if name not in (ID, str(self.plugin))]
            if _at(after, *path) is not None:
                _at(after, *path[:-1])[path[-1]] = kept
        if _at(after, "slots", "memory") == ID:
            _put(after["slots"], "memory", former.get("plugins.slots.memory"))
        if _at(after, "entries", CORE, "enabled") is False and f"plugins.entries.{CORE}.enabled" in former:
            _put(after["entries"][CORE], "enabled", former[f"plugins.entries.{CORE}.enabled"])
        # What is empty now and had nothing in it before goes, too.
        held = tuple(path for path, value in former.items() if value is not None)
        for path in (("entries", CORE), ("entries",), ("slots",), ("load", "paths"), ("load",)):
            name = ".".join(("plugins", *path))
            if _at(after, *path) in ({}, []) and not any(f"{each}.".startswith(f"{name}.") for each in held):
                _at(after, *path[:-1]).pop(path[-1])
        return after


def _plan(before: Mapping[str, Any], after: Mapping[str, Any]) -> Plan:
    """Return the changes, also as a JSON merge patch (RFC 7396)."""
    changes: list[Change] = []
    patch: dict[str, Any] = {}
    for keys, old, new in _differences(("plugins",), before, after):
        changes.append(Change(".".join(keys), old, new))
        place = patch
        for key in keys[:-1]:
            place = place.setdefault(key, {})
        place[keys[-1]] = new
    return Plan(tuple(changes), patch)


def _differences(keys: tuple[str, ...], before: Any, after: Any) -> Iterator[tuple[tuple[str, ...], Any, Any]]:
    if isinstance(after, dict) and (isinstance(before, dict) or (before is None and after)):
        for key in sorted((before or {}).keys() | after.keys()):
            yield from _differences((*keys, key), (before or {}).get(key), after.get(key))
    elif before != after:
        yield keys, before, after


def _at(values: Any, *path: str, default: Any = None) -> Any:
    for key in path:
        if not isinstance(values, dict) or key not in values:
            return default
        values = values[key]
    return values


def _put(values: dict[str, Any], key: str, value: Any) -> None:
    if value is None:
        values.pop(key, None)
    else:
        values[key] = value


def _write_folder(folder: Path, files: Mapping[str, str]) -> None:
    folder.mkdir(exist_ok=True, mode=0o700)
    for old in folder.iterdir():
        if old.name not in files and old.is_file():
            old.unlink()
    for name, text in files.items():
        replace_file(folder / name, text.encode())


def checkups(environ: Mapping[str, str] = os.environ) -> Iterator[Checkup]:
    """Say of OpenClaw how it is, if it has a config on this machine; that it does not call perdure is no fault."""
    config = config_file(environ)
    if not config.is_file():
        return
    try:
        installation = Installation(OpenClaw.find(environ=environ))
        plugins = installation.host.plugins()
        entries = plugins.get("entries")
        if not (_is_recorded() or (isinstance(entries, Mapping) and ID in entries)):
            yield Checkup(HOST, f"perdure is not its memory; set it up with: perdure openclaw install ({config})")
            return
        problems = {name: problem for name, problem in installation.checks().items() if problem}
    except HostError as error:
        fix = "fix that, then run `perdure openclaw status`" if _is_recorded() else ""
        yield Checkup(HOST, str(error), fix)
        return
    for name, problem in problems.items():
        yield Checkup(HOST, f"{name}: {problem}", "perdure openclaw install")
    if not problems:
        yield Checkup(HOST, f"version {installation.host.version} is set up for perdure ({config})")


def _is_recorded() -> bool:
    try:
        recorded = recorded_host()
    except SettingsError:
        return False  # said by the look at the host's record
    return recorded is not None and recorded[0] == HOST
