"""perdure in a real Codex, from connect to disconnect.

    python -m tests.e2e.codex --host DIR

DIR is where npm has installed it. Prints a table of steps; exit code 0 if all of them hold. Its model is a small server
on loopback, and nothing else is reached.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

from tests.e2e.agent_model import Turn
from tests.e2e.agent_story import command, ending
from tests.e2e.agent_story import step as before
from tests.e2e.agents import REPOSITORIES, Agent, Lines, Talk
from tests.e2e.gateway import until
from tests.e2e.steps import Steps

CONFIG = """\
# My own settings.
model = "mock"
model_provider = "mock"   # on loopback
check_for_update_on_startup = false

[model_providers.mock]
name = "Mock"
base_url = "http://127.0.0.1:{port}/v1"
wire_api = "responses"
"""
step: Steps[Agent] = Steps()


class Codex(Agent):
    """Codex with a home of its own."""

    name = "codex"
    package = "@openai/codex@0.169.0"
    program = "codex"
    keys: ClassVar[Mapping[bytes, bytes]] = {b"trusting": b"3"}

    @property
    def configs(self) -> tuple[Path, ...]:
        """Its settings, where it also keeps which hooks it trusts, and its hooks."""
        return self.home / ".codex" / "config.toml", self.home / ".codex" / "hooks.json"

    def configure(self) -> None:
        """Write settings and a hook of the user, in a form of their own."""
        config, hooks = self.configs
        self.folder(".codex")
        trusted = (f'\n[projects."{self.home / name}"]\ntrust_level = "trusted"\n' for name in REPOSITORIES)
        config.write_text(CONFIG.format(port=self.model.port) + "".join(trusted))
        own = {"Stop": [{"hooks": [{"type": "command", "command": "true own", "timeout": 5}]}]}
        hooks.write_text(json.dumps({"hooks": own}, indent=4))

    def trust(self) -> None:
        """Write down what Codex writes when the user trusts its hooks with /hooks; before that none of them runs."""
        self.once("My birthday is on 1 April 1990.")
        assert "not trusted yet" in self.perdure("connect"), "the list does not say that the hooks are not trusted"
        self.trust_more()
        assert self.memories() == []

    def trust_more(self) -> None:
        """Write it down for hooks of which it is not written yet."""
        with Server(self.lines("app-server", folder=self.home)) as server:
            listed = server.call("hooks/list", cwds=[str(self.home)])["data"]
        hooks = {f"[hooks.state.{json.dumps(hook['key'])}]": hook for each in listed for hook in each["hooks"]}
        known = self.configs[0].read_text()
        with self.configs[0].open("a") as config:
            for head, hook in hooks.items():
                config.write("" if head in known else f'\n{head}\ntrusted_hash = "{hook["currentHash"]}"\n')
        assert "not trusted yet" not in self.perdure("connect"), "the list does not see that the hooks are trusted"

    def have_run(self, command: str) -> None:
        """Let the model run a command when it is asked next."""
        self.model.will_call("exec_command", {"cmd": command})

    def headless(self, text: str) -> Turn:
        """Say something with `codex exec`."""
        self.run(self.program, "exec", text, folder=self.repository("one"))
        return self.model.turn(text)

    def talk(self, session: str | None = None) -> Talk:
        """Begin a conversation, or go on with one, as the extension of an editor does."""
        lines = self.lines("app-server", folder=self.repository("one"))
        server = Server(lines)
        if session is None:
            told = server.call("thread/start", approvalPolicy="on-request", sandbox="read-only")
        else:
            told = server.call("thread/resume", threadId=session)
        return _Talk(self, told["thread"]["id"], lines, server)

    def have_sub_agent(self, prompt: str) -> None:
        """Let the model start an agent, which goes on by itself and reports with the next turn."""
        self.model.will_call("multi_agent_v1.spawn_agent", {"message": prompt})

    def call(self, talk: Talk, said: str, tool: str, **arguments: Any) -> str:
        """Let the model call the tool."""

        def begun() -> bool:
            talk.say("Good morning.")
            return self.model.offered("mcp__perdure")

        until(begun, 60, "the server's tools are not offered")
        self.model.will_call(f"mcp__perdure.{tool}", arguments)
        talk.say(said)
        return self.model.tool_answer()


class Server:
    """`codex app-server`, which other programs have their conversations with."""

    def __init__(self, lines: Lines) -> None:
        self._lines, self._asked = lines, 0
        self.call("initialize", clientInfo={"name": "perdure-test", "version": "1"}, capabilities={})
        lines.send(method="initialized")

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        """Ask for something; return what it answers."""
        self._asked += 1
        self._lines.send(id=self._asked, method=method, params=params)
        while (answer := self._take()).get("id") != self._asked or "method" in answer:
            pass
        assert "error" not in answer, answer
        result: dict[str, Any] = answer["result"]
        return result

    def until(self, method: str, thread: str) -> None:
        """Wait until it tells this of a conversation."""
        while (told := self._take()).get("method") != method or told["params"]["threadId"] != thread:
            pass

    def _take(self) -> dict[str, Any]:
        """Return what it tells next; the user allows every tool of a server."""
        told = self._lines.take()
        if told.get("method") == "mcpServer/elicitation/request":
            self._lines.send(id=told["id"], result={"action": "accept", "content": {}})
        return told

    def __enter__(self) -> Server:
        return self

    def __exit__(self, *failure: object) -> None:
        self._lines.close()


class _Talk(Talk):
    def __init__(self, agent: Agent, session: str, lines: Lines, server: Server) -> None:
        super().__init__(agent, session, lines)
        self._server = server

    def say(self, text: str) -> Turn:
        self._server.call("turn/start", threadId=self.session, input=[{"type": "text", "text": text}])
        self._server.until("turn/completed", self.session)
        return self._agent.model.turn(text)

    def compact(self) -> None:
        self._server.call("thread/compact/start", threadId=self.session)
        self._server.until("turn/completed", self.session)


main = command(Codex, Steps([*before, *step, *ending]))

if __name__ == "__main__":
    main()
