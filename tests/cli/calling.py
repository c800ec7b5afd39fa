"""How the tests run a command inside of their own process."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from click.testing import CliRunner

from perdure.cli.main import cli


@dataclass(frozen=True)
class Called:
    """What came of a command.

    Attributes:
        code: its exit code.
        stdout: what it printed for whoever asked.
        stderr: what it told beside that.
        output: both, in the order in which they came.
    """

    code: int
    stdout: str
    stderr: str
    output: str

    @property
    def json(self) -> Any:
        """The object on stdout."""
        return json.loads(self.stdout)


def call(*words: str | Path, code: int | None = 0, stdin: str | None = None) -> Called:
    """Run `perdure` with these words, on a wide terminal.

    Args:
        words: what follows `perdure`.
        code: the exit code that is expected; None: any.
        stdin: what is typed, or comes through a pipe.

    Raises:
        Exception: whatever the command raises.
        AssertionError: it ended with another exit code.
    """
    result = CliRunner(env={"COLUMNS": "300"}).invoke(
        cli, [str(word) for word in words], input=stdin, standalone_mode=False, catch_exceptions=False
    )
    assert result.exception is None, "a command returns its exit code, and leaves it to main() to exit"
    assert result.return_value == code or code is None, result.output
    return Called(result.return_value, result.stdout, result.stderr, result.output)


def call_json(*words: str | Path, code: int | None = 0, stdin: str | None = None) -> Any:
    """Run `perdure` with these words and `--json`, as `call` does, and return the object that it prints.

    Raises:
        AssertionError: it told something on stderr as well; a test that expects that takes `call` and its `json`.
    """
    done = call(*words, "--json", code=code, stdin=stdin)
    assert not done.stderr
    return done.json
