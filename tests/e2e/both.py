"""perdure in a real Claude Code and a real Codex of one person, on one store.

    python -m tests.e2e.both --host DIR

DIR is where npm has installed both. Prints a table of steps; exit code 0 if all of them hold. Their models are small
servers on loopback, and nothing else is reached.
"""

from __future__ import annotations

import json
from pathlib import Path

from tests.e2e.agent_model import Turn
from tests.e2e.agent_story import command, until_shown
from tests.e2e.claude_code import ClaudeCode
from tests.e2e.codex import Codex
from tests.e2e.gateway import until
from tests.e2e.steps import Steps

TOLD = "We decided to use Postgres instead of MySQL."
step: Steps[Both] = Steps()


class Both(ClaudeCode):
    """Claude Code with Codex beside it, in one home.

    Attributes:
        codex: the other one.
    """

    def __init__(self, programs: Path, folder: Path, python: Path | None = None) -> None:
        super().__init__(programs, folder, python)
        self.codex = Codex(programs, folder, python)

    def close(self) -> None:
        """Stop all servers."""
        super().close()
        self.codex.model.close()


@step("both are connected", always=True)
def _connected(both: Both) -> None:
    both.perdure("connect", both.name)
    both.perdure("connect", both.codex.name)
    both.codex.trust_more()


@step("what is said in one opens the sessions of both, each once, however they take turns", always=True)
def _opened(both: Both) -> None:
    both.once(TOLD)
    both.knows(TOLD)
    with both.talk() as one, both.codex.talk() as other:
        for _ in range(3):
            for talk in (one, other):
                _shows_once(until_shown(talk.say, "Good morning.", TOLD))


@step("a compaction in one is followed by its opening alone")
def _compacted(both: Both) -> None:
    with both.talk() as one, both.codex.talk() as other:
        for talk in (one, other):
            _shows_once(until_shown(talk.say, "Good day.", TOLD))
        for talk, beside in ((one, other), (other, one)):
            talk.compact()
            _shows_once(until_shown(talk.say, "Go on.", TOLD))
            _shows_once(beside.say("Go on, too."))


@step("what is forgotten at the user's word in one is in no opening of the other, until one undo brings it back")
def _withdrawn(both: Both) -> None:
    wish = "We no longer use Postgres instead of MySQL."
    with both.talk() as talk:
        name = until_shown(talk.say, "Good noon.", TOLD).id_of(TOLD)
        answer = both.call(talk, wish, "memory_forget", id=name, quote=wish)
    assert TOLD not in [fact["text"] for fact in both.facts() if fact["state"] != "forgotten"], answer
    turn = both.codex.once("Good evening.")
    assert TOLD not in turn.blocks, turn
    both.perdure("undo")
    for host in (both.codex, both):
        _shows_once(until_shown(host.once, "Good night.", TOLD))


@step("hooks that run twice, by the settings and by a plugin, show everything once and keep it once")
def _twice(both: Both) -> None:
    settings, plugin = both.configs[0], both.home / ".claude" / "skills" / "perdure"
    once = settings.read_bytes()
    both.perdure("disconnect", both.name)
    both.perdure("connect", both.name, "--plugin", str(plugin))
    settings.write_bytes(once)
    assert "run twice" in both.perdure("connect")
    ran = both.home / "ran"
    hooks = plugin / "hooks" / "hooks.json"
    values = json.loads(hooks.read_text())
    values["hooks"]["Stop"].append({"hooks": [{"type": "command", "command": f"touch {ran}"}]})
    hooks.write_text(json.dumps(values))
    told = "We deploy from the branch called heron."
    with both.talk() as talk:
        _shows_once(until_shown(talk.say, "Good morning, twice.", TOLD))
        _shows_once(talk.say(told))
        until(ran.exists, 30, "the hooks of the plugin do not run")
        talk.compact()
        _shows_once(until_shown(talk.say, "Go on, twice.", TOLD))
    both.knows(told)
    assert both.memories().count(told) == 1, both.memories()
    turn = until_shown(both.once, "Which branch do we deploy from?", told)
    assert turn.blocks.count(told) == 1, turn


def _shows_once(turn: Turn) -> None:
    assert turn.blocks.count(TOLD) == 1, turn


main = command(Both, step)

if __name__ == "__main__":
    main()
