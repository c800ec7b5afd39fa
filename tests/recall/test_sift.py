"""Subjects that are named without being meant, and answers that go by another name; with the real store."""

from __future__ import annotations

from typing import TYPE_CHECKING

from perdure.recall.sift import DOUBTFUL

if TYPE_CHECKING:
    from tests.recall.conftest import Desk


def test_a_subject_alone_is_no_answer(desk: Desk) -> None:
    fact = desk.put("Carla's birthday is the ninth of November.", entity="Carla", key="birthday")
    recall, receipt = desk.ask("Who is the supervisor of Carla?")
    assert recall is None
    assert not receipt.verdicts[fact.id].startswith("injected")
    recall, _ = desk.ask("When is the birthday of Carla?")
    assert recall is not None
    assert [item.id for item in recall.items] == [fact.id]


def test_a_doubt_is_named_in_the_receipt(desk: Desk) -> None:
    desk.leg = None
    fact = desk.put("Carla collects stamps.", entity="Carla")
    recall, receipt = desk.ask("Who is the supervisor of Carla?")
    assert recall is None
    assert receipt.verdicts[fact.id].startswith(DOUBTFUL)


def test_an_answer_under_another_name_brings_what_links_the_names(desk: Desk) -> None:
    naming = desk.put("The staging server is called heron.", entity="staging server", key="name", value="heron")
    answer = desk.put("heron answers on port 8443.", entity="heron", key="port", value="8443")
    desk.put("heron was bought in Graz.", entity="heron", key="origin", value="Graz")
    recall, receipt = desk.ask("Which port is the staging server on?")
    assert recall is not None
    assert {item.id for item in recall.items} == {naming.id, answer.id}
    assert receipt.renamed == {naming.id, answer.id}
