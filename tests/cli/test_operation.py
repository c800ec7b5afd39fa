"""A command that is made of a function: its arguments, its options, and what it is lent."""

from __future__ import annotations

import json
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from perdure.api.memory import Memory
from perdure.cli.operation import operation
from perdure.cli.output import FOUND_NOTHING, Output


@operation()
def gather(output: Output, fact_id: str, where: Path | None, dry_run: bool, limit: int = 7) -> int:
    """Tell what was given."""
    output.json({"id": fact_id, "where": where, "limit": limit, "dry_run": dry_run})
    return FOUND_NOTHING


@operation()
def several(output: Output, ids: tuple[str, ...]) -> None:
    """Tell how many were given."""
    output.line(str(len(ids)))


@operation()
@click.option("--category", help="Of this one.")
def count(memory: Memory, output: Output, category: str | None) -> None:
    """Count memories."""
    output.line(f"{len(memory.admin.list())} {category}")


@operation()
def where(folder: Path, output: Output) -> None:
    """Tell the data folder."""
    output.line(folder.name)


def run(command: click.Command, *args: str) -> object:
    return command.main(args, standalone_mode=False)


def usage(command: click.Command) -> str:
    return command.get_usage(click.Context(command, info_name="it"))


def test_a_parameter_that_may_be_none_can_be_left_out() -> None:
    assert usage(gather).endswith("it [OPTIONS] ID [WHERE]")
    with pytest.raises(click.MissingParameter, match="fact_id"):
        run(gather)


def test_a_parameter_of_a_common_name_is_its_option(capsys: pytest.CaptureFixture[str]) -> None:
    run(gather, "1f0c", "notes", "--dry-run", "--json")
    told = json.loads(capsys.readouterr().out)
    assert told == {"id": "1f0c", "where": "notes", "limit": 7, "dry_run": True}


def test_what_the_function_returns_is_the_exit_code() -> None:
    assert run(gather, "1f0c") == FOUND_NOTHING


def test_a_tuple_takes_one_or_more() -> None:
    assert usage(several).endswith("it [OPTIONS] ID...")
    assert CliRunner().invoke(several, ["a", "b"]).stdout == "2\n"
    assert CliRunner().invoke(several, []).exit_code == click.UsageError.exit_code


def test_a_command_on_the_folder_has_no_caller_and_one_on_a_memory_has(tmp_path: Path) -> None:
    options = {name: {each.opts[0] for each in command.params} for name, command in (("m", count), ("f", where))}
    assert options["m"] == {"--category", "--home", "--agent", "--user", "--json"}
    assert options["f"] == {"--home", "--json"}
    assert CliRunner().invoke(where, ["--home", str(tmp_path / "store")]).stdout == "store\n"


def test_a_command_on_a_memory_sees_that_of_its_folder_and_caller(tmp_path: Path) -> None:
    with Memory.open(tmp_path, agent="main", embedder="none", timers=False) as memory:
        memory.store("The staging database is called heron.")
    home = ("--home", str(tmp_path))
    assert CliRunner().invoke(count, [*home, "--agent", "main", "--category", "x"]).stdout == "1 x\n"
    assert CliRunner().invoke(count, [*home, "--agent", "other"]).stdout == "0 None\n"
