"""Whether a language model may read what was said: what a person is told first, and how they answer."""

from __future__ import annotations

import shutil
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

from perdure.api.admin import CONVERSATION, TURN
from perdure.engine.composing import CLAUDE_CODE
from perdure.engine.config_file import set_setting
from perdure.engine.paths import config_file
from perdure.engine.settings import Settings
from perdure.errors import PerdureError

if TYPE_CHECKING:
    from perdure.api.memory import Memory

_SETTING: Final = "librarian"


def terms(memory: Memory | None = None) -> str:
    """Return what goes where and what it costs, by the settings and by the turns of a memory."""
    settings = Settings.load()
    return (
        "When a conversation rests, what you said in it, its surroundings and up to 60 of its memories go to a "
        "language model: from Claude Code to its own, by claude -p; from elsewhere to "
        f"{settings.llm_endpoint or 'none, as llm_endpoint is not set'}. It proposes changes, and only those that your "
        f"own words prove take effect. It counts against your plan and may be billed: {_cost(memory)}, and at most "
        f"{settings.llm.daily_tokens:,} tokens a day (llm.daily_tokens)."
    )


def terms_of(folder: Path) -> str:
    """Return what goes where and what it costs, for the data folder that may be there."""
    from perdure.api.memory import Memory

    with suppress(PerdureError), Memory.open(folder, guest=True, load_model=False, watch=False) as memory:
        return terms(memory)
    return terms()


def is_answered() -> bool:
    """Return whether somebody has said yes or no."""
    return _SETTING in Settings.origins()


def has_model(host: str) -> bool:
    """Return whether a host's turns have a model that may be asked."""
    own = host == CLAUDE_CODE and shutil.which("claude") is not None
    return own or Settings.load().llm_endpoint is not None


def keep(folder: Path, yes: bool) -> bool:
    """Keep the answer in the settings file; return what holds now, as the environment may say otherwise."""
    from perdure.service.client import dismiss

    set_setting(config_file(), _SETTING, "true" if yes else "false")
    # A running helper has read the settings already.
    dismiss(folder)
    return Settings.load().librarian


def _cost(memory: Memory | None) -> str:
    tokens = memory.admin.librarian()["tokens_a_day"] if memory else None
    if tokens is None:
        return f"about {TURN} tokens a turn and {CONVERSATION:,} a conversation"
    return f"about {tokens:,} tokens a day at your rate of the last week"
