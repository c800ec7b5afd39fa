"""The command line. Commands are imported when they are called, so that `--help` is quick."""

from __future__ import annotations

import logging
import os
import sys
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any

import click
from click.shell_completion import CompletionItem

from perdure.cli.log_lines import line_handler
from perdure.cli.output import complain, complain_of_call
from perdure.cli.summaries import SUMMARIES
from perdure.errors import PerdureError

GROUPS = {
    "Start": {
        "demo": "perdure.cli.demo",
        "connect": "perdure.hosts.connect.cli",
        "disconnect": "perdure.hosts.connect.cli",
        "openclaw": "perdure.hosts.openclaw.cli",
        "mcp": "perdure.hosts.mcp.cli",
        "ui": "perdure.ui.cli",
        "doctor": "perdure.cli.doctor",
        "completion": "perdure.cli.completion",
    },
    "Ask": {
        "recall": "perdure.cli.recall",
        "search": "perdure.cli.search",
        "lookup": "perdure.cli.facts",
        "list": "perdure.cli.facts",
        "show": "perdure.cli.show",
        "why": "perdure.cli.recall",
        "why-not": "perdure.cli.recall",
        "history": "perdure.cli.changes",
        "graph": "perdure.cli.links",
        "files": "perdure.cli.files",
    },
    "Change": {
        "store": "perdure.cli.facts",
        "update": "perdure.cli.changes",
        "edit": "perdure.cli.edit",
        "forget": "perdure.cli.facts",
        "unforget": "perdure.cli.facts",
        "pin": "perdure.cli.changes",
        "unpin": "perdure.cli.changes",
        "link": "perdure.cli.links",
        "unlink": "perdure.cli.links",
        "alias": "perdure.cli.alias",
        "undo": "perdure.cli.facts",
    },
    "Review": {
        "review": "perdure.cli.review",
        "audit": "perdure.cli.audit",
        "proposals": "perdure.cli.proposals",
        "inbox": "perdure.cli.inbox",
    },
    "Count": {
        "status": "perdure.cli.status",
        "stats": "perdure.cli.facts",
        "categories": "perdure.cli.scopes",
        "scope": "perdure.cli.scopes",
        "jobs": "perdure.cli.jobs",
    },
    "Keep in order": {
        "consolidate": "perdure.cli.upkeep",
        "classify": "perdure.cli.audit",
        "distill": "perdure.cli.upkeep",
        "reflect": "perdure.cli.upkeep",
        "prune": "perdure.cli.prune",
        "checkpoint": "perdure.cli.checkpoint",
        "index": "perdure.cli.files",
    },
    "Keep safe": {
        "backup": "perdure.cli.backup",
        "move": "perdure.cli.move",
        "export": "perdure.cli.exchange",
        "import": "perdure.importers.cli",
        "verify": "perdure.cli.verify",
        "recover": "perdure.cli.recover",
        "anchor": "perdure.cli.anchor",
        "purge": "perdure.cli.purge",
        "scrub": "perdure.cli.scrub",
        "vault": "perdure.vault.cli",
        "uninstall": "perdure.cli.uninstall",
    },
    "Set up and measure": {
        "config": "perdure.cli.config",
        "model": "perdure.cli.model",
        "eval": "perdure.cli.recall",
        "replay": "perdure.cli.replay",
        "hook": "perdure.hosts.command.cli",
    },
}
"""Commands as `perdure --help` shows them, each with the module that it is in."""
COMMANDS = {name: module for group in GROUPS.values() for name, module in group.items()}

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

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command. Whoever reads what it prints may stop reading at any moment."""
        try:
            code = super().invoke(ctx)
            sys.stdout.flush()
            return code
        except BrokenPipeError:
            _discard()
            ctx.exit(NOBODY_READS)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands in groups, without importing any."""
        for group, names in GROUPS.items():
            with formatter.section(group):
                formatter.write_dl([(name, SUMMARIES.get(name, "")) for name in names])

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command that is called; of one that is unknown say what may be meant."""
        try:
            return super().resolve_command(ctx, args)
        except click.NoSuchCommand as error:
            raise click.NoSuchCommand(error.command_name, possibilities=COMMANDS, ctx=ctx) from None

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Return the commands, or options, that go on from what is typed, without importing any command."""
        names = [CompletionItem(name, help=SUMMARIES.get(name, "")) for name in COMMANDS if name.startswith(incomplete)]
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


def _discard() -> None:
    # The interpreter writes at its end what is left, and would complain again.
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)


def main() -> None:
    """Run the command line: exit code 0 is success, 1 a finding or an error of ours, 2 a wrong call."""
    if sys.stdout is None:
        # Closed by whoever called.
        sys.stdout = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115 - until the process ends
    logging.getLogger("perdure").addHandler(line_handler("%(message)s"))
    try:
        sys.exit(cli.main(prog_name="perdure", standalone_mode=False))
    except PerdureError as error:
        complain(type(error).__name__, str(error))
        sys.exit(1)
    except click.ClickException as error:
        complain_of_call(error)
        sys.exit(error.exit_code)
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
