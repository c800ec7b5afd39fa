"""Command output: colours and tables on a terminal, plain text in a pipe, one object with --json.

Nothing else in this folder prints or prompts. Each text becomes one line with its control characters escaped: memories,
file names and error messages may hold anything.
"""

from __future__ import annotations

import codecs
import datetime as dt
import json
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from perdure.errors import InputError
from perdure.text.escape import visible, visible_json

if TYPE_CHECKING:
    from rich.console import Console

OK = 0
"""Also the code of a command that returns None."""
FOUND_NOTHING = 1
"""Nothing matched. Also the code of checks with findings and of errors."""
NOT_ASKED = 2
"""Nothing was done: there is no terminal to ask on."""
NARROW = 12
"""Width of a cell that is never wrapped, in characters."""
TEXTS = ("text", "its text")
"""Columns that hold the text of a memory, cut to one line in a table; `perdure show` prints all of it."""
SHORT_ID = 8
"""Digits of an id in a table, enough to name a memory."""


class Output:
    """A command's stdout: with `as_json` only what `json` gets, without it only what the other methods get."""

    def __init__(self, as_json: bool = False) -> None:
        self.as_json = as_json

    def json(self, value: Any, **more: object) -> None:
        """Print one JSON object: a dataclass or a mapping, plus further keys."""
        if self.as_json:
            value = ({**_values(value)} | more) if more else value
            ascii_alone = codecs.lookup(sys.stdout.encoding).name != "utf-8"
            written = json.dumps(value, ensure_ascii=ascii_alone, indent=2, default=_values)
            sys.stdout.write(visible_json(written) + "\n")

    def both(
        self, value: object, header: Sequence[str], rows: Iterable[Sequence[Any]], *, none: str | None = None
    ) -> None:
        """Print the value with --json, otherwise the table."""
        self.json(value)
        self.table(header, rows, none=none)

    def say(self, value: object, line: str) -> None:
        """Print the value with --json, otherwise the line."""
        self.json(value)
        self.line(line)

    def title(self, text: str) -> None:
        """Print a title."""
        self.line(text, style="bold underline")

    def rule(self, text: str) -> None:
        """Print a heading below an empty line."""
        self.line("")
        self.line(f"--- {text} ---", style="bold")

    def text(self, text: str) -> None:
        """Print a text of several lines."""
        for line in text.split("\n"):
            self.line(line.expandtabs())

    def raw(self, text: str) -> None:
        """Print a text unchanged for another program; a terminal gets it escaped."""
        if sys.stdout.isatty():
            self.text(text)
        else:
            sys.stdout.write(text + "\n")

    def line(self, text: str, style: str | None = None) -> None:
        """Print a line; a line break in the text becomes a space."""
        if self.as_json:
            return
        text = visible(text)
        if not sys.stdout.isatty():
            sys.stdout.write(f"{text}\n")
            sys.stdout.flush()
            return
        console().print(text, style=style, highlight=False, markup=False)

    def table(
        self, header: Sequence[str], rows: Iterable[Sequence[Any]], *, whole: bool = False, none: str | None = None
    ) -> None:
        """Print a table: aligned on a terminal, tab-separated lines in a pipe.

        An all-empty header is omitted; `whole` wraps a memory's text on a terminal instead of cutting it. Without rows
        only the line `none` is printed, if given: never a header alone.
        """
        if self.as_json:
            return
        rows = list(rows)
        if not rows:
            if none:
                self.line(none)
            return
        header, *lines = [[" ".join(visible(_said(cell)).split()) for cell in row] for row in (header, *rows)]
        if not sys.stdout.isatty():
            for line in ([header] if any(header) else []) + lines:
                sys.stdout.write("\t".join(line) + "\n")
            sys.stdout.flush()
            return
        from rich.table import Table
        from rich.text import Text

        table = Table(show_header=any(header), box=None, pad_edge=False, header_style="bold cyan")
        for name, *cells in zip(header, *lines, strict=True):
            # Where there is no room, long texts are wrapped, and ids and days stay whole.
            cut = name in TEXTS and not whole
            widest = max(map(len, (name, *cells)))
            narrow = widest <= NARROW and not cut
            table.add_column(
                name, no_wrap=cut or narrow, overflow="ellipsis" if cut else "fold",
                min_width=widest if narrow else None,
            )  # fmt: skip
        for line in lines:
            table.add_row(*map(Text, line))
        console().print(table)


def _values(value: Any) -> Any:
    """Convert a value for JSON: a dataclass to a mapping, anything unknown to text."""
    from dataclasses import asdict, is_dataclass

    if is_dataclass(value) and not isinstance(value, type):
        return asdict(value)
    return value if isinstance(value, dict) else str(value)


def day(seconds: float) -> str:
    """Return the local date of a time."""
    return dt.datetime.fromtimestamp(seconds).astimezone().date().isoformat()


def minute(seconds: float) -> str:
    """Return a local time to the minute."""
    return dt.datetime.fromtimestamp(seconds).astimezone().strftime("%Y-%m-%d %H:%M")


def minute_utc(seconds: float) -> str:
    """Return a UTC time to the minute."""
    return dt.datetime.fromtimestamp(seconds, dt.UTC).strftime("%Y-%m-%d %H:%M UTC")


def _said(cell: object) -> str:
    """Return a cell's text: None is empty, sequences are joined with commas."""
    match cell:
        case None:
            return ""
        case bool():
            return "yes" if cell else "no"
        case tuple() | list():
            return ", ".join(map(_said, cell))
    return str(cell)


def console() -> Console:
    """Return the console on stdout. Rich is imported for a terminal only."""
    from rich.console import Console

    return Console(soft_wrap=True, emoji=False)


def tell(text: str) -> None:
    """Print a line to stderr."""
    sys.stderr.write(f"{visible(text)}\n")


def notice(told: Iterable[str]) -> None:
    """Print notices to stderr."""
    for line in told:
        tell(f"perdure: {line}")


def complain(kind: str, message: str) -> None:
    """Print an error to stderr, and with --json as an object to stdout."""
    tell(f"perdure: {message}")
    _complain_json(kind, message)


def complain_of_call(error: click.ClickException) -> None:
    """Print a usage error as `complain` does, with the command's usage."""
    if isinstance(error, click.UsageError) and error.ctx is not None:
        for line in error.ctx.get_usage().splitlines():
            tell(line)
        tell(f"Try '{error.ctx.command_path} --help' for help.")
        tell("")
    tell(f"Error: {error.format_message()}")
    _complain_json(type(error).__name__, error.format_message())


def _complain_json(kind: str, message: str) -> None:
    # The options themselves may be wrong.
    if "--json" in sys.argv:
        Output(True).json({"error": {"kind": kind, "message": message}})


def confirm(question: str) -> None:
    """Ask on stderr before something irreversible; "no" raises click.Abort, no terminal InputError."""
    try:
        agreed = click.confirm(visible(question), err=True)
    except click.Abort:
        if sys.stdin.isatty():
            raise
        raise InputError("cannot ask for confirmation without a terminal; to confirm, repeat with --yes") from None
    if not agreed:
        raise click.Abort


def is_asked() -> bool:
    """Return whether there is a terminal to ask on."""
    return sys.stdin.isatty()


def agree(question: str) -> bool:
    """Ask on stderr for yes or no; the default is no."""
    return bool(click.confirm(visible(question), err=True))


def choose(verb: str, count: int) -> list[int]:
    """Ask on stderr which of `count` items to use: yes or no for one, else numbers, "all" or none; return indexes."""
    words = {"all": range(count), "n": (), "no": ()} | ({"y": (0,), "yes": (0,)} if count == 1 else {})
    question = f"{verb} it? [y/N]" if count == 1 else f"{verb} which? Numbers, all, or Enter for none"
    while True:
        answer = str(click.prompt(question, default="", show_default=False, err=True)).strip().lower()
        numbers = answer.replace(",", " ").split()
        if answer in words:
            return list(words[answer])
        if all(number.isdecimal() and 1 <= int(number) <= count for number in numbers):
            return sorted({int(number) - 1 for number in numbers})
        tell(f"invalid answer {answer[:40]!r}; type numbers from 1 to {count}, or: all")


def edited(text: str) -> str | None:
    """Open a text in the user's editor; None: unchanged, not saved, or emptied."""
    if not sys.stdin.isatty() and not {"VISUAL", "EDITOR"} & os.environ.keys():
        raise InputError(
            "cannot open an editor without a terminal; set EDITOR to a program that edits the file non-interactively"
        )
    try:
        saved = click.edit(f"{text}\n", extension=".md")
    except click.ClickException as error:
        hint = "set EDITOR to a working editor"
        raise InputError(f"nothing was changed: {error.format_message()}; {hint}") from None
    changed = (saved or "").strip()
    return changed if changed not in ("", text.strip()) else None


def ask_secret(question: str, *, again: bool = False) -> str:
    """Ask on stderr for a hidden value, twice with `again`."""
    return str(click.prompt(visible(question), hide_input=True, confirmation_prompt=again, err=True))


@contextmanager
def progress(what: str, total: int | None, *, quiet: bool) -> Iterator[Callable[..., None]]:
    """Show a progress bar on stderr if that is a terminal; yields a function that advances it."""
    with _bar(what, total, quiet=quiet) as update:
        yield lambda count=1: update(advance=count)


@contextmanager
def steps(what: str, *, quiet: bool) -> Iterator[Callable[[int, int], None]]:
    """Show a transient progress bar; yields a function that takes steps done and total."""
    with _bar(what, None, quiet=quiet, transient=True) as update:
        yield lambda done, total: update(completed=done, total=total)


@contextmanager
def _bar(what: str, total: int | None, *, quiet: bool, transient: bool = False) -> Iterator[Callable[..., None]]:
    if quiet or not sys.stderr.isatty():
        yield lambda **moved: None
        return
    from rich.console import Console
    from rich.markup import escape
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=transient) as bar:
        task = bar.add_task(escape(visible(what)), total=total)
        yield lambda **moved: bar.update(task, **moved)
