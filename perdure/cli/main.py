"""The command line. Commands are imported when they are called, so that `--help` is quick."""

from __future__ import annotations

import io
import json
import logging
import os
import sys
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

import click
from click.shell_completion import CompletionItem, get_completion_class

from perdure.cli.log_lines import line_handler
from perdure.cli.output import OK, Output, complain, complain_of_call
from perdure.errors import PerdureError
from perdure.text.lexicon import table

_TABLE = table("cli", "commands")
GROUPS = {group: names.split() for group, names in _TABLE["groups"].items()}
"""Commands as `perdure --help` shows them."""
_MODULE_OF = {name: f"perdure.{module}" for module, names in _TABLE["modules"].items() for name in names.split()}
COMMANDS = {name: _MODULE_OF[name] for names in GROUPS.values() for name in names}
"""Each command with the module that it is in."""
_MEANT = {word: name for name, words in _TABLE["words"].items() for word in words.split()}
"""Other words for commands."""
COMPLETES = "_PERDURE_COMPLETE"
"""By which the shell asks for completions; click derives it from the name of the program."""
STOPPED = 130
NOBODY_READS = 141
"""As a shell tells of a command that ended by SIGPIPE."""


class Commands(click.Group):
    """The group of all commands."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of all commands."""
        return sorted(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return a command by its name."""
        if cmd_name not in COMMANDS:
            return None
        module = import_module(COMMANDS[cmd_name])
        # A function cannot be named as a builtin or a keyword is: such a command ends in an underscore.
        name = cmd_name.replace("-", "_")
        command: click.Command = getattr(module, f"{name}_", None) or getattr(module, name)
        return command

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read what is typed; `help`, with or without a command, is what --help is."""
        return super().parse_args(ctx, [*args[1:], "--help"] if args[:1] == ["help"] else args)

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command. Whoever reads what it prints may stop reading at any moment."""
        try:
            code = super().invoke(ctx)
            sys.stdout.flush()
            return code or OK
        except BrokenPipeError:
            _discard()
            ctx.exit(NOBODY_READS)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands in groups, without importing any."""
        for group, names in GROUPS.items():
            with formatter.section(group):
                formatter.write_dl([(name, _summaries().get(name, "")) for name in names])

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command that is called; of one that is unknown say what may be meant."""
        try:
            return super().resolve_command(ctx, args)
        except click.NoSuchCommand as error:
            meant = _MEANT.get(error.command_name.lower())
            told = f"No such command {error.command_name!r}. Did you mean {meant!r}?" if meant else None
            names = None if meant else COMMANDS
            raise click.NoSuchCommand(error.command_name, told, names, ctx) from None

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Return the commands, or options, that go on from what is typed, without importing any command."""
        names = [CompletionItem(name, help=_summaries().get(name)) for name in COMMANDS if name.startswith(incomplete)]
        return [*names, *click.Command.shell_complete(self, ctx, incomplete)]


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="perdure")
def cli() -> None:
    """Long-term memory for AI agents that just works.

    \b
    Exit codes:
      0    done
      1    nothing was found, a check found something, or an error
      2    a wrong call, such as an unknown option
      130  stopped by you
      141  whoever read the output has closed the pipe

    Example: perdure recall "Which database is staging?"
    """  # noqa: D301 - click takes the escape for "keep these lines"


@click.command()
@click.argument("shell")
def completion(shell: str) -> None:
    """Print what a shell needs to complete commands and options: bash, zsh or fish.

    The shell runs what is printed: `eval "$(perdure completion bash)"` in ~/.bashrc.

    Example: perdure completion bash
    """
    kind = get_completion_class(shell)
    if kind is None:
        raise click.BadParameter(f"{shell!r} is no shell that is known here; name bash, zsh or fish")
    script = kind(cli, {}, "perdure", COMPLETES)
    # Not `source`: for bash that runs bash to find out its version, here, where it is not needed.
    Output().raw(script.source_template % script.source_vars())


@cache
def _summaries() -> Mapping[str, str]:
    """Return what each command does, in a line, as `python -m scripts.reference` writes it."""
    path = Path(__file__).with_name("data") / "summaries.json"
    summaries: Mapping[str, str] = json.loads(path.read_text(encoding="utf-8"))
    return summaries


def _discard() -> None:
    # The interpreter writes at its end what is left, and would complain again.
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)


def main() -> None:
    """Run the command line: exit code 0 is success, 1 a finding or an error of ours, 2 a wrong call."""
    if sys.stdout is None:
        # Closed by whoever called.
        sys.stdout = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115 - until the process ends
    for stream in (sys.stdout, sys.stderr):
        # What a console's encoding has no sign for is spelled out.
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    logging.getLogger("perdure").addHandler(line_handler("%(message)s"))
    try:
        sys.exit(cli.main(prog_name="perdure", standalone_mode=False))
    except PerdureError as error:
        complain(type(error).__name__, str(error))
        sys.exit(1)
    except click.ClickException as error:
        complain_of_call(error)
        sys.exit(error.exit_code)
    except UnicodeEncodeError as error:
        complain("UnicodeEncodeError", f"{error.object[:200]!r} cannot be named here; set PYTHONUTF8=1")
        sys.exit(1)
    except OSError as error:
        where = error.filename or "what it prints"
        # It may be stdout itself that takes no more.
        with suppress(OSError):
            complain(type(error).__name__, f"{where} cannot be read or written: {error.strerror}")
            sys.stdout.flush()
        _discard()
        sys.exit(1)
    except click.Abort:
        complain("Abort", "stopped")
        sys.exit(STOPPED)
