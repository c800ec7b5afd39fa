"""perdure in a real Hermes, with a model on loopback.

    python -m tests.e2e.hermes --dir DIR

Makes an environment below DIR with hermes-agent and this checkout, once: Hermes pins what it needs. Prints a table
of steps; exit code 0 if all of them hold. Only `pip install` reaches the network.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import click

from tests.e2e.model import Model
from tests.e2e.package import ROOT, environment
from tests.e2e.steps import Steps

HERMES = "hermes-agent==0.19.0"
FACT = "The staging database is called heron."
QUESTION = "What is the staging database called?"
CONFIG = """\
# My own settings.
model:
  default: mock-1
  provider: custom
  base_url: http://127.0.0.1:{port}/v1
  api_key: none
  context_length: 131072
"""
SECONDS = 240.0
PARTS = """
import sys
from agent.memory_manager import MemoryManager
from perdure.api.memory import Memory
from perdure.hosts.hermes import PerdureProvider

def session(memory, *talk, **given):
    manager, provider = MemoryManager(), PerdureProvider(memory)
    manager.add_provider(provider)
    manager.initialize_all("s-1", platform="cli", **given)
    for user in talk:
        provider.sync_turn(user, "OK.")
    assert memory.settle()
    return provider

with Memory.open(sys.argv[1], embedder="none", timers=False) as memory:
    fact, question = sys.argv[2:]
    session(memory, "My cat is called Mia.", agent_context="subagent")
    session(memory, "<task-notification>My hen is called Ada.</task-notification>")
    assert not memory.admin.list(), "a sub-agent and a notification leave nothing"
    coder = session(memory, fact, agent_identity="coder")
    assert fact in coder.prefetch(question)
    assert fact not in session(memory, agent_identity="writer").prefetch(question), "profiles are apart"
    first = session(memory, "My boat is called Albatross.")
    assert "Albatross" in first.prefetch("What is my boat called?")
    first.on_pre_compress([{"role": "user", "content": "I moor it in Bergen."}])
    assert memory.settle()
    assert "Bergen" in str(memory.admin.list()), "what is about to be dropped is taken in"
    first.on_session_switch("s-2", reset=True)
    first.sync_turn("My anchor weighs nine kilos.", "OK.")
    assert memory.settle()
    sessions = {fact.text: fact.provenance_session for fact in memory.admin.list()}
    assert sessions["My anchor weighs nine kilos."] == "s-2", sessions
"""


@dataclass
class Hermes:
    """Hermes with a home of its own."""

    folder: Path
    home: Path
    model: Model

    def run(self, *words: str | Path) -> str:
        """Run a program of the environment; return what it printed.

        Raises:
            AssertionError: it failed.
        """
        environ = {name: value for name, value in os.environ.items() if not name.startswith(("PERDURE_", "HERMES_"))}
        environ["PATH"] = f"{self.folder / 'bin'}{os.pathsep}{environ['PATH']}"
        environ |= {"HOME": str(self.home), "HERMES_HOME": str(self.home / ".hermes"), "PYTHONDONTWRITEBYTECODE": "1"}
        done = subprocess.run(
            [self.folder / "bin" / words[0], *words[1:]], env=environ, cwd=self.home, capture_output=True, text=True,
            stdin=subprocess.DEVNULL, timeout=SECONDS, check=False,
        )  # fmt: skip
        assert done.returncode == 0, f"{words[0]}: {done.stdout[-500:]} {done.stderr[-1500:]}"
        return done.stdout

    def asked(self, text: str) -> str:
        """Say something in a session of its own; return what the model was sent with it."""
        before = len(self.model.requests)
        self.run("hermes", "-z", text)
        sent = [json.dumps(body["messages"]) for body in self.model.requests[before:] if "messages" in body]
        return next(each for each in sent if text in each)


step: Steps[Hermes] = Steps()


@step("one command makes it Hermes's memory, again and again", always=True)
def install(hermes: Hermes) -> None:
    for _ in range(2):
        hermes.run("perdure", "connect", "hermes")
    assert "automatic" in hermes.run("perdure", "connect")
    shown = hermes.run("hermes", "memory", "status")
    assert "perdure" in shown, shown
    assert "http://127.0.0.1" in (hermes.home / ".hermes" / "config.yaml").read_text(), "the user's settings are kept"


@step("what is said in one session is in the model's request of the next")
def remembers(hermes: Hermes) -> None:
    assert FACT not in hermes.asked("Good morning!")
    hermes.asked(f"{FACT} Remember it for the tests.")
    assert FACT in hermes.asked(QUESTION)


@step("nothing but the user's own words is kept")
def kept(hermes: Hermes) -> None:
    facts = json.loads(hermes.run("perdure", "list", "--json"))["facts"]
    assert [fact["text"] for fact in facts] == [FACT]


@step("sub-agents, notifications, profiles, compression and a switch of sessions")
def parts(hermes: Hermes) -> None:
    hermes.run("python", "-c", PARTS, hermes.home / "parts", FACT, QUESTION)


@step("disconnect takes it back; nothing of ours is left")
def disconnected(hermes: Hermes) -> None:
    hermes.run("perdure", "disconnect", "hermes")
    assert not (hermes.home / ".hermes" / "plugins" / "perdure").exists()
    assert "perdure" not in (hermes.home / ".hermes" / "config.yaml").read_text()
    assert FACT not in hermes.asked(f"{QUESTION} Tell me.")


@click.command()
@click.option("--dir", "folder", type=click.Path(file_okay=False, path_type=Path), required=True, help="For all of it.")
def main(folder: Path) -> None:
    """Hold Hermes to what its adapter promises."""
    folder = folder.absolute()
    python = folder / "bin" / "python"
    if not (folder / "bin" / "hermes").exists():
        environment(folder)
        subprocess.run([python, "-m", "pip", "install", "-qq", HERMES, "-e", str(ROOT)], check=True)
    home = folder / "home"
    shutil.rmtree(home, ignore_errors=True)
    (home / ".hermes").mkdir(parents=True)
    model = Model()
    (home / ".hermes" / "config.yaml").write_text(CONFIG.format(port=model.port))
    holds = step.run(Hermes(folder, home, model))
    model.close()
    sys.exit(not holds)


if __name__ == "__main__":
    main()
