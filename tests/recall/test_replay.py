"""What a receipt holds is enough to rank its candidates again."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from perdure.care.purge import purge
from perdure.hooks.types import Channel, Recall
from perdure.ranking.adjust import Adjustments
from perdure.ranking.decay import DAY
from perdure.recall.options import LINKS, PASSAGES, PROFILE, RecallOptions
from perdure.recall.receipt import Receipt
from perdure.recall.replay import replay
from perdure.recall.sources import FILES, SESSIONS
from perdure.store import receipts
from perdure.store.links import link
from perdure.store.scope import Audience
from perdure.store.transaction import Author
from tests.recall.conftest import Desk
from tests.recall.test_formats import TURN, Handed

QUESTIONS = ("Which heron database holds the ledger?", "Where is the backup of heron?", "What is Anna's birthday?")
OPTIONS: list[dict[str, Any]] = [
    {},
    {"relative_cut": 0.0, "limit": 3},
    {"relative_cut": 0.9},
    {"adjustments": Adjustments(True, True, True, True, True), "relative_cut": 0.2, "max_tokens": 120},
    {"profile": "off", "relative_cut": 0.0, "format": "progressive"},
]


@pytest.fixture
def filled(desk: Desk) -> Desk:
    """A store whose memories differ in age, importance and use."""
    for number, word in enumerate(("ledger", "backup", "replica", "index", "archive", "journal", "vault", "cache")):
        desk.put(
            f"The heron database keeps its {word} in room {word * 2} of house {number}.",
            entity="heron", importance=number / 8, access_count=number % 3 * 5, confidence=1.0 - number / 20,
            source_date=desk.clock.now() - number * 11 * DAY,
        )  # fmt: skip
    desk.put("The ledger of heron moves to Graz in spring, with all of its house.")
    desk.put("The ledger of heron moves to Graz in spring, with all of its houses!")
    desk.put("She said it is the ninth of May.", entity="Anna", key="birthday")
    desk.put("Never call a meeting before nine.", pinned=True)
    return desk


def recalled(desk: Desk, question: str, **options: Any) -> tuple[Recall | None, Receipt, dict[str, Any], RecallOptions]:
    """Return a recall, its receipt, what is stored of it, and the options."""
    chosen = replace(desk.options, deadline=30.0, **options)
    recaller = desk.recaller(Handed([TURN]), deadline=30.0, **options)
    recall, receipt = recaller.recall(question, Audience.of(), session="s")
    body: dict[str, Any] = json.loads(json.dumps(receipt.body(chosen)))
    return recall, receipt, body, chosen


@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("question", QUESTIONS)
def test_a_receipt_ranked_again_gives_the_same_order(filled: Desk, question: str, options: dict[str, Any]) -> None:
    recall, receipt, body, chosen = recalled(filled, question, **options)
    again = replay(body, chosen)
    assert recall is not None
    beside = {PROFILE, LINKS, PASSAGES, FILES, SESSIONS}
    assert set(again.injected) == {item.id for item in recall.items if item.leg not in beside}
    assert again.injected
    assert again.beside == {item.id for item in recall.items if item.leg in beside}
    assert TURN.id in again.beside
    cut = {fact_id for fact_id, why in receipt.verdicts.items() if why in ("no evidence", "far below the best")}
    assert not cut & set(again.ranked)
    assert again.complete


def test_a_link_brings_up_what_was_not_ranked(filled: Desk) -> None:
    far = filled.put("Bring warm clothes and a torch.")
    near = filled.put("The quokka database is on the ground floor.")
    with filled.store.write(Author(Channel.USER)) as tx:
        link(tx, near.id, far.id)
    recall, _, body, chosen = recalled(filled, "Where is the quokka database?")
    assert recall is not None
    assert [item.id for item in recall.items if item.leg == LINKS] == [far.id]
    again = replay(body, chosen)
    assert again.injected == (near.id,)
    assert far.id in again.beside


def test_other_numbers_give_another_order(filled: Desk) -> None:
    _, _, body, chosen = recalled(filled, QUESTIONS[0], relative_cut=0.0)
    first, *others = replay(body, chosen).injected
    assert others
    [entry] = [each for each in body["candidates"] if each["id"] == first]
    entry["factors"] = {"salience": 1e-6}
    assert replay(body, chosen).injected == (*others, first)
    entry["legs"] = dict.fromkeys(entry["legs"], 0.0)
    assert first not in replay(body, replace(chosen, relative_cut=0.5)).ranked


def test_a_silent_turn_is_ranked_as_nothing(desk: Desk) -> None:
    for question in ("thanks", "How tall is the Eiffel tower?"):
        _, receipt = desk.ask(question)
        again = replay(receipt.body(desk.options), desk.options)
        assert (again.ranked, again.injected, again.beside, again.complete) == ((), (), frozenset(), True)


def test_after_a_purge_a_receipt_says_that_it_is_incomplete(filled: Desk) -> None:
    recall, receipt, body, chosen = recalled(filled, QUESTIONS[0])
    assert recall is not None
    store = filled.store
    with store.database.write() as connection:
        receipts.put(connection, receipt.id, receipt.at, "s", "user:owner", body)
    kept = replay(body, chosen)
    assert kept.complete
    purge(store, [kept.injected[0]], Author(Channel.CLI))
    with store.database.read() as connection:
        stored = receipts.get(connection, receipt.id, "user:owner")
    assert stored is not None
    again = replay(stored, chosen)
    assert not again.complete
    assert again.injected == kept.injected, "the ids stay"
