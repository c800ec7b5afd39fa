"""Claude Code as a language model: `claude -p` in an empty folder, with nothing that it could run, read or keep.

Options of the form: https://docs.claude.com/en/docs/claude-code/cli-reference.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from typing import Final

from perdure.errors import ModelError
from perdure.models.own import OwnModel
from perdure.store.llm import TokenMeter

# Safe mode loads nothing that anybody has added, and yet asks the model, at the address and with the login, that the
# user's settings name: with no settings at all, what was said could go elsewhere.
_ALONE: Final = (
    "-p", "--output-format", "json", "--safe-mode", "--tools", "", "--strict-mcp-config", "--no-session-persistence",
    "--disable-slash-commands",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Claude:
    """Asks Claude Code."""

    program: str

    def __call__(self, prompt: str, system: str, *, tokens: int, timeout: float) -> tuple[str, int | None]:
        """Return the answer, and nothing of how many tokens it took; ModelError if there is none.

        What has an @ in the prompt must be JSON: there the sign is escaped, as Claude Code would read a file behind it.
        """
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
        return text, None


def claude(meter: TokenMeter) -> OwnModel | None:
    """Return Claude Code, or None where it is not installed."""
    program = shutil.which("claude")
    return OwnModel(Claude(program), meter) if program else None
