"""No network, and no file outside perdure's own folders: not in Python, and not in any library below it.

Each scenario is a real process in an empty home, with the default settings and somebody else's keys in the
environment. Its system calls are recorded, and those of all processes that it starts.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.watch import Deed, Recorder, offences, recorders

ROOT = Path(__file__).resolve().parents[1]
DATA = ".local/share/perdure"
FOLDERS = (DATA, ".config/perdure", ".cache/perdure/models", ".openclaw/memory/perdure")
"""What may be written below the home: data, settings, fetched models, and the data where OpenClaw is the host."""
FACT = "My sister Anna lives in Lisbon and likes green tea."
QUESTION = "Which city is my sibling's home?"
"""Shares no word with the fact, so only the model finds it."""
ANSWER = "Lisbon"
REQUIRED = "TESTS_MUST_WATCH"
"""The environment variable by which, in CI, it is an error if nothing can be recorded."""
ASKED = {"agentId": "main", "sessionId": "s1", "sessionKey": "agent:main:s1", "trigger": "user"}
SAID = [{"role": "user", "content": FACT}, {"role": "assistant", "content": "Noted."}]
TALK = [
    {"user": FACT, "agent": "Noted."},
    {"user": "Thanks.", "agent": "You are welcome."},
]


@dataclass(frozen=True)
class Step:
    """A process.

    Attributes:
        arguments: of the interpreter.
        lines: what is said to it, a line of JSON each; one with an id waits for its answer.
        until: the last of these is said again until the answer holds this.
        says: what must come out of it.
        needs: packages without which it is left out.
        settings: more of its environment.
    """

    arguments: Sequence[str]
    lines: Sequence[Mapping[str, Any]] = ()
    until: str = ""
    says: str = ""
    needs: Sequence[str] = ()
    settings: Mapping[str, str] = field(default_factory=dict)


def command(*arguments: str, says: str = "", **settings: str) -> Step:
    """Return a call of the command line."""
    return Step(("-m", "perdure", *arguments), says=says, settings=settings)


def method(called: str, /, **params: Any) -> dict[str, Any]:
    """Return a request of JSON-RPC."""
    return {"jsonrpc": "2.0", "id": called, "method": called, "params": params}


HOST = """
from perdure import Memory
{imports}
with Memory.open() as memory:
    memory.ready()
    agent = {agent}
    for text in ({fact!r}, {question!r}):
        {run}
        memory.settle()
    print([change.fact.text for change in memory.admin.changes()])
"""


def host(package: str, imports: str, agent: str, run: str) -> Step:
    """Return a program whose agent has perdure's memory."""
    program = HOST.format(imports=imports, agent=agent, run=run, fact=FACT, question=QUESTION)
    return Step(("-c", program), says=ANSWER, needs=(package,))


OFFENDER = """
import socket, subprocess
from pathlib import Path

socket.socket(socket.AF_INET, socket.SOCK_DGRAM).connect(("192.0.2.1", 9))  # a test network; nothing is sent
socket.socket(socket.AF_INET, socket.SOCK_DGRAM).connect(("127.0.0.1", 9))
try:
    socket.socket(socket.AF_UNIX).connect("/nowhere/socket")
except OSError:
    pass
socket.getaddrinfo("localhost", 9)
subprocess.run(["mkdir", Path.home() / "elsewhere"], check=True)
(Path.home() / "elsewhere" / "device-id").write_text("x")
(Path.home() / ".cache").rename(Path.home() / "moved")
"""

SENTENCE_TRANSFORMERS = """
import os
from pathlib import Path
from perdure import Memory
from tests.models.test_sentence_transformers import save_tiny_bert

repository = Path(os.environ["HF_HUB_CACHE"]) / "models--somebody--tiny"
save_tiny_bert(repository / "snapshots" / "abc", seed=1)
(repository / "refs").mkdir()
(repository / "refs" / "main").write_text("abc")
with Memory.open(embedder="sentence-transformers", embedder_model="somebody/tiny") as memory:
    memory.ready()
    memory.store("The heron nests at the lake.")
    print(memory.status().model)
"""
SCENARIOS: dict[str, Sequence[Step]] = {
    "demo": [command("demo", says="Everything was remembered.")],
    "replay": [command("replay", "talk.json", "--json", says="turns")],
    "try": [
        command("try", "--from", "mem0", "mem0.json", "--prompts-from", "asked.txt", "--page", "../tmp/a.html",
                says=ANSWER),
    ],
    "commands": [
        command("store", FACT, says=ANSWER),
        command("recall", QUESTION, says=ANSWER),
        command("search", "tea", says=ANSWER),
        command("list", "--json", says=ANSWER),
        command("status", says="ready"),
        command("backup", says="facts"),
        command("export", "../tmp/all.jsonl"),
        command("verify", says="No damage found."),
        command("doctor", says="ok"),
        command("jobs", "run", "canary"),
        command("model", "list", says="minilm"),
    ],
    "worker": [
        command("store", FACT),
        command("store", "My brother Paul lives in Graz.", PERDURE_EMBEDDER="none"),
        Step(("-P", "-m", "perdure.engine.worker"), [{"home": DATA, "settings": {"vector_index": "lance"}}]),
        command("verify", says="No damage found."),
    ],
    "MCP server": [
        Step(
            ("-m", "perdure", "mcp"),
            [
                method("initialize", protocolVersion="2025-06-18", capabilities={},
                       clientInfo={"name": "a client", "version": "1"}),
                {"jsonrpc": "2.0", "method": "notifications/initialized"},
                method("tools/list"),
                method("tools/call", name="memory_store", arguments={"text": FACT}),
                method("tools/call", name="memory_search", arguments={"query": QUESTION}),
            ],
            until=ANSWER,
            needs=("mcp",),
        )
    ],
    "OpenClaw's child": [
        Step(
            ("-u", "-P", "-m", "perdure.hosts.openclaw"),
            [
                method("initialize", protocol=2, config={}),
                method("gateway_start"),
                method("before_prompt_build", event={"prompt": FACT}, ctx=ASKED),
                method("agent_end", event={"success": True}, ctx=ASKED, messages=SAID),
                method("tool", name="memory_recall", arguments={"query": QUESTION}, ctx=ASKED),
            ],
            until=ANSWER,
        )
    ],
    "LangChain": [
        host(
            "langchain",
            "from langchain.agents import create_agent\n"
            "from langchain_core.language_models import FakeListChatModel\n"
            "from perdure.hosts.langchain import PerdureMiddleware\n",
            "create_agent(FakeListChatModel(responses=['Noted.']), middleware=[PerdureMiddleware(memory)])",
            "agent.invoke({'messages': [{'role': 'user', 'content': text}]})",
        )
    ],
    "Pydantic AI": [
        host(
            "pydantic_ai",
            "from pydantic_ai import Agent\nfrom perdure.hosts.pydantic_ai import PerdureMemory\n",
            "Agent('test', capabilities=[PerdureMemory(memory)])",
            "agent.run_sync(text)",
        )
    ],
    "sentence-transformers": [
        Step(
            ("-c", SENTENCE_TRANSFORMERS), says="ready: somebody/tiny", needs=("sentence_transformers", "torch"),
            settings={"HF_HUB_CACHE": "../tmp/hub"},
        )
    ],
}  # fmt: skip


class Sandbox:
    """An empty home, and processes in it that are recorded."""

    def __init__(self, folder: Path, recorder: Recorder) -> None:
        self.user = folder / "user"
        self._folder, self._recorder = folder, recorder
        for name in ("tmp", "user/.local/share", "user/.config", "user/.cache", "user/.openclaw/memory"):
            (folder / name).mkdir(parents=True)

    @property
    def writable(self) -> list[Path]:
        """The folders that perdure may write to."""
        return [*(self.user / name for name in FOLDERS), self._folder / "tmp"]

    def run(self, step: Step) -> set[Deed]:
        """Run a process to its end; return what it and its children did."""
        notes = self._folder / f"notes-{len(list(self._folder.iterdir()))}"
        notes.mkdir()
        wrapped, needed = self._recorder.wrap([sys.executable, *step.arguments], notes)
        with subprocess.Popen(
            wrapped, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            cwd=self.user, env={**self._environment(), **step.settings, **needed},
        ) as process:  # fmt: skip
            said = [_say(process, line, step.until if line is step.lines[-1] else "") for line in step.lines]
            if step.lines and "id" not in step.lines[-1]:
                process.wait()  # a worker ends by itself, and at once if nobody holds its stdin
            output, errors = process.communicate()
        assert process.returncode == 0, output + errors
        assert step.says in output, output + errors
        assert step.until in "".join(said)
        return self._recorder.deeds(notes, self.user)

    def _environment(self) -> dict[str, str]:
        # Nothing of the runner's own: ONNX Runtime is silent by itself where the variables of a CI are set.
        kept = {name: os.environ[name] for name in ("PATH", "LD_LIBRARY_PATH") if name in os.environ}
        return {
            **kept,
            "HOME": str(self.user),
            "TMPDIR": str(self._folder / "tmp"),
            "PYTHONPATH": str(ROOT),
            "PYTHONDONTWRITEBYTECODE": "1",
            "PERDURE_LOAD_EXTENSIONS": "0",
            # It would outlive what is recorded; what it does is done in the process itself then.
            "PERDURE_HELPER": "0",
            "OPENAI_API_KEY": "of somebody else",
            "HF_TOKEN": "of somebody else",
        }


def _say(process: subprocess.Popen[str], line: Mapping[str, Any], until: str) -> str:
    assert process.stdin is not None
    assert process.stdout is not None
    count = 0
    while True:
        count += 1
        process.stdin.write(json.dumps({**line, "id": f"{line['id']} {count}"} if "id" in line else line) + "\n")
        process.stdin.flush()
        answer = ""
        while "id" in line and json.loads(answer or "{}").get("id") != f"{line['id']} {count}":
            answer = process.stdout.readline()
            assert answer, "it ended before it had answered"
        if until in answer:
            return answer
        time.sleep(0.1)


@pytest.fixture
def sandbox(tmp_path: Path) -> Sandbox:
    """A home that is recorded by the best that there is here."""
    found = recorders()
    if not found:
        reason = "what happens below Python was not looked at: install strace, or a C compiler"
        pytest.fail(reason) if REQUIRED in os.environ else pytest.skip(reason)
    return Sandbox(tmp_path, next(iter(found.values())))


@pytest.mark.parametrize("name", SCENARIOS)
def test_nothing_leaves_this_machine_or_perdures_folders(name: str, sandbox: Sandbox) -> None:
    steps = SCENARIOS[name]
    for package in (package for step in steps for package in step.needs):
        pytest.importorskip(package)
    (sandbox.user / "talk.json").write_text(json.dumps(TALK))
    (sandbox.user / "mem0.json").write_text(json.dumps([{"id": "m", "memory": FACT, "created_at": 1.8e9}]))
    (sandbox.user / "asked.txt").write_text(QUESTION)
    deeds = {deed for step in steps for deed in sandbox.run(step)}
    assert any(deed.what.endswith("/facts.db") for deed in deeds), "nothing was recorded"
    assert offences(deeds, sandbox.writable) == []


@pytest.mark.parametrize("recorder", ["strace", "preload"])
def test_what_leads_out_is_seen(recorder: str, tmp_path: Path) -> None:
    if recorder not in recorders():
        pytest.skip(f"{recorder} cannot be used here")
    sandbox = Sandbox(tmp_path, recorders()[recorder])
    found = offences(sandbox.run(Step(("-c", OFFENDER))), sandbox.writable)
    seen = {(deed.kind, deed.what) for deed in found if deed.kind != "lookup"}
    home = sandbox.user
    assert seen == {
        ("address", "192.0.2.1"), ("socket", "/nowhere/socket"), ("file", str(home / "elsewhere")),
        ("file", str(home / "elsewhere" / "device-id")), ("file", str(home / ".cache")), ("file", str(home / "moved")),
    }  # fmt: skip
    assert any(deed.kind == "lookup" for deed in found)
