"""Who asks in a turn: its audience, its conversation, its projects, and whether others read the answer."""

from __future__ import annotations

from functools import lru_cache

from perdure.engine.settings import Settings
from perdure.hooks.types import TurnContext
from perdure.store.scope import OWNERS, Audience


def conversation(context: TurnContext, audience: Audience) -> str | None:
    """Return the name of a conversation among those of all callers; None if the host has none."""
    return f"{audience.home}\0{context.session_id}" if context.session_id and audience.home else None


def overheard(context: TurnContext, settings: Settings) -> bool:
    """Return whether others read the answer, so that nothing of memory is shown: neither the block nor by tools."""
    return context.chat != "direct" and not settings.recall_in_groups


def project_in(context: TurnContext) -> str | None:
    """Return the project that a turn is about; None where it is about none, or about several."""
    named = projects_in(context)
    return context.project or (named[0] if len(named) == 1 else None)


def projects_in(context: TurnContext) -> list[str]:
    """Return the projects that a turn can see, each once and in the order of their names."""
    return sorted({each for each in others_of(context) if each.startswith("project:")})


class OwnersContext(TurnContext):
    """Of the owner's own tools, the command line and the page: they see all that is the owner's. No host makes one."""


def audience_of(context: TurnContext) -> Audience:
    """Return who asks in a turn."""
    if isinstance(context, OwnersContext):
        return OWNERS
    return _audience(context.user_id, context.agent_id, context.session_id, others_of(context))


def others_of(context: TurnContext) -> tuple[str, ...]:
    """Return the scopes that a turn can see beside those of its user, agent and session."""
    return (*context.scopes, context.project) if context.project else tuple(context.scopes)


@lru_cache(maxsize=256)
def _audience(user: str | None, agent: str | None, session: str | None, scopes: tuple[str, ...]) -> Audience:
    return Audience.of(user=user, agent=agent, session=session, others=scopes)
