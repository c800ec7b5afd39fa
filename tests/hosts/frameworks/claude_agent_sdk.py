"""The hooks of the Claude Agent SDK, called as its bundled program does; that program keeps what they return."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from perdure.hosts.claude_agent_sdk import PerdureHooks
from tests.hosts.frameworks.played import Played


def play(texts: Sequence[str], *, sync: bool, **given: Any) -> Played:
    played, made = Played(), PerdureHooks(**given)
    [prompt], [stop] = (made.hooks[event][0].hooks for event in ("UserPromptSubmit", "Stop"))

    async def run() -> None:
        for text in texts:
            common = {"session_id": "s", "transcript_path": "", "cwd": "/"}
            told = await prompt({**common, "hook_event_name": "UserPromptSubmit", "prompt": text}, None, None)
            block = told.get("hookSpecificOutput", {}).get("additionalContext", "")
            played.wires.append(f"{block} {text}")
            played.answers.append("OK.")
            await stop({**common, "hook_event_name": "Stop", "last_assistant_message": "OK."}, None, None)

    asyncio.run(run())
    made.close()
    return played
