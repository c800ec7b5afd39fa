"""Tags: found in the words, given by hand, of one's own making; and asking by tag."""

from __future__ import annotations

from pathlib import Path

import pytest

from perdure.api.memory import Memory
from perdure.errors import InputError, SettingsError
from perdure.store.fact import Fact
from tests.kit import OpenMemory, put, recalled, say
from tests.store.counting import EMBEDDER

PATTERNS = {
    "nibe": ["The NIBE pump hums."],
    "homeassistant": ["Home Assistant runs in the attic.", "homeassistant is up.", "My home-assistant is up."],
    "zigbee": ["The Zigbee stick is black."],
    "z-wave": ["The Z-Wave stick is white.", "The zwave stick is white."],
    "auth": ["The login page is blue.", "OAuth2 is used here.", "Authentication is slow.", "Authorisation failed."],
    "openclaw": ["OpenClaw starts at boot."],
    "postgres": ["Postgres is up.", "PostgreSQL is up."],
    "sqlite": ["SQLite is small."],
    "lancedb": ["LanceDB is derived."],
    "api": ["The API endpoint is slow.", "The api URLs are long."],
    "docker": ["Docker runs it."],
    "kubernetes": ["Kubernetes runs it.", "k8s runs it."],
    "ha": ["HA is up again."],
}


@pytest.mark.parametrize(("tag", "text"), [(tag, text) for tag, texts in PATTERNS.items() for text in texts])
def test_each_of_the_thirteen_tags_is_found(memory: Memory, tag: str, text: str) -> None:
    assert len(PATTERNS) == 13
    assert memory.store(text).tags == (tag,)


@pytest.mark.parametrize(
    ("text", "tags"),
    [
        ("NIBE F1245 uses Modbus TCP on port 502", {"nibe"}),
        ("Home Assistant Zigbee coordinator on /dev/ttyUSB0", {"homeassistant", "zigbee"}),
        ("OAuth token for the API endpoint", {"auth", "api"}),
        ("An author has an apiary, a shapi and a dockerfile in Nibelungen.", set()),
    ],
)
def test_the_words_of_a_text_give_its_tags(memory: Memory, text: str, tags: set[str]) -> None:
    assert set(memory.store(text).tags) == tags


def test_the_entity_gives_tags_too(memory: Memory) -> None:
    assert memory.store("It hums at night.", entity="NIBE F1245", key="noise", value="hum").tags == ("nibe",)


@pytest.mark.parametrize("given", [[], ["hvac"], ["hvac", "modbus"]])
def test_tags_given_by_hand_stand_instead_of_those_found(memory: Memory, given: list[str]) -> None:
    fact = memory.store("The NIBE pump hums.", tags=given)
    assert fact.tags == tuple(given)
    assert memory.get(fact.id).tags == tuple(given)


def test_tags_given_by_hand_stay_with_a_new_version(memory: Memory) -> None:
    fact = memory.store("The NIBE pump hums.", tags=["hvac"])
    assert memory.update(fact.id, text="The NIBE pump hums on Docker days.").tags == ("hvac",)


def test_tags_found_follow_the_new_words(memory: Memory) -> None:
    fact = memory.store("The NIBE pump hums.")
    assert memory.update(fact.id, text="The Zigbee stick hums.").tags == ("zigbee",)


def test_captured_facts_are_tagged(memory: Memory) -> None:
    say(memory, "My NIBE pump is in the cellar.")
    assert [fact.tags for fact in memory.admin.list()] == [("nibe",)]


def test_tags_are_kept_as_a_comma_list_that_a_tag_cannot_break(memory: Memory) -> None:
    fact = memory.store("It hums.", tags=[" HVAC ", "a,b", "hvac", ""])
    assert memory.get(fact.id).tags == ("hvac", "a b")


def test_own_patterns_by_keyword(open_memory: OpenMemory) -> None:
    memory = open_memory(tag_patterns={"boat": r"\b(?:sloop|yawl)s?\b"})
    assert memory.store("Two YAWLS lie beside the NIBE pump.").tags == ("nibe", "boat")


def test_own_patterns_by_environment(open_memory: OpenMemory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PERDURE_TAG_PATTERNS", r'{"boat": "\\b(?:sloop|yawl)s?\\b"}')
    assert open_memory().store("Two yawls lie at berth 9.").tags == ("boat",)


def test_an_own_pattern_replaces_the_built_in_one_of_its_tag(open_memory: OpenMemory) -> None:
    memory = open_memory(tag_patterns={"nibe": "heat pump"})
    assert memory.store("The NIBE hums.").tags == ()
    assert memory.store("The heat pump hums.").tags == ("nibe",)


@pytest.mark.parametrize("value", ['{"boat": ', "[1]", '{"boat": 3}'])
def test_patterns_that_are_no_json_object_of_texts_are_refused(
    open_memory: OpenMemory, monkeypatch: pytest.MonkeyPatch, value: str
) -> None:
    monkeypatch.setenv("PERDURE_TAG_PATTERNS", value)
    with pytest.raises(SettingsError, match=r"(?i)tag_patterns"):
        open_memory()


def test_a_pattern_that_is_no_regular_expression_is_refused(open_memory: OpenMemory) -> None:
    with pytest.raises(SettingsError, match="'boat'"):
        open_memory(tag_patterns={"boat": "(sloop"})


@pytest.mark.parametrize("tag", ["hvac", "HVAC ", "modbus", "heat pump", "hvac,modbus"])
def test_a_whole_tag_is_asked_for(memory: Memory, home: Path, tag: str) -> None:
    fact = memory.store("The pump hums.", entity="pump", key="noise", value="hum", tags=["hvac", "modbus", "heat pump"])
    assert [found.id for found in memory.admin.list(tag=tag)] == [fact.id]
    assert [found.id for found in memory.lookup("pump", tag=tag)] == [fact.id]
    assert recalled(memory, "Which pump hums?", tag=tag) == ["The pump hums."]


@pytest.mark.parametrize("tag", ["hva", "vac", "hvac,boat", "hvac%", "%", "hvac_", "heat", "pump"])
def test_a_part_of_a_tag_finds_nothing(memory: Memory, tag: str) -> None:
    memory.store("The pump hums.", entity="pump", key="noise", value="hum", tags=["hvac", "modbus", "heat pump"])
    assert memory.admin.list(tag=tag) == []
    assert memory.lookup("pump", tag=tag) == []
    assert recalled(memory, "Which pump hums?", tag=tag) == []


@pytest.mark.parametrize("tag", ["", " ", ","])
def test_an_empty_tag_is_refused(memory: Memory, tag: str) -> None:
    with pytest.raises(InputError, match="tag is empty"):
        memory.admin.list(tag=tag)
    with pytest.raises(InputError, match="tag is empty"):
        memory.lookup("pump", tag=tag)


def test_a_tag_is_kept_with_its_other_tags_in_any_order(memory: Memory, home: Path) -> None:
    put(home, *(Fact(f"Number {n}.", tags=tags) for n, tags in enumerate([("a", "b"), ("b", "a"), ("ab",), ("b",)])))
    assert {fact.text for fact in memory.admin.list(tag="a")} == {"Number 0.", "Number 1."}


@pytest.fixture
def counting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, open_memory: OpenMemory) -> Memory:
    """A memory whose embedder comes from an installed extension and counts what it embeds."""
    info = tmp_path / "site" / "perdure_counting-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: perdure-counting\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[perdure]\ncounting = tests.store.counting\n")
    monkeypatch.syspath_prepend(info.parent)
    monkeypatch.setenv("PERDURE_LOAD_EXTENSIONS", "1")
    memory = open_memory(embedder="counting")
    assert memory.status().model == "ready: hash"
    return memory


def test_a_recall_by_tag_embeds_nothing(counting: Memory) -> None:
    counting.store("The pump hums.", tags=["hvac"])
    counting.store("The pump of the fountain hums.", tags=["garden"])
    EMBEDDER.given.clear()
    recall = counting.recall("Which pump hums?", tag="hvac")
    assert recall is not None
    assert [(item.text, item.leg) for item in recall.items] == [("The pump hums.", "sqlite")]
    assert counting.lookup("pump", tag="hvac") == []
    assert len(counting.admin.list(tag="hvac")) == 1
    assert EMBEDDER.given == []
    counting.recall("Which pump hums?")
    assert EMBEDDER.given == ["Which pump hums?"]
