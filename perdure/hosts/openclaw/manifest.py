"""The files by which OpenClaw knows perdure, made from the settings and the tools, so that they cannot drift apart.

Run as `python -m perdure.hosts.openclaw.manifest FOLDER` it writes those of a source folder.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from perdure.api.tools import TOOLS
from perdure.engine.settings import Settings, table_of
from perdure.files.notes import DEFAULT_PROMPT, DEFAULT_SYSTEM_PROMPT
from perdure.files.prompt import prompt_sections
from perdure.hosts.openclaw.mapping import HOST

ID = "perdure"
NAME = "Perdure memory"
DESCRIPTION = "Long-term memory that just works: local, no key, no network, no LLM."
CLI = "Long-term memory: the commands of perdure."
VERSION = "0.1.0"
OLDEST_HOST = "2026.9.0"
FLUSH_BYTES = 2_000_000
"""Bytes of a transcript from which OpenClaw flushes whatever the count of tokens."""
ENTRY = Path("perdure/hosts/openclaw")
FILES = ("index.js", "bridge.js")
_COMMON = ("autoRecall", "autoCapture")
_LABELS = {"autoRecall": "Recall automatically", "autoCapture": "Capture automatically"}
_OWN: Mapping[str, tuple[str, str, Mapping[str, Any]]] = {
    "python": (
        "Python",
        "Absolute path of the Python interpreter that perdure is installed in.",
        {"type": "string", "default": "python3"},
    ),
    "home": (
        "Data folder",
        "Where memories are kept. Empty: memory/perdure in OpenClaw's state folder.",
        {"type": "string", "default": ""},
    ),
    "recallTimeoutMs": (
        "Recall time limit (ms)",
        "A turn goes on without memories after this time.",
        {"type": "integer", "minimum": 50, "maximum": 14_000, "default": 3_000},
    ),
    "captureTimeoutMs": (
        "Capture time limit (ms)",
        "How long the end of a turn may be handed over.",
        {"type": "integer", "minimum": 50, "maximum": 29_000, "default": 10_000},
    ),
}
"""Settings of the entry itself: label, help, schema. OpenClaw's own limits of the two hooks are 15 and 30 s."""


def manifest() -> Mapping[str, Any]:
    """Return `openclaw.plugin.json`."""
    properties: dict[str, Any] = {}
    hints: dict[str, Any] = {}
    for name, (label, text, schema) in _OWN.items():
        properties[name] = schema
        hints[name] = {"label": label, "help": text} | ({"advanced": True} if "Timeout" in name else {})
    told = Settings.descriptions()
    for field, schema in Settings.model_json_schema()["properties"].items():
        name = camel(field)
        properties[name] = _setting(schema)
        for key, text in table.descriptions().items() if (table := table_of(field)) else ():
            properties[name]["properties"][camel(key)]["description"] = text
        label = _LABELS.get(name, field.replace("_", " ").capitalize())
        hints[name] = {"label": label, "help": _help(told[field], schema.get("default"))}
        hints[name] |= {} if name in _COMMON else {"advanced": True}
    return {
        "id": ID,
        "name": NAME,
        "description": DESCRIPTION,
        "version": VERSION,
        "kind": "memory",
        "categories": ["memory"],
        "activation": {"onStartup": True},
        "contracts": {"tools": [tool.name for tool in TOOLS]},
        "cliCommands": [{"name": ID, "description": CLI, "hasSubcommands": True}],
        "uiHints": hints,
        "configSchema": {"type": "object", "additionalProperties": False, "properties": properties},
    }


def package(entry: str) -> Mapping[str, Any]:
    """Return `package.json`.

    Args:
        entry: the JavaScript entry, from the folder of the package.
    """
    return {
        "name": f"{HOST}-{ID}",
        "version": VERSION,
        "description": "Long-term memory for OpenClaw that just works: local, no key, no network, no LLM.",
        "license": "MIT",
        "private": True,
        "type": "module",
        "files": [f"{Path(entry).parent.as_posix()}/*.js*".removeprefix("./"), "openclaw.plugin.json"],
        "openclaw": {"extensions": [f"./{entry}"], "compat": {"pluginApi": f">={OLDEST_HOST}"}},
    }


def generated() -> Mapping[str, Any]:
    """Return what the entry must know before the child runs: the tools, the flush plan, the lines of the prompt."""
    flush = Settings().flush
    [section] = prompt_sections("full", memory_md=None, runtime={})
    prompt = [*section.text.split("\n"), "Facts and preferences from earlier chats come up by themselves.", ""]
    return {
        "tools": [
            {"name": tool.name, "description": tool.description, "parameters": tool.parameters} for tool in TOOLS
        ],
        "flush": {
            "softThresholdTokens": flush.soft_tokens,
            "reserveTokensFloor": flush.reserve_tokens,
            "forceFlushTranscriptBytes": FLUSH_BYTES,
            "prompt": DEFAULT_PROMPT,
            "systemPrompt": DEFAULT_SYSTEM_PROMPT,
        },
        "prompt": prompt,
    }


def source_files() -> Mapping[str, str]:
    """Return the generated files of a source folder, by path."""
    return {
        "openclaw.plugin.json": _json(manifest()),
        "package.json": _json(package((ENTRY / "index.js").as_posix())),
        (ENTRY / "generated.json").as_posix(): _json(generated()),
    }


def plugin_files() -> Mapping[str, str]:
    """Return all files of a folder that OpenClaw can load, by name. They stand on an installed perdure only."""
    here = Path(__file__).parent
    return {
        "openclaw.plugin.json": _json(manifest()),
        "package.json": _json(package("index.js")),
        "generated.json": _json(generated()),
        **{name: (here / name).read_text(encoding="utf-8") for name in FILES},
    }


def camel(name: str) -> str:
    """Return a setting's name as OpenClaw's config has it."""
    head, *rest = name.split("_")
    return head + "".join(part.capitalize() for part in rest)


def _setting(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the schema of a setting: unset is left out instead of null, a path is a string."""
    parts = [part for part in schema.get("anyOf", ()) if part.get("type") != "null"]
    plain = {**schema, **(parts[0] if parts else {})}
    if "$ref" in plain:
        definitions = Settings.model_json_schema()["$defs"]
        plain |= definitions[plain["$ref"].rpartition("/")[2]]
    # OpenClaw fills defaults in, and its config stands above the settings file: a default would hide what is there.
    dropped = {"anyOf", "title", "description", "format", "$ref", "default"}
    kept = {key: value for key, value in plain.items() if key not in dropped}
    if "properties" in kept:
        kept["properties"] = {camel(name): _setting(each) for name, each in kept["properties"].items()}
    return kept


def _help(told: str, default: Any) -> str:
    # The keys of a table have their own defaults.
    return told if default in (None, []) or isinstance(default, dict) else f"{told} Default: {json.dumps(default)}."


def _json(value: Mapping[str, Any]) -> str:
    return json.dumps(value, ensure_ascii=False, indent=2) + "\n"


def main(folder: Path) -> None:
    """Write the generated files of a source folder."""
    for name, text in source_files().items():
        (folder / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
