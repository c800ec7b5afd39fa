"""A command's options are its tool's arguments: of the same name, with the same default, limits and help."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import click
import pytest

from perdure.api.tools import TOOLS
from perdure.cli.main import cli
from tests.cli.calling import call, call_json
from tests.kit import for_each

COMMANDS = {
    "memory_recall": ("recall", "search", "list", "graph"),
    "memory_store": ("store", "alias add"),
    "memory_update": ("update",),
    "memory_forget": ("forget",),
    "lookup": ("lookup",),
    "memory_lookup": ("lookup",),
    "memory_link": ("link",),
    "memory_search": ("files search",),
    "memory_get": ("files read",),
    "memory_why": ("why", "why-not"),
    "memory_checkpoint": ("checkpoint save",),
    "memory_prune": ("prune",),
    "memory_reflect": ("reflect",),
}
"""By tool, the commands for the same."""
SHORTER = {"decay_class": "decay", "include_superseded": "superseded", "minScore": "min-score", "triggers": "trigger"}
"""Options that are not called as the argument is."""
BARE = {
    "recall": "query", "search": "query", "files search": "query", "files read": "path", "store": "text",
    "update": "memory", "forget": "memory query", "lookup": "entity key", "link": "source target",
    "why": "memory", "why-not": "memory", "checkpoint save": "intent",
}  # fmt: skip
"""By command, what it takes without the name of an option."""
LONGER = {"search", "list", "files search"}
"""Commands whose --limit is another than a model's: a screen holds more than a prompt."""


def command(named: str) -> click.Command:
    found: click.Command | None = cli
    for word in named.split():
        assert isinstance(found, click.Group)
        found = found.get_command(click.Context(found), word)
    assert found is not None, named
    return found


def pairs() -> Iterator[tuple[str, str, click.Option, Mapping[str, Any]]]:
    """Yield each option that is an argument of the command's tool."""
    for tool in TOOLS:
        for named in COMMANDS[tool.name]:
            taken = {*BARE.get(named, "").split(), *(("limit", "maxResults") if named in LONGER else ())}
            for option in command(named).params:
                for name, told in tool.arguments.items():
                    called = {f"--{SHORTER.get(name, name).replace('_', '-')}", f"--{name.lower()}"}
                    if isinstance(option, click.Option) and called & {*option.opts} and name not in taken:
                        yield named, name, option, told


def test_every_tool_has_a_command_and_every_command_of_one_has_its_arguments() -> None:
    assert COMMANDS.keys() == {tool.name for tool in TOOLS}
    found = {(named, name) for named, name, *_ in pairs()}
    whole = ("store", "update", "lookup", "link", "files read", "checkpoint save", "reflect")
    missing = {
        (named, name)
        for tool in TOOLS for named in COMMANDS[tool.name] if named in whole
        for name in tool.arguments.keys() - {*BARE.get(named, "").split()} if (named, name) not in found
    }  # fmt: skip
    assert not missing


@for_each(("named", "name", "option", "told"), list(pairs()))
def test_an_option_is_what_its_tool_says(named: str, name: str, option: click.Option, told: Mapping[str, Any]) -> None:
    kind, said = option.type, option.help or ""
    ranged = isinstance(kind, click.IntRange | click.FloatRange)
    assert told["description"].startswith(said.removesuffix(" Repeatable.").rstrip("."))
    assert option.name == name or (named, name) == ("files read", "from")
    assert (option.to_info_dict()["default"] or None) == (told.get("default") or None)
    assert [getattr(kind, end, None) for end in ("min", "max")] == [told.get("minimum"), told.get("maximum")]
    assert ranged == (told.get("type") in ("integer", "number"))
    assert list(getattr(kind, "choices", ())) == list(told.get("enum", ()))


def test_a_value_is_understood_as_a_tool_understands_it() -> None:
    one, other = (call_json("store", text, "--decay", "ACTIVE")["facts"][0] for text in ("Tea is hot.", "Ice is cold."))
    assert one["decay_class"] == "active"
    assert call_json("link", one["id"], other["id"], "--type", "part_of")["type"] == "PART_OF"
    assert call_json("update", one["id"], "--tags", '["drinks", "hot"]')["facts"][0]["tags"] == [
        "drinks", "hot",
    ]  # fmt: skip


@for_each(
    ("words", "told"),
    [
        (("link", "a", "b", "--type", "BESIDE"), "'BESIDE' is not accepted; give one of RELATED_TO, CAUSED_BY"),
        (("link", "a", "b", "--strength", "2"), "0<=x<=1"),
        (("store", "Tea is hot.", "--importance", "-1"), "0<=x<=1"),
        (("store", "Tea is hot.", "--decay", "soon"), "'soon' is not accepted; give one of permanent, durable"),
        (("files", "read", "MEMORY.md", "--from", "0"), "x>=1"),
        (("reflect", "--days", "0"), "1<=x<=36500"),
    ],
)
def test_what_a_tool_refuses_a_command_refuses(words: tuple[str, ...], told: str) -> None:
    with pytest.raises(click.BadParameter, match=told.replace("(", r"\(")):
        call(*words)
