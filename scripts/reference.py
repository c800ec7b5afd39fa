"""Writes docs/commands.md from the commands themselves: python -m scripts.reference."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from pathlib import Path

import click

from perdure.cli.main import cli

FILE = Path(__file__).resolve().parents[1] / "docs" / "commands.md"
HEAD = """\
# Commands

<!-- Written by `python -m scripts.reference`; change the commands, not this page. -->

Every command ends with an exit code that a script can use:

| Code | Meaning |
| --- | --- |
| 0 | done |
| 1 | nothing was found, a check found something, or an error, which is told on stderr |
| 2 | a wrong call, such as an unknown option; `perdure verify`: it could not look |
| 130 | stopped by you |
| 141 | whoever read the output has closed the pipe, as `head` does |

On a terminal there are tables and colours; in a pipe each row is one line, with tabs between its cells. With `--json` a
command prints one JSON object and nothing else; that of an error is
`{"error": {"kind": "NotFoundError", "message": "..."}}`. Messages and progress go to stderr, progress to a terminal
only.

Ids can be shortened to their first eight digits. Times are written as 2026-01-15, 2026-01-15T10:00 or epoch seconds.
"""


def commands(command: click.Command, name: str = "perdure") -> Iterator[tuple[str, click.Command]]:
    """Yield a command and all below it, each with its whole name."""
    yield name, command
    if isinstance(command, click.Group):
        context = click.Context(command, info_name=name)
        for below in command.list_commands(context):
            found = command.get_command(context, below)
            if found is not None:
                yield from commands(found, f"{name} {below}")


def reference() -> str:
    """Return the page."""
    return "\n".join([HEAD, *(_section(name, command) for name, command in commands(cli) if command is not cli)])


def _section(name: str, command: click.Command) -> str:
    context = click.Context(command, info_name=name)
    body, _, example = inspect.cleandoc(command.help or "").partition("Example: ")
    parts = [f"{'##' if name.count(' ') == 1 else '###'} {name}", body.strip(), _code(command.get_usage(context)[7:])]
    options = [each for each in command.params if isinstance(each, click.Option)]
    if options:
        rows = [f"| `{_names(option)}` | {_told(option, context)} |" for option in options]
        parts.append("\n".join(["| Option | |", "| --- | --- |", *rows]))
    parts.append("For example:\n\n" + _code(example.strip(), "sh"))
    return "\n\n".join(parts) + "\n"


def _names(option: click.Option) -> str:
    names = ", ".join([*option.opts, *option.secondary_opts])
    if option.is_flag:
        return names
    kind = (
        "|".join(map(str, option.type.choices)) if isinstance(option.type, click.Choice) else option.type.name.upper()
    )
    return f"{names} {option.metavar or kind}".replace("|", "\\|")


def _told(option: click.Option, context: click.Context) -> str:
    default = option.get_default(context) if option.show_default else None
    told = (option.help or "").replace("|", "\\|")
    return f"{told} Default: {default}.".strip() if default is not None else told


def _code(text: str, language: str = "text") -> str:
    return f"```{language}\n{' '.join(text.split())}\n```"


if __name__ == "__main__":
    FILE.write_text(reference(), encoding="utf-8")
