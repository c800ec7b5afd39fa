"""A host that `bench.exits` ends: it plays turns without a pause while every background job is busy.

Run by `bench.exits` with the data folder, the settings as JSON and how the end comes. It prints the marker of each
turn that was acknowledged, then "end", then nothing more.
"""

from __future__ import annotations

import json
import signal
import sys
import time
from typing import NoReturn

from perdure.api.memory import Memory
from perdure.hooks.types import TurnContext

SECONDS = 60.0
"""After so long it ends by itself, whatever it was told."""


def marker(run: str, number: int) -> str:
    """Return a word that stands for a turn: letters only, so that nothing takes it for a secret.

    The last one keeps two words from being forms of one.
    """
    return "m" + "".join(chr(ord("a") + int(digit)) for digit in f"{run}{number:05d}") + "x"


def _stop(signum: int, frame: object) -> NoReturn:
    raise SystemExit(0)


def main(home: str, run: str, settings: str, seconds: str) -> None:
    """Play turns for so many seconds, then leave the rest to the end of the interpreter.

    Args:
        home: the data folder.
        run: digits that tell this run from others.
        settings: JSON.
        seconds: until it ends by itself.
    """
    # As a host does that wants to end tidily. SIGINT is put back in case a shell has it ignored.
    signal.signal(signal.SIGTERM, _stop)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    memory = Memory.open(home, **json.loads(settings))
    until = time.monotonic() + min(float(seconds), SECONDS)
    messages: list[dict[str, str]] = []
    number = 0
    try:
        while time.monotonic() < until:
            number += 1
            word = marker(run, number)
            context = TurnContext(session_id=run, turn_id=word, host="bench")
            memory.turns.before(f"Where does the heron {word} nest?", context)
            messages.append({"role": "user", "content": f"Remember that the heron {word} nests at the lake."})
            if memory.turns.after(tuple(messages), True, context):
                sys.stdout.write(f"{word}\n")
                sys.stdout.flush()
            messages = messages[-4:]
    finally:
        sys.stdout.write("end\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main(*sys.argv[1:])
