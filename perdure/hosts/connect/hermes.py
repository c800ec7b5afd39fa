"""Hermes: a provider among its plugins, which runs in Hermes's own environment."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from perdure.errors import HostError
from perdure.hosts.connect.connection import Connection, WholeFile
from perdure.hosts.connect.parts import NAME, folder_of
from perdure.regex import lazy

_MANIFEST = 'name: perdure\nversion: "1"\ndescription: "Local memory that needs no key"\nkind: exclusive\n'
# Hermes reads the beginning of the module for this name before it imports any.
_MODULE = """\
from perdure.hosts.hermes import PerdureProvider as MemoryProvider


def register(ctx):
    ctx.register_memory_provider(MemoryProvider({settings}))
"""
_PROVIDER = lazy(r"(?ms)^memory:\s*\n(?:[ \t#][^\n]*\n|\n)*?[ \t]+provider:\s*['\"]?perdure\b")
SECONDS = 120.0


class Hermes:
    """Hermes on this machine. Its program is None if it is not on the PATH."""

    name = "hermes"

    def __init__(self, environ: Mapping[str, str] = os.environ) -> None:
        self.folder = folder_of(environ, "HERMES_HOME", ".hermes")
        self.program = shutil.which("hermes", path=environ.get("PATH"))
        self.plugin = self.folder / "plugins" / NAME

    def for_user(self, home: Path | None) -> Connection:
        """Return the connection, with memories in the data folder `home`, if it is named."""
        module = _MODULE.format(settings="" if home is None else f"home={str(home)!r}")
        return Connection(self.name, [
            WholeFile(self.plugin / "plugin.yaml", _MANIFEST), WholeFile(self.plugin / "__init__.py", module),
        ])  # fmt: skip

    @property
    def connected(self) -> bool:
        """Whether the provider is among Hermes's plugins."""
        return (self.plugin / "__init__.py").is_file()

    def chosen(self) -> bool:
        """Return whether Hermes's config names perdure as its memory."""
        try:
            return _PROVIDER.search((self.folder / "config.yaml").read_text(encoding="utf-8")) is not None
        except FileNotFoundError:
            return False
        except (OSError, UnicodeDecodeError) as error:
            raise HostError(
                f"{self.folder / 'config.yaml'} cannot be read ({type(error).__name__}); check its "
                "permissions and encoding"
            ) from error

    def refuse_without_perdure(self) -> None:
        """See that Hermes's environment has perdure."""
        python = Path(self._known()).resolve().with_name("python")
        if not python.exists():
            raise HostError(
                f"{self.program} has no Python interpreter next to it; install Hermes in a virtual "
                "environment, then install perdure into it"
            )
        if _run([str(python), "-c", "import perdure"]).returncode:
            raise HostError(f"perdure is not installed in Hermes's environment; run: {python} -m pip install perdure")

    def switch(self, *, on: bool) -> Sequence[str]:
        """Return the command by which Hermes takes perdure as its memory, or none."""
        hermes = self._known()
        return [hermes, "config", "set", "memory.provider", NAME] if on else [hermes, "memory", "off"]

    def run(self, command: Sequence[str]) -> None:
        """Run a command of Hermes."""
        done = _run(command)
        if done.returncode:
            raise HostError(f"{' '.join(command)} failed: {(done.stderr or done.stdout).strip()[-300:]}")

    def _known(self) -> str:
        if self.program is None:
            raise HostError("hermes was not found on the PATH; install it or fix the PATH")
        return self.program


def _run(command: Sequence[str]) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(  # noqa: S603 - Hermes's own programs
            command, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise HostError(f"{command[0]} cannot be started ({type(error).__name__})") from error
