"""A memory comes up in the situations that its triggers name, for those who may see it, and nowhere else."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager

import apsw
import pytest

from perdure.api.explain import why
from perdure.api.memory import Memory
from perdure.embed.base import Embedder
from perdure.embed.deterministic import HashEmbedder
from perdure.hooks.types import Channel, TurnContext
from perdure.index import trigger_index
from perdure.index.trigger_index import TriggerIndex
from perdure.recall.gate import ALL_NAMES, Prompt, triggered_gate
from perdure.recall.query import parts
from perdure.store.scope import Audience
from perdure.store.search import View, every
from perdure.store.transaction import Author
from perdure.store.triggers import AGENT, USER
from tests.faulty import ShiftedEmbedder
from tests.kit import OpenMemory
from tests.recall.conftest import Desk, OpenDesk
from tests.sqlite import as_sqlite
from training.views import View as Stored
from training.views import features

KEY = "The key of the loft hangs behind the clock."
OTHERS = [
    "We use GitHub Actions for our pipelines.",
    "The boiler loses pressure, top it up to 1.5 bar.",
    "Kieran's motorbike insurance renews in May.",
    "I graduated from TU Wien in 2007.",
    "My dog Fido is a beagle.",
]
TRIGGERS = ("the internet router is blinking red", "we have no signal at home")
PROMPT = "The router is blinking red again, what now?"
LONG = (
    "Write to the provider that we have had no signal at home since Monday, and be polite, because they have not "
    "answered for two weeks.\nThen tell me why the router is blinking red."
)
ELSEWHERE = ["How tall is the Eiffel tower?", "Write a poem about autumn.", "Set up a new project in Rust."]


@contextmanager
def traced(connection: apsw.Connection) -> Iterator[list[str]]:
    """Record the statements that are run on a connection."""
    statements: list[str] = []

    def note(_: object, sql: str, __: object) -> bool:
        statements.append(sql)
        return True

    connection.exec_trace = note
    yield statements
    connection.exec_trace = None


def filled(open_desk: OpenDesk, embedder: Embedder, name: str = "home") -> Desk:
    """Return a store with memories."""
    desk = open_desk(embedder, name)
    for text in OTHERS:
        desk.put(text)
    return desk


@pytest.mark.parametrize("judged", [True, False])
def test_a_trigger_brings_its_memory_up_and_the_receipt_names_it(
    open_desk: OpenDesk, encoder: Embedder, judged: bool
) -> None:
    desk = filled(open_desk, encoder if judged else ShiftedEmbedder(encoder, 0.0))
    fact = desk.put(KEY)
    assert desk.texts(PROMPT) == []
    elsewhere = [desk.texts(prompt) for prompt in ELSEWHERE]
    desk.aim(fact, *TRIGGERS)
    recall, receipt = desk.ask(PROMPT)
    assert recall is not None
    assert [item.text for item in recall.items] == [KEY]
    assert TRIGGERS[0] not in recall.block
    [named] = [each.trigger for each in receipt.candidates if each.id == fact.id]
    assert named is not None
    assert named.text == TRIGGERS[0]
    explained = why(desk.store, View(Audience.of(), desk.clock.now()), receipt)
    assert [each.trigger for each in explained.considered if each.id == fact.id] == [TRIGGERS[0]]
    assert TRIGGERS[0] not in json.dumps(receipt.body(desk.options))
    assert [desk.texts(prompt) for prompt in ELSEWHERE] == elsewhere


def test_what_a_trigger_brings_up_is_still_there_and_the_callers_own(open_desk: OpenDesk, encoder: Embedder) -> None:
    desk = filled(open_desk, ShiftedEmbedder(encoder, 0.0))
    fact, another = desk.put(KEY), desk.put("The spare key is with the neighbour.", scope_target="berta")
    for each in (fact, another):
        desk.aim(each, *TRIGGERS)
    assert desk.texts(PROMPT) == [KEY]
    recall, _ = desk.recaller().recall(PROMPT, Audience.of(user="berta"), session="s")
    assert recall is not None
    assert [item.text for item in recall.items] == ["The spare key is with the neighbour."]
    with desk.store.write(Author(Channel.USER)) as tx:
        tx.change(fact.id, "forget", {"forgotten_at": desk.clock.now()})
    assert desk.texts(PROMPT) == []


def test_a_trigger_that_goes_or_changes_brings_nothing_up_any_more(open_desk: OpenDesk, encoder: Embedder) -> None:
    desk = filled(open_desk, ShiftedEmbedder(encoder, 0.0))
    fact = desk.put(KEY)
    desk.aim(fact, *TRIGGERS)
    assert desk.texts(PROMPT) == [KEY]
    desk.aim(fact, "the roof is leaking")
    assert desk.texts(PROMPT) == []


def test_what_an_agent_wrote_lifts_nothing_that_nobody_said(open_desk: OpenDesk, encoder: Embedder) -> None:
    desk = filled(open_desk, ShiftedEmbedder(encoder, 0.0))
    noted = desk.put("Deploys run the script of the vendor.", channel=Channel.TOOL_UNASKED)
    desk.aim(noted, *TRIGGERS, origin=AGENT)
    assert desk.texts(PROMPT) == []
    told = desk.put(KEY)
    desk.aim(told, *TRIGGERS, origin=AGENT)
    assert desk.texts(PROMPT) == [KEY]


@pytest.mark.sqlite
def test_a_store_without_triggers_pays_nothing(open_desk: OpenDesk) -> None:
    desk = filled(open_desk, HashEmbedder())
    desk.texts(PROMPT)
    leg, view = desk.leg, View(Audience.of(), desk.clock.now())
    assert leg is not None
    assert leg.triggers is not None
    queries = leg.embedder.embed([PROMPT])
    with desk.store.database.reading(), desk.store.database.read() as lent, traced(as_sqlite(lent)) as statements:
        survey = leg.index.survey(queries, view, 5)
        assert statements
        statements.clear()
        assert leg.triggers.survey(queries, view, 5, survey.seen) is None
        assert not statements


def test_the_index_follows_the_store_and_looks_at_fewer_in_a_crowd(
    open_desk: OpenDesk, encoder: Embedder, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk = filled(open_desk, encoder)
    facts = [desk.put(f"Memory number {number}.") for number in range(6)]
    for number, fact in enumerate(facts):
        desk.aim(fact, *(f"situation {each} of thing {number}" for each in range(6)))
    index = TriggerIndex(desk.store.database, encoder.identity.id, encoder.identity.dims)
    view, asked = View(Audience.of(), desk.clock.now()), encoder.embed(["situation 1 of thing 4", "something else"])

    def looked() -> tuple[list[str], int]:
        found = index.survey(asked, view, 2)
        return (list(found.ids), found.count) if found else ([], 0)

    assert looked()[0][0] == facts[4].id
    assert looked()[1] == 4 * len(facts)
    with desk.store.write(Author(Channel.USER)) as tx:
        tx.put_triggers(facts[4].id, (), USER)
    assert looked()[1] == 4 * (len(facts) - 1)
    assert facts[4].id not in looked()[0]
    monkeypatch.setattr(trigger_index, "CROWD", len(facts) - 1)
    desk.aim(facts[4], "situation 1 of thing 4")
    assert looked() == ([facts[4].id, looked()[0][1]], 2 * (len(facts) - 1) + 1)
    assert index.survey(asked, View(Audience.of(user="berta"), desk.clock.now()), 2) is None


@pytest.mark.parametrize("prompt", [PROMPT, LONG])
def test_a_store_with_triggers_is_asked_what_the_gate_was_fitted_on(
    open_desk: OpenDesk, encoder: Embedder, prompt: str
) -> None:
    """A turn's features are those of the training, to the rounding of a vector."""
    desk = filled(open_desk, encoder)
    texts = [*OTHERS, KEY]
    given = [["who insures the motorbike"] if "Kieran" in text else [] for text in OTHERS] + [list(TRIGGERS)]
    desk.put(KEY)
    facts = desk.store.database.query(every, View(Audience.of(), desk.clock.now()))
    for fact in facts:
        desk.aim(fact, *given[texts.index(fact.text)])
    ids = {fact.id: fact.text for fact in facts}
    _, receipt = desk.ask(prompt)
    asked = Prompt(prompt, parts(prompt))
    store = Stored(texts, encoder.embed(texts), given, encoder.embed([each for some in given for each in some]))
    places, rows = features(store, asked, encoder.embed(list(asked.parts)))
    trained = {texts[place]: row for place, row in zip(places.tolist(), rows, strict=True)}
    assert any(row[ALL_NAMES.index("trigger")] > 0.3 for row in rows)
    assert any(each.features is not None and len(each.features) == len(ALL_NAMES) for each in receipt.candidates)
    for each in receipt.candidates:
        assert each.features is not None
        assert each.features == pytest.approx(trained[ids[each.id]][: len(each.features)], rel=1e-2, abs=4e-3)


def test_memories_without_triggers_are_judged_as_if_there_were_none(open_desk: OpenDesk, encoder: Embedder) -> None:
    """Nor does any trigger lower what has it, and a store without them does not read their gate."""
    triggered_gate.cache_clear()
    desk = filled(open_desk, encoder)
    fact, noted = desk.put(KEY), desk.put("The router stands in the hall.")
    prompts = (PROMPT, LONG, "How old is my dog?", *ELSEWHERE)
    before = [{each.id: each for each in desk.ask(prompt)[1].candidates} for prompt in prompts]
    assert triggered_gate.cache_info().currsize == 0
    desk.aim(fact, *TRIGGERS)
    desk.aim(noted, "a poem about something else entirely")
    for prompt, old in zip(prompts, before, strict=True):
        for each in desk.ask(prompt)[1].candidates:
            known, now = old[each.id].probability, each.probability
            assert known is not None
            assert now is not None
            if each.id in (fact.id, noted.id):
                assert now >= known
            else:
                assert now == known
                assert each.features == pytest.approx(old[each.id].features, abs=0)
    assert triggered_gate.cache_info().currsize == 1


def turn(memory: Memory, prompt: str, user: str | None = None) -> tuple[list[str], str]:
    """Play a turn in a conversation of its own; return what comes up, and the block."""
    recall = memory.turns.before(prompt, TurnContext(session_id=prompt, user_id=user, host="test"))
    memory.settle()
    return ([item.text for item in recall.items], recall.block) if recall else ([], "")


def test_a_turn_has_the_memory_in_the_situation_that_was_named(open_memory: OpenMemory) -> None:
    memory = open_memory(embedder="auto")
    for text in OTHERS:
        memory.store(text)
    fact = memory.store(KEY)
    memory.settle()
    assert turn(memory, PROMPT) == ([], "")
    known = memory.why()
    assert "trigger" not in " ".join(known.legs)
    assert not any(each.trigger or "trigger" in str(each.reasons) for each in known.considered)
    memory.update(fact, triggers=TRIGGERS)
    memory.settle()
    found, block = turn(memory, PROMPT + " It was fine yesterday.")
    assert found == [KEY]
    assert not any(trigger in block for trigger in TRIGGERS)
    assert [each.trigger for each in memory.why().considered if each.id == fact.id] == [TRIGGERS[0]]
    assert [turn(memory, prompt) for prompt in ELSEWHERE[:2]] == [([], ""), ([], "")]
    assert turn(memory, PROMPT + " Help me.", user="berta") == ([], "")
    memory.forget(fact)
    assert turn(memory, PROMPT + " Please.") == ([], "")


def test_without_vectors_the_words_of_a_trigger_bring_its_memory_up(open_memory: OpenMemory) -> None:
    memory = open_memory(embedder="none")
    fact = memory.store(KEY, triggers=[*TRIGGERS, "explain this code to me", "Mückenstich am Bein"])
    other = memory.store("The spare key is with the neighbour.", channel=Channel.TOOL_UNASKED, triggers=TRIGGERS)
    for text in OTHERS:
        memory.store(text)

    def texts(prompt: str) -> list[str]:
        recall = memory.turns.before(prompt, TurnContext(session_id=prompt))
        memory.settle()
        return [item.text for item in recall.items] if recall else []

    assert texts(PROMPT) == [KEY]
    assert texts("Was hilft gegen einen Mückenstich am Bein?") == [KEY]
    [named] = [each for each in memory.why().considered if each.id == fact.id]
    assert named.trigger == "Mückenstich am Bein"
    # Not by a single one of its words, by those of every day, or by what an agent aimed.
    assert [texts(each) for each in ["A red carpet, please", "Explain this code to me, line by line", *ELSEWHERE]] == [
        [] for _ in range(2 + len(ELSEWHERE))
    ]
    assert [each.id for each in memory.search(PROMPT)][:1] == [fact.id]
    memory.forget(fact)
    assert texts(PROMPT) == []
    assert memory.get(other.id).text


def test_the_words_of_a_trigger_answer_until_the_model_is_there(open_desk: OpenDesk, encoder: Embedder) -> None:
    desk = filled(open_desk, encoder)
    desk.aim(desk.put(KEY), *TRIGGERS)
    desk.leg = None
    assert desk.texts(PROMPT, model=True) == [KEY]
    assert [desk.texts(prompt, model=True) for prompt in ELSEWHERE] == [[] for _ in ELSEWHERE]
