"""The words in which a tool may be called: other names, other forms of a value, and what a refusal says."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pytest

from perdure.api.memory import Memory
from perdure.api.tools import TOOLS, Tool, call_tool
from perdure.hooks.types import ToolResult, TurnContext
from perdure.hosts.mcp.tools import TOOLS as CLIENTS
from tests.kit import DAY, START, OpenMemory, for_each

MAIN = TurnContext(agent_id="main", session_id="s1")
ASKED = "Please remember this, correct it, or forget it."
ALL = (*TOOLS, *CLIENTS)


@pytest.fixture
def memory(open_memory: OpenMemory) -> Memory:
    return open_memory(embedder="none", agent="main")


def call(memory: Memory, name: str, /, tools: Any = TOOLS, **values: Any) -> ToolResult:
    return call_tool(memory, name, values, MAIN, f"{ASKED} {values.get('text', '')}", tools=tools)


def camel(name: str) -> str:
    head, *rest = name.split("_")
    return head + "".join(part.capitalize() for part in rest)


def example(tool: Tool, name: str) -> Any:
    """Return a value that a tool accepts for an argument."""
    schema = tool.parameters["properties"][name]
    if "enum" in schema:
        return schema["enum"][0]
    if name == "as_of":
        return "2026-03-01"
    kinds = {"string": "12345678", "integer": 2, "number": 0.5, "array": ["sea"], "boolean": True}
    return kinds[schema["type"]]


@for_each(("tool", "write"), [(tool, write) for tool in ALL for write in (camel, str.upper, str.title)])
def test_an_argument_may_be_written_in_camel_case_or_snake_case(tool: Tool, write: Any) -> None:
    properties, required = tool.parameters["properties"], tool.parameters.get("required", ())
    one = next((each for each in ("query", "memory", "id", "entity") if each in properties), "")
    for name in properties:
        others = {*required, *({one} & properties.keys() if name not in ("query", "memory", "id", "path") else ())}
        plain = {each: example(tool, each) for each in (*others, name)}
        plain |= {"text": "The boat is red."} if "update" in tool.name else {}
        assert tool.takes.model_validate({write(key): value for key, value in plain.items()}) == (
            tool.takes.model_validate(plain)
        ), name


@for_each("name", ["memory", "id", "memory_id", "memoryId", "fact_id", "factId"])
@for_each("tool", [each for each in ALL if {"memory", "id"} & each.parameters["properties"].keys()])
def test_a_memory_may_be_named_by_other_names_of_the_argument(tool: Tool, name: str) -> None:
    own = next(each for each in ("memory", "id") if each in tool.parameters["properties"])
    rest = {"importance": 0.9} if "update" in tool.name else {}
    expected = tool.takes.model_validate({own: "12345678", **rest})
    assert tool.takes.model_validate({name: "12345678", **rest}) == expected


@pytest.mark.parametrize("tools", [TOOLS, CLIENTS], ids=["native", "mcp"])
def test_a_link_is_made_in_the_words_of_other_systems(memory: Memory, tools: Any) -> None:
    one, other = memory.store("The boat is called Albatross."), memory.store("The harbour is in Kiel.")
    given: dict[str, Any] = {"sourceId": one.id, "targetId": other.id, "linkType": "part_of"}
    if tools is TOOLS:
        given["strength"] = "0.4"
    assert not call(memory, "memory_link", tools, **given).refused
    [related] = memory.related(one.id)
    assert (related.link.type, related.link.strength) == ("PART_OF", 0.4 if tools is TOOLS else 1.0)


@for_each("decay", ["permanent", "durable", "stable", "normal", "active", "short", "session", "ephemeral", "checkpoint",
                    "Permanent", "SESSION"])  # fmt: skip
@for_each("name", ["decayClass", "decay_class"])
def test_every_class_of_the_store_is_accepted(memory: Memory, name: str, decay: str) -> None:
    kept = call(memory, "memory_store", text=f"The boat that {name} tells of is {decay}.", **{name: decay})
    assert memory.get(kept.details["id"]).decay_class == decay.lower()


TIMES = [START, int(START), str(START), str(int(START)), dt.datetime.fromtimestamp(START, dt.UTC).isoformat(),
         "2027-01-15T08:00:00Z", "2027-01-16"]  # fmt: skip


@for_each("when", TIMES)
@for_each("name", ["asOf", "as_of"])
def test_a_time_may_be_a_date_an_iso_time_or_seconds(memory: Memory, name: str, when: Any) -> None:
    found = {
        tool: call(memory, tool, tools, **values, **{name: when})
        for tool, tools, values in (
            ("memory_recall", TOOLS, {"query": "boat"}),
            ("memory_lookup", TOOLS, {"entity": "boat"}),
            ("memory_search", CLIENTS, {"query": "boat"}),
            ("memory_list", CLIENTS, {}),
        )
    }
    assert not [result.text for result in found.values() if result.refused]


def test_as_of_answers_what_was_true_then(memory: Memory, clock: Any) -> None:
    old = memory.store("The boat is called Albatross.", entity="boat", key="name", value="Albatross")
    clock.advance(2 * DAY)
    memory.store("The boat is called Heron.", entity="boat", key="name", value="Heron", supersedes=old.id)
    then = dt.datetime.fromtimestamp(START + DAY, dt.UTC).date().isoformat()
    for name, values in (("memory_recall", {"query": "What is the boat called?"}), ("lookup", {"entity": "boat"})):
        assert "Albatross" in call(memory, name, **values, asOf=then).text
        assert "Heron" in call(memory, name, **values).text
        assert "Albatross" not in call(memory, name, **values).text
        both = call(memory, name, **values, includeSuperseded=True).text
        assert "Albatross" in both
        assert "Heron" in both
        assert "superseded" in both


@for_each("asked", [{"tag": "sea"}, {"category": "entity"}, {"entity": "boat"}, {"tag": ["sea"]}, {"tag": "SEA"}])
def test_a_filter_alone_lists_what_fits(memory: Memory, asked: dict[str, Any]) -> None:
    memory.store("The boat is called Albatross.", category="entity", entity="boat", key="name", tags=["sea"])
    memory.store("The office has a red door.", category="fact", tags=["town"])
    assert [each["text"] for each in call(memory, "memory_recall", **asked).details["memories"]] == [
        "The boat is called Albatross."
    ]
    assert "Nothing" in call(memory, "memory_recall", tag="nothing has this").text


@for_each(
    ("name", "values", "says"),
    [
        ("memory_forget", {"id": "12345678", "memoryId": "87654321"}, "id and memoryId"),
        ("memory_link", {"source": "12345678", "sourceId": "1234", "target": "87654321"}, "source and sourceId"),
        ("memory_recall", {"query": "boat", "asOf": "2026-01-01", "as_of": "2026-01-02"}, "asOf and as_of"),
        (
            "memory_store",
            {"text": "A cat.", "decayClass": "short", "decay_class": "short"},
            "decayClass and decay_class",
        ),
    ],
)
def test_what_is_given_twice_is_refused_by_name(memory: Memory, name: str, values: Any, says: str) -> None:
    result = call(memory, name, **values)
    assert result.refused
    assert f"{name} did nothing: {says}" in result.text


def test_what_is_given_twice_and_once_empty_is_given_once(memory: Memory) -> None:
    kept = call(memory, "memory_store", text="The boat is blue.", decayClass="short", decay_class="")
    assert memory.get(kept.details["id"]).decay_class == "short"


@for_each(
    ("name", "values", "says"),
    [
        ("memory_store", {"text": "A cat.", "importance": "high"},
         "importance: 'high' is not accepted; give a number from 0 to 1."),
        ("memory_store", {"text": "A cat.", "importance": 7},
         "importance: 7 is not accepted; give a number from 0 to 1."),
        ("memory_store", {"text": "A"}, "text: 'A' is not accepted; give a string of 3 to 2,000 characters."),
        ("memory_store", {"text": ["A cat."]},
         "text: ['A cat.'] is not accepted; give a string of 3 to 2,000 characters."),
        ("memory_store", {}, "text is missing; give a string of 3 to 2,000 characters."),
        ("memory_store", {"text": "A cat.", "mood": "good"},
         "unknown argument mood; it takes text, category"),
        ("memory_store", {"text": "A cat.", "decayClass": "forever"},
         "decay_class: 'forever' is not accepted; give one of permanent, durable, normal, short, session, ephemeral."),
        ("memory_store", {"text": "A cat.", "tags": {"a": 1}},
         "tags: {'a': 1} is not accepted; give a list of strings"),
        ("memory_store", {"text": "A cat.", "tags": [["a"]]}, "tags: [['a']] is not accepted; give a list of strings"),
        ("memory_recall", {"query": "boat", "limit": 2.5},
         "limit: 2.5 is not accepted; give a whole number from 1 to 20."),
        ("memory_recall", {"query": "boat", "limit": 99},
         "limit: 99 is not accepted; give a whole number from 1 to 20."),
        ("memory_recall", {"query": "boat", "asOf": "yesterday"},
         "as_of: 'yesterday' is not accepted; give a time, such as"),
        ("memory_recall", {"query": "boat", "as_of": True}, "as_of: True is not accepted; give a time, such as"),
        ("memory_recall", {"query": "boat", "includeSuperseded": "perhaps"},
         "include_superseded: 'perhaps' is not accepted; give true or false."),
        ("memory_link", {"source": "12345678", "target": "87654321", "type": "LIKES"},
         "type: 'LIKES' is not accepted; give one of RELATED_TO, CAUSED_BY"),
        ("memory_get", {"path": "MEMORY.md", "from": 0},
         "from: 0 is not accepted; give a whole number, 1 or more."),
        ("memory_prune", {"hard": True}, "unknown argument hard; it takes none."),
    ],
)  # fmt: skip
def test_a_refusal_names_the_value_and_what_is_accepted(memory: Memory, name: str, values: Any, says: str) -> None:
    result = call(memory, name, **values)
    assert result.refused
    assert f"{name} did nothing: {says}" in result.text


def test_a_call_whose_names_are_no_texts_is_refused(memory: Memory) -> None:
    odd: Any = {5: "boat", None: 1}
    assert call_tool(memory, "memory_recall", odd, MAIN).refused


@for_each("tool", ALL)
def test_no_refusal_speaks_of_types_of_a_program(memory: Memory, tool: Tool) -> None:
    odd: tuple[Any, ...] = ("x", 5, -1, 1e400, True, ["a", ["b"]], {"a": 1}, "2026-13-45", "x" * 5_000, "[[", b"x")
    for name in (*tool.parameters["properties"], "no_such_argument"):
        for value in odd:
            required = dict.fromkeys(tool.parameters.get("required", ()), "The boat is blue.")
            text = call(memory, tool.name, CLIENTS if tool in CLIENTS else TOOLS, **required | {name: value})
            for word in (
                "Input should",
                "Value error",
                "valid ",
                "NoneType",
                "pydantic",
                "Literal",
                "is of type",
                "class ",
            ):
                assert word not in text.text, (name, value, text.text)


@for_each(
    ("given", "kept"),
    [
        ("red boat", ("red boat",)),
        ("sea, red boat", ("sea", "red boat")),
        ('["sea", "red boat"]', ("sea", "red boat")),
        ("['sea', 'red boat']", ("sea", "red boat")),
        (["red boat"], ("red boat",)),
        (("sea", "sea"), ("sea",)),
    ],
)
def test_tags_are_read_the_same_everywhere(memory: Memory, given: Any, kept: tuple[str, ...]) -> None:
    text = f"The boat of {len(str(given))} {type(given).__name__}s is blue and {given} is its tag."
    shed = f"The shed behind house {len(str(given))} has {given} for its tag."
    tool = call(memory, "memory_store", text=shed, tags=given)
    assert memory.get(tool.details["id"]).tags == kept
    assert memory.store(text, tags=given).tags == kept
    assert memory.update(tool.details["id"], tags=given).tags == kept
    [*found] = memory.get_all(tag=given)
    assert {tool.details["id"]} <= {fact.id for fact in found}
