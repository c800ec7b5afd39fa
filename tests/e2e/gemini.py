"""perdure in a real Gemini CLI, from connect to disconnect.

    python -m tests.e2e.gemini --host DIR

DIR is where npm has installed it. Prints a table of steps; exit code 0 if all of them hold. Its model is a small server
on loopback, and nothing else is reached.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.e2e.agent_model import AgentModel, short_id
from tests.e2e.agent_story import command
from tests.e2e.agents import Program
from tests.e2e.model import REPLY, Body, sent_event
from tests.e2e.steps import Steps

NOBODY = {"hookSpecificOutput": {"hookEventName": "SessionStart", "additionalContext": "My name is Nobody."}}
SETTINGS = {
    "security": {"auth": {"selectedType": "gemini-api-key"}},
    "general": {"enableAutoUpdate": False},
    "privacy": {"usageStatisticsEnabled": False},
    "hooks": {
        "AfterAgent": [{"hooks": [{"type": "command", "command": "true own", "timeout": 5000}]}],
        # What a hook says when a session begins, Gemini CLI puts before the first prompt.
        "SessionStart": [{"hooks": [{"type": "command", "command": f"echo '{json.dumps(NOBODY)}'"}]}],
    },
}
step: Steps[Gemini] = Steps()


class GeminiModel(AgentModel):
    """The server: it speaks Gemini's own form."""

    def sent(self, text: str) -> str:
        """Return all that it was sent with a text, the last time that it was said."""
        told = [_told(body) for body in self.requests if text in _last(body)]
        assert told, f"the model never saw {text!r}"
        return told[-1]

    def answered(self) -> str:
        """Return what the last tool answered."""
        parts = [part for body in self.requests for each in body.get("contents", ()) for part in each["parts"]]
        return json.dumps([part["functionResponse"] for part in parts if "functionResponse" in part][-1])

    def _answer(self, path: str, body: Body) -> Sequence[bytes]:
        self.requests.append(body)
        call = self._taken_call(body) if "stream" in path else None
        part: Mapping[str, Any] = {"functionCall": {"name": call[0], "args": call[1]}} if call else {"text": REPLY}
        answer = {
            "candidates": [{"content": {"role": "model", "parts": [part]}, "finishReason": "STOP", "index": 0}],
            "usageMetadata": {"promptTokenCount": 10, "candidatesTokenCount": 2, "totalTokenCount": 12},
        }
        return [sent_event(answer)] if "stream" in path else [json.dumps(answer).encode()]

    def _taken_call(self, body: Body) -> tuple[str, Mapping[str, Any]] | None:
        """Return the call that is to be made, once a request offers its tool."""
        offered = {tool["name"] for each in body.get("tools", ()) for tool in each.get("functionDeclarations", ())}
        if self._call is None or self._call[0] not in offered:
            return None
        call, self._call = self._call, None
        return call


class Gemini(Program):
    """Gemini CLI with a home of its own."""

    name = "gemini"
    package = "@google/gemini-cli@0.61.0"
    program = "gemini"
    model: GeminiModel

    def new_model(self) -> AgentModel:
        """Return a server that speaks Gemini's own form."""
        return GeminiModel()

    @property
    def configs(self) -> tuple[Path, ...]:
        """Its settings, with hooks and servers."""
        return (self.home / ".gemini" / "settings.json",)

    @property
    def environ(self) -> dict[str, str]:
        """What every command runs with."""
        return super().environ | {
            "GOOGLE_GEMINI_BASE_URL": f"http://127.0.0.1:{self.model.port}", "GEMINI_API_KEY": "none",
            "GEMINI_CLI_TRUST_WORKSPACE": "true", "GEMINI_CLI_NO_RELAUNCH": "1",
        }  # fmt: skip

    def configure(self) -> None:
        """Write settings with hooks of the user."""
        self.folder(".gemini")
        self.configs[0].write_text(json.dumps(SETTINGS, indent=4))

    def say(self, text: str, *more: str, repository: str = "one") -> str:
        """Say something in a process of its own; return what the model was sent with it."""
        words = [self.program, *more, "--model", "gemini-2.5-flash", "--prompt", text]
        self.run(*words, folder=self.repository(repository))
        return self.model.sent(text)


@step("connect shows what it changes, disconnect restores it byte for byte")
def _restored(gemini: Gemini) -> None:
    before = gemini.snapshot()
    assert "perdure hook prompt" in gemini.perdure("connect", "gemini", "--dry-run")
    assert gemini.snapshot() == before, "a dry run changes the config"
    gemini.perdure("connect", "gemini")
    assert gemini.snapshot() != before
    gemini.perdure("disconnect", "gemini")
    assert gemini.snapshot() == before, "the config is not what it was"


@step("what is said in one session comes back in the next; what another hook said is not kept", always=True)
def _recalled(gemini: Gemini) -> None:
    gemini.perdure("connect", "gemini")
    assert "automatic" in gemini.perdure("connect")
    assert "My name is Nobody" in gemini.say("My birthday is on 3 March 1990."), "the other hook runs"
    gemini.knows("3 March")
    assert "3 March" in gemini.say("When is my birthday?")
    assert gemini.memories() == ["My birthday is on 3 March 1990."]


@step("a conversation that is gone on with is shown nothing twice")
def _once(gemini: Gemini) -> None:
    assert gemini.say("Sorry, when did I say my birthday is?", "--resume", "latest").count("is on 3 March") == 1


@step("what is said of a repository stays silent in another")
def _apart(gemini: Gemini) -> None:
    told, asked = "We decided to use Postgres instead of MySQL.", "Did we decide on Postgres or on MySQL?"
    gemini.say(told, repository="client-a")
    gemini.knows("Postgres")
    assert told in gemini.say(f"First: {asked}", repository="client-a")
    assert told not in gemini.say(f"Then: {asked}", repository="client-b")


@step("the model finds a memory by the tool of the MCP server")
def _searched(gemini: Gemini) -> None:
    gemini.model.will_call("mcp_perdure_memory_search", {"query": "When is the birthday?"})
    gemini.say("Look it up, please.", "--approval-mode", "yolo")
    assert "3 March" in gemini.model.answered()


@step("what the model forgets or corrects by its tool at the user's word goes, until one undo brings it back")
def _mended(gemini: Gemini) -> None:
    told, new = "My gym is on Elm Street.", "My gym is on Oak Street."
    gemini.say(told)
    gemini.knows(told)
    for number, (tool, values, wish) in enumerate((
        ("memory_forget", {}, "My gym is no longer on Elm Street."),
        ("memory_update", {"text": new}, "No, my gym is on Oak Street, not on Elm Street."),
    )):  # fmt: skip
        name = short_id(gemini.say(f"Good morning. This is day {number}."), told)
        gemini.model.will_call(f"mcp_perdure_{tool}", {"id": name, "quote": wish, **values})
        gemini.say(wish, "--approval-mode", "yolo")
        assert re.search("Forgotten|Changed", gemini.model.answered()), gemini.model.answered()
        now = gemini.say(f"Good evening. This is day {number}.")
        assert told not in now, now
        assert (new in now) is bool(values), now
        gemini.perdure("undo")
        back = gemini.say(f"Good night. This is day {number}.")
        assert back.count(told) == 1, back
        assert new not in back, back


@step("disconnect after use: nothing of ours is left, what the user set stands")
def _disconnected(gemini: Gemini) -> None:
    gemini.perdure("disconnect", "gemini")
    assert json.loads(gemini.configs[0].read_text()) == SETTINGS
    assert "3 March" not in gemini.say("When is my birthday, now?")


def _told(body: Body) -> str:
    return "\n".join(part.get("text", "") for each in body.get("contents", ()) for part in each["parts"])


def _last(body: Body) -> str:
    contents = body.get("contents", ())
    return "\n".join(part.get("text", "") for part in contents[-1]["parts"]) if contents else ""


main = command(Gemini, step)

if __name__ == "__main__":
    main()
