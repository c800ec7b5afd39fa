"""What all benches are as programs: options, one of them `--json`; figures that are printed; an exit code."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from functools import wraps
from typing import Any

import click

Figures = Mapping[str, Any]


class SkippedError(Exception):
    """What a bench needs is not there; it says what, and the run is none that failed."""


def lines(figures: Figures, indent: str = "") -> Iterator[str]:
    """Yield figures for a reader: a line each, what is within others below them."""
    for name, value in figures.items():
        if isinstance(value, Mapping) and any(isinstance(each, Mapping | list) for each in value.values()):
            yield f"{indent}{name}"
            yield from lines(value, f"{indent}  ")
        elif isinstance(value, list) and value:
            yield f"{indent}{name}"
            yield from (f"{indent}  {_line(each)}" for each in value)
        else:
            yield f"{indent}{name:<28} {_line(value)}"


def _line(value: Any) -> str:
    return "  ".join(f"{name} {each}" for name, each in value.items()) if isinstance(value, Mapping) else str(value)


def numbers(context: click.Context, option: click.Parameter, said: str) -> list[int]:
    """Return the numbers of an option that has commas between them: its callback."""
    return [int(each) for each in said.split(",")]


def program(
    bench: Callable[..., Figures | Iterator[Figures]], failed: Callable[[Any], object] = lambda figures: False
) -> click.Command:
    """Return the command of a bench, a function with click's options that returns figures, or yields some.

    The exit code is 1 where `failed` says so of figures. It is made at the end of the bench's module, and runs at once
    where that module is run itself.
    """

    @wraps(bench)
    def run(*, as_json: bool, **given: Any) -> None:
        try:
            result = bench(**given)
        except SkippedError as error:
            click.echo(f"skipped: {error}", err=True)
            return
        wrong = False
        for figures in [result] if isinstance(result, Mapping) else result:
            said = [json.dumps(figures, ensure_ascii=False)] if as_json else lines(figures)
            click.echo("\n".join(said))
            wrong = wrong or bool(failed(figures))
        raise SystemExit(int(wrong))

    command = click.command(context_settings={"show_default": True})(run)
    command.params.append(click.Option(["--json", "as_json"], is_flag=True, help="Print one JSON object."))
    if bench.__module__ == "__main__":
        command()
    return command
