"""The OpenClaw that is installed here: its command, its version, its config."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from perdure.errors import HostError
from perdure.hosts.openclaw.manifest import OLDEST_HOST
from perdure.hosts.openclaw.mapping import state_folder
from perdure.regex import lazy

COMMAND_SECONDS = 300.0
"""OpenClaw's commands take some ten seconds of CPU."""
INSTALL = f"install it with `npm install -g openclaw` ({OLDEST_HOST} or newer), or name it with --openclaw PATH"
_VERSION = lazy(r"\b(\d{4})\.(\d{1,2})\.(\d{1,3})\b")


@dataclass(frozen=True, slots=True)
class OpenClaw:
    """An installed OpenClaw.

    Attributes:
        command: its program.
        version: such as "2026.9.6".
        config: its config file, which exists.
        state: its state folder.
        environ: what its commands run with.
    """

    command: Path
    version: str
    config: Path
    state: Path
    environ: Mapping[str, str] = field(repr=False)

    @classmethod
    def find(cls, command: Path | None = None, environ: Mapping[str, str] = os.environ) -> OpenClaw:
        """Find it by the environment and its defaults.

        Args:
            command: its program; None: `openclaw` on the PATH.
            environ: the environment; OPENCLAW_CONFIG_PATH, OPENCLAW_STATE_DIR and OPENCLAW_HOME count.

        Raises:
            HostError: it is missing or too old, or has no config yet.
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
                f"OpenClaw has no config at {config}; run `openclaw onboard` first, or name it by OPENCLAW_CONFIG_PATH"
            )
        return cls(Path(found).absolute(), version, config, state, environ)

    def plugins(self) -> dict[str, Any]:
        """Return what the config says of plugins.

        Raises:
            HostError: the config cannot be read.
        """
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
            raise HostError(f"`openclaw config get plugins --json` did not answer with JSON: {_said(done)}") from None
        return read

    def patch(self, change: Mapping[str, Any]) -> None:
        """Have OpenClaw change its config: objects merge, `None` removes a key.

        Raises:
            HostError: it refused; the config is as it was.
        """
        done = self._run("config", "patch", "--stdin", text=json.dumps(change))
        if done.returncode:
            raise HostError(f"OpenClaw refused the change of {self.config}: {_said(done)}")

    def link(self, folder: Path) -> None:
        """Have OpenClaw record where the plugin comes from; without that it warns of it at every start.

        Raises:
            HostError: it refused.
        """
        done = self._run("plugins", "install", "--link", str(folder), "--force", "--accept-capabilities")
        if done.returncode:
            raise HostError(f"OpenClaw refused the plugin in {folder}: {_said(done)}")

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
    """Run a command of OpenClaw to its end.

    Raises:
        HostError: it cannot be started, or takes too long.
    """
    try:
        return subprocess.run(  # noqa: S603 - the user's own OpenClaw
            [str(command), *arguments], input=text, env=dict(environ), capture_output=True, text=True,
            timeout=COMMAND_SECONDS, check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        raise HostError(f"`openclaw {arguments[0]}` took more than {COMMAND_SECONDS:.0f} s; try again") from None
    except OSError as error:
        raise HostError(f"{command} cannot be started ({error.strerror}); {INSTALL}") from error


def _version_of(command: Path, environ: Mapping[str, str]) -> str:
    done = run_command(command, "--version", environ=environ)
    match = _VERSION.search(done.stdout)
    if done.returncode or match is None:
        raise HostError(f"`{command} --version` names no version ({_said(done)}); {INSTALL}")
    return match[0]


def _number(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split("."))


def _said(done: subprocess.CompletedProcess[str]) -> str:
    return " ".join((done.stderr.strip() or done.stdout.strip() or f"exit code {done.returncode}").split())[-500:]
