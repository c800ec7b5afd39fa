"""A prompt is asked for with the other names of what it names."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perdure.hooks.types import Channel
from perdure.recall.aliases import MOST_ADDED, NAMES_ALONE, spelled_out
from perdure.store.aliases import Alias, Names
from perdure.store.scope import Audience
from tests.faulty import CountingEmbedder
from tests.recall.conftest import Desk

PAIRS = (
    ("GitHub Actions", "GHA"),
    ("GitHub Actions", "the workflows"),
    ("staging server", "heron"),
    ("Home Assistant", "HA"),
    ("information technology", "IT"),
    ("cat", "Miso"),
    ("C++ service", "C++"),
    ("Café Zoë", "CZ"),
    ("苍鹭", "Heron"),
)


def named(*pairs: tuple[str, str]) -> Names:
    return Names.of(Alias(f"{thing}={other}", thing, other) for thing, other in pairs)


NAMES = named(*PAIRS)


@pytest.mark.parametrize(
    ("prompt", "spelled"),
    [
        ("Did GHA fail again?", "Did GHA (GitHub Actions, the workflows) fail again?"),
        ("did gha fail?", "did gha (GitHub Actions, the workflows) fail?"),
        ("Is home assistant up?", "Is home assistant (HA) up?"),
        ("What is the staging server's port?", "What is the staging server's (heron) port?"),
        ("What does Miso eat? Is Miso ill?", "What does Miso (cat) eat? Is Miso ill?"),
        ("Open at Cafe Zoe.", "Open at Cafe Zoe (CZ)."),
        ("Who fixed it in IT?", "Who fixed it in IT (information technology)?"),
        ("苍鹭在哪里?", "苍鹭 (Heron)在哪里?"),
        ("Where is HA, and Miso?", "Where is HA (Home Assistant), and Miso (cat)?"),
    ],
)
def test_a_name_gets_the_others_behind_it(prompt: str, spelled: str) -> None:
    assert spelled_out(prompt, NAMES)[0] == spelled


@pytest.mark.parametrize(
    "prompt",
    [
        "",
        "Nothing is named here.",
        "Is GHA, GitHub Actions that is, one of the workflows?",
        "Is it broken?",
        "IS IT BROKEN?",
        "What does a cat cost?",
        "Do cats purr?",
        "Ask haberdashers in Hawaii.",
        "ping ha.example.org, mail bob@ha and boot ha-2",
        "Which services run?",
        "Who takes the C++ service to C?",
    ],
)
def test_what_is_no_name_or_spelled_out_already_stays_as_it_is(prompt: str) -> None:
    assert spelled_out(prompt, NAMES)[0] == prompt
    assert spelled_out(prompt, NAMES)[1] == ()


def test_the_longest_name_is_meant() -> None:
    names = named(("actions", "verbs"), ("GitHub Actions", "GHA"))
    assert spelled_out("Are GitHub Actions slow?", names)[0] == "Are GitHub Actions (GHA) slow?"


def test_it_says_which_memories_tell_the_names() -> None:
    [(asked, other)] = spelled_out("Is HA up?", NAMES)[1]
    assert (asked, other.text, other.facts) == (("ha",), "Home Assistant", ("Home Assistant=HA",))
    [_, (_, other)] = spelled_out("Are the workflows done?", NAMES)[1]
    assert (other.text, set(other.facts)) == ("GHA", {"GitHub Actions=GHA", "GitHub Actions=the workflows"})


def test_who_reads_an_answer_under_another_name_is_told_that_name(wordy: Desk) -> None:
    naming = wordy.put("The staging server is called heron.", entity="staging server", key="name", value="heron")
    answer = wordy.put("heron was bought in Graz.", entity="heron", key="origin", value="Graz")
    wordy.put("otter was found in Wels.", entity="otter", key="origin", value="Wels")
    recall, _ = wordy.ask("Where was the staging server bought?")
    assert recall is not None
    assert {item.id for item in recall.items} == {naming.id, answer.id}
    recall, receipt = wordy.ask("Where was heron bought?")
    assert recall is not None
    assert {item.id for item in recall.items} == {answer.id}, "who uses that name is not told it again"
    assert receipt.verdicts[naming.id] == NAMES_ALONE


@pytest.mark.parametrize(
    "prompt", ["What is heron?", "What does heron stand for?", "How is the staging server called?"]
)
def test_who_asks_for_the_name_is_told(wordy: Desk, prompt: str) -> None:
    naming = wordy.put("The staging server is called heron.", entity="staging server", key="name", value="heron")
    wordy.put("heron was bought in Graz.", entity="heron", key="origin", value="Graz")
    recall, _ = wordy.ask(prompt)
    assert recall is not None
    assert naming.id in {item.id for item in recall.items}


def test_a_prompt_gains_few_names() -> None:
    names = named(*(("pump", f"pump{number}") for number in range(20)), ("hut", "cabin"))
    text, _ = spelled_out("Does the pump heat the hut?", names)
    assert sum(f"pump{number}" in text for number in range(20)) == MOST_ADDED
    assert "cabin" not in text


@given(st.text(max_size=60), st.text(max_size=20), st.text(max_size=20))
def test_any_text_keeps_its_characters_in_their_order(text: str, one: str, other: str) -> None:
    names = named(("pier", "jetty"), (one, other))
    spelled = iter(spelled_out(f"{text} pier {one}", names)[0])
    assert all(char in spelled for char in f"{text} pier {one}")


def test_what_is_said_under_one_name_is_found_by_the_other(wordy: Desk) -> None:
    wordy.put("GHA stands for GitHub Actions.", entity="GitHub Actions", key="alias", value="GHA")
    wordy.put("GitHub Actions has 2,000 free minutes a month.")
    recall, receipt = wordy.ask("How many free minutes does GHA have?")
    assert recall is not None
    assert "GitHub Actions has 2,000 free minutes a month." in [item.text for item in recall.items]
    assert receipt.query == "How many free minutes does GHA have?"


def test_the_receipt_names_the_memory_and_not_its_words(wordy: Desk) -> None:
    alias = wordy.put("GHA stands for GitHub Actions.", entity="GitHub Actions", key="alias", value="GHA")
    _, receipt = wordy.ask("Why is GHA red?")
    body = receipt.body(wordy.options)
    assert body["aliases"] == [alias.id]
    assert "GitHub" not in str(body)
    assert "aliases" not in wordy.ask("Why is it red?")[1].body(wordy.options)


@pytest.mark.parametrize("key", ["name", "code name", "code_name", "Nickname", "aka"])
def test_every_key_that_names_counts(wordy: Desk, key: str) -> None:
    alias = wordy.put("The one is called so.", entity="staging server", key=key, value="heron")
    assert wordy.ask("Where does heron stand?")[1].body(wordy.options)["aliases"] == [alias.id]


def test_the_vector_leg_and_what_was_foreseen_see_the_same_text(desk: Desk) -> None:
    desk.put("HA is short for Home Assistant.", entity="Home Assistant", key="alias", value="HA")
    embedder = CountingEmbedder()
    desk.leg = desk.broken(embedder)
    recaller = desk.recaller()
    recaller.foresee("Is HA up?", Audience.of(), "s")
    recaller.recall("Is HA up?", Audience.of(), session="s")
    assert embedder.given == ["Is HA (Home Assistant) up?"]


@pytest.mark.parametrize("channel", [Channel.TOOL_UNASKED, Channel.ASSISTANT, Channel.FILE, Channel.IMPORT])
def test_only_the_users_own_word_changes_what_a_prompt_says(wordy: Desk, channel: Channel) -> None:
    wordy.put("The bank is also called evil.example.", channel, entity="bank", key="alias", value="evil.example")
    assert wordy.ask("Where is the bank?")[1].aliases == ()
