"""What commands print: colours and tables on a terminal, plain text in a pipe, one object with --json."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console


OK = 0
FOUND_NOTHING = 1
"""Nothing fits. Checks that found something, and errors of ours with a line on stderr, end so, too."""


NARROW = 12
"""Characters of a cell that is never wrapped."""
SHORT_ID = 8
"""Digits of an id in a table; they are enough to name a memory by."""


class Output:
    """A command's stdout. With `as_json` only `json` prints."""

    def __init__(self, as_json: bool = False) -> None:
        self.as_json = as_json

    def json(self, value: object) -> None:
        """Print one JSON object, and nothing else."""
        sys.stdout.write(json.dumps(value, ensure_ascii=False, indent=2) + "\n")

    def both(self, value: object, header: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
        """Print the value with --json, else the table."""
        if self.as_json:
            self.json(value)
        else:
            self.table(header, rows)

    def title(self, text: str) -> None:
        """Print what the output is about."""
        self.line(text, style="bold underline")

    def rule(self, text: str) -> None:
        """Print a heading."""
        self.line(f"\n--- {text} ---", style="bold")

    def line(self, text: str, style: str | None = None) -> None:
        """Print a line."""
        if self.as_json:
            return
        if not sys.stdout.isatty():
            sys.stdout.write(f"{text}\n")
            sys.stdout.flush()
            return
        console().print(text, style=style, highlight=False, markup=False)

    def table(self, header: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
        """Print a table: aligned on a terminal; in a pipe a line for each row, with tabs between its cells."""
        if self.as_json:
            return
        if not sys.stdout.isatty():
            for row in ([header] if any(header) else []) + list(rows):
                sys.stdout.write("\t".join(" ".join(str(cell).split()) for cell in row) + "\n")
            return
        from rich.table import Table
        from rich.text import Text

        table = Table(show_header=any(header), box=None, pad_edge=False, header_style="bold cyan")
        lines = [[str(cell) for cell in row] for row in rows]
        for name, *cells in zip(header, *lines, strict=True):
            # Where there is no room, long texts are wrapped, and ids and days stay whole.
            table.add_column(name, no_wrap=max(map(len, cells), default=0) <= NARROW)
        for line in lines:
            table.add_row(*map(Text, line))
        console().print(table)


def console() -> Console:
    """Return the console on stdout. Rich is imported for a terminal only."""
    from rich.console import Console

    return Console(soft_wrap=True, emoji=False)


def complain(kind: str, message: str, shown: Callable[[], object] | None = None) -> None:
    """Tell of an error: people on stderr, a script that wants JSON on stdout.

    Args:
        kind: name of the error's class.
        message: what is wrong, and what to do.
        shown: writes it to stderr in another way.
    """
    if shown is not None:
        shown()
    else:
        sys.stderr.write(f"perdure: {message}\n")
    # The options may be what is wrong, so they cannot be asked.
    if "--json" in sys.argv:
        Output(True).json({"error": {"kind": kind, "message": message}})


@contextmanager
def progress(what: str, total: int, *, quiet: bool) -> Iterator[Callable[..., None]]:
    """Show a progress bar on stderr, if that is a terminal; lends the function that moves it, by one or so many."""
    if quiet or not sys.stderr.isatty():
        yield lambda count=1: None
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True)) as bar:
        task = bar.add_task(what, total=total)
        yield lambda count=1: bar.advance(task, count)


@contextmanager
def steps(what: str, *, quiet: bool) -> Iterator[Callable[[int, int], None]]:
    """Show a progress bar as `progress` does, if it is not known before how much there is to do.

    Lends the function that is called with steps done and steps to do.
    """
    if quiet or not sys.stderr.isatty():
        yield lambda done, total: None
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(what, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)
