"""What holds for every command, and which method of the library each stands for."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from perdure.api.admin import Admin
from perdure.api.aliases import Aliases
from perdure.api.files import Files
from perdure.api.memory import Memory
from perdure.api.upkeep import Upkeep
from perdure.cli.main import ALIASES, FIRST, MORE, cli
from perdure.cli.options import dry_run_option, store_options, yes_option
from scripts.reference import commands
from tests.kit import for_each

COMMANDS = dict(commands(cli))
PLAIN = {name: command for name, command in COMMANDS.items() if not isinstance(command, click.Group)}

METHODS: Mapping[str, str] = {
    "Memory.store": "perdure store",
    "Memory.add": "perdure store",
    "Memory.search": "perdure search",
    "Memory.get_all": "perdure list",
    "Memory.delete": "perdure forget",
    "Memory.history": "perdure history",
    "Memory.update": "perdure update",
    "Memory.forget": "perdure forget",
    "Memory.unforget": "perdure unforget",
    "Memory.pin": "perdure pin",
    "Memory.link": "perdure link",
    "Memory.unlink": "perdure unlink",
    "Memory.related": "perdure graph",
    "Memory.undo": "perdure undo",
    "Memory.recall": "perdure recall",
    "Admin.evaluate": "perdure eval",
    "Memory.why": "perdure why",
    "Memory.why_not": "perdure why-not",
    "Memory.get": "perdure show",
    "Admin.triggers": "perdure show",
    "Memory.lookup": "perdure lookup",
    "Admin.changes": "perdure history",
    "Memory.status": "perdure status",
    "Admin.vault": "perdure vault list",
    "Upkeep.consolidate": "perdure consolidate",
    "Upkeep.reflect": "perdure reflect",
    "Upkeep.distill": "perdure distill",
    "Upkeep.proposals": "perdure review propose",
    "Upkeep.checkpoint": "perdure checkpoint save",
    "Upkeep.checkpoints": "perdure checkpoint list",
    "Upkeep.restore": "perdure checkpoint restore",
    "Admin.list": "perdure list",
    "Admin.search": "perdure search",
    "Admin.stats": "perdure stats",
    "Admin.scopes": "perdure stats",
    "Admin.assign": "perdure assign",
    "Admin.forget_many": "perdure forget",
    "Admin.review": "perdure review list",
    "Admin.approve": "perdure review approve",
    "Admin.reject": "perdure review reject",
    "Admin.replaced": "perdure review",
    "Admin.take_back": "perdure review take-back",
    "Admin.audit": "perdure review audit",
    "Admin.classify": "perdure classify",
    "Admin.inventory": "perdure list",
    "Admin.purge": "perdure purge",
    "Admin.scrub": "perdure scrub",
    "Admin.prune": "perdure prune",
    "Admin.jobs": "perdure jobs",
    "Admin.run_job": "perdure jobs run",
    "Admin.librarian": "perdure librarian status",
    "Admin.inbox": "perdure review",
    "Admin.drop_turns": "perdure review drop",
    "Admin.verify": "perdure verify",
    "Admin.backup": "perdure backup",
    "Admin.export": "perdure export",
    "Admin.import_from": "perdure import",
    "Aliases.add": "perdure alias add",
    "Aliases.list": "perdure alias list",
    "Aliases.remove": "perdure alias remove",
    "Files.search": "perdure files search",
    "Files.read": "perdure files read",
    "Files.add": "perdure files add",
    "Files.remove": "perdure files remove",
    "Files.add_transcript": "perdure files transcript",
    "Files.sync": "perdure index",
    "Files.embed": "perdure index",
    "Files.status": "perdure files status",
    "Files.append_note": "perdure files note",
}

NO_COMMAND: Mapping[str, str] = {
    "Memory.open": "every command opens the store",
    "Memory.close": "every command closes it",
    "Memory.for_user": "`--user` names one",
    "Memory.ready": "a command that needs the model waits for it",
    "Memory.settle": "a command leaves nothing behind to wait for",
    "Admin.sync_index": "the worker does it, and `perdure verify --fix` mends it",
    "Admin.has": "`perdure show` says so with its exit code",
    "Admin.live_ids": "`perdure list --json` has them",
    "Admin.embed": "a vector tells a person nothing",
    "Memory.turns": "what a host tells of its turns; `perdure replay` plays them",
    "Memory.files": "`perdure files`",
    "Admin.notices": "every command that reads tells them on stderr",
    "Memory.admin": "its methods have commands of their own",
    "Memory.upkeep": "its methods have commands of their own",
    "Memory.aliases": "its methods have commands of their own",
    "Files.flush_due": "only a host knows its window of tokens",
    "Files.paths": "a client of the MCP server chooses among them; `perdure files search` names the file of each hit",
    "Files.prompt_sections": "only a host has a system prompt",
}
"""Methods that make no sense on the command line, and why."""

NO_JSON: Mapping[str, str] = {
    "perdure completion": "a shell runs what it prints",
    "perdure hook": "what it prints is for the host, by its schema",
    "perdure mcp": "what it prints is the protocol",
    "perdure ui": "what it shows is a page",
}
"""Commands whose output is not for a script to read, and why."""


@click.command()
@dry_run_option
@yes_option
@store_options
def example() -> None:
    """Have every option that means the same everywhere."""


SHARED = {option.opts[0]: option.help for option in example.params if isinstance(option, click.Option)}
"""Options that mean the same everywhere, in the order in which they are told."""


def public(of: type) -> set[str]:
    return {f"{of.__name__}.{name}" for name in dir(of) if not name.startswith("_")}


@pytest.mark.parametrize("of", [Memory, Admin, Aliases, Files, Upkeep])
def test_every_public_method_has_its_command_or_a_reason(of: type) -> None:
    named = {name for name in METHODS.keys() | NO_COMMAND.keys() if name.startswith(f"{of.__name__}.")}
    assert named == public(of), "name it in METHODS or NO_COMMAND"


def test_the_commands_that_methods_stand_for_are_there() -> None:
    assert set(METHODS.values()) <= COMMANDS.keys()
    assert not METHODS.keys() & NO_COMMAND.keys()
    assert NO_JSON.keys() <= PLAIN.keys()


@for_each("name", COMMANDS)
def test_the_help_ends_with_one_example_that_parses(name: str) -> None:
    *_, last = (COMMANDS[name].help or "").strip().splitlines()
    assert last.strip().startswith("Example: perdure ")
    assert (COMMANDS[name].help or "").count("Example:") == 1
    result = CliRunner().invoke(cli, [*name.split()[1:], "--help"])
    assert result.exit_code == 0
    assert "Example: perdure" in result.output


@for_each("name", PLAIN)
def test_every_command_takes_json_and_explains_its_options(name: str) -> None:
    options = {option: each for each in PLAIN[name].params if isinstance(each, click.Option) for option in each.opts}
    assert ("--json" in options) == (name not in NO_JSON)
    assert [option for option, each in options.items() if not each.help] == []


@for_each("name", PLAIN)
def test_what_many_commands_have_is_the_same_and_comes_last(name: str) -> None:
    options = [each for each in PLAIN[name].params if isinstance(each, click.Option)]
    shared = [each.opts[0] for each in options if each.opts[0] in SHARED]
    assert shared == [option for option in SHARED if option in shared]
    assert shared == [each.opts[0] for each in options[len(options) - len(shared) :]]
    assert all(each.help == SHARED[each.opts[0]] for each in options if each.opts[0] in SHARED)


def test_a_wrong_call_ends_with_2_and_what_is_not_there_with_1(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PERDURE_HOME", str(tmp_path))
    assert [code("list", "--no-such-option"), code("show", "deadbeef"), code("list")] == [2, 1, 0]


def code(*words: str) -> int:
    """Return the exit code of a command."""
    return subprocess.run([sys.executable, "-m", "perdure", *words], capture_output=True).returncode


def test_the_first_help_is_short_and_with_more_has_every_command() -> None:
    groups = [name for part in (FIRST, MORE) for names in part.values() for name in names]
    assert sorted(groups) == sorted(set(groups)) == sorted(cli.list_commands(click.Context(cli)))
    assert len(FIRST) == 5
    assert sum(map(len, FIRST.values())) <= 18
    for told, part in (("--help", FIRST), ("more", MORE)):
        shown = CliRunner(env={"COLUMNS": "80"}).invoke(cli, [told]).output
        assert all(f"{group}:\n" in shown for group in part)
        assert set(re.findall(r"^  (\S+)", shown, re.MULTILINE)) >= {name for names in part.values() for name in names}
        assert "..." not in shown.partition("Start:")[2] + shown.partition("Hosts:")[2]


@for_each("name", COMMANDS)
def test_a_list_of_commands_has_each_on_a_line_of_80_columns(name: str) -> None:
    shown = CliRunner(env={"COLUMNS": "80"}).invoke(cli, [*name.split()[1:], "--help"]).output
    listed = [line for line in shown.partition("\nCommands:\n")[2].splitlines() if line.strip()]
    group = COMMANDS[name]
    if isinstance(group, click.Group) and group is not cli:
        assert len(listed) == len(group.commands), shown
        assert not any(line.endswith("...") for line in listed), shown


def test_an_unknown_command_or_option_is_answered_with_what_may_be_meant() -> None:
    assert "'recall'" in CliRunner().invoke(cli, ["recal", "x"]).output
    assert "--state" in CliRunner().invoke(cli, ["list", "--stat", "x"]).output


def test_other_words_for_commands_work_and_its_help_alone_tells_them() -> None:
    for name, words in {"store": ["add", "remember"], "forget": ["delete", "rm"], "list": ["ls", "LS"]}.items():
        shown = CliRunner().invoke(cli, [name, "--help"]).output
        for word in words:
            assert CliRunner().invoke(cli, [word, "--help"]).output == shown.replace(f"cli {name}", f"cli {word}")
        assert f"Also: {', '.join(ALIASES[name])}." in shown
    first = CliRunner().invoke(cli, ["--help"]).output
    assert not {word for words in ALIASES.values() for word in words} & set(
        re.findall(r"^  (\w+)", first, re.MULTILINE)
    )


def test_help_is_a_word_too() -> None:
    assert CliRunner().invoke(cli, ["help"]).output == CliRunner().invoke(cli, ["--help"]).output
    assert CliRunner().invoke(cli, ["help", "alias", "add"]).output.startswith("Usage: cli alias add ")
    assert CliRunner().invoke(cli, ["help", "rm"]).output.startswith("Usage: cli rm ")
