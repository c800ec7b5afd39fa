"""Whether a language model may read what was said: what a person is told first, and how they answer."""

from __future__ import annotations

import shutil
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

from perdure.api.admin import CONVERSATION, TURN
from perdure.api.memory import Memory
from perdure.engine.composing import CLAUDE_CODE
from perdure.engine.config_file import set_setting
from perdure.engine.paths import config_file
from perdure.engine.settings import Settings
from perdure.errors import PerdureError

SETTING: Final = "librarian"
_TERMS: Final = (
    "When a conversation goes idle or ends, and after every 20 turns, what you said in it, the surrounding text and up "
    "to 60 memories near it are sent to a language model: claude -p for Claude Code, the agent's own for OpenClaw, a "
    "program's own where it has one, and {elsewhere} for everything else. What it proposes takes effect only if your "
    "own words support it. That counts against your plan and may be billed: {cost}, up to {most:,} tokens a day "
    "(llm.daily_tokens)."
)


class Answer(NamedTuple):
    """What came of an answer."""

    on: bool  # what holds now: the environment may say otherwise than the settings file
    dropped: int  # turns that waited, and wait no more


def terms(memory: Memory | None = None) -> str:
    """Return what goes where and what it costs, by the settings and by the turns of a memory."""
    settings = Settings.load()
    elsewhere = settings.llm_endpoint or "nothing, as llm_endpoint is not set,"
    return _TERMS.format(elsewhere=elsewhere, cost=_cost(memory), most=settings.llm.daily_tokens)


def terms_of(folder: Path) -> str:
    """Return what goes where and what it costs, for the data folder that may be there."""
    with suppress(PerdureError), _opened(folder, guest=True) as memory:
        return terms(memory)
    return terms()


def is_answered() -> bool:
    """Return whether somebody has said yes or no."""
    return SETTING in Settings.origins()


def has_model(host: str) -> bool:
    """Return whether a host's turns have a model that may be asked."""
    if host == CLAUDE_CODE:
        return shutil.which("claude") is not None
    return Settings.load().llm_endpoint is not None


def keep(folder: Path, yes: bool) -> Answer:
    """Keep the answer in the settings file; a no holds at once in all processes that have the store open."""
    from perdure.service.client import dismiss

    before, dropped = Settings.load().librarian, 0
    set_setting(config_file(), SETTING, "true" if yes else "false")
    with _opened(folder) as memory:
        if not (yes and before) or memory.admin.librarian()["off"]:
            # What still waits was said before this answer: another way to switch it off may have left it.
            dropped = memory.admin.librarian(on=yes)["dropped"]
    if yes:
        # A running helper has read the settings already, and would go on without.
        dismiss(folder)
    return Answer(Settings.load().librarian, dropped)


def _opened(folder: Path, *, guest: bool = False) -> Memory:
    return Memory.open(folder, guest=guest, timers=False, watch=False, embedder="none")


def _cost(memory: Memory | None) -> str:
    tokens = memory.admin.librarian()["tokens_a_day"] if memory else None
    if tokens is None:
        return f"about {TURN} tokens a turn and {CONVERSATION:,} a conversation"
    return f"about {tokens:,} tokens a day at your rate of the last week"
