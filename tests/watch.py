"""What a process and all that it starts do below Python: names looked up, addresses talked to, files changed.

strace sees every system call. Where there is none, or it may not trace, a small library that is loaded into each
process (tests/watch.c) sees the calls to the C library.
"""

from __future__ import annotations

import ipaddress
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal, Protocol

SOURCE = Path(__file__).with_name("watch.c")
RESOLVER = ("/etc/resolv.conf", "/etc/hosts")
"""Only who looks up a host's name reads these."""
USERS = re.compile(r"/(var/)?run/(nscd/socket|systemd/userdb/.*)")
"""Sockets of this machine that are asked who a user is. nscd knows hosts as well; such a request names that table."""
HARMLESS = re.compile(r"/dev/(null|shm/sem\..*)|/proc/self/task/\d+/comm")
"""What is written there is gone with the process: nothing, semaphores, the names of threads."""
OPENING = re.compile(r"O_(WRONLY|RDWR|CREAT|TRUNC|APPEND|TMPFILE)")
CHANGES = (
    "chmod", "creat", "fchmodat", "link", "linkat", "mkdir", "mkdirat", "rename", "renameat", "renameat2", "rmdir",
    "symlink", "symlinkat", "truncate", "unlink", "unlinkat",
)  # fmt: skip
CALL = re.compile(r"(\w+)\((.*)")
PATH = re.compile(r'(?:<([^>]*)>, )?"((?:[^"\\]|\\.)*)"')
ADDRESS = re.compile(r'(?:inet_addr\(|inet_pton\(AF_INET6, )"([^"]+)"')
TALK = ("bind", "connect", "sendmmsg", "sendmsg", "sendto")


@dataclass(frozen=True, slots=True)
class Deed:
    """One thing that was done or tried: a name looked up, an address or a socket's path talked to, a file changed."""

    kind: Literal["lookup", "address", "socket", "file"]
    what: str


class Recorder(Protocol):
    """Starts a command so that what it does is written down."""

    def wrap(self, command: Sequence[str], notes: Path) -> tuple[list[str], dict[str, str]]:
        """Return the command to be started instead, and what its environment needs; `notes` is an empty folder."""
        ...

    def deeds(self, notes: Path, cwd: Path) -> set[Deed]:
        """Return what was done by a command that has ended, and by all that it started in the folder `cwd`."""
        ...


class Strace:
    """Records by tracing system calls."""

    def wrap(self, command: Sequence[str], notes: Path) -> tuple[list[str], dict[str, str]]:
        """See `Recorder`."""
        calls = f"trace=%network,open,openat,openat2,{','.join(CHANGES)}"
        # A file per thread, so that no line is broken in two; folders of open files by their paths.
        return ["strace", "-ff", "-y", "--seccomp-bpf", "-e", calls, "-o", str(notes / "trace"), *command], {}

    def deeds(self, notes: Path, cwd: Path) -> set[Deed]:
        """See `Recorder`."""
        lines = (line for file in notes.iterdir() for line in file.read_text(errors="replace").splitlines())
        return {deed for line in lines for deed in traced(line, cwd)}


class Preload:
    """Records by a library that stands before the C library."""

    def __init__(self) -> None:
        """Compile it.

        Raises:
            OSError: there is no compiler.
            subprocess.SubprocessError: it fails.
        """
        self._folder = tempfile.TemporaryDirectory()
        self._library = Path(self._folder.name) / "watch.so"
        command = ["cc", "-shared", "-fPIC", "-o", str(self._library), str(SOURCE), "-ldl"]
        subprocess.run(command, check=True, capture_output=True, timeout=60)

    def wrap(self, command: Sequence[str], notes: Path) -> tuple[list[str], dict[str, str]]:
        """See `Recorder`."""
        return list(command), {"LD_PRELOAD": str(self._library), "WATCH_LOG": str(notes / "log")}

    def deeds(self, notes: Path, cwd: Path) -> set[Deed]:
        """See `Recorder`."""
        lines = (notes / "log").read_text(errors="replace").splitlines()
        return {Deed(kind, what) for kind, _, what in (line.partition("\t") for line in lines)}  # type: ignore[arg-type]


@cache
def recorders() -> Mapping[str, Recorder]:
    """Return what can be used here, the one that sees most first."""
    found: dict[str, Recorder] = {}
    with tempfile.TemporaryDirectory() as folder:
        probe, _ = Strace().wrap(["true"], Path(folder))
        if shutil.which("strace") and subprocess.run(probe, capture_output=True).returncode == 0:
            found["strace"] = Strace()
    with suppress(OSError, subprocess.SubprocessError):
        found["preload"] = Preload()
    return found


def traced(line: str, cwd: Path) -> Iterator[Deed]:
    """Yield what a line of strace tells."""
    call = CALL.search(line)
    if call is None:
        return
    name, arguments = call.groups()
    if name in TALK:
        yield from (Deed("address", address) for address in ADDRESS.findall(arguments))
        yield from (Deed("socket", path) for path in re.findall(r'sun_path=@?"([^"]*)"', arguments))
        if r"hosts\0" in arguments:
            yield Deed("lookup", "a host, of nscd")
    elif name in CHANGES or (name.startswith("open") and OPENING.search(arguments)):
        paths = PATH.findall(arguments)
        for folder, path in paths[-1:] if name.startswith("symlink") else paths:
            yield Deed("file", str(cwd / folder / path))
    elif any(f'"{path}"' in arguments for path in RESOLVER):
        yield Deed("lookup", arguments)


def offences(deeds: Iterable[Deed], folders: Sequence[Path]) -> list[Deed]:
    """Return what leads out of this machine, or out of the folders that may be written."""
    return sorted((deed for deed in deeds if not _allowed(deed, folders)), key=lambda deed: (deed.kind, deed.what))


def _allowed(deed: Deed, folders: Sequence[Path]) -> bool:
    match deed.kind:
        case "lookup":
            return False
        case "address":
            return ipaddress.ip_address(deed.what).is_loopback
        case "socket":
            return USERS.fullmatch(deed.what) is not None
        case "file":
            path = Path(os.path.normpath(deed.what))
            return HARMLESS.fullmatch(deed.what) is not None or any(path.is_relative_to(folder) for folder in folders)
