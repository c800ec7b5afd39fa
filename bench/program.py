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


def program(
    failed: Callable[[Any], object] = lambda figures: False, shown: Callable[[Any], Iterator[str]] | None = None
) -> Callable[[Callable[..., Figures | Iterator[Figures]]], click.Command]:
    """Make a command of a function that returns figures, or yields some again and again.

    Args:
        failed: whether figures are such that the exit code is 1.
        shown: the lines of figures without `--json`.

    The function is the last of its module: where the module itself is run, the command runs at once.
    """

    def made(function: Callable[..., Figures | Iterator[Figures]]) -> click.Command:
        @wraps(function)
        def run(*, as_json: bool, **given: Any) -> None:
            try:
                result = function(**given)
            except SkippedError as error:
                click.echo(f"skipped: {error}", err=True)
                return
            wrong = False
            for figures in [result] if isinstance(result, Mapping) else result:
                said = [json.dumps(figures, ensure_ascii=False)] if as_json else (shown or lines)(figures)
                click.echo("\n".join(said))
                wrong = wrong or bool(failed(figures))
            raise SystemExit(int(wrong))

        command = click.command(context_settings={"show_default": True})(run)
        command.params.append(click.Option(["--json", "as_json"], is_flag=True, help="Print one JSON object."))
        if function.__module__ == "__main__":
            command()
        return command

    return made


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
