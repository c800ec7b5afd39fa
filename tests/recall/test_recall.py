"""From a prompt to a block, with real stores."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pytest

from perdure.embed.base import Embedder
from perdure.embed.deterministic import HashEmbedder
from perdure.hooks.types import Channel, Placement
from perdure.recall.block import HEADER, day
from perdure.recall.options import LOOKUP
from perdure.recall.receipt import MAX_QUERY
from perdure.store.fact import Summaries
from perdure.store.scope import Audience
from perdure.store.trust import AUTO_RECALLED
from perdure.text.tokens import estimate_tokens
from tests.recall.conftest import Desk, OpenDesk, lines

UNRELATED = [
    "My dentist is Doctor Wagner in Linz.",
    "We decided to use FastAPI for the backend.",
    "Never deploy on Fridays.",
    "My dog Fido is a beagle.",
    "I graduated from TU Wien in 2007.",
    "The printer on the second floor is called Gutenberg.",
]


@pytest.mark.parametrize("prompt", ["", "hi", "Thanks a lot!", "/status", "...", "[system] tick", "ok"])
def test_trivial_prompts_are_answered_by_silence(desk: Desk, prompt: str) -> None:
    desk.put("I say hi and thanks a lot to everybody, ok?")
    recall, receipt = desk.ask(prompt)
    assert recall is None
    assert receipt.silence is not None
    assert receipt.verdicts == {}


def test_nothing_relevant_is_nothing_recalled(desk: Desk) -> None:
    for text in UNRELATED:
        desk.put(text)
    recall, receipt = desk.ask("How tall is the Eiffel tower?")
    assert recall is None
    assert set(receipt.verdicts.values()) <= {"no evidence"}


def test_an_empty_store_is_silent(desk: Desk) -> None:
    assert desk.ask("Where do I live?")[0] is None


@pytest.mark.parametrize("model", [True, False])
def test_what_is_asked_for_comes_first(open_desk: OpenDesk, model: bool) -> None:
    desk = open_desk(HashEmbedder() if model else None)
    for text in [*UNRELATED, "The staging database is called heron."]:
        desk.put(text)
    assert desk.texts("What is the staging database called?")[0] == "The staging database is called heron."


def test_the_block_is_what_the_options_say(desk: Desk) -> None:
    desk.put("The staging database is called heron.", category="entity")
    question = "What is the staging database called?"

    full, _ = desk.ask(question)
    short, _ = desk.ask(question, format="short")
    minimal, _ = desk.ask(question, format="minimal", placement=Placement.SYSTEM)

    assert lines(full) == ["[sqlite/entity] The staging database is called heron."]
    assert lines(short) == ["entity: The staging database is called heron."]
    assert lines(minimal) == ["The staging database is called heron."]
    assert full is not None
    assert full.placement is Placement.HEAD
    assert minimal is not None
    assert minimal.placement is Placement.SYSTEM
    assert full.block.split("\n")[1] == HEADER


def test_a_line_names_the_leg_that_found_it(open_desk: OpenDesk, encoder: Embedder) -> None:
    desk = open_desk(encoder)
    for text in [*UNRELATED, "I have a severe peanut allergy."]:
        desk.put(text, category="fact")
    by_meaning, receipt = desk.ask("Which foods could make me ill?")
    assert "[semantic/fact] I have a severe peanut allergy." in lines(by_meaning)
    by_words, _ = desk.ask("Which printer is Gutenberg?")
    assert lines(by_words)[0].startswith("[sqlite/fact] The printer")
    assert set(receipt.states.values()) == {"ok"}


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("Which foods could make me ill?", "I have a severe peanut allergy."),
        ("What breed is my pet?", "My dog Fido is a beagle."),
        ("Who looks after my teeth?", "My dentist is Doctor Wagner in Linz."),
    ],
)
def test_meaning_finds_what_words_do_not(open_desk: OpenDesk, encoder: Embedder, question: str, answer: str) -> None:
    desk = open_desk(encoder)
    for text in [*UNRELATED, "I have a severe peanut allergy."]:
        desk.put(text)
    assert desk.texts(question)[:1] == [answer]


@pytest.mark.parametrize(
    "question", ["Write a haiku about autumn.", "How tall is the Eiffel tower?", "Convert 30 inches to metres."]
)
def test_unrelated_questions_are_answered_by_silence(open_desk: OpenDesk, encoder: Embedder, question: str) -> None:
    desk = open_desk(encoder)
    for text in UNRELATED:
        desk.put(text)
    assert desk.texts(question) == []


def test_what_is_far_below_the_best_is_cut(desk: Desk) -> None:
    best = desk.put("The heron database in staging holds the billing ledger.")
    weak = desk.put("A heron stood in the garden pond of our neighbours while it rained on Sunday afternoon.")
    _, receipt = desk.ask("the heron database in staging, the billing ledger", relative_cut=0.95)
    assert receipt.verdicts[best.id] == "injected"
    assert receipt.verdicts.get(weak.id, "no evidence") != "injected"
    assert all(0 <= each.score <= 1 + 1e-9 for each in receipt.candidates)


def test_near_duplicates_give_way(desk: Desk) -> None:
    desk.put("The staging database is called heron.")
    desk.put("The staging database is called: heron!!")
    assert len(desk.texts("What is the staging database called?")) == 1


MEDICINE = "{} takes {} of ramipril every morning with breakfast."
DETAILS = [
    (MEDICINE.format("Dad", "5 mg"), MEDICINE.format("Mum", "5 mg")),
    (MEDICINE.format("Anna", "5 mg"), MEDICINE.format("Bruno", "5 mg")),
    (MEDICINE.format("Dad", "5 mg"), MEDICINE.format("Dad", "10 mg")),
    (MEDICINE.format("Dad always", "5 mg"), MEDICINE.format("Dad never", "5 mg")),
]


@pytest.mark.parametrize(("one", "other"), DETAILS)
@pytest.mark.parametrize("model", [True, False])
def test_memories_that_differ_in_a_detail_come_up_together(
    open_desk: OpenDesk, model: bool, one: str, other: str
) -> None:
    desk = open_desk(HashEmbedder() if model else None)
    for text in (one, other):
        desk.put(text)
    assert set(desk.texts("Who takes ramipril every morning with breakfast?", relative_cut=0.0)) == {one, other}


@pytest.mark.parametrize("seed", range(4))
def test_in_which_order_they_were_said_does_not_decide_what_comes_up(open_desk: OpenDesk, seed: int) -> None:
    texts = [MEDICINE.format(who, much) for who in ("Dad", "Mum", "Anna") for much in ("5 mg", "10 mg")]
    again = [text.upper() for text in texts]
    found = []
    for name in ("one", "other"):
        desk = open_desk(HashEmbedder(), name)
        for text in Random(f"{name}{seed}").sample(texts + again, 12):
            desk.put(text)
        asked = desk.texts("Who takes ramipril every morning with breakfast?", relative_cut=0.0, limit=20)
        assert len(asked) == len(texts)
        found.append({text.casefold() for text in asked})
    assert found[0] == found[1] == {text.casefold() for text in texts}


def test_the_same_words_come_up_once_whatever_brings_them_up_and_whatever_slots_they_fill(desk: Desk) -> None:
    text = "The staging database is called heron, as ever."
    for value in ("heron", "heron II"):
        desk.put(text, entity="staging", key="database", value=value)
    desk.put(text.upper(), pinned=True)
    assert desk.texts("What is the staging database called?") == [text.upper()]


def test_an_agents_newer_note_does_not_hide_what_the_user_said(desk: Desk) -> None:
    slot: dict[str, Any] = {"entity": "user", "key": "location"}
    said = desk.put("I live in Graz on the Mur.", value="Graz", **slot)
    noted = desk.put("You live in Linz on the Danube.", Channel.TOOL_UNASKED, value="Linz", **slot)
    recall, _ = desk.ask("Where do I live, in Graz on the Mur or in Linz on the Danube?", relative_cut=0.0)
    assert recall is not None
    assert {item.id for item in recall.items} == {said.id, noted.id}


def test_of_two_values_of_one_slot_the_newer_comes_first_and_the_older_says_that_it_is_earlier(desk: Desk) -> None:
    newer_date = desk.clock.now() + 10_000
    desk.put("I live in Linz on the Danube.", value="Linz", entity="user", key="location", source_date=newer_date)
    old = desk.put("I live in Graz on the Mur.", value="Graz", entity="user", key="location")
    recall, receipt = desk.ask("Where do I live, in Graz on the Mur or in Linz on the Danube?")
    assert recall is not None
    assert [item.text for item in recall.items] == ["I live in Linz on the Danube.", "I live in Graz on the Mur."]
    assert f"I live in Graz on the Mur. (earlier, {day(old.effective_date)})" in recall.block
    assert receipt.verdicts[old.id] == "injected"


@pytest.mark.parametrize("model", [True, False])
@pytest.mark.parametrize("budget", [50, 60, 80, 120, 200, 800])
def test_a_block_never_costs_more_than_its_budget(open_desk: OpenDesk, model: bool, budget: int) -> None:
    desk = open_desk(HashEmbedder() if model else None)
    # A word is evidence by itself only while it is rare, so without a model there are three memories at most.
    for words in ("reed water bank", "roof tile chimney", "willow branch meadow"):
        desk.put(f"A heron nests here. {' '.join([words] * 20)}")
    recall, receipt = desk.ask(
        "Where does the heron nest?", max_tokens=budget, relative_cut=0.0, summaries=Summaries(9999)
    )
    count = desk.leg.embedder.count_tokens if desk.leg else estimate_tokens
    if recall is not None:
        assert count(recall.block) <= budget
        assert receipt.tokens == count(recall.block)
    over = "over the budget" in receipt.verdicts.values()
    assert over is (budget < 800)


@pytest.mark.parametrize("limit", [1, 3, 10])
def test_a_block_holds_no_more_than_its_limit(desk: Desk, limit: int) -> None:
    for number in range(15):
        desk.put(f"Heron host {number} runs service {'abcdefghijklmno'[number] * 9}.")
    recall, _ = desk.ask("Which service runs on the heron host?", limit=limit, relative_cut=0.0)
    assert recall is not None
    assert len(recall.items) == len(lines(recall)) <= limit


def test_a_long_memory_is_shown_by_its_summary(desk: Desk) -> None:
    long = "The heron database keeps the ledger. " * 20
    desk.put(long)
    [text] = desk.texts("What does the heron database keep?")
    assert text.endswith("…")
    assert len(text) <= 81
    assert long.startswith(text[:-1])
    [whole] = desk.texts("What does the heron database keep?", summaries=Summaries(2000))
    assert whole == long.strip()


@pytest.mark.parametrize("channel", list(Channel))
def test_only_trusted_channels_come_up_unasked(desk: Desk, channel: Channel) -> None:
    desk.put("The staging database is called heron.", channel, category="entity")
    recall, _ = desk.ask("What is the staging database called?")
    if channel not in AUTO_RECALLED:
        assert recall is None
        return
    noted = channel in {Channel.TOOL_UNASKED, Channel.ASSISTANT}
    [written] = lines(recall)
    assert written.startswith("[sqlite/entity, agent's note] " if noted else "[sqlite/entity] ")


def test_channels_that_must_not_come_up_unasked() -> None:
    assert not AUTO_RECALLED & {Channel.TRANSCRIPT_OTHER, Channel.IMPORT, Channel.UNKNOWN}


@pytest.mark.parametrize("state", ["pending", "rejected"])
def test_what_is_not_approved_is_not_recalled(desk: Desk, state: str) -> None:
    desk.put("The staging database is called heron.", Channel.ASSISTANT, review_state=state)
    assert desk.texts("What is the staging database called?") == []


def test_what_has_expired_is_not_recalled(desk: Desk) -> None:
    desk.put("The staging database is called heron.", decay_class="session")
    assert desk.texts("What is the staging database called?") != []
    desk.clock.advance(25 * 3600.0)
    assert desk.texts("What is the staging database called?") == []


@pytest.mark.parametrize(
    ("audience", "seen"),
    [
        (Audience.of(agent="ann"), {"user", "agent"}),
        (Audience.of(agent="bob"), {"user"}),
        (Audience.of(), {"user"}),
        (Audience.of(agent=""), set[str]()),
        (Audience.of(agent=" ann"), set[str]()),
        (Audience.of(user="somebody else", agent="ann"), set[str]()),
    ],
)
def test_scopes_hold(desk: Desk, audience: Audience, seen: set[str]) -> None:
    desk.put("The user's heron nests in the north.", scope="user", scope_target="owner")
    desk.put("The agent's heron nests in the south.", scope="agent", scope_target="ann")
    recall, receipt = desk.recaller(relative_cut=0.0).recall("Where does the heron nest?", audience)
    found = {item.text.split("'")[0].removeprefix("The ") for item in recall.items} if recall else set()
    assert found == seen
    assert len(receipt.verdicts) == len(seen)


def test_the_same_store_prompt_session_and_clock_give_the_same_bytes(open_desk: OpenDesk, tmp_path: Path) -> None:
    desk = open_desk(HashEmbedder(), "one")
    for text in [*UNRELATED, "The staging database is called heron.", "The staging heron is slow."]:
        desk.put(text)
    question = "What is the staging database called?"
    blocks = {recall.block for _ in range(5) if (recall := desk.ask(question)[0])}
    assert len(blocks) == 1

    again = open_desk(HashEmbedder(), "one")
    again.clock.set(desk.clock.now())
    reopened, _ = again.ask(question)
    assert reopened is not None
    assert {reopened.block} == blocks

    other, _ = desk.ask(question, "another session")
    assert other is not None
    assert nonce(other.block) != nonce(reopened.block)
    assert other.block.replace(nonce(other.block), nonce(reopened.block)) == reopened.block


def nonce(block: str) -> str:
    match = re.match(r'<memory-context nonce="([0-9a-f]{16})">', block)
    assert match is not None
    return match[1]


def test_our_own_block_in_a_prompt_is_not_asked_for(desk: Desk) -> None:
    desk.put("The staging database is called heron.")
    recall, _ = desk.ask("What is the staging database called?")
    assert recall is not None
    echoed, receipt = desk.ask(f"{recall.block}\n\nhi")
    assert echoed is None
    assert receipt.silence == "small talk"


def test_the_receipt_explains_by_ids_and_scores_alone(desk: Desk) -> None:
    shown = desk.put("The staging database is called heron-marker.")
    desk.put("My flamingo-marker is pink and lives in the zoo.")
    recall, receipt = desk.ask("What is the staging database called? token sk-abcdefghijklmnop1234567890")
    body = receipt.body(desk.options)
    text = json.dumps(body)

    assert recall is not None
    assert recall.receipt_id == receipt.id
    assert "marker" not in text
    assert "sk-abcdefghijklmnop1234567890" not in text
    [candidate] = [entry for entry in body["candidates"] if entry["id"] == shown.id]
    assert candidate["verdict"] == "injected"
    assert 0 < candidate["score"] <= 1
    assert candidate["change_seq"] == shown.change_seq
    assert body["tokens"] == receipt.tokens > 0
    assert body["bytes"] == len(recall.block.encode())
    assert set(body["legs"]) == {"sqlite", "semantic", "lookup"}


def test_a_fact_without_a_vector_is_still_found_by_its_words(open_desk: OpenDesk) -> None:
    before = open_desk(None)
    before.put("The staging database is called heron.")
    after = open_desk(HashEmbedder())
    after.clock.set(before.clock.now())
    assert after.texts("What is the staging database called?") == ["The staging database is called heron."]


def test_a_change_by_another_connection_is_seen(open_desk: OpenDesk) -> None:
    one, other = open_desk(HashEmbedder()), open_desk(HashEmbedder())
    other.put("The staging database is called heron.")
    one.clock.set(other.clock.now())
    question = "What is the staging database called?"
    assert one.texts(question) == ["The staging database is called heron."]
    other.put("The staging database is called ibis, says the sign on its door.")
    assert len(one.texts(question, relative_cut=0.0)) == 2


@pytest.fixture
def said(desk: Desk) -> Desk:
    desk.put("The staging database is called heron.")
    return desk


def test_prompts_of_any_size_are_answered(said: Desk) -> None:
    assert said.texts("What is the staging database called? " + "and " * 1_000_000) == [
        "The staging database is called heron."
    ]


def test_without_a_model_the_first_memory_is_recalled(wordy: Desk) -> None:
    wordy.put("The staging database is called heron.")
    assert wordy.texts("Which database is the staging one?") == ["The staging database is called heron."]


def test_options_can_be_replaced_without_touching_the_others(said: Desk) -> None:
    assert replace(said.options, limit=1).format == said.options.format


@pytest.mark.parametrize(
    ("prompt", "named"),
    [
        ("When is ANNA's birthday?", "Anna"),
        ("what is my birthday?", "user"),
        ("When is my sister's birthday?", None),
        ("Is a birthday a holiday?", None),
    ],
)
def test_a_slot_that_the_prompt_names_is_evidence(desk: Desk, prompt: str, named: str | None) -> None:
    kept = {
        entity: desk.put(text, entity=entity, key="birthday").id
        for entity, text in (
            ("Anna", "She said it is the ninth of May."),
            ("user", "He keeps it on the third of June."),
        )
    }
    recall, receipt = desk.ask(prompt)
    by_slot = {each.id for each in receipt.candidates if LOOKUP in each.scores}
    assert by_slot == ({kept[named]} if named else set())
    if named:
        assert recall is not None
        assert recall.items[0].id == kept[named]


@pytest.mark.parametrize("before", range(MAX_QUERY - 40, MAX_QUERY + 2, 3))
def test_no_part_of_a_secret_at_the_cut_stands_in_a_receipt(desk: Desk, before: int) -> None:
    query = "x" * (before - 1) + " ghp_" + "a1B2" * 9
    body = desk.ask(query)[1].body(desk.options)
    assert "a1B2" not in body["query"]
    assert len(body["query"]) <= MAX_QUERY
