"""A command-line agent in a home of its own, with a model on loopback, as both programs are tested."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, suppress
from pathlib import Path
from queue import Empty, Queue
from threading import Thread
from typing import Any, ClassVar

import click

from tests.e2e.agent_model import AgentModel, Turn
from tests.e2e.gateway import until
from tests.e2e.model import REPLY

SECONDS = 120.0
"""How long anything may take before the test gives it up."""
NOWHERE = "http://127.0.0.1:9"
_TERMINAL: Mapping[bytes, bytes] = {b"\x1b[6n": b"\x1b[1;1R", b"\x1b[c": b"\x1b[?62;c"}
"""What programs ask a terminal, and what it tells them: where its cursor is, and what it can do."""
INTERRUPT = b"\x03"
REPOSITORIES = ("one", "client-a", "client-b")
"""Those that a story of an agent plays in."""


def installed(folder: Path, package: str, program: str) -> Path:
    """Return the folder of an agent's program.

    Raises:
        click.ClickException: it is not there.
    """
    programs = folder.absolute() / "node_modules" / ".bin"
    if not (programs / program).exists():
        raise click.ClickException(f"{programs / program} is missing: npm install --prefix {folder} {package}")
    return programs


class Lines:
    """A program that speaks JSON, one object per line, on stdin and stdout."""

    def __init__(self, command: list[str], folder: Path, environ: Mapping[str, str], errors: Path) -> None:
        with errors.open("ab") as log:
            self._process = subprocess.Popen(
                command, cwd=folder, env=environ, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True
            )
        self._came: Queue[dict[str, Any] | None] = Queue()
        self._errors = errors
        Thread(target=self._read, daemon=True).start()

    @property
    def pid(self) -> int:
        """The process."""
        return self._process.pid

    def send(self, **message: Any) -> None:
        """Write an object."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(message) + "\n")
        self._process.stdin.flush()

    def take(self) -> dict[str, Any]:
        """Return the next object that it wrote."""
        try:
            message = self._came.get(timeout=SECONDS)
        except Empty:
            raise AssertionError(f"it said nothing for {SECONDS:.0f} s") from None
        assert message is not None, f"it ended: {self._errors.read_text()[-2000:]}"
        return message

    def close(self) -> None:
        """Let it end."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(SECONDS)

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._came.put(json.loads(line))
        self._came.put(None)


class Terminal:
    """A program with a person at its terminal, who answers some of its questions with a key."""

    def __init__(
        self, command: list[str], folder: Path, environ: Mapping[str, str], keys: Mapping[bytes, bytes]
    ) -> None:
        self._keys = keys
        self._screen = b""
        process, self._handle = pty.fork()
        if process == 0:
            os.chdir(folder)
            os.execvpe(command[0], command, {**environ, "TERM": "xterm-256color"})
        self._process = process
        fcntl.ioctl(self._handle, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 120, 0, 0))

    def shows(self, text: str) -> bool:
        """Return whether a text has come up."""
        return text.encode() in self._screen

    def until(self, holds: Callable[[], bool]) -> None:
        """Go on until something holds."""
        ends = time.monotonic() + SECONDS
        while not holds():
            assert self._goes_on(), f"it ended: {self._screen[-2000:]!r}"
            assert time.monotonic() < ends, f"it does not come to it: {self._screen[-2000:]!r}"

    def close(self) -> None:
        """Leave it, as one does with a key that has to be pressed more than once."""
        ends = time.monotonic() + SECONDS
        # What it has started may hold the terminal for longer than it lives.
        while os.waitpid(self._process, os.WNOHANG)[0] == 0:
            assert time.monotonic() < ends, f"it does not end: {self._screen[-2000:]!r}"
            with suppress(OSError):
                os.write(self._handle, INTERRUPT)
            time.sleep(0.2)
            self._goes_on()
        os.close(self._handle)

    def _goes_on(self) -> bool:
        if not select.select([self._handle], [], [], 0.5)[0]:
            # A person answers what stands still.
            self._answer(self._keys)
            return True
        try:
            came = os.read(self._handle, 65_536)
        except OSError:
            return False
        self._screen += came
        self._answer(_TERMINAL)
        return bool(came)

    def _answer(self, answers: Mapping[bytes, bytes]) -> None:
        for question, answer in answers.items():
            for _ in range(self._screen.count(question)):
                os.write(self._handle, answer)
            self._screen = self._screen.replace(question, b"")


class Talk(ABC):
    """A conversation with an agent, in one process of it.

    Attributes:
        session: its id, by which it can be gone on with in another process.
        lines: the process.
    """

    def __init__(self, agent: Agent, session: str, lines: Lines) -> None:
        self.session, self.lines = session, lines
        self._agent = agent

    @abstractmethod
    def say(self, text: str) -> Turn:
        """Say something, and wait for the answer."""

    @abstractmethod
    def compact(self) -> None:
        """Have the host compact the conversation."""

    def __enter__(self) -> Talk:
        return self

    def __exit__(self, *failure: object) -> None:
        self.lines.close()


class Program(ABC):
    """A program with a home of its own.

    Attributes:
        name: what perdure calls it.
        package: what npm installs it from.
        program: the command.
        model: answers for it.
        home: the home of its user.
    """

    name: ClassVar[str]
    package: ClassVar[str]
    program: ClassVar[str]

    def __init__(self, programs: Path, folder: Path, python: Path | None = None) -> None:
        self.programs, self.home, self.model = programs, folder, self.new_model()
        self._python = python or Path(sys.executable)
        folder.mkdir(parents=True, exist_ok=True)
        self.configure()

    @property
    @abstractmethod
    def configs(self) -> tuple[Path, ...]:
        """The files that connecting may change."""

    @abstractmethod
    def configure(self) -> None:
        """Write what the user has configured before perdure comes: hooks and settings of their own among it."""

    def new_model(self) -> AgentModel:
        """Return what answers for the model."""
        return AgentModel()

    @property
    def environ(self) -> dict[str, str]:
        """What every command runs with; whatever is not on loopback ends nowhere."""
        return {
            "PATH": f"{self.programs}{os.pathsep}{os.environ['PATH']}",
            "HOME": str(self.home), "LANG": "C.UTF-8", "TMPDIR": str(self.folder("tmp")), "NO_COLOR": "1",
            "HTTPS_PROXY": NOWHERE, "HTTP_PROXY": NOWHERE, "NO_PROXY": "127.0.0.1,localhost",
        }  # fmt: skip

    def folder(self, name: str) -> Path:
        """Return a folder in the home."""
        folder = self.home / name
        folder.mkdir(exist_ok=True)
        return folder

    def repository(self, name: str) -> Path:
        """Return the checkout of a repository."""
        folder = self.folder(name)
        if not (folder / ".git").exists():
            subprocess.run(["git", "init", "--quiet", str(folder)], check=True)
        return folder

    def run(self, *command: str, folder: Path | None = None) -> str:
        """Run a command as the user would; return what it printed."""
        done = subprocess.run(
            command, cwd=folder or self.home, env=self.environ, capture_output=True, text=True, timeout=SECONDS,
            stdin=subprocess.DEVNULL, check=False,
        )  # fmt: skip
        assert done.returncode == 0, f"{command[:4]}: {done.stdout[-1000:]} {done.stderr[-1000:]}"
        return done.stdout

    def perdure(self, *arguments: str) -> str:
        """Run a command of perdure; return what it printed."""
        return self.run(str(self._python), "-P", "-m", "perdure", *arguments)

    def facts(self) -> list[dict[str, Any]]:
        """Return all memories, whatever their state."""
        listed: list[dict[str, Any]] = json.loads(self.perdure("list", "--all", "--limit", "10000", "--json"))["facts"]
        return listed

    def memories(self) -> list[str]:
        """Return the texts of all memories."""
        return [each["text"] for each in self.facts()]

    def knows(self, text: str) -> None:
        """Wait until there is a memory with this text."""
        until(lambda: any(text in each for each in self.memories()), 30, f"no memory of {text!r}")

    def snapshot(self) -> dict[Path, bytes | None]:
        """Return the config as it is, byte for byte."""
        return {path: path.read_bytes() if path.exists() else None for path in self.configs}

    def stop_helper(self) -> None:
        """Kill what perdure has running for this home."""
        for process in Path("/proc").glob("[0-9]*"):
            try:
                command, environment = (process / "cmdline").read_bytes(), (process / "environ").read_bytes()
            except OSError:
                continue
            if b"perdure" in command and f"HOME={self.home}\0".encode() in environment:
                os.kill(int(process.name), signal.SIGKILL)

    def close(self) -> None:
        """Stop all servers."""
        self.stop_helper()
        self.model.close()


class Agent(Program):
    """A program that goes through the whole story of `tests.e2e.agent_story`."""

    @abstractmethod
    def trust(self) -> None:
        """Let the hooks run, as the user does in the program."""

    @abstractmethod
    def trust_more(self) -> None:
        """Let hooks run that have come since, too."""

    @abstractmethod
    def have_run(self, command: str) -> None:
        """Let the model run a command when it is asked next."""

    keys: ClassVar[Mapping[bytes, bytes]] = {}
    """What the person presses when this is on the screen."""

    def once(self, text: str, repository: str = "one") -> Turn:
        """Say something in a session of its own, at the terminal."""
        terminal = Terminal([self.program, text], self.repository(repository), self.environ, self.keys)
        terminal.until(lambda: self.model.saw(text) and terminal.shows(REPLY))
        terminal.close()
        return self.model.turn(text)

    @abstractmethod
    def headless(self, text: str) -> Turn:
        """Say something as a program does, in a run without a person."""

    @abstractmethod
    def talk(self, session: str | None = None) -> AbstractContextManager[Talk]:
        """Begin a conversation, or go on with one."""

    @abstractmethod
    def have_sub_agent(self, prompt: str) -> None:
        """Let the model call a sub-agent with this prompt when it is asked next."""

    @abstractmethod
    def call(self, talk: Talk, said: str, tool: str, **arguments: Any) -> str:
        """Say something at which the model calls one of perdure's tools; return what that answers."""

    def lines(self, *arguments: str, folder: Path) -> Lines:
        """Start the program so that it is spoken with in JSON."""
        return Lines([self.program, *arguments], folder, self.environ, self.home / "errors.txt")
