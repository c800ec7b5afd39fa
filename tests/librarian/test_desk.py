"""When a librarian reads, whose words it sees, and that it costs nothing while it is off."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from perdure.api.memory import Memory
from perdure.clock import ManualClock
from perdure.errors import ModelError, SettingsError
from perdure.hooks.types import TurnContext
from perdure.librarian.desk import BUSY, DAY, FIRST, IDLE, MARK, OFF, TURNS, Desk
from perdure.librarian.operations import parse
from perdure.llm import Answers, Asker, Purpose
from perdure.models.llm import Llm
from perdure.speech.typed import typed
from perdure.store.listing import Filter
from perdure.store.llm import TokenMeter
from tests.cli.calling import call, call_json
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


def desk(memory: Memory, model: Asker, **others: Asker) -> Desk:
    """Return the librarian of a memory, which has this model for what is said in `bench`, and `others` by host."""
    found = memory._engine.librarian
    found.model = lambda host, scopes: {"bench": model, **others}.get(host)
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
    assert memory.admin.librarian(run=True)["did"] == "nothing"
    assert sorted(asked) == ["main", "second"]
    other = open_memory(**given, **endpoint)
    model = other._engine.librarian.model
    assert (model("openclaw", ("agent:main",)), model("codex", ()) is None) == (None, False)
    # A process that it is not lent to leaves the reading to the one that it is.
    say(memory, "The stall needs a fourth person in June.", host="openclaw", agent_id="main")
    assert memory._engine.librarian.run() == "no conversation is idle yet; 1 turn waiting"
    assert "1 turn waiting for their host" in other.admin.librarian(run=True)["did"]
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
    assert reads.run() == "waiting: the model failed, or today's tokens are used up"
    clock.advance(FIRST)
    assert reads.run() == "failed: ModelError"
    clock.advance(FIRST)
    assert reads.run() == "waiting: the model failed, or today's tokens are used up"
    clock.advance(FIRST)
    reads.run()
    assert len(model.asked) == 3
    assert "failing" not in reads.state()


def test_what_was_done_before_a_model_failed_is_told_and_can_be_undone(memory: Memory, clock: ManualClock) -> None:
    reads = desk(memory, Model({"operations": [NOTE]}, ModelError("away")))
    say(memory)
    clock.advance(1)
    say(memory, "What is the weather in Lund?", session_id="t")
    clock.advance(IDLE)
    assert reads.run() == "known 1; failed: ModelError"
    [done] = reads.state()["runs"]
    [fact] = memory.admin.list(Filter())
    assert memory.admin.triggers(fact.id)
    memory.undo(done["batch"])
    assert not memory.admin.triggers(fact.id)


def test_a_model_that_fails_keeps_no_other_host_waiting(memory: Memory, clock: ManualClock) -> None:
    fails, works = Model(*[ModelError("away")] * 3), Model()
    reads = desk(memory, fails, other=works)
    for name in "abc":
        say(memory, session_id=name)
    clock.advance(1)
    say(memory, host="other")
    clock.advance(IDLE)
    assert reads.run() == "failed: ModelError; nothing"
    assert (len(fails.asked), len(works.asked)) == (1, 1)
    assert reads.state()["failing"] == {"bench": {"failures": 1, "why": "away", "again_at": clock.now() + FIRST}}


def test_a_batch_that_fails_keeps_no_other_one_waiting(memory: Memory, clock: ManualClock) -> None:
    class Picky(Model):
        def ask_json(self, prompt: str, **given: Any) -> Any | None:
            if "poison" in prompt:
                raise ModelError("too long")
            return super().ask_json(prompt, **given)

    model = Picky()
    reads = desk(memory, model)
    say(memory, "What is poison?", session_id="a")
    clock.advance(1)
    say(memory, session_id="b")
    clock.advance(IDLE)
    assert reads.run() == "failed: ModelError"
    clock.advance(FIRST)
    assert reads.run() == "nothing; failed: ModelError"
    assert [batch.session for batch in reads.waiting()] == ["a"]


LONG = "The stall needs two people on Sundays. " * 60


def bounded(memory: Memory, tokens: int, *answers: object) -> Asker:
    """Return a model behind an endpoint that is never reached, with so many tokens a day."""

    class Answering(Llm):
        def ask(self, prompt: str, *, purpose: Purpose, system: str = "", timeout: float | None = None) -> str:
            asked = len(prompt) // 4 + len(system) // 4 + purpose.answer_tokens
            self.meter.settle(self.meter.reserve("default", asked), "default", asked, asked)
            return json.dumps({"operations": []})

    store = memory._engine.store
    return Answering(None, {}, TokenMeter(store.database, store.clock, tokens))  # type: ignore[arg-type]


def test_what_a_day_has_too_few_tokens_for_is_read_in_parts(memory: Memory) -> None:
    reads = desk(memory, bounded(memory, 9_000))
    for number in range(6):
        say(memory, f"{number}: {LONG}")
    told = reads.run(now=True)
    assert told.startswith("nothing; waits: ")
    assert "llm.daily_tokens" in told
    assert 0 < sum(len(batch.turns) for batch in reads.waiting()) < 6
    assert [each["did"] for each in reads.state()["runs"]] == ["nothing"]


def test_a_turn_that_a_day_has_too_few_tokens_for_is_left_out_and_told(memory: Memory) -> None:
    reads = desk(memory, bounded(memory, 1_000))
    say(memory)
    reads.run(now=True)
    assert reads.waiting() == []
    [done] = reads.state()["runs"]
    assert done["did"].startswith("left a turn out: ")
    assert "raise llm.daily_tokens" in done["did"]


def test_of_tokens_that_are_used_up_it_waits_until_midnight(memory: Memory, clock: ManualClock) -> None:
    model = bounded(memory, 9_500)
    reads = desk(memory, model)
    say(memory)
    model.meter.reserve("default", 9_000)  # type: ignore[attr-defined]
    clock.advance(IDLE)
    assert reads.run().startswith("waits: ")
    assert reads.run() == "waiting: the model failed, or today's tokens are used up"
    assert reads.state()["failing"]["bench"]["failures"] == 0
    clock.advance(DAY)
    assert reads.run() == "nothing"


def test_a_failing_repair_keeps_what_could_be_read(memory: Memory) -> None:
    reads = desk(memory, Model({"operations": [NOTE, {"op": "remember"}]}, ModelError("away")))
    say(memory)
    assert reads.run(now=True) == "known 1"


def test_switched_off_nothing_waits_and_nothing_is_sent(memory: Memory, clock: ManualClock) -> None:
    model = Model()
    reads = desk(memory, model)
    secret = "Is the zebrawood stall open?"
    say(memory, secret)
    say(memory, secret, session_id="t")
    assert memory.admin.librarian(on=False)["dropped"] == 2
    assert reads.waiting() == []
    assert [each["did"] for each in reads.state()["runs"]] == ["switched off: 2 turns dropped"]
    clock.advance(IDLE)
    say(memory)  # in a process that has been open since before
    assert (reads.waiting(), reads.run(), reads.run(now=True)) == ([], OFF, OFF)
    memory.admin.librarian(on=True)
    say(memory, "What is the weather in Lund?")
    assert reads.run(now=True) == "nothing"
    assert len(model.asked) == 1
    assert "zebrawood" not in model.asked[0]


@pytest.mark.sqlite
def test_of_what_is_dropped_no_byte_is_left(memory: Memory, home: Path) -> None:
    desk(memory, Model())
    say(memory, "Is the zebrawood stall open?")
    files = [path for path in home.glob("facts.db*") if b"zebrawood" in path.read_bytes()]
    assert files
    memory.admin.librarian(on=False)
    assert [path for path in home.glob("facts.db*") if b"zebrawood" in path.read_bytes()] == []


def test_what_is_switched_off_while_a_model_reads_comes_to_nothing(memory: Memory) -> None:
    class Slow(Model):
        def ask_json(self, prompt: str, **given: Any) -> Any | None:
            memory.admin.librarian(on=False)
            return super().ask_json(prompt, **given)

    reads = desk(memory, Slow({"operations": [NOTE]}))
    say(memory)
    before = live(memory)
    reads.run(now=True)
    assert live(memory) == before
    assert [each["did"] for each in reads.state()["runs"]] == ["switched off: 1 turn dropped"]


def test_by_the_command_it_sends_nothing_while_it_is_off(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"PERDURE_HOME": str(home), "PERDURE_EMBEDDER": "none"}.items():
        monkeypatch.setenv(name, value)
    call("librarian", "on")
    with Memory.open(home, watch=False) as memory:
        desk(memory, Model())
        say(memory, "Is the stall open?")
    assert call_json("librarian", "status")["waiting"] == 1
    assert call_json("librarian", "off") == {"librarian": False, "dropped": 1}
    assert call_json("librarian", "log")["runs"][-1]["did"] == "switched off: 1 turn dropped"
    with pytest.raises(SettingsError, match="perdure librarian on"):
        call("librarian", "run")
    call("librarian", "on")
    assert call_json("librarian", "run")["did"] == "nothing to read"


def test_what_still_waits_from_before_is_not_sent_when_it_is_switched_on(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in {"PERDURE_HOME": str(home), "PERDURE_EMBEDDER": "none"}.items():
        monkeypatch.setenv(name, value)
    with Memory.open(home, watch=False, librarian=True) as memory:
        desk(memory, Model())
        say(memory)
    call("librarian", "on")
    assert call_json("librarian", "status")["waiting"] == 0
    monkeypatch.setenv("PERDURE_LIBRARIAN", "true")
    assert "PERDURE_LIBRARIAN" in call("librarian", "off", code=1).output


def test_another_process_sees_that_a_session_is_over(memory: Memory, open_memory: OpenMemory) -> None:
    other = open_memory(embedder="none", watch=False, librarian=True, timers=False)
    desk(memory, Model())
    say(memory)
    memory.turns.session_end(TurnContext(session_id="s", host="bench"))
    assert memory.settle()
    assert desk(other, Model()).run() == "nothing"
    say(memory, "What is the weather in Lund?")  # it goes on
    assert desk(other, Model()).run().startswith("no conversation is idle yet")


def test_there_is_one_librarian_in_all_processes(memory: Memory, open_memory: OpenMemory, clock: ManualClock) -> None:
    other = desk(open_memory(embedder="none", watch=False, librarian=True, timers=False), idle := Model())
    meanwhile = []

    class Slow(Model):
        def ask_json(self, prompt: str, **given: Any) -> Any | None:
            meanwhile.append(other.run(now=True))
            meanwhile.append(reads.run(now=True))  # as in another thread
            return super().ask_json(prompt, **given)

    reads = desk(memory, model := Slow({"operations": [NOTE]}))
    say(memory)
    clock.advance(1)
    say(memory, "What is the weather in Lund?", session_id="t")
    assert reads.run(now=True) == "known 1; nothing"
    assert meanwhile == [BUSY] * 4
    assert (len(model.asked), idle.asked) == (2, [])
    assert [each["did"] for each in reads.state()["runs"]] == ["known 1", "nothing"]


def test_the_same_answer_twice_does_nothing(memory: Memory) -> None:
    reads = desk(memory, Model({"operations": [NOTE]}))
    say(memory)
    [batch] = reads.waiting()
    request, (operations, _) = reads.reader.request(batch), parse({"operations": [NOTE]})
    assert reads.applier.apply(request, operations).done
    after = memory.admin.changes()
    assert not reads.applier.apply(request, operations).done
    assert memory.admin.changes() == after


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


QUIET = """
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
    done = subprocess.run([sys.executable, "-c", QUIET, str(tmp_path)], capture_output=True, text=True, check=False)
    assert (done.stdout.strip(), done.returncode) == ("[]", 0), done.stderr
