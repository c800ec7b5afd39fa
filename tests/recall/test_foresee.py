"""What a host tells of a prompt beforehand saves the turn its embedding, and nothing else comes of it."""

from __future__ import annotations

import threading

from perdure.store.scope import Audience
from tests.faulty import CountingEmbedder, HangingEmbedder
from tests.recall.conftest import Desk

ASKED = "Where does the heron nest?"


def test_a_prompt_that_was_foreseen_is_not_embedded_in_its_turn(desk: Desk) -> None:
    desk.put("The heron nests at the lake.")
    embedder = CountingEmbedder()
    desk.leg = desk.broken(embedder)
    recaller = desk.recaller()
    recaller.foresee(ASKED, Audience.of(), "s")
    assert embedder.given == [ASKED]
    recall, receipt = recaller.recall(ASKED, Audience.of(), session="s")
    assert embedder.given == [ASKED]
    assert recall is not None
    assert receipt.states["semantic"] == "ok"


def test_small_talk_is_not_embedded(desk: Desk) -> None:
    embedder = CountingEmbedder()
    desk.leg = desk.broken(embedder)
    desk.recaller().foresee("Thanks!", Audience.of())
    assert embedder.given == []


def test_a_model_that_hangs_holds_nobody_longer_than_a_recall(desk: Desk) -> None:
    release = threading.Event()
    hanging = HangingEmbedder(release)
    desk.leg = desk.broken(hanging)
    desk.recaller(deadline=0.05).foresee(ASKED, Audience.of())
    assert hanging.started.is_set()
    release.set()
