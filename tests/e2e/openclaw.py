"""perdure in a real OpenClaw, from install to uninstall.

    python -m tests.e2e.openclaw --host DIR [--wheel]

DIR gets Node 24 and OpenClaw through npm if they are not there (about 1.1 GB). With --wheel perdure is built and
installed into an environment of its own, with what it needs from PyPI. Prints a table of steps; exit code 0 if all of
them hold. The model and Telegram are small servers on loopback: nothing else is reached once all is installed.
"""

from __future__ import annotations

import itertools
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from perdure.files.notes import DEFAULT_PROMPT
from tests.e2e.agent_model import short_id
from tests.e2e.gateway import Gateway, installed_host, installed_wheel, until
from tests.e2e.model import REPLY, Model, words
from tests.e2e.steps import Steps
from tests.e2e.telegram import GROUP, GUEST, OWNER, Person, Telegram

TOLD = "I prefer green tea over coffee. We decided to use Postgres instead of MySQL. My birthday is on 3 March 1990."
ASKED = "When is my birthday, do I prefer green tea, and did we decide on Postgres?"
FENCE = re.compile(r'<memory-context nonce="[0-9a-f]{16}">\n.*\n</memory-context>', re.DOTALL)
GONE_SECONDS = 5.0
AROUND = 80
"""Words that the host may put around an opening."""
ANSWER_SECONDS = 120.0
READ_SECONDS = 200.0
"""How long it may take until a conversation at rest is read, for which is looked every minute."""
STALL = "The stall needs two people on Sundays."
MISSED = "Who could help me to carry the crates at the weekend?"
QUESTION = "[background perdure-librarian"
WINDOW = 48_000
"""Tokens of the model's window: a conversation of some turns must be compacted."""
FILLER = "a long talk about nothing much, " * 600 + "and so on."
FLUSH_SECONDS = 5.0
"""How long the host may take to begin a flush behind a turn; a new turn would break it off."""


class Story:
    """What the steps share."""

    def __init__(self, programs: Path, folder: Path, python: Path | None) -> None:
        self.model, self.telegram = Model(), Telegram()
        more = self.telegram.config()
        self.gateway = Gateway(programs, folder, self.model, window=WINDOW, more=more, python=python)
        self.original = self.gateway.config.read_bytes()

    def fact(self, text: str, agent: str = "main") -> Mapping[str, Any]:
        """Return the memory with this text in it."""
        return next(fact for fact in self.gateway.facts(agent) if text in fact["text"])

    def knows(self, text: str, agent: str = "main") -> None:
        """Wait until a memory with this text is there."""
        until(lambda: any(text in fact["text"] for fact in self.gateway.facts(agent)), 30, f"no memory of {text!r}")

    def block(self, question: str, **turn: str) -> str:
        """Ask something and return what of memory the model saw with it, "" if there was nothing."""
        assert REPLY in self.gateway.turn(question, **turn)
        return self.shown(question)

    def shown(self, text: str) -> str:
        """Return the opening and the block that the model saw with a message, "" if there was neither."""
        opening = FENCE.search(_system(next(body for body in reversed(self.model.requests) if _asks(body, text))))
        block = FENCE.search(self.gateway.seen(text))
        return "\n".join(found[0] for found in (opening, block) if found)

    def chat(self, text: str, sender: Person, chat: Mapping[str, Any] | None = None) -> str:
        """Have somebody write by Telegram; return what of memory the model saw with it, "" if there was nothing."""
        place = int((chat or {"id": sender.id})["id"])
        before = len(self.telegram.said(place))
        self.telegram.say(text, sender, chat)
        command = text.startswith("/")
        until(
            lambda: any(command or REPLY in each for each in self.telegram.said(place)[before:]),
            ANSWER_SECONDS,
            f"no answer to {text[:80]!r}",
        )
        return "" if command else self.shown(text)

    def tool_answer(self) -> str:
        """Return what a tool has answered last."""
        told = [words(each["content"]) for each in self.model.requests[-1]["messages"] if each["role"] == "tool"]
        assert told, "no tool was called"
        return told[-1]

    def close(self) -> None:
        """Stop all servers."""
        self.gateway.stop()
        self.model.close()
        self.telegram.close()

    def tool(self, name: str, arguments: Mapping[str, Any], said: str = "Go on.", **turn: str) -> str:
        """Have the model call a tool in a turn; return what the tool answered."""
        self.model.will_call(name, arguments)
        assert REPLY in self.gateway.turn(said, **turn)
        return self.tool_answer()


step: Steps[Story] = Steps()


@step("install without a network: the config is changed, status is ok, twice is no error", always=True)
def _install(story: Story) -> str:
    dry = story.gateway.perdure("openclaw", "install", "--dry-run")
    assert dry.returncode == 0, dry.stderr
    assert "allowConversationAccess" in dry.stdout
    assert story.gateway.config.read_bytes() == story.original
    for _ in range(2):
        done = story.gateway.perdure("openclaw", "install", offline=True)
        assert done.returncode == 0, done.stderr
    status = story.gateway.perdure("openclaw", "status")
    assert status.returncode == 0, status.stdout
    return status.stdout.splitlines()[0].split(",")[0]


@step("plugins inspect shows every hook, plugins doctor and doctor are clean")
def _inspect(story: Story) -> str:
    done = story.gateway.openclaw("plugins", "inspect", "perdure", "--runtime", "--json")
    report = json.loads(done.stdout[done.stdout.index("{") :])
    assert report["diagnostics"] == [], report["diagnostics"]
    hooks = {hook["name"] for hook in report["typedHooks"]}
    assert {"before_prompt_build", "agent_end", "before_compaction", "before_reset", "session_end"} <= hooks, hooks
    doctor = story.gateway.openclaw("plugins", "doctor")
    assert doctor.returncode == 0, doctor.stdout + doctor.stderr
    health = story.gateway.openclaw("doctor", "--non-interactive")
    assert health.returncode == 0, health.stdout + health.stderr
    return f"{len(hooks)} hooks, {len(report.get('tools', []))} tool groups"


@step("the gateway starts", always=True)
def _start(story: Story) -> None:
    story.gateway.start()


@step("turn 1: a preference, a decision and a birthday are kept")
def _told(story: Story) -> str:
    assert REPLY in story.gateway.turn(TOLD)
    for text in ("green tea", "Postgres", "3 March"):
        story.knows(text)
    return f"{len(story.gateway.facts())} memories"


@step("turn 2, a new session: all three come back inside the fence")
def _recalled(story: Story) -> str:
    block = story.block(ASKED, session="two")
    missing = [text for text in ("green tea", "Postgres", "3 March") if text not in block]
    assert not missing, f"{missing} not in {block!r}"
    return f"{len(block)} characters"


@step("nothing else of the prompt's prefix changes")
def _prefix(story: Story) -> str:
    first, second = (next(body for body in story.model.requests if _asks(body, text)) for text in (TOLD, ASKED))
    before, after = (FENCE.sub("", _system(body)).split() for body in (first, second))
    # The host puts words of its own around what a plugin adds, and changes nothing else.
    rest = iter(after)
    assert all(word in rest for word in before), "more than the opening differs in the system prompt"
    assert len(after) - len(before) < AROUND, f"{len(after) - len(before)} words stand around the opening"
    story.block("Which day is my birthday on?", session="two")
    third = story.model.requests[-1]
    assert _system(second) == _system(third), "the system prompt differs between turns of a session"
    kept = [words(each["content"]) for each in third["messages"] if ASKED in words(each["content"])]
    assert kept, "the question is not in the history"
    assert not FENCE.search(kept[0]), "the block stays in the history"
    fences = _system(third).count("<memory-context nonce=")
    assert fences == 1, f"{fences} openings: {_system(third)[-1500:]}"
    tools = [body["tools"] for body in (first, second, third)]
    assert tools[0] == tools[1] == tools[2], "the tools differ between turns"
    placed = story.gateway.seen(ASKED)
    assert FENCE.sub("", placed).count(ASKED) == 1
    return f"system prompt of {len(_system(first))} characters is the same"


@step("a correction takes the place of what it corrects")
def _corrected(story: Story) -> None:
    story.gateway.turn("Actually, my birthday is on 5 March 1990, not on 3 March.", session="three")
    story.knows("5 March")
    until(lambda: not any("is on 3 March" in fact["text"] for fact in story.gateway.facts()), 30, "3 March stays")
    block = story.block("When is my birthday?", session="four")
    assert "5 March" in block, block
    # A passage of the conversation may come up, and says what has been replaced since.
    assert "3 March 1990" not in block or "out of date" in block, block


@step("every tool runs by the model's tool call")
def _tools(story: Story) -> str:
    gateway = story.gateway
    (gateway.folder / "main" / "MEMORY.md").write_text("# Notes\n\nThe staging server is called heron.\n")
    tea = story.fact("green tea")
    asked: list[tuple[str, Mapping[str, Any], str, str]] = [
        (
            "memory_store",
            {"text": "The user's boat is called Albatross."},
            "Remember my boat is called Albatross.",
            "Stored as",
        ),
        ("memory_recall", {"query": "What is the boat called?"}, "Go on.", "Albatross"),
        ("memory_recall", {"memory": "1"}, "When is my birthday?", "data, not instructions"),
        ("lookup", {"entity": "user", "key": "birthday"}, "Go on.", "5 March"),
        ("memory_lookup", {"entity": "user", "key": "birthday"}, "Go on.", "5 March"),
        ("memory_update", {"memory": tea["id"], "importance": 0.9}, "Update that: tea matters.", "was not changed"),
        ("memory_search", {"query": "staging server heron", "minScore": 0}, "Go on.", "MEMORY.md"),
        ("memory_get", {"path": "MEMORY.md"}, "Go on.", "heron"),
        ("memory_why", {}, "When is my birthday?", "were recalled"),
        (
            "memory_checkpoint",
            {"intent": "move the gull database", "state": "copied", "expected": "reads from the copy"},
            "Go on.",
            "Saved as",
        ),
        ("memory_prune", {}, "Please clean up what has expired.", ""),
        ("memory_reflect", {}, "Go on.", "patterns"),
    ]
    for name, arguments, said, expected in asked:
        answer = story.tool(name, arguments, said, session=f"tool-{name}")
        assert expected in answer, f"{name}: {answer!r}"
    pruned = gateway.details("memory_prune")
    assert pruned == {"expired": 0, "removed": 0}, pruned
    boat = story.fact("user's boat")
    assert boat["channel"] == "tool_asked", boat["channel"]
    link = {"source": tea["id"], "target": boat["id"]}
    assert "Linked" in story.tool("memory_link", link, session="tool-link")
    refused = story.tool("memory_forget", {"memory": boat["id"]}, "Hello there.", session="tool-no")
    assert "was not forgotten" in refused, refused
    assert "Forgotten" in story.tool("memory_forget", {"memory": boat["id"]}, "Forget my boat.", session="tool-yes")
    offered = {each["function"]["name"] for each in story.model.requests[-1]["tools"]}
    called = {name for name, *_ in asked} | {"memory_link", "memory_forget"}
    left = {name for name in offered if name.startswith("memory_") or name == "lookup"} - called
    assert not left, f"not called: {left}"
    return f"{len(called)} tools"


@step("a tool that the model calls unasked leaves an agent's note, and does not touch what the user said")
def _unasked(story: Story) -> None:
    birthday = story.fact("5 March")
    story.tool("memory_store", {"text": "The user may like jazz."}, "What a day.", session="note")
    assert story.fact("jazz")["channel"] == "tool_unasked"
    answer = story.tool(
        "memory_update", {"memory": birthday["id"], "text": "My birthday is in June."}, "Hm.", session="n2"
    )
    assert "was not changed" in answer, answer


@step("what the model forgets or corrects by its tool at the user's word goes, until one undo brings it back")
def _mended(story: Story) -> None:
    told, new = "My gym is on Elm Street.", "My gym is on Oak Street."
    story.gateway.turn(told, session="gym")
    story.knows(told)
    for number, (tool, values, wish, answer) in enumerate((
        ("memory_forget", {}, "My gym is no longer on Elm Street.", "Forgotten"),
        ("memory_update", {"text": new}, "No, my gym is on Oak Street, not on Elm Street.", "Changed"),
    )):  # fmt: skip
        name = short_id(story.block(f"Good morning. This is day {number}.", session=f"morning-{number}"), told)
        answered = story.tool(tool, {"memory": name, **values}, wish, session=f"morning-{number}")
        assert answer in answered, answered
        now = story.block(f"Good evening. This is day {number}.", session=f"evening-{number}")
        assert told not in now, now
        assert (new in now) is bool(values), now
        done = story.gateway.perdure("undo", "--agent", "main")
        assert done.returncode == 0, done.stderr
        back = story.block(f"Good night. This is day {number}.", session=f"night-{number}")
        assert back.count(told) == 1, back
        assert new not in back, back


@step("another agent sees none of it")
def _other_agent(story: Story) -> None:
    assert story.block(ASKED, agent="second") == ""
    assert "Nothing" in story.tool("memory_recall", {"query": ASKED}, agent="second", session="other")
    answer = story.tool("memory_forget", {"memory": story.fact("5 March")["id"]}, "Forget it.", agent="second")
    assert "did nothing" in answer, answer
    assert story.gateway.facts("second") == []


@step("Telegram: in a group the owner is kept and others are not, and nobody is shown what the owner said in private")
def _group(story: Story) -> str:
    story.chat("My wedding day is on 9 May 2015.", OWNER)
    story.knows("9 May")
    asked = "When is my wedding day, and what are my parrot and my tortoise called?"
    assert "9 May" in story.chat(asked, OWNER)
    story.chat("My parrot is called Polly.", GUEST, GROUP)
    story.chat("My tortoise is called Speedy.", OWNER, GROUP)
    story.knows("Speedy")
    for sender, chat in ((OWNER, GROUP), (GUEST, GROUP), (GUEST, None)):
        assert story.chat(f"{sender.name} asks: {asked}", sender, chat) == "", (sender, chat)
    assert not [fact for fact in story.gateway.facts() if "Polly" in fact["text"]]
    told = {}
    for sender in (OWNER, GUEST):
        story.model.will_call("memory_recall", {"query": "When is my wedding day?"})
        story.chat(f"{sender.name} wants to know.", sender, GROUP)
        told[sender] = story.tool_answer()
    assert not [sender for sender, answer in told.items() if "9 May" in answer], told
    return "by four turns that ask"


@step("Telegram: who the owner is holds as soon as the config says so, without a restart")
def _named(story: Story) -> None:
    story.chat("My wedding day is on 9 May 2015.", OWNER)
    story.knows("9 May")
    config = json.loads(story.gateway.config.read_text())
    unnamed = {**config, "commands": {**config["commands"], "ownerAllowFrom": []}}
    number = itertools.count(1)

    def told() -> bool:
        return "9 May" in story.chat(f"When is my wedding day? This is question {next(number)}.", GUEST)

    assert not told(), "a guest is told what the owner said"
    story.gateway.config.write_text(json.dumps(unnamed, indent=2))
    until(told, ANSWER_SECONDS, "with no owner named, a direct chat is not the owner's")
    story.gateway.config.write_text(json.dumps(config, indent=2))
    until(lambda: not told(), ANSWER_SECONDS, "a guest is told what the owner said")


@step("/compact and /new: what the host drops stays remembered")
def _commands(story: Story) -> None:
    story.chat("My canoe is called Bluebell.", OWNER)
    for number in range(6):
        story.chat(f"Line {number} of {FILLER}", OWNER)
    asked = "What is my canoe called?"
    for number, command in enumerate(("/compact", "/new")):
        story.chat(command, OWNER)
        question = f"{asked} That is question {number}."
        assert "Bluebell" in story.chat(question, OWNER), command
        last = [words(each["content"]) for each in story.model.requests[-1]["messages"]]
        kept = [text for text in last if "Bluebell" in FENCE.sub("", text)]
        assert not kept, kept


@step("the librarian: the host's own model reads a conversation at rest, and runs nothing")
def _librarian(story: Story) -> str:
    told = _reads_anew(story, "on").stdout
    assert "OpenClaw" in told, told
    story.chat(STALL, OWNER)
    story.knows(STALL)
    before = len(story.model.requests)
    aimed = {"op": "triggers", "target": "m1", "quote": STALL, "triggers": [MISSED]}
    story.model.will_say(json.dumps({"operations": [aimed]}), to=QUESTION)
    story.chat("/new", OWNER)
    until(lambda: "triggers 1" in story.gateway.perdure("librarian", "log").stdout, READ_SECONDS, "nothing was read")
    asked = [body for body in story.model.requests[before:] if _asks(body, QUESTION)]
    assert len(asked) == 1, f"{len(asked)} questions"
    assert not asked[0].get("tools"), "the librarian could call a tool"
    assert STALL in story.chat(MISSED, OWNER)
    touched = story.gateway.folder / "touched"
    story.chat("The stall needs a third person in May.", OWNER)
    story.model.will_call("exec", {"command": f"touch {touched}"}, to=QUESTION)
    told = story.gateway.perdure("librarian", "run").stdout
    assert "waiting for their host" in told, told
    until(lambda: "OUTPUT_REJECTED" in story.gateway.perdure("librarian", "status").stdout, READ_SECONDS, "no refusal")
    assert not touched.exists()
    assert not any(
        "role" in each and each["role"] == "tool" and "touch" in str(each)
        for body in story.model.requests[before:]
        for each in body["messages"]
    )
    kept = [file for file in (story.gateway.state / "agents").rglob("*") if file.is_file()]
    assert kept
    assert not [file for file in kept if QUESTION.encode() in file.read_bytes()], "the question is in a transcript"
    assert not [fact for fact in story.gateway.facts() if QUESTION in fact["text"]]
    _reads_anew(story, "off")
    return story.gateway.perdure("librarian", "status").stdout.splitlines()[0]


@step("a long conversation: the host asks for a flush and compacts, and what it drops stays remembered")
def _compacted(story: Story) -> str:
    story.model.counts = True
    told, session = "My lighthouse is called Beacon Nine.", "long"
    story.gateway.turn(told, session=session)
    turns, line = 0, DEFAULT_PROMPT.partition("\n")[0]

    def flushed() -> bool:
        return any(_asks(body, line) for body in story.model.requests)

    def dropped() -> bool:
        # What an opening or a block says of it since is no part of the conversation.
        said = [FENCE.sub("", words(each["content"])) for each in story.model.requests[-1]["messages"]]
        return not any(told in text for text in said)

    while turns == 0 or not dropped():
        turns += 1
        assert turns < 20, "the host never compacted"
        story.gateway.turn(f"Part {turns} of {FILLER}", session=session)
        deadline = time.monotonic() + FLUSH_SECONDS
        while not flushed() and time.monotonic() < deadline:
            time.sleep(0.1)
    story.model.counts = False
    assert flushed(), "the host asked for no flush"
    assert "Beacon Nine" in story.block("What is my lighthouse called?", session=session)
    assert not [fact for fact in story.gateway.facts() if line in fact["text"]]
    return f"after {turns} turns"


@step("perdure's commands run as `openclaw perdure`")
def _cli(story: Story) -> None:
    done = story.gateway.openclaw("perdure", "lookup", "user", "birthday", "--agent", "main")
    assert done.returncode == 0, done.stderr
    assert "5 March" in done.stdout, done.stdout


@step("the child is killed in the middle of a turn: the next turn has its memory")
def _killed(story: Story) -> str:
    seconds = _disturbed(story, signal.SIGKILL, delay=1.5)
    assert "5 March" in story.block("When is my birthday, again?", session="after-kill")
    return f"the turn took {seconds:.1f} s, of which the model 1.5 s"


@step("the child hangs before a turn: it goes on without memory, the next one has it")
def _hung(story: Story) -> str:
    [child] = _server(story)
    os.kill(child, signal.SIGSTOP)
    started = time.monotonic()
    assert story.block("When is my birthday, then?", session="hung") == ""
    seconds = time.monotonic() - started
    until(lambda: child not in _server(story), 30, "the child that hangs is still there")
    until(lambda: "5 March" in story.block("When is my birthday, now?", session=f"h{time.time()}"), 60, "no memory")
    return f"the turn took {seconds:.1f} s"


@step("the child hangs at the end of a turn: the answer does not wait for it")
def _hung_end(story: Story) -> str:
    seconds = _disturbed(story, signal.SIGSTOP, delay=1.5)
    assert seconds < 6, f"{seconds:.1f} s"
    until(lambda: "5 March" in story.block("When is my birthday, now?", session=f"e{time.time()}"), 60, "no memory")
    return f"the turn took {seconds:.1f} s, of which the model 1.5 s"


@step("SIGTERM to the gateway: no process of ours is left after 5 s")
def _terminated(story: Story) -> str:
    return _ended(story, signal.SIGTERM)


@step("a host of one turn, without a gateway, keeps what was said before it ends")
def _local(story: Story) -> None:
    said = "My dog is called Rex."
    done = story.gateway.openclaw("agent", "--local", "--agent", "main", "--session-id", "local", "--message", said)
    assert REPLY in done.stdout, done.stdout + done.stderr
    story.knows("Rex")


@step("what was said before is recalled after a restart, behind the message (placement: tail)")
def _tail(story: Story) -> str:
    return _placed(story, "tail")


@step("SIGKILL to the gateway: no process of ours is left after 5 s")
def _slain(story: Story) -> str:
    return _ended(story, signal.SIGKILL)


@step("uninstall with edits in between: only our keys go")
def _uninstall_edited(story: Story) -> None:
    config = json.loads(story.gateway.config.read_text())
    config["logging"]["level"] = "info"
    config["plugins"]["entries"]["perdure"]["config"]["recallLimit"] = 5
    story.gateway.config.write_text(json.dumps(config, indent=2))
    done = story.gateway.perdure("openclaw", "uninstall")
    assert done.returncode == 0, done.stderr
    left = json.loads(story.gateway.config.read_text())
    assert left["logging"]["level"] == "info"
    assert "perdure" not in json.dumps(left.get("plugins", {})), left["plugins"]
    assert not left.get("plugins"), left["plugins"]


@step("uninstall without edits: the config is what it was, byte for byte")
def _uninstall(story: Story) -> None:
    story.gateway.config.write_bytes(story.original)
    for command in ("install", "uninstall"):
        done = story.gateway.perdure("openclaw", command)
        assert done.returncode == 0, done.stderr
    assert story.gateway.config.read_bytes() == story.original


def _asks(body: Mapping[str, Any], text: str) -> bool:
    return any(text in words(each["content"]) for each in body["messages"])


def _system(body: Mapping[str, Any]) -> str:
    return "\n".join(words(each["content"]) for each in body["messages"] if each["role"] in ("system", "developer"))


def _reads_anew(story: Story, switch: str) -> subprocess.CompletedProcess[str]:
    """Switch the librarian on or off, and have the next turn start a child that knows."""
    done = story.gateway.perdure("librarian", switch)
    assert done.returncode == 0, done.stderr
    for pid in _server(story):
        os.kill(pid, signal.SIGKILL)
    return done


def _server(story: Story) -> list[int]:
    return [pid for pid in story.gateway.children() if b"perdure.hosts" in Path(f"/proc/{pid}/cmdline").read_bytes()]


def _disturbed(story: Story, number: int, delay: float) -> float:
    """Send the child a signal while the model thinks; return how long the turn took."""
    [child] = _server(story)
    story.model.delay = delay
    timer = threading.Timer(delay / 2, os.kill, (child, number))
    started = time.monotonic()
    timer.start()
    try:
        assert REPLY in story.gateway.turn("Tell me something.", session=f"d{number}")
    finally:
        story.model.delay = 0.0
    return time.monotonic() - started


def _ended(story: Story, number: int) -> str:
    assert _server(story), "there is no child"
    story.gateway.signal(number)
    started = time.monotonic()
    until(lambda: not story.gateway.children(), GONE_SECONDS, "processes of perdure are left")
    return f"gone {time.monotonic() - started:.1f} s after the gateway"


def _placed(story: Story, placement: str) -> str:
    config = json.loads(story.gateway.config.read_text())
    config["plugins"]["entries"]["perdure"]["config"] |= {"recallPlacement": placement, "openingTokens": 0}
    story.gateway.config.write_text(json.dumps(config, indent=2))
    story.gateway.start()
    question = "When is my birthday, after all?"
    block = story.block(question, session="placed")
    assert "5 March" in block, block
    seen = story.gateway.seen(question)
    assert seen.index(question) < seen.index(block), seen
    return "behind it"


@click.command()
@click.option("--host", type=click.Path(path_type=Path), required=True, help="Folder of Node and OpenClaw.")
@click.option("--wheel", is_flag=True, help="Test the wheel, in an environment of its own.")
@click.option("--keep", is_flag=True, help="Keep the scratch folder.")
@click.option("--only", multiple=True, help="Only steps with this in their name, and those that they build on.")
def main(host: Path, wheel: bool, keep: bool, only: tuple[str, ...]) -> None:
    """Run all steps; the rest is tried, too, when one fails."""
    programs = installed_host(host.absolute())
    folder = Path(tempfile.mkdtemp(prefix="openclaw-e2e-"))
    story = Story(programs, folder / "host", installed_wheel(folder / "wheel") if wheel else None)
    held = False
    try:
        held = step.run(story, only)
    finally:
        story.close()
        if keep or not held:
            click.echo(f"kept: {folder}", err=True)
        else:
            shutil.rmtree(folder, ignore_errors=True)
    sys.exit(int(not held))


if __name__ == "__main__":
    main()
