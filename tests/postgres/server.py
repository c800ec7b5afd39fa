"""A PostgreSQL server of one's own, which ends with the tests."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from functools import cache
from pathlib import Path
from socket import socket

import psycopg
import pytest

ROLE = "perdure"
"""Owns the database, and is no superuser: a superuser sees past the walls."""
_PLACES = "/usr/lib/postgresql/*/bin"


@cache
def programs() -> Path | None:
    """Return the folder with the server's programs; None: there is none on this machine."""
    found = shutil.which("initdb")
    newest = sorted(Path("/").glob(f"{_PLACES[1:]}/initdb"))
    return Path(found).resolve().parent if found else newest[-1].parent if newest else None


class Server:
    """The server, on loopback.

    Attributes:
        url: of its database, for the role that owns it.
    """

    def __init__(self, folder: Path) -> None:
        """Make it in a folder and start it."""
        found = programs()
        if found is None:
            pytest.skip("no PostgreSQL server is installed")
        self._programs, self._folder, self._data = found, folder, folder / "data"
        # A server refuses to run as root.
        self._user = "postgres" if os.geteuid() == 0 else None
        if self._user:
            folder.chmod(0o755)
            shutil.chown(folder, self._user)
        with closing(socket()) as free:
            free.bind(("127.0.0.1", 0))
            self._port = free.getsockname()[1]
        self._run("initdb", "-D", self._data, "-A", "trust", "-U", "postgres", "--no-sync")
        self.start()
        with psycopg.connect(self._as("postgres"), autocommit=True) as connection:
            connection.execute(f"CREATE ROLE {ROLE} LOGIN")
            connection.execute(f"CREATE DATABASE {ROLE} OWNER {ROLE}")
        self.url = f"postgresql://{ROLE}@127.0.0.1:{self._port}/{ROLE}"

    def start(self) -> None:
        """Start it, and wait until it answers."""
        options = f"-p {self._port} -k {self._folder} -c listen_addresses=127.0.0.1"
        self._run("pg_ctl", "-D", self._data, "-o", options, "-l", self._folder / "log", "-w", "start")

    def stop(self, how: str = "immediate") -> None:
        """Stop it: "immediate" as a power cut does, "fast" in order."""
        self._run("pg_ctl", "-D", self._data, "-m", how, "-w", "stop")

    def _as(self, role: str) -> str:
        return f"postgresql://{role}@127.0.0.1:{self._port}/postgres"

    def _run(self, program: str, *arguments: str | Path) -> None:
        with (Path(tempfile.gettempdir()) / f"perdure-{program}-{os.getpid()}.log").open("wb") as log:
            # What a server inherits it keeps open.
            subprocess.run(
                [self._programs / program, *arguments], check=True, user=self._user, cwd="/", stdin=subprocess.DEVNULL,
                stdout=log, stderr=log, timeout=120,
            )  # fmt: skip
        Path(log.name).unlink()


@contextmanager
def running() -> Iterator[Server]:
    """Run a server for the block."""
    folder = Path(tempfile.mkdtemp(prefix="perdure-pg-"))
    server = Server(folder)
    try:
        yield server
    finally:
        server.stop()
        for _ in range(3):
            shutil.rmtree(folder, ignore_errors=True)
            if not folder.exists():
                break
            time.sleep(0.1)
