"""A test as a table of steps: all are tried, and what each came to is printed."""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

import click

Story = TypeVar("Story")
Step = Callable[[Story], str | None]


class Steps(Generic[Story], list[tuple[str, Step[Story], bool]]):
    """The steps of a story, in their order: what each shows, the step, and whether others build on it."""

    def __call__(self, what: str, *, always: bool = False) -> Callable[[Step[Story]], Step[Story]]:
        """Add a step. One that the others build on runs always, whichever are asked for."""

        def add(function: Step[Story]) -> Step[Story]:
            self.append((what, function, always))
            return function

        return add

    def run(self, story: Story, only: Sequence[str] = ()) -> bool:
        """Run the steps with one of these words in their name, by default all; return whether all of them hold."""
        steps = [each for each in self if not only or each[2] or any(part in each[0] for part in only)]
        failed = sum(not _holds(story, what, step) for what, step, _ in steps)
        click.echo(f"{len(steps) - failed} of {len(steps)} steps hold")
        return not failed


def _holds(story: Story, what: str, step: Step[Story]) -> bool:
    started = time.monotonic()
    try:
        note, outcome = step(story) or "", "ok"
    except Exception as error:  # noqa: BLE001 - a step that fails is reported, whatever it failed at
        note, outcome = f"{type(error).__name__}: {str(error)[-600:]}", "FAILED"
        if not isinstance(error, AssertionError):
            traceback.print_exc()
    click.echo(f"{outcome:6} {time.monotonic() - started:6.1f} s  {what}" + (f"  ({note})" if note else ""))
    return outcome == "ok"
