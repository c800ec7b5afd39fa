"""The real child process of a gateway, spoken to line by line."""

from __future__ import annotations

import json
import os
import queue
import subprocess
import sys
import threading
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Self

ROOT = Path(__file__).resolve().parents[2]
PATIENCE = 60.0
AGENT = {"agentId": "main", "sessionId": "s1", "sessionKey": "agent:main:s1", "trigger": "user"}


class Child:
    """Starts the child on a data folder. `lines` is every line that came by stdout."""

    def __init__(self, home: Path, *, ready: bool = True, **config: Any) -> None:
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "HOME": str(home.parent)}
        self.process = subprocess.Popen(
            [sys.executable, "-P", "-m", "perdure.hosts.openclaw"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, env=environment,
        )  # fmt: skip
        self.lines: list[bytes] = []
        self.errors = b""
        self._answers: queue.Queue[Mapping[str, Any]] = queue.Queue()
        self._ahead: dict[Any, Mapping[str, Any]] = {}
        self._readers = [threading.Thread(target=each, daemon=True) for each in (self._read, self._read_errors)]
        for reader in self._readers:
            reader.start()
        self._count = 0
        if ready:
            plain = {"home": str(home), "embedder": "none", "opening_tokens": 0}
            self.call("initialize", protocol=2, config={**plain, **config})

    def raw(self, line: bytes) -> None:
        """Send bytes as they are."""
        assert self.process.stdin is not None
        self.process.stdin.write(line)
        self.process.stdin.flush()

    def ask(self, method: str, **params: Any) -> int:
        """Send a request and return its id."""
        self._count += 1
        request = {"jsonrpc": "2.0", "id": self._count, "method": method, "params": params}
        self.raw(json.dumps(request).encode() + b"\n")
        return self._count

    def answer(self, request_id: Any) -> Mapping[str, Any]:
        """Wait for the answer to a request."""
        while request_id not in self._ahead:
            answer = self._answers.get(timeout=PATIENCE)
            self._ahead[answer["id"]] = answer
        return self._ahead.pop(request_id)

    def call(self, method: str, **params: Any) -> Any:
        """Send a request and return its result."""
        answer = self.answer(self.ask(method, **params))
        assert "result" in answer, answer
        return answer["result"]

    def say(self, text: str, reply: str = "Understood.", **ctx: Any) -> None:
        """Have a turn in which the user says something."""
        messages = [{"role": "user", "content": text}, {"role": "assistant", "content": reply}]
        self.call("before_prompt_build", event={"prompt": text}, ctx={**AGENT, **ctx})
        self.call("agent_end", event={"success": True}, ctx={**AGENT, **ctx}, messages=messages)

    def tool(self, name: str, ctx: Mapping[str, Any] = AGENT, **arguments: Any) -> str:
        """Call a tool and return its text."""
        result = self.call("tool", name=name, arguments=arguments, ctx=ctx)
        text: str = result["content"][0]["text"]
        return text

    def end(self) -> int:
        """Close stdin and return the exit code."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        code = self.process.wait(PATIENCE)
        for reader in self._readers:
            reader.join(PATIENCE)
        return code

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.lines.append(line)
            self._answers.put(json.loads(line))

    def _read_errors(self) -> None:
        assert self.process.stderr is not None
        self.errors = self.process.stderr.read()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.process.kill()
        self.process.wait()
        if self.process.stdin is not None:
            with suppress(BrokenPipeError):
                self.process.stdin.close()
        for reader in self._readers:
            reader.join(PATIENCE)
        for pipe in (self.process.stdout, self.process.stderr):
            if pipe is not None:
                pipe.close()
