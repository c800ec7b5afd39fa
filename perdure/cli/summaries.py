"""What each command does, in a line: `--help` need not import them all for that."""

from __future__ import annotations

SUMMARIES: dict[str, str] = {
    "audit": "Find memories that do more harm than good.",
    "backup": "Copy the store while it is in use, and check the copy.",
    "classify": 'Give memories of the category "other" a better one, by their words and by the memories that are...',
    "completion": "Print what a shell needs to complete commands and options.",
    "demo": "Play a conversation of two sessions in which the agent remembers.",
    "doctor": "Find out what is wrong, and say what to do about each.",
    "eval": "Measure recall with questions made from your own memories.",
    "export": "Write all memories with everything that is known of them as lines of JSON.",
    "files": "Search and read memory files and past conversations.",
    "forget": "Leave a memory out of every answer from now on; `perdure unforget` and `perdure undo` bring it back.",
    "import": "Take in an export, a folder of hybrid-memory, or a LanceDB folder of lancedb-pro.",
    "index": "Bring the index of files and conversations up to date, and give every passage its vector.",
    "link": "Link two memories.",
    "list": "List memories, newest first.",
    "lookup": "Show what is known about an entity, and a key of it.",
    "mcp": "Serve memory over stdin and stdout to a client of the Model Context Protocol.",
    "model": "Show or change the embedding model of the store.",
    "purge": "Remove memories from every file of the data folder; this cannot be undone.",
    "recall": "Show what a prompt would bring up.",
    "replay": "Play a transcript through the hooks, and show what was kept and how long it took.",
    "review": "Review memories that are not recalled before you approve them; without a command, list them.",
    "scrub": "Take the secrets out of what is stored; this cannot be undone.",
    "show": "Show all that is known about one memory; eight digits of its id are enough.",
    "stats": "Count memories by scope and category.",
    "status": "Show how the store is, and what is wrong with it.",
    "store": "Store a memory.",
    "undo": "Take back the last change, or all of a session.",
    "unforget": "Bring a forgotten memory back.",
    "vault": "Keep secrets encrypted; the agent remembers only that they are there.",
    "verify": "Check every fact, word, vector and file.",
    "why": "Show what came up in a turn and why, then what did not; without TURN in the last one.",
    "why-not": "Say why a memory did not come up in a turn; without TURN in the last one.",
}
"""The beginnings of the commands' own help texts; a test holds that they are the same."""
