"""Claude Code as a language model: `claude -p` in an empty folder, with nothing that it could run, read or keep.

Options of the form: https://docs.claude.com/en/docs/claude-code/cli-reference.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from perdure.errors import ModelError
from perdure.llm import Purpose
from perdure.models.llm import counted
from perdure.store.llm import TokenMeter

TIMEOUT: Final = 180.0
"""Seconds that an answer may take."""
# Safe mode loads nothing that anybody has added, and yet asks the model, at the address and with the login, that the
# user's settings name: with no settings at all, what was said could go elsewhere.
_ALONE: Final = (
    "-p", "--output-format", "json", "--safe-mode", "--tools", "", "--strict-mcp-config", "--no-session-persistence",
    "--disable-slash-commands",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Claude:
    """Asks Claude Code, on its user's plan."""

    program: str
    meter: TokenMeter

    def ask_json(self, prompt: str, *, purpose: Purpose, system: str = "", timeout: float | None = None) -> Any | None:
        """Return the JSON of the answer, or None if there is none; ModelError if it did not answer as it should.

        What has an @ in the prompt must be JSON: there the sign is escaped, as Claude Code would read a file behind it.
        """
        answer = partial(self._answer, timeout=timeout or TIMEOUT)
        return counted(self.meter, purpose, prompt, system, answer)

    def _answer(self, prompt: str, system: str, timeout: float) -> str:
        with tempfile.TemporaryDirectory(prefix="perdure-") as empty:
            try:
                done = subprocess.run(  # noqa: S603 - the user's own program, without a shell
                    [self.program, *_ALONE, "--system-prompt", system], input=prompt.replace("@", r"\u0040"), cwd=empty,
                    timeout=timeout, capture_output=True, text=True, encoding="utf-8", check=True,
                )  # fmt: skip
                answer = json.loads(done.stdout)
            except (OSError, ValueError, subprocess.SubprocessError) as error:
                raise ModelError(f"claude -p did not answer: {type(error).__name__}") from None
        text = answer.get("result") if isinstance(answer, dict) and not answer.get("is_error") else None
        if not isinstance(text, str):
            raise ModelError("claude -p answered without a result")
        return text


def claude(meter: TokenMeter) -> Claude | None:
    """Return Claude Code, or None where it is not installed."""
    program = shutil.which("claude")
    return Claude(program, meter) if program else None
