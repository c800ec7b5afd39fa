"""A real OpenClaw gateway in a folder of its own, with a model on loopback."""

from __future__ import annotations

import json
import os
import signal
import socket
import sqlite3
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

from tests.e2e.model import Model, words
from tests.e2e.package import ROOT, build, environment

TOKEN = "local-test-token"
READY_SECONDS = 400.0
TURN_SECONDS = 300.0
PACKAGES = ("node@24", "openclaw@2026.9.6")


def installed_host(folder: Path) -> Path:
    """Return the folder of OpenClaw's programs, installing Node and OpenClaw with npm if they are not there."""
    programs = folder / "node_modules" / ".bin"
    if not (programs / "openclaw").exists():
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "package.json").write_text('{"private": true}\n')
        for package in PACKAGES:
            environ = os.environ | {"PATH": f"{programs}{os.pathsep}{os.environ['PATH']}"}
            subprocess.run(["npm", "install", package, "--no-audit", "--no-fund"], cwd=folder, env=environ, check=True)
    return programs


def installed_wheel(folder: Path, extra: str = "") -> Path:
    """Build perdure's wheel, install it with what it needs into an environment of its own; return its interpreter."""
    python = environment(folder)[0] / "python"
    wheel = build(folder / "dist").wheel
    subprocess.run([str(python), "-m", "pip", "install", "--quiet", f"{wheel}{extra}"], check=True)
    return python


class Gateway:
    """OpenClaw with its state, config and workspaces in one folder. `model` answers for it.

    With `python`, perdure is what is installed in that interpreter, else this source folder.
    """

    def __init__(
        self,
        programs: Path,
        folder: Path,
        model: Model,
        *,
        window: int = 128_000,
        more: Mapping[str, Any] | None = None,
        python: Path | None = None,
    ) -> None:
        self.programs, self.folder, self.model = programs, folder, model
        self._window, self._more, self._python = window, more or {}, python
        self.config = folder / "openclaw.json"
        self.state = folder / "state"
        self.port = _free_port()
        self._process: subprocess.Popen[bytes] | None = None
        for name in ("main", "second"):
            (folder / name).mkdir(parents=True)
        self.state.mkdir()
        self.config.write_text(json.dumps(self._config(), indent=2) + "\n")

    @property
    def environ(self) -> dict[str, str]:
        """What every command of OpenClaw and perdure runs with."""
        source = {} if self._python else {"PYTHONPATH": str(ROOT)}
        channels = {} if "channels" in self._more else {"OPENCLAW_SKIP_CHANNELS": "1"}
        return {
            "PATH": os.pathsep.join([str(self.programs), os.defpath]), "HOME": str(self.folder), "LANG": "C.UTF-8",
            "OPENCLAW_HOME": str(self.folder), "OPENCLAW_STATE_DIR": str(self.state),
            "OPENCLAW_CONFIG_PATH": str(self.config), "OPENCLAW_NO_AUTO_UPDATE": "1", "OPENCLAW_DISABLE_BONJOUR": "1",
            "OPENCLAW_SKIP_CRON": "1", "NO_COLOR": "1", "CI": "1", **source, **channels,
        }  # fmt: skip

    def openclaw(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run a command of OpenClaw."""
        return self._run(str(self.programs / "openclaw"), *arguments)

    def perdure(self, *arguments: str, offline: bool = False) -> subprocess.CompletedProcess[str]:
        """Run a command of perdure, as a user of this OpenClaw would; `offline` in a namespace without a network."""
        apart = ("unshare", "--map-root-user", "--net") if offline else ()
        return self._run(*apart, str(self._python or sys.executable), "-P", "-m", "perdure", *arguments)

    def start(self) -> None:
        """Start the gateway and wait until it takes turns."""
        log = (self.folder / "gateway.out").open("ab")
        self._process = subprocess.Popen(
            [str(self.programs / "openclaw"), "gateway", "run"], cwd=self.folder, env=self.environ, stdout=log,
            stderr=subprocess.STDOUT,
        )  # fmt: skip
        until(self._ready, READY_SECONDS, "the gateway is not ready")

    def signal(self, number: int) -> None:
        """Send the gateway a signal and wait for its end."""
        assert self._process is not None
        for pid in (*_below(self._process.pid, "openclaw"), self._process.pid) if number == signal.SIGKILL else ():
            _kill(pid, number)
        self._process.send_signal(number)
        self._process.wait(60)

    def stop(self) -> None:
        """End the gateway if it runs."""
        if self._process is not None and self._process.poll() is None:
            self._process.terminate()
            self._process.wait(60)

    def turn(self, text: str, *, agent: str = "main", session: str = "one") -> str:
        """Say something and return the answer."""
        body = {"model": f"openclaw/{agent}", "messages": [{"role": "user", "content": text}]}
        request = urllib.request.Request(
            f"http://127.0.0.1:{self.port}/v1/chat/completions", json.dumps(body).encode(),
            {"authorization": f"Bearer {TOKEN}", "content-type": "application/json",
             "x-openclaw-session-key": f"agent:{agent}:{session}"},
        )  # fmt: skip
        with urllib.request.urlopen(request, timeout=TURN_SECONDS) as response:
            reply = json.loads(response.read())
        answer: str = reply["choices"][0]["message"]["content"]
        return answer

    def seen(self, text: str) -> str:
        """Return the newest message that the model saw with this text of the user in it."""
        for body in reversed(self.model.requests):
            for message in reversed(body["messages"]):
                if message["role"] == "user" and text in words(message["content"]):
                    return words(message["content"])
        raise AssertionError(f"the model never saw {text!r}")

    def children(self) -> list[int]:
        """Return the processes of perdure that belong to this gateway's state."""
        return _processes("perdure.", str(self.state))

    def facts(self, agent: str = "main") -> list[dict[str, Any]]:
        """Return the memories of an agent as the command line lists them."""
        live = [word for state in ("present", "pending", "search-only") for word in ("--state", state)]
        done = self.perdure("list", "--agent", agent, *live, "--limit", "1000", "--json")
        assert done.returncode == 0, done.stderr
        listed: list[dict[str, Any]] = json.loads(done.stdout)["facts"]
        return listed

    def details(self, tool: str, agent: str = "main") -> Mapping[str, Any]:
        """Return the values that the newest result of a tool has beside its text, from the host's own transcripts."""
        file = self.state / "agents" / agent / "agent" / "openclaw-agent.sqlite"
        with closing(sqlite3.connect(f"file:{file}?mode=ro", uri=True)) as transcripts:
            newest_first = "SELECT event_json FROM transcript_events ORDER BY created_at DESC, seq DESC"
            messages = [json.loads(row[0]).get("message") or {} for row in transcripts.execute(newest_first) if row[0]]
        results = (each for each in messages if each.get("role") == "toolResult" and each.get("toolName") == tool)
        found: Mapping[str, Any] = next(results)["details"]
        return found

    def _ready(self) -> bool:
        assert self._process is not None
        if self._process.poll() is not None:
            raise AssertionError(f"the gateway ended: {(self.folder / 'gateway.out').read_text()[-2000:]}")
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/readyz", timeout=2) as response:
                return b'"ready":true' in response.read()
        except (urllib.error.URLError, OSError):
            return False

    def _run(self, *command: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            command,
            cwd=self.folder,
            env=self.environ,
            capture_output=True,
            text=True,
            timeout=TURN_SECONDS,
            check=False,
        )

    def _config(self) -> Mapping[str, Any]:
        model = {
            "id": "mock-1", "name": "Mock", "reasoning": False, "input": ["text"], "contextWindow": self._window,
            "maxTokens": 4096, "cost": {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0},
        }  # fmt: skip
        provider = {
            "baseUrl": f"http://127.0.0.1:{self.model.port}/v1", "apiKey": "sk-mock", "api": "openai-completions",
            "models": [model],
        }  # fmt: skip
        agents = {name: {"workspace": str(self.folder / name)} for name in ("main", "second")}
        return {
            **self._more,
            "gateway": {
                "mode": "local", "bind": "loopback", "port": self.port, "auth": {"mode": "token", "token": TOKEN},
                "http": {"endpoints": {"chatCompletions": {"enabled": True}}},
            },
            "logging": {"file": str(self.folder / "openclaw.log")},
            "models": {"mode": "replace", "providers": {"mock": provider}},
            "agents": {
                "ownership": "explicit", "entries": agents,
                "defaults": {
                    "skipBootstrap": True, "compaction": {"mode": "default"}, "model": {"primary": "mock/mock-1"},
                    "systemAgent": {"agentId": "main"},
                },
            },
        }  # fmt: skip


def until(holds: Callable[[], bool], seconds: float, otherwise: str) -> None:
    """Wait until something holds."""
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline, f"{otherwise} after {seconds:.0f} s"
        time.sleep(0.1)


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


def _processes(command: str, state: str) -> list[int]:
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            called = (process / "cmdline").read_bytes().decode(errors="replace")
            environment = (process / "environ").read_bytes().decode(errors="replace")
        except OSError:
            continue
        if command in called and f"-m\0{command}" in called and f"OPENCLAW_STATE_DIR={state}\0" in environment:
            found.append(int(process.name))
    return found


def _below(parent: int, command: str) -> list[int]:
    """Return the processes that a launcher has started and that are the host itself."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            above = int((process / "stat").read_text().rpartition(")")[2].split()[1])
            called = (process / "cmdline").read_bytes().decode(errors="replace")
        except OSError:
            continue
        if above == parent and command in called and "perdure" not in called.split("\0")[0]:
            found.append(int(process.name))
    return found


def _kill(pid: int, number: int) -> None:
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return
