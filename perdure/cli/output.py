"""What commands print: colours and tables on a terminal, plain text in a pipe, one object with --json.

Nothing else in this folder prints or asks. Here each text becomes one line that a terminal shows and does not obey:
memories, names of files and messages of errors may hold anything.
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
"""A command that returns nothing ends so, too."""
FOUND_NOTHING = 1
"""Nothing fits. Checks that found something, and errors of ours with a line on stderr, end so, too."""
NOT_ASKED = 2
"""Nothing was done, as nobody is there to be asked."""
NARROW = 12
"""Characters of a cell that is never wrapped."""
TEXTS = ("text", "its text")
"""Columns of memories' texts: in a table they have a line, `perdure show` has them whole."""
SHORT_ID = 8
"""Digits of an id in a table; they are enough to name a memory by."""


class Output:
    """A command's stdout: with `as_json` what `json` is given, without what all the others are given."""

    def __init__(self, as_json: bool = False) -> None:
        self.as_json = as_json

    def json(self, value: Any, **more: object) -> None:
        """Print one JSON object: a dataclass or a mapping, and what is said beside it."""
        if self.as_json:
            value = ({**_values(value)} | more) if more else value
            ascii_alone = codecs.lookup(sys.stdout.encoding).name != "utf-8"
            written = json.dumps(value, ensure_ascii=ascii_alone, indent=2, default=_values)
            sys.stdout.write(visible_json(written) + "\n")

    def both(
        self, value: object, header: Sequence[str], rows: Iterable[Sequence[Any]], *, none: str | None = None
    ) -> None:
        """Print the value with --json, else the table."""
        self.json(value)
        self.table(header, rows, none=none)

    def title(self, text: str) -> None:
        """Print what the output is about."""
        self.line(text, style="bold underline")

    def rule(self, text: str) -> None:
        """Print a heading, with an empty line above."""
        self.line("")
        self.line(f"--- {text} ---", style="bold")

    def text(self, text: str) -> None:
        """Print a text of several lines."""
        for line in text.split("\n"):
            self.line(line.expandtabs())

    def raw(self, text: str) -> None:
        """Print a text for another program as it is: what is on a terminal gets it as any other."""
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
        """Print a table: aligned on a terminal; in a pipe a line for each row, with tabs between its cells.

        A header with empty names only is left out; `whole` wraps a memory's text on a terminal instead of cutting it.
        Instead of a table without rows `none` is printed, if it is told; an empty one is nothing.
        """
        if self.as_json:
            return
        rows = list(rows)
        if not rows and none is not None:
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
    """Return what JSON has no word for as it can hold it: a dataclass as a mapping, all else by name."""
    from dataclasses import asdict, is_dataclass

    if is_dataclass(value) and not isinstance(value, type):
        return asdict(value)
    return value if isinstance(value, dict) else str(value)


def day(seconds: float) -> str:
    """Return the day of a time, where the user is."""
    return dt.datetime.fromtimestamp(seconds).astimezone().date().isoformat()


def minute(seconds: float) -> str:
    """Return a time to the minute, where the user is."""
    return dt.datetime.fromtimestamp(seconds).astimezone().strftime("%Y-%m-%d %H:%M")


def minute_utc(seconds: float) -> str:
    """Return a time to the minute, the same on every machine."""
    return dt.datetime.fromtimestamp(seconds, dt.UTC).strftime("%Y-%m-%d %H:%M UTC")


def _said(cell: object) -> str:
    """Return what a cell says to people: nothing has no name, and several things are a list with commas."""
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
    """Tell people something beside what is printed: a line on stderr."""
    sys.stderr.write(f"{visible(text)}\n")


def notice(told: Iterable[str]) -> None:
    """Tell people what they should know of what is printed."""
    for line in told:
        tell(f"perdure: {line}")


def complain(kind: str, message: str) -> None:
    """Tell of an error, by the name of its class: people on stderr, a script that wants JSON on stdout."""
    tell(f"perdure: {message}")
    _complain_json(kind, message)


def complain_of_call(error: click.ClickException) -> None:
    """Tell of a wrong call as `complain` does, with a hint at how the command is called."""
    if isinstance(error, click.exceptions.NoArgsIsHelpError):
        for line in error.format_message().splitlines():
            tell(line)
        return
    if isinstance(error, click.UsageError) and error.ctx is not None:
        for line in error.ctx.get_usage().splitlines():
            tell(line)
        tell(f"Try '{error.ctx.command_path} --help' for help.")
        tell("")
    tell(f"Error: {error.format_message()}")
    _complain_json(type(error).__name__, error.format_message())


def _complain_json(kind: str, message: str) -> None:
    # The options may be what is wrong, so they cannot be asked.
    if "--json" in sys.argv:
        Output(True).json({"error": {"kind": kind, "message": message}})


def confirm(question: str) -> None:
    """Ask on stderr before something that cannot be undone; "no" raises click.Abort, nobody there InputError."""
    try:
        agreed = click.confirm(visible(question), err=True)
    except click.Abort:
        if sys.stdin.isatty():
            raise
        raise InputError("nobody is there to be asked; if you mean it, repeat this with --yes") from None
    if not agreed:
        raise click.Abort


def is_asked() -> bool:
    """Return whether somebody is there to be asked."""
    return sys.stdin.isatty()


def agree(question: str) -> bool:
    """Ask on stderr for a yes or no."""
    return bool(click.confirm(visible(question), err=True))


def choose(question: str, count: int) -> int | None:
    """Ask on stderr for one of so many; return which, from 0 on, or None if nobody is there to be asked."""
    if not is_asked():
        return None
    return int(click.prompt(visible(question), type=click.IntRange(1, count), err=True)) - 1


def choose_word(question: str, words: Sequence[str]) -> str:
    """Ask on stderr for one of some words; return it."""
    return str(click.prompt(visible(question), type=click.Choice(words, case_sensitive=False), err=True))


def edited(text: str) -> str | None:
    """Let somebody change a text in their editor; None: it is as it was, was not saved, or nothing is left of it."""
    if not sys.stdin.isatty() and not {"VISUAL", "EDITOR"} & os.environ.keys():
        raise InputError("no terminal is there to edit in; set EDITOR to a program that changes a file")
    try:
        saved = click.edit(f"{text}\n", extension=".md")
    except click.ClickException as error:
        hint = "set EDITOR to one that works"
        raise InputError(f"nothing was changed: {error.format_message()}; {hint}") from None
    changed = (saved or "").strip()
    return changed if changed not in ("", text.strip()) else None


def ask_secret(question: str, *, again: bool = False) -> str:
    """Ask on stderr for something that is not shown while it is typed, twice if asked to."""
    return str(click.prompt(visible(question), hide_input=True, confirmation_prompt=again, err=True))


@contextmanager
def progress(what: str, total: int | None, *, quiet: bool) -> Iterator[Callable[..., None]]:
    """Show a progress bar on stderr, if that is a terminal; lends the function that moves it, by one or so many."""
    with _bar(what, total, quiet=quiet) as update:
        yield lambda count=1: update(advance=count)


@contextmanager
def steps(what: str, *, quiet: bool) -> Iterator[Callable[[int, int], None]]:
    """Show a progress bar as `progress` does that is told of steps done and steps to do, and is gone afterwards."""
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
