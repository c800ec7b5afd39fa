"""From OpenClaw's payloads to what perdure's hooks take. Whatever is missing or malformed gives less, never more."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from perdure.errors import ScopeError
from perdure.hooks.types import Message, TurnContext
from perdure.store.scope import Scope

HOST = "openclaw"
PROJECTS = 8
"""Projects of a turn at the most."""
ROLES = ("user", "assistant")
BROUGHT = "toolResult"
"""The role of what a tool brought."""
HUMAN = "external_user"
"""OpenClaw's word for what a person wrote."""
_CHATS = {"direct": "direct", "dm": "direct", "group": "group", "channel": "channel"}
_OLD_GROUPS = ("@g.us", ":guild-")
"""What keys of groups had in them before OpenClaw named the kind: WhatsApp's and Discord's."""


def state_folder(environ: Mapping[str, str] = os.environ) -> Path:
    """Return OpenClaw's state folder: OPENCLAW_STATE_DIR, else `.openclaw` in OPENCLAW_HOME or the home folder."""
    if environ.get("OPENCLAW_STATE_DIR"):
        return Path(environ["OPENCLAW_STATE_DIR"]).expanduser().absolute()
    # For a user without a home it does not raise, as pathlib does.
    return Path(os.path.expanduser(environ.get("OPENCLAW_HOME") or "~")).absolute() / ".openclaw"  # noqa: PTH111


def data_home(config: Mapping[str, Any], environ: Mapping[str, str] = os.environ) -> Path | None:
    """Return the data folder that the plugin's config names, else the one in OpenClaw's state folder.

    None if PERDURE_HOME names one, which is read where the store is opened.
    """
    named = config.get("home")
    if isinstance(named, str) and named:
        return Path(named)
    return None if environ.get("PERDURE_HOME") else state_folder(environ) / "memory" / "perdure"


def turn_context(ctx: Mapping[str, Any]) -> TurnContext:
    """Return who asks in a turn.

    `ctx`: the second argument of OpenClaw's hooks, or the context of a tool. If it names no agent, the agent id is
    empty, which fails closed.
    """
    return TurnContext(
        session_id=_text(ctx, "sessionId") or _text(ctx, "sessionKey") or None,
        agent_id=_agent(ctx),
        scopes=_projects(ctx.get("activeProjectKeys")),
        turn_id=_text(ctx, "runId") or None,
        trigger=_trigger(ctx),
        chat=_chat(_text(ctx, "sessionKey")),
        vouched=ctx.get("senderIsOwner") is True,
        workspace=_text(ctx, "workspaceDir") or None,
        host=HOST,
        takes_opening=True,
        has_tools=True,
        timezone=_text(ctx, "timezone") or None,
    )


def prompt_of(event: Mapping[str, Any]) -> str:
    """Return what the user asks: the request as it was typed if OpenClaw gives it, else the prompt."""
    return _text(event, "currentUserMessage") or _text(event, "prompt")


def owner_asks(ctx: Mapping[str, Any]) -> bool:
    """Return whether a turn is the owner's, by what OpenClaw vouches for and never by what the text says.

    In a group it must be proven. In a direct chat everybody is the owner as long as OpenClaw has not been told who it
    is (`commands.ownerAllowFrom`), since then it vouches for nobody there.
    """
    return _is_owner(ctx.get("senderIsOwner"), ctx)


def messages_of(value: Any, ctx: Mapping[str, Any]) -> Sequence[Message]:
    """Return what the owner and the model said to each other.

    What the host adds of its own is left out, and so is what others say and what they are answered.

    `value`: messages as the entry sends them, oldest first, each with `senderIsOwner` if OpenClaw has noted it. It has
    not for the newest, which is of the person who asks in this turn. `ctx`: who asks in this turn.
    """
    messages = [each for each in _heard(value, ctx) if each.get("role") in ROLES]
    kept = [each for each in messages if each.get("content") or "tool_calls" not in each]
    return tuple({key: value for key, value in each.items() if key != "tool_calls"} for each in kept)


def work_of(value: Any, ctx: Mapping[str, Any]) -> Sequence[Message]:
    """Return what the owner and the model said and what it did for them by tools; nothing if it used none.

    The arguments are those of `messages_of`. Commands and files of the workspace are named from there.
    """
    roles, folder = (*ROLES, BROUGHT), _text(ctx, "workspaceDir")
    messages = [{"cwd": folder, **each} for each in _heard(value, ctx) if each.get("role") in roles]
    return tuple(messages) if any(each.get("tool_calls") for each in messages) else ()


def _heard(value: Any, ctx: Mapping[str, Any]) -> list[Message]:
    """Return messages without what others than the owner say, and what they are answered."""
    messages = [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []
    newest = next((each for each in reversed(messages) if each.get("role") == "user"), None)
    kept: list[Message] = []
    heard = True
    for message in messages:
        if message.get("role") == "user":
            mark = message.get("senderIsOwner", ctx.get("senderIsOwner") if message is newest else None)
            heard = _is_owner(mark, ctx)
        if heard:
            kept.append(message)
    return kept


def _is_owner(mark: Any, ctx: Mapping[str, Any]) -> bool:
    if _chat(_text(ctx, "sessionKey")) != "direct":
        return mark is True
    return mark is not False or ctx.get("ownerIsNamed") is not True


def _text(values: Mapping[str, Any], key: str) -> str:
    value = values.get(key)
    return value if isinstance(value, str) else ""


def _agent(ctx: Mapping[str, Any]) -> str:
    # A compaction in the middle of a turn names nothing but the session's key, such as agent:main:telegram:direct:7.
    if "agentId" in ctx:
        return _text(ctx, "agentId")
    parts = _text(ctx, "sessionKey").split(":")
    return parts[1] if parts[0] == "agent" and len(parts) > 2 else ""


def _trigger(ctx: Mapping[str, Any]) -> str:
    origin = ctx.get("inputProvenance")
    kind = origin.get("kind") if isinstance(origin, Mapping) else None
    if kind not in (None, HUMAN):
        return "system"
    return _text(ctx, "trigger") or "user"


def _chat(session_key: str) -> str:
    # Such as agent:main:telegram:group:-100123; the main session has no such part, and a thread is of what it is in.
    kind = next((_CHATS[part] for part in session_key.split(":")[2:5] if part in _CHATS), None)
    return kind or ("group" if any(mark in session_key for mark in _OLD_GROUPS) else "direct")


def _projects(keys: Any) -> tuple[str, ...]:
    found = []
    for key in keys if isinstance(keys, list) else ():
        try:
            found.append(str(Scope.parse(f"project:{key}")))
        except ScopeError:
            # One malformed scope would close all others, too.
            continue
    return tuple(found[:PROJECTS])
