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

from perdure.cli.output import complain, complain_of_call
from perdure.cli.summaries import SUMMARIES
from perdure.errors import PerdureError
from perdure.hosts.log_lines import line_handler

COMMANDS = {
    "alias": "perdure.cli.alias",
    "anchor": "perdure.cli.anchor",
    "audit": "perdure.cli.audit",
    "backup": "perdure.cli.backup",
    "categories": "perdure.cli.scopes",
    "checkpoint": "perdure.cli.checkpoint",
    "classify": "perdure.cli.audit",
    "completion": "perdure.cli.completion",
    "config": "perdure.cli.config",
    "connect": "perdure.cli.connect",
    "consolidate": "perdure.cli.upkeep",
    "demo": "perdure.cli.demo",
    "disconnect": "perdure.cli.connect",
    "distill": "perdure.cli.upkeep",
    "doctor": "perdure.cli.doctor",
    "edit": "perdure.cli.edit",
    "eval": "perdure.cli.recall",
    "export": "perdure.cli.exchange",
    "files": "perdure.cli.files",
    "forget": "perdure.cli.facts",
    "graph": "perdure.cli.links",
    "history": "perdure.cli.changes",
    "hook": "perdure.cli.hook",
    "import": "perdure.cli.importing",
    "inbox": "perdure.cli.inbox",
    "index": "perdure.cli.files",
    "jobs": "perdure.cli.jobs",
    "link": "perdure.cli.links",
    "list": "perdure.cli.facts",
    "lookup": "perdure.cli.facts",
    "mcp": "perdure.cli.mcp",
    "model": "perdure.cli.model",
    "openclaw": "perdure.cli.openclaw",
    "pin": "perdure.cli.changes",
    "proposals": "perdure.cli.proposals",
    "prune": "perdure.cli.prune",
    "purge": "perdure.cli.purge",
    "recall": "perdure.cli.recall",
    "recover": "perdure.cli.recover",
    "reflect": "perdure.cli.upkeep",
    "replay": "perdure.cli.replay",
    "review": "perdure.cli.review",
    "revive": "perdure.cli.revive",
    "scope": "perdure.cli.scopes",
    "scrub": "perdure.cli.scrub",
    "search": "perdure.cli.search",
    "show": "perdure.cli.facts",
    "stats": "perdure.cli.facts",
    "status": "perdure.cli.status",
    "store": "perdure.cli.facts",
    "ui": "perdure.cli.ui",
    "undo": "perdure.cli.facts",
    "unforget": "perdure.cli.facts",
    "uninstall": "perdure.cli.uninstall",
    "unlink": "perdure.cli.links",
    "unpin": "perdure.cli.changes",
    "update": "perdure.cli.changes",
    "vault": "perdure.cli.vault",
    "verify": "perdure.cli.verify",
    "why": "perdure.cli.recall",
    "why-not": "perdure.cli.recall",
}

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
        """Write the list of commands, without importing any."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, SUMMARIES.get(name, "")) for name in self.list_commands(ctx)])

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
