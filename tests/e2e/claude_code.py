"""perdure in a real Claude Code, from connect to disconnect.

    python -m tests.e2e.claude_code --host DIR

DIR is where npm has installed it. Prints a table of steps; exit code 0 if all of them hold. Its model is a small server
on loopback, and nothing else is reached.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from uuid import uuid4

from tests.e2e.agent_model import Turn
from tests.e2e.agent_story import command, ending
from tests.e2e.agent_story import step as before
from tests.e2e.agents import REPOSITORIES, Agent, Lines, Talk
from tests.e2e.gateway import until
from tests.e2e.steps import Steps

TOOLS = "Agent,Bash,ScheduleWakeup,SendMessage,ToolSearch,mcp__perdure"
QUESTION = "[background perdure-librarian "
"""What a question of the librarian begins with."""
step: Steps[Agent] = Steps()


class ClaudeCode(Agent):
    """Claude Code with a home of its own."""

    name = "claude-code"
    package = "@anthropic-ai/claude-code@2.1.330"
    program = "claude"

    @property
    def configs(self) -> tuple[Path, ...]:
        """Its settings, and the file with its MCP servers."""
        return self.home / ".claude" / "settings.json", self.home / ".claude.json"

    @property
    def environ(self) -> dict[str, str]:
        """What it runs with."""
        return super().environ | {"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1"}

    def configure(self) -> None:
        """Write settings and a hook of the user, in a form of their own."""
        settings, state = self.configs
        self.folder(".claude")
        hooks = {"Stop": [{"hooks": [{"type": "command", "command": "true own"}]}]}
        address = {"ANTHROPIC_BASE_URL": f"http://127.0.0.1:{self.model.port}", "ANTHROPIC_API_KEY": "sk-mock"}
        settings.write_text(json.dumps({"cleanupPeriodDays": 99, "hooks": hooks, "env": address}, indent=4))
        # What it asks at its first start, it has been told.
        trusted = {str(self.home / name): {"hasTrustDialogAccepted": True} for name in REPOSITORIES}
        known = {
            "hasCompletedOnboarding": True,
            "customApiKeyResponses": {"approved": ["sk-mock"]},
            "projects": trusted,
        }
        state.write_text('{"own":  true,\n ' + json.dumps(known)[1:] + "\n")

    def trust(self) -> None:
        """Nothing is asked: what stands in the user's settings runs."""

    trust_more = trust

    def have_run(self, command: str) -> None:
        """Let the model run a command when it is asked next."""
        self.model.will_call("Bash", {"command": command, "description": "As I was told"})

    def headless(self, text: str) -> Turn:
        """Say something with `claude -p`."""
        self.run(self.program, "-p", text, "--allowedTools", TOOLS, folder=self.repository("one"))
        return self.model.turn(text)

    def talk(self, session: str | None = None) -> Talk:
        """Begin a conversation, or go on with one, as the extension of an editor does."""
        form = (
            "--input-format",
            "stream-json",
            "--output-format",
            "stream-json",
            "--verbose",
            "--permission-mode",
            "default",
        )
        chosen = session or str(uuid4())
        options = ("-p", *form, "--allowedTools", TOOLS, "--resume" if session else "--session-id", chosen)
        editor = self.environ | {"CLAUDE_CODE_ENTRYPOINT": "claude-vscode"}
        lines = Lines([self.program, *options], self.repository("one"), editor, self.home / "errors.txt")
        return _Talk(self, chosen, lines)

    def have_sub_agent(self, prompt: str) -> None:
        """Let the model start an agent, which goes on in the background and reports by a notification."""
        self.model.will_call("Agent", {"description": "Look", "prompt": prompt, "subagent_type": "general-purpose"})

    def call(self, talk: Talk, said: str, tool: str, **arguments: Any) -> str:
        """Let the model look the tool up, and call it."""
        name = f"mcp__perdure__{tool}"

        def loaded() -> bool:
            self.model.will_call("ToolSearch", {"query": f"select:{name}"})
            talk.say("Good morning.")
            return self.model.offered(name)

        until(loaded, 60, "the server's tools are not offered")
        self.model.will_call(name, arguments)
        talk.say(said)
        return self.model.tool_answer()


class _Talk(Talk):
    accepts = False
    """What the user says to a question that a server puts to them."""

    def say(self, text: str) -> Turn:
        self._send(text)
        # The report of a task is a turn of its own, which may end in between.
        while (told := self.lines.take())["type"] != "result" or not self._agent.model.saw(text):
            if told["type"] == "control_request":
                self._answer(told["request_id"])
        return self._agent.model.turn(text)

    def compact(self) -> None:
        self._send("/compact")
        while self.lines.take().get("subtype") != "compact_boundary":
            pass

    def _answer(self, request: str) -> None:
        answer = {"action": "accept", "content": {}} if self.accepts else {"action": "decline"}
        self.lines.send(
            type="control_response", response={"subtype": "success", "request_id": request, "response": answer}
        )

    def _send(self, text: str) -> None:
        self.lines.send(type="user", message={"role": "user", "content": text})


@step("the report of a background task is not remembered")
def _background(agent: Agent) -> None:
    before = agent.memories()
    task = {"command": "sleep 1", "description": "My gecko is called Zed.", "run_in_background": True}
    with agent.talk() as talk:
        agent.model.will_call("Bash", task)
        talk.say("Run it in the background.")
        until(lambda: agent.model.saw("<task-notification>"), 30, "no report")
        talk.say("Thanks. My gardener is called Rosa.")
    agent.knows("Rosa")
    more = set(agent.memories()) - set(before)
    assert all("Rosa" in text for text in more), more


@step("a prompt that the model has scheduled is not remembered")
def _scheduled(agent: Agent) -> None:
    before = agent.memories()
    wakeup = {"delaySeconds": 60, "reason": "to look again", "prompt": "My uncle is called Theodore. Look again."}
    with agent.talk() as talk:
        agent.model.will_call("ScheduleWakeup", wakeup)
        talk.say("Look again later.")
        until(lambda: agent.model.saw("Theodore"), 150, "nothing came")
        talk.say("Thanks. My plumber is called Otto.")
    agent.knows("Otto")
    more = set(agent.memories()) - set(before)
    assert all("Otto" in text for text in more), more


@step("what another session sends is not remembered")
def _peer(agent: Agent) -> None:
    before = agent.memories()
    with agent.talk() as talk, agent.talk() as other:
        talk.say("Good morning.")
        agent.model.will_call("ToolSearch", {"query": "select:SendMessage"})
        other.say("Look what you can do.")
        to = f"uds:{agent.folder('tmp')}/cc-socks/{talk.lines.pid}.sock"
        message = {"to": to, "summary": "hello to my peer", "message": "My aunt is called Mathilda."}
        agent.model.will_call("SendMessage", message)
        other.say("Tell the other session.")
        until(lambda: agent.model.saw("Mathilda"), 30, "nothing came")
        talk.say("Thanks. My carpenter is called Bruno.")
    agent.knows("Bruno")
    more = set(agent.memories()) - set(before)
    assert all("Bruno" in text for text in more), more


@step("a tool replaces what the user said if they accept it, and not if they decline")
def _replaced(agent: Agent) -> None:
    agent.once("My hang glider is called Falk.")
    agent.knows("Falk")
    known = next(fact["id"] for fact in agent.facts() if "Falk" in fact["text"])
    for accepts, name in ((False, "Milan"), (True, "Bussard")):
        with agent.talk() as talk:
            assert isinstance(talk, _Talk)
            talk.accepts = accepts
            text = f"My hang glider is called {name}."
            answer = agent.call(talk, "What a day.", "memory_update", id=known, text=text)
        present = [fact["text"] for fact in agent.facts() if fact["state"] == "present"]
        assert (text in present) is accepts, answer


@step("the librarian reads a session with claude -p: what it proves is kept, and nothing comes along or stays behind")
def _librarian(agent: Agent) -> str:
    said = "The market stall needs two people on Sundays, see @rota.txt and @~/rota.txt."
    (agent.home / "rota.txt").write_text("The rota is secret.\n")
    (agent.repository("one") / "rota.txt").write_text("The rota is secret.\n")
    (agent.home / ".claude" / "CLAUDE.md").write_text("Speak of penguins.\n")
    note = {"op": "remember", "quote": said, "note": "The market stall needs two people on Sundays."}
    agent.model.answers[QUESTION] = json.dumps({"operations": [note]})
    agent.perdure("librarian", "on")
    agent.once(said)
    until(lambda: "1 turn" in agent.perdure("librarian", "status"), 30, "no turn waits")
    agent.model.requests.clear()
    before = _files(agent)
    agent.perdure("librarian", "run")
    assert any(note["note"] in text for text in agent.memories()), agent.memories()
    assert "remember 1" in agent.perdure("librarian", "log")
    asked = agent.model.requests
    [question] = map(json.dumps, asked)
    assert QUESTION in question
    assert asked[0].get("tools") == []
    assert not [word for word in ("secret", "penguins", "memory-context nonce") if word in question], question
    holds = [name for name, text in _files(agent).items() if b"perdure-librarian" in text and name not in before]
    assert not holds, holds
    return f"{len(question)} characters were sent"


@step("where the librarian's model answers with a call of a tool, nothing runs")
def _called(agent: Agent) -> None:
    ran = agent.home / "ran.txt"
    agent.once("The market stall needs three people on Mondays.")
    until(lambda: "1 turn" in agent.perdure("librarian", "status"), 30, "no turn waits")
    agent.model.calls[QUESTION] = ("Bash", {"command": f"touch {ran}", "description": "As I was told"})
    before = agent.memories()
    agent.perdure("librarian", "run")
    del agent.model.calls[QUESTION]
    assert not ran.exists()
    assert set(agent.memories()) == set(before)
    agent.perdure("librarian", "off")


def _files(agent: Agent) -> dict[str, bytes]:
    """Return what every file below the home holds, but for the stores that databases are."""
    return {str(path): path.read_bytes() for path in agent.home.rglob("*") if path.is_file() and path.suffix != ".db"}


main = command(ClaudeCode, Steps([*before, *step, *ending]))

if __name__ == "__main__":
    main()
