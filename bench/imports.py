"""What an import of a large export of conversations costs.

python -m bench imports [--megabytes 100] [--json]

An export of ChatGPT is made up: of each twenty messages the person writes four, and in every fifth conversation one of
these is worth keeping. A process of its own imports it.

megabytes, conversations, messages: what is in it, the messages being the person's. added: memories that it made.
seconds: for all of it. peak_mb: the most memory that the process took; before_mb: what it had taken when it began to
read. added_again, again_seconds: of a second import.
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

import click

from bench.measuring import script
from bench.program import program

_PROSE = "It depends on what you mean by that, so let us look at the parts one after the other. "
_IMPORT = """
import resource, time
from pathlib import Path
from perdure.importers.chats import load_chatgpt
from perdure.importers.conversation_import import hear
from perdure.store.store import Store

def peak():
    return round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, 1)

store = Store(Path(sys.argv[2]))
talks = load_chatgpt(Path(sys.argv[1]))
before, began = peak(), time.monotonic()
done = hear(store, talks)
seconds, most, began = time.monotonic() - began, peak(), time.monotonic()
again = hear(store, talks)
print(json.dumps({
    "conversations": done.conversations, "messages": done.messages, "added": done.added, "seconds": round(seconds, 1),
    "before_mb": before, "peak_mb": most, "added_again": again.added,
    "again_seconds": round(time.monotonic() - began, 1),
}))
store.close()
"""


def write_export(path: Path, size: int) -> None:
    """Write an export of ChatGPT of about so many bytes."""
    with path.open("w", encoding="utf-8") as file:
        file.write("[")
        number = 0
        while file.tell() < size:
            file.write(("," if number else "") + json.dumps(_conversation(number)))
            number += 1
        file.write("]")


@click.option("--megabytes", type=click.IntRange(1), default=100, help="Size of the export.")
def bench(megabytes: int) -> dict[str, Any]:
    """Import an export of so many megabytes in a process of its own, and return the figures."""
    with tempfile.TemporaryDirectory() as folder:
        export = Path(folder, "conversations.json")
        write_export(export, megabytes * 1_000_000)
        return {"megabytes": megabytes, **script(_IMPORT, export, Path(folder, "store"))}


def _conversation(number: int) -> dict[str, Any]:
    mapping: dict[str, Any] = {"root": {"id": "root", "message": None, "parent": None, "children": ["0"]}}
    for place in range(20):
        mine = place % 5 == 0
        said = (
            f"My plant number {number} is called Fern {number}." if number % 5 == 0 and not place else "And then what?"
        )
        mapping[str(place)] = {
            "id": str(place),
            "parent": str(place - 1) if place else "root",
            "children": [str(place + 1)] if place < 19 else [],
            "message": {
                "id": str(place),
                "author": {"role": "user" if mine else "assistant"},
                "create_time": 1.7e9 + 1000.0 * number + place,
                "content": {"content_type": "text", "parts": [said if mine else _PROSE * 20]},
                "metadata": {},
            },
        }
    return {"id": f"c-{number}", "title": "", "current_node": "19", "mapping": mapping}


main = program(bench)
