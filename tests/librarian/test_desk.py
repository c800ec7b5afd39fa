"""When a librarian reads, whose words it sees, and that it costs nothing while it is off."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from perdure.api.memory import Memory
from perdure.clock import ManualClock
from perdure.errors import ModelError
from perdure.hooks.types import TurnContext
from perdure.librarian.desk import FIRST, IDLE, MARK, TURNS, Desk
from perdure.llm import Answers, Purpose
from perdure.speech.typed import typed
from perdure.store.listing import Filter
from tests.kit import START, OpenMemory

SAID = "The stall needs two people on Sundays."
NOTE = {"op": "remember", "quote": SAID, "note": SAID, "triggers": ["who comes along at the weekend"]}


class Model:
    """Answers as it is told, and keeps what it was asked."""

    def __init__(self, *answers: object) -> None:
        self.answers = list(answers)
        self.asked: list[str] = []

    def ask_json(self, prompt: str, *, purpose: Purpose, system: str = "", timeout: float | None = None) -> Any | None:
        self.asked.append(prompt)
        answer = self.answers.pop(0) if self.answers else {"operations": [{"op": "nothing"}]}
        if isinstance(answer, Exception):
            raise answer
        return answer


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(START)


@pytest.fixture
def memory(open_memory: OpenMemory, clock: ManualClock) -> Memory:
    return open_memory(embedder="none", watch=False, librarian=True, timers=False, clock=clock)


def desk(memory: Memory, model: Model) -> Desk:
    found = memory._engine.librarian
    found.model = lambda host, scopes: model if host == "bench" else None
    return found


def say(memory: Memory, text: str = SAID, **given: Any) -> None:
    context = replace(TurnContext(session_id="s", host="bench"), **given)
    memory.turns.after([{"role": "user", "content": text}], True, context)
    assert memory.settle()


def live(memory: Memory) -> list[str]:
    return [fact.text for fact in memory.admin.list(Filter())]


def test_it_reads_when_a_conversation_is_at_rest_and_once(memory: Memory, clock: ManualClock) -> None:
    model = Model({"operations": [NOTE]})
    reads = desk(memory, model)
    say(memory)
    assert "1 turn wait" in reads.run()
    assert model.asked == []
    clock.advance(IDLE)
    reads.run()
    assert len(model.asked) == 1
    assert SAID in live(memory)
    assert reads.waiting() == []
    assert reads.run() == "nothing to read"
    assert len(model.asked) == 1
    memory.undo(reads.state()["runs"][-1]["batch"])


def test_a_session_that_ends_or_goes_on_for_long_is_read(memory: Memory) -> None:
    model = Model()
    reads = desk(memory, model)
    say(memory)
    memory.turns.session_end(TurnContext(session_id="s", host="bench"))
    assert memory.settle()
    reads.run()
    assert len(model.asked) == 1
    for number in range(TURNS):
        say(memory, f"The stall number {number} needs two people.", session_id="t")
    reads.run()
    assert len(model.asked) == 2


@pytest.mark.parametrize("given", [{"chat": "group"}, {"host": "elsewhere"}, {"trigger": "cron"}])
def test_no_other_eyes(memory: Memory, given: dict[str, Any]) -> None:
    reads = desk(memory, Model())
    say(memory, **given)
    assert reads.waiting() == []


def test_a_host_without_a_model_is_named_until_it_has_one(memory: Memory) -> None:
    reads = desk(memory, Model())
    assert reads.without() == []
    for host, without in (("elsewhere", ["elsewhere"]), ("bench", ["elsewhere"]), ("elsewhere", ["elsewhere"])):
        say(memory, host=host)
        assert memory.admin.librarian()["without"] == without
    reads.model = lambda host, scopes: Model()
    say(memory, "The stall needs a third person in May.", host="elsewhere")
    assert reads.without() == []


def test_openclaws_turns_go_to_the_model_of_the_agent_alone_and_only_where_it_is_lent(
    open_memory: OpenMemory, clock: ManualClock
) -> None:
    asked: list[str] = []

    def lent(agent: str) -> Answers:
        def answers(prompt: str, system: str, *, tokens: int, timeout: float) -> tuple[str, int | None]:
            asked.append(agent)
            return json.dumps({"operations": [{"op": "nothing"}]}), 7

        return answers

    endpoint = {"llm_endpoint": "http://127.0.0.1:9", "llm_model": "m"}
    given: dict[str, Any] = {"embedder": "none", "watch": False, "librarian": True, "timers": False, "clock": clock}
    memory = open_memory(**given, **endpoint, lent={"openclaw": lent})
    say(memory, host="openclaw", agent_id="main")
    say(memory, "The other stall needs three people.", host="openclaw", agent_id="second", session_id="t")
    assert memory.admin.librarian(run=True)["did"] == "nothing; nothing"
    assert sorted(asked) == ["main", "second"]
    other = open_memory(**given, **endpoint)
    model = other._engine.librarian.model
    assert (model("openclaw", ("agent:main",)), model("codex", ()) is None) == (None, False)
    # A process that it is not lent to leaves the reading to the one that it is.
    say(memory, "The stall needs a fourth person in June.", host="openclaw", agent_id="main")
    assert memory._engine.librarian.run() == "nothing is at rest yet; 1 turn wait"
    assert "1 turn wait for their host" in other.admin.librarian(run=True)["did"]
    assert memory._engine.librarian.run() == "nothing"
    assert (len(asked), asked[-1]) == (3, "main")


def test_it_sees_no_secret_and_nothing_of_others(memory: Memory) -> None:
    model = Model()
    reads = desk(memory, model)
    memory.for_user("ben").store("The stall of Ben needs two people on Sundays.")
    say(memory, f"{SAID} The key is sk-ant-api03-abcdefghijklmnopqrstuvwxyz0123456789.")
    reads.run(now=True)
    assert "Ben" not in model.asked[0]
    assert "sk-ant" not in model.asked[0]
    assert not any("sk-ant" in str(row) for row in memory._engine.store.database.query(lambda c: list(
        c.execute("SELECT value FROM meta"))))  # fmt: skip


def test_a_form_that_is_broken_may_be_said_once_more(memory: Memory) -> None:
    model = Model({"operations": [{"op": "remember"}]}, {"operations": [NOTE]}, {"operations": []})
    reads = desk(memory, model)
    say(memory)
    reads.run(now=True)
    assert len(model.asked) == 2
    assert SAID in live(memory)


def test_of_a_model_that_fails_it_waits_ever_longer(memory: Memory, clock: ManualClock) -> None:
    model = Model(ModelError("away"), ModelError("away"))
    reads = desk(memory, model)
    say(memory)
    clock.advance(IDLE)
    assert reads.run() == "failed: ModelError"
    assert reads.run() == "waits, as the model failed"
    clock.advance(FIRST)
    assert reads.run() == "failed: ModelError"
    clock.advance(FIRST)
    assert reads.run() == "waits, as the model failed"
    clock.advance(FIRST)
    reads.run()
    assert len(model.asked) == 3
    assert "failures" not in reads.state()


def test_its_own_question_is_nobodys_word(memory: Memory) -> None:
    question = MARK.format(nonce="0" * 16) + json.dumps({"turns": [{"said": SAID}]})
    assert typed(question) == ""
    say(memory, question)
    assert live(memory) == []


def test_what_is_purged_waits_no_more(memory: Memory) -> None:
    reads = desk(memory, Model())
    say(memory, "My sister Odile lives in Lund.")
    [fact] = memory.admin.list(Filter())
    memory.admin.purge(fact.id)
    assert reads.waiting() == []


OFF = """
import sys, threading
from perdure.api.memory import Memory
from perdure.hooks.types import TurnContext
with Memory.open(sys.argv[1], embedder="none", watch=False) as memory:
    said = [{"role": "user", "content": "The stall needs two people on Sundays."}]
    memory.turns.after(said, True, TurnContext(session_id="s", host="bench"))
    assert memory.settle()
    memory.turns.session_end(TurnContext(session_id="s", host="bench"))
    assert "librarian" not in memory.admin.jobs()
    keys = memory._engine.store.database.query(lambda c: [key for key, in c.execute("SELECT key FROM meta")])
    assert not any("librarian" in key for key in keys), keys
    assert not any("librarian" in thread.name for thread in threading.enumerate())
print([name for name in sys.modules if "librarian" in name or name == "perdure.models.claude"])
"""


def test_off_it_costs_no_import_no_thread_and_no_byte(tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, "-c", OFF, str(tmp_path)], capture_output=True, text=True, check=False)
    assert (done.stdout.strip(), done.returncode) == ("[]", 0), done.stderr


FAKE = """#!{python}
import json, os, sys
said = sys.stdin.read()
print(json.dumps({{"result": json.dumps({{"operations": [], "args": sys.argv[1:], "folder": os.listdir(".")}})}}))
"""


def test_claude_code_is_asked_in_an_empty_folder_with_nothing_to_run(
    memory: Memory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "bin" / "claude"
    program.parent.mkdir()
    program.write_text(FAKE.format(python=sys.executable))
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(program.parent))
    model: Callable[[str, Sequence[str]], Any] = memory._engine.librarian.model
    answer = model("claude-code", ()).ask_json("turns", purpose=Purpose("any", "nano"), system="be brief")
    assert answer["folder"] == []
    args = answer["args"]
    assert (args[args.index("--tools") + 1], args[args.index("--setting-sources") + 1]) == ("", "")
    assert {"--strict-mcp-config", "--no-session-persistence"} <= {*args}
    assert model("codex", ()) is None
    program.write_text(f"#!{sys.executable}\nprint('no')\n")
    with pytest.raises(ModelError):
        model("claude-code", ()).ask_json("turns", purpose=Purpose("any", "nano"))
