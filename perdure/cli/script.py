"""Scripts that the demo plays: a JSON file, checked before anything is played."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from perdure.errors import InputError


class ScriptTurn(BaseModel):
    """What the user says, what the agent answers, and what should have come to mind.

    Attributes:
        user: the user's message.
        agent: the agent's answer.
        expect: words of the memories that should be recalled; an empty list: none should be; left out: the
            turn is not judged.
        never: words that must not be in any recalled memory.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    user: str
    agent: str = "OK."
    expect: tuple[str, ...] | None = None
    never: tuple[str, ...] = ()


class ScriptSession(BaseModel):
    """A conversation. The store is closed and opened again between two of them.

    Attributes:
        id: its name.
        days_ago: how long ago it takes place.
        turns: what is said in it.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    id: str
    days_ago: float = Field(0.0, ge=0)
    turns: tuple[ScriptTurn, ...] = Field(min_length=1)


class Script(BaseModel):
    """Conversations to be played, and secrets that must not be found in any file afterwards."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    title: str = "Conversation"
    secrets: tuple[str, ...] = ()
    sessions: tuple[ScriptSession, ...] = Field(min_length=1)


def load_script(path: Path | None = None) -> Script:
    """Read a script; None: the one that comes with perdure.

    Raises:
        InputError: it cannot be read or does not fit the schema.
    """
    try:
        source = path.read_text(encoding="utf-8-sig") if path else packaged_script()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"script {path} cannot be read ({type(error).__name__}); give a JSON file") from error
    try:
        return Script.model_validate_json(source)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        raise InputError(f"script {path} at {where or 'top'}: {first['msg']}; docs/demo.md has the schema") from None


def packaged_script() -> str:
    """Return the text of the script that comes with perdure."""
    return files("perdure.cli").joinpath("data/demo.json").read_text(encoding="utf-8")
