"""What must hold in every command-line agent, from connect to disconnect."""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TypeVar

import click

from perdure.hosts.command.hooks import CHARS_PER_TOKEN, SESSION_TOKENS
from tests.e2e.agent_model import FENCE, Turn, messages
from tests.e2e.agents import Agent, Program, installed
from tests.e2e.gateway import installed_wheel, until
from tests.e2e.steps import Steps

THINGS = (
    "boat", "canoe", "piano", "tractor", "parrot", "tortoise", "mule", "violin", "caravan", "greenhouse", "robot",
    "telescope", "lighthouse", "windmill", "goldfish", "hedgehog", "motorbike", "sailplane", "vineyard", "orchard",
    "rowing machine", "kayak", "guitar", "hamster", "pony", "yacht", "cottage", "cello", "harp", "drone", "canary",
    "ferret", "llama", "goat", "sheep", "balloon", "tandem", "unicycle", "trombone", "accordion", "gecko", "iguana",
    "peacock", "raven", "workshop", "sculpture", "sourdough starter", "bonsai", "cactus", "fig tree",
)  # fmt: skip
"""One for each of fifty turns."""
TRIES = 5
NAMES = ("Ada", "Bo", "Cleo", "Dot", "Eli", "Fay", "Gus", "Hal", "Ivy", "Joy")
Tested = TypeVar("Tested", bound=Program)
step: Steps[Agent] = Steps()
"""Before the steps of one program."""
ending: Steps[Agent] = Steps()
"""Behind them."""


@step("connect shows what it changes, disconnect restores it byte for byte")
def _restored(agent: Agent) -> str:
    before = agent.snapshot()
    planned = agent.perdure("connect", agent.name, "--dry-run")
    assert "perdure hook prompt" in planned, planned
    assert agent.snapshot() == before, "a dry run changes the config"
    agent.perdure("connect", agent.name)
    changed = [path.name for path, content in agent.snapshot().items() if content != before[path]]
    assert changed, "nothing is connected"
    agent.perdure("disconnect", agent.name)
    assert agent.snapshot() == before, "the config is not what it was"
    return ", ".join(changed)


@step("connect: twice is the same as once, and the list shows it", always=True)
def _connected(agent: Agent) -> None:
    agent.perdure("connect", agent.name)
    once = agent.snapshot()
    agent.perdure("connect", agent.name)
    assert agent.snapshot() == once
    assert agent.name in agent.perdure("connect")


@step("the user trusts the hooks", always=True)
def _trusted(agent: Agent) -> None:
    agent.trust()


@step("what is said in one session comes back in the next, once", always=True)
def _recalled(agent: Agent) -> str:
    agent.once("My birthday is on 3 March 1990.")
    agent.knows("3 March")
    turn = until_shown(agent.once, "When is my birthday?", "3 March")
    assert turn.blocks.count("3 March") == 1, turn
    return f"{len(turn.blocks)} characters"


@step("a run without a person is recalled for, and nothing of it is kept")
def _headless(agent: Agent) -> None:
    before = agent.memories()
    told = "My aquarium is called Nemo."
    agent.headless(told)
    until_shown(agent.headless, "I prefer red wine over beer. When is my birthday?", "3 March")
    agent.once("My lawn mower is called Rex.")
    agent.knows("Rex")
    more = set(agent.memories()) - set(before)
    assert all("Rex" in text for text in more), more
    kept = agent.home / ".local" / "share" / "perdure" / "transcripts"
    recorded = "".join(file.read_text() for file in kept.rglob("*.jsonl"))
    assert "Rex" in recorded
    assert "Nemo" not in recorded, recorded


@step("a correction takes the place of what it corrects")
def _corrected(agent: Agent) -> None:
    agent.once("Actually, my birthday is on 5 March 1990, not on 3 March.")
    agent.knows("5 March")
    turn = until_shown(agent.once, "Remind me: when is my birthday?", "5 March")
    assert "birthday is on 3 March" not in turn.blocks, turn


@step("in a conversation nothing is shown twice, until it is compacted")
def _once(agent: Agent) -> None:
    agent.once("My canary is called Pim.")
    agent.knows("Pim")
    with agent.talk() as talk:
        until_shown(talk.say, "What is my canary called?", "Pim")
        again = talk.say("Sorry, what did I say my canary is called?")
        assert "Pim" not in again.shown, again
        assert again.resent.count("called Pim") == 1, again
        talk.compact()
        later = until_shown(talk.say, "So what is the name of my canary?", "Pim")
        assert later.blocks.count("called Pim") == 1, later


@step("a conversation that is gone on with after all of perdure was killed is shown nothing twice")
def _resumed(agent: Agent) -> None:
    agent.once("My donkey is called Balthasar.")
    agent.knows("Balthasar")
    with agent.talk() as talk:
        until_shown(talk.say, "What is my donkey called?", "Balthasar")
    agent.stop_helper()
    with agent.talk(talk.session) as talk:
        turn = talk.say("Say again: what is my donkey called?")
    assert turn.blocks.count("called Balthasar") == 1, turn


@step("what a sub-agent is told, and what it reports, is not remembered")
def _sub_agent(agent: Agent) -> str:
    before = agent.memories()
    agent.model.answers["Wilhelmina"] = "The user's cousin is called Ferdinand. I prefer red wine over beer."
    with agent.talk() as talk:
        agent.have_sub_agent("My sister is called Wilhelmina. I prefer red wine over beer.")
        talk.say("Have somebody look into it.")
        until(lambda: agent.model.saw("Wilhelmina"), 30, "the sub-agent was not called")
        talk.say("Thanks. My lighthouse keeper is called Beacon.")
    agent.knows("Beacon")
    more = set(agent.memories()) - set(before)
    assert all("Beacon" in text for text in more), more
    return f"{len(before)} memories before it"


@step("what the model forgets by its tool at the user's word is shown nowhere, until one undo brings it back")
def _withdrawn(agent: Agent) -> str:
    told, wish = "My locker is number 259.", "My locker is no longer number 259."
    agent.once(told)
    agent.knows(told)
    with agent.talk() as talk:
        name = until_shown(talk.say, "Good morning.", told).id_of(told)
        answer = agent.call(talk, wish, "memory_forget", id=name, quote=wish)
        # To have heard it the hooks need no tool: then it is a former one.
        states = [fact["state"] for fact in agent.facts() if fact["text"] == told]
        assert states == ["forgotten"], f"{states}: {answer}"
        later = talk.say("Which number has my locker?")
        assert told not in later.shown, later
    for text in ("Good evening.", "What is the number of my locker?"):
        turn = agent.once(text)
        assert told not in turn.blocks, turn
    agent.perdure("undo")
    turn = until_shown(agent.once, "Good night.", told)
    assert turn.blocks.count(told) == 1, turn
    return f"by #{name}"


@step("what the model corrects by its tool takes the place of it, until one undo brings it back")
def _mended(agent: Agent) -> None:
    told, new = "My gym is on Elm Street.", "My gym is on Oak Street."
    wish = "No, my gym is on Oak Street, not on Elm Street."
    agent.once(told)
    agent.knows(told)
    with agent.talk() as talk:
        name = until_shown(talk.say, "Good morning to you.", told).id_of(told)
        answer = agent.call(talk, wish, "memory_update", id=name, text=new, quote=wish)
        assert new in agent.memories(), answer
    turn = until_shown(agent.once, "Good evening to you.", new)
    assert told not in turn.blocks, turn
    agent.perdure("undo")
    turn = until_shown(agent.once, "Good night to you.", told)
    assert "Oak Street" not in turn.blocks, turn


@step("fifty turns: what is put into a conversation is capped")
def _capped(agent: Agent) -> str:
    named = {thing: f"{NAMES[number % 10]}{number}" for number, thing in enumerate(THINGS)}
    with agent.talk() as talk:
        for thing, name in named.items():
            talk.say(f"My {thing} is called {name} after an aunt of mine who lived in the south of Portugal.")
    until(lambda: all(any(f"called {name} " in text for text in agent.memories()) for name in named.values()), 120, "")
    with agent.talk() as talk:
        turns = [talk.say(f"What is my {thing} called?") for thing in named]
    shown = [turn for turn in turns if turn.shown]
    tokens = len(turns[-1].blocks) // CHARS_PER_TOKEN
    assert tokens <= SESSION_TOKENS, f"{tokens} tokens"
    notes = [line for line in turns[-1].blocks.splitlines() if line.startswith("[")]
    assert len(set(notes)) == len(notes), f"shown twice: {notes}"
    return f"{tokens} tokens in {len(shown)} blocks, at most {SESSION_TOKENS}"


@step("what is said of a repository stays silent in another; what the user says of themselves does not")
def _apart(agent: Agent) -> None:
    told, asked = "We decided to use Postgres instead of MySQL.", "Did we decide on Postgres or on MySQL?"
    agent.once(told, "client-a")
    agent.knows("Postgres")
    until_shown(partial(agent.once, repository="client-a"), f"First: {asked}", "Postgres")
    other = agent.once(f"Then: {asked}", "client-b").blocks
    assert "Postgres" not in other, other
    until_shown(partial(agent.once, repository="client-b"), "When is it, my birthday?", "March")


@step("the model finds a memory by the tool of the MCP server")
def _searched(agent: Agent) -> None:
    agent.once("My surfboard is called Nessie.")
    agent.knows("Nessie")
    with agent.talk() as talk:
        found = agent.call(talk, "Look it up, please.", "memory_search", query="What is the surfboard called?")
    assert "Nessie" in found, found


@step("before a command runs that had failed its model is told what mended it, and the command runs as it would")
def _reminded(agent: Agent) -> str:
    folder = agent.repository("one")
    (folder / "check.sh").write_text("test -f basin || { echo 'error: the basin is dry'; exit 3; }; echo fine\n")
    with agent.talk() as talk:
        agent.have_run("sh check.sh")
        talk.say("Check it.")
        agent.have_run("true water")
        talk.say("Wait for the water.")
        (folder / "basin").touch()
        agent.have_run("sh check.sh")
        talk.say("Check it once more.")
    agent.knows("It then passed after")
    agent.perdure("config", "set", "agent_log", "remind")
    agent.perdure("connect", agent.name)
    agent.trust_more()
    for number in range(TRIES):
        with agent.talk() as talk:
            agent.have_run("sh check.sh")
            talk.say(f"Check it for the night. That is night {number}.")
            ran = agent.model.tool_answer()
            agent.have_run("sh check.sh")
            talk.say("And again.")
        assert "fine" in ran, ran
        told = [FENCE.findall(text) for _, text in messages(agent.model.requests[-1])]
        blocks = [block for each in told for block in each if "failed: error: the basin is dry" in block]
        if blocks:
            assert len(blocks) == 1, blocks
            assert "It then passed after" in blocks[0], blocks
            return f"{len(blocks[0])} characters"
    raise AssertionError("nothing was told")


@ending("disconnect after use: nothing of ours is left, what the user set stands")
def _disconnected(agent: Agent) -> None:
    agent.perdure("disconnect", agent.name)
    left = {path.name: content for path, content in agent.snapshot().items() if content and b"perdure" in content}
    assert not left, left
    for path in agent.configs:
        assert not path.exists() or b"own" in path.read_bytes(), path
    agent.model.requests.clear()
    assert agent.once("When is my birthday, now?").blocks.strip() == ""


def until_shown(say: Callable[[str], Turn], question: str, expected: str) -> Turn:
    """Ask until a block has what is expected: on a machine out of breath a hook rather says nothing than comes late."""
    for number in range(TRIES):
        turn = say(f"{question} That is question {number}.")
        if expected in turn.blocks:
            return turn
    raise AssertionError(f"{expected!r} was not shown for {question!r}")


def command(make: type[Tested], steps: Steps[Tested]) -> click.Command:
    """Return the command that runs the steps in one program."""

    @click.command()
    @click.option("--host", type=click.Path(path_type=Path), required=True, help="Folder of the program.")
    @click.option("--wheel", is_flag=True, help="Test the wheel, in an environment of its own.")
    @click.option("--keep", is_flag=True, help="Keep the scratch folder.")
    @click.option("--only", multiple=True, help="Only steps with this in their name, and those that they build on.")
    def main(host: Path, wheel: bool, keep: bool, only: tuple[str, ...]) -> None:
        """Run all steps; the rest is tried, too, when one fails."""
        programs = installed(host, make.package, make.program)
        folder = Path(tempfile.mkdtemp(prefix="agent-e2e-"))
        agent = make(programs, folder / "home", installed_wheel(folder / "wheel", "[mcp]") if wheel else None)
        held = False
        try:
            held = steps.run(agent, only)
        finally:
            agent.close()
            if keep or not held:
                click.echo(f"kept: {folder}", err=True)
            else:
                shutil.rmtree(folder, ignore_errors=True)
        sys.exit(int(not held))

    return main
