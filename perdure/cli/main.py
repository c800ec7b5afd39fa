"""The command line. A command is imported when it is called, so that `--help` is quick."""

from __future__ import annotations

import io
import json
import logging
import os
import sys
from collections.abc import Mapping, Sequence
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
FIRST, MORE = ({group: names.split() for group, names in _TABLE[part].items()} for part in ("first", "more"))
"""Commands as `perdure --help` and `perdure more` show them, in groups."""
_MODULE_OF = {name: f"perdure.{module}" for module, names in _TABLE["modules"].items() for name in names.split()}
COMMANDS = {name: _MODULE_OF[name] for part in (FIRST, MORE) for names in part.values() for name in names}
"""Each command and its module."""
ALIASES = {name: words.split() for name, words in _TABLE["aliases"].items()}
"""Other words for commands."""
_COMMAND_OF = {word: name for name, words in ALIASES.items() for word in words}
COMPLETES = "_PERDURE_COMPLETE"
"""The variable by which a shell asks for completions; click derives it from the program's name."""
STOPPED = 130
NOBODY_READS = 141
"""What a shell reports for a command ended by SIGPIPE."""


class Commands(click.Group):
    """The group of all commands."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of all commands."""
        return sorted(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return a command by its name or another word for it."""
        cmd_name = _COMMAND_OF.get(cmd_name.lower(), cmd_name)
        if cmd_name not in COMMANDS:
            return None
        module = import_module(COMMANDS[cmd_name])
        # A function cannot be named like a builtin or a keyword: such a command ends in an underscore.
        name = cmd_name.replace("-", "_")
        command: click.Command = getattr(module, f"{name}_", None) or getattr(module, name)
        if cmd_name in ALIASES:
            command.epilog = f"Also: {', '.join(ALIASES[cmd_name])}."
        return command

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse arguments; `help`, with or without a command, means --help."""
        return super().parse_args(ctx, [*args[1:], "--help"] if args[:1] == ["help"] else args)

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command. The reader of its output may close the pipe at any moment."""
        try:
            code = super().invoke(ctx)
            sys.stdout.flush()
            return code or OK
        except BrokenPipeError:
            _discard()
            ctx.exit(NOBODY_READS)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the first commands in groups, without importing any."""
        _write_groups(formatter, FIRST)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command that is called; suggest near names for an unknown one."""
        try:
            return super().resolve_command(ctx, args)
        except click.NoSuchCommand as error:
            raise click.NoSuchCommand(error.command_name, None, [*COMMANDS, *_COMMAND_OF], ctx) from None

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Return the commands and options that complete what is typed, without importing any command."""
        names = [CompletionItem(name, help=_summaries().get(name)) for name in COMMANDS if name.startswith(incomplete)]
        return [*names, *click.Command.shell_complete(self, ctx, incomplete)]


@click.group(cls=Commands, invoke_without_command=True, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="perdure")
@click.option("--json", "as_json", is_flag=True, help="Without a command: print the greeting as JSON.")
@click.pass_context
def cli(ctx: click.Context, as_json: bool) -> None:
    """Long-term memory that just works, for AI agents.

    \b
    Exit codes:
      0    success
      1    nothing found, a check failed, or an error
      2    usage error, such as an unknown option
      130  interrupted
      141  output pipe closed

    Example: perdure recall "Which database is staging?"
    """  # noqa: D301 - click takes the escape for "keep these lines"
    if ctx.invoked_subcommand is None:
        greet(Output(as_json))
    elif as_json:
        raise click.UsageError(f"put --json after the command: perdure {ctx.invoked_subcommand} --json")


def greet(output: Output) -> None:
    """Print what perdure is, what is on this machine, and what to do next."""
    from perdure.cli.greeting import greeting

    greeting(output)


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object and nothing else.")
def more(as_json: bool) -> None:
    """List all other commands.

    Example: perdure more
    """
    output, formatter = Output(as_json), click.get_current_context().make_formatter()
    output.json(
        {"groups": {group: {name: _summaries().get(name, "") for name in names} for group, names in MORE.items()}}
    )
    _write_groups(formatter, MORE)
    output.text(f"{formatter.getvalue()}\nHelp for a command: perdure help COMMAND")


@click.command()
@click.argument("shell")
def completion(shell: str) -> None:
    """Print a shell's completion script: bash, zsh or fish.

    Load it in ~/.bashrc: `eval "$(perdure completion bash)"`.

    Example: perdure completion bash
    """
    kind = get_completion_class(shell)
    if kind is None:
        raise click.BadParameter(f"unknown shell {shell!r}; use bash, zsh or fish")
    script = kind(cli, {}, "perdure", COMPLETES)
    # Not `source`: for bash that runs bash to find out its version, which is not needed here.
    Output().raw(script.source_template % script.source_vars())


def _write_groups(formatter: click.HelpFormatter, groups: Mapping[str, Sequence[str]]) -> None:
    for group, names in groups.items():
        with formatter.section(group):
            formatter.write_dl([(name, _summaries().get(name, "")) for name in names])


@cache
def _summaries() -> Mapping[str, str]:
    """Return each command's summary line, as `python -m scripts.reference` writes it."""
    path = Path(__file__).with_name("data") / "summaries.json"
    summaries: Mapping[str, str] = json.loads(path.read_text(encoding="utf-8"))
    return summaries


def _discard() -> None:
    # At exit the interpreter flushes what is left, and would complain again.
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)


def main() -> None:
    """Run the command line: exit code 0 is success, 1 a finding or an error of ours, 2 a usage error."""
    if sys.stdout is None:
        # The caller closed it.
        sys.stdout = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115 - until the process ends
    for stream in (sys.stdout, sys.stderr):
        # Escape what the console's encoding cannot show.
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    logging.getLogger("perdure").addHandler(line_handler("%(message)s"))
    try:
        sys.exit(cli.main(prog_name="perdure", standalone_mode=False))
    except PerdureError as error:
        complain(type(error).__name__, str(error))
        sys.exit(1)
    except click.exceptions.NoArgsIsHelpError as error:
        # A group without a command.
        Output().text(error.format_message())
    except click.ClickException as error:
        complain_of_call(error)
        sys.exit(error.exit_code)
    except UnicodeEncodeError as error:
        complain("UnicodeEncodeError", f"cannot encode {error.object[:200]!r} here; set PYTHONUTF8=1")
        sys.exit(1)
    except OSError as error:
        where = error.filename or "the output"
        # stdout itself may be what fails.
        with suppress(OSError):
            complain(type(error).__name__, f"cannot read or write {where}: {error.strerror}")
            sys.stdout.flush()
        _discard()
        sys.exit(1)
    except click.Abort:
        complain("Abort", "aborted")
        sys.exit(STOPPED)
