"""The files by which OpenClaw knows perdure, made from the settings and the tools, so that they cannot drift apart.

Run as `python -m perdure.hosts.openclaw.manifest FOLDER` it writes those of a source folder.
"""

from __future__ import annotations

import json
import sys
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from perdure.api.tools import TOOLS
from perdure.engine.settings import Settings, table_of
from perdure.files.notes import DEFAULT_PROMPT, DEFAULT_SYSTEM_PROMPT
from perdure.files.prompt import prompt_sections

ID = "perdure"
OLDEST_HOST = "2026.9.0"
FLUSH_BYTES = 2_000_000
"""Bytes of a transcript from which OpenClaw flushes whatever the count of tokens."""
HERE = Path(__file__).parent
ENTRY = Path("perdure/hosts/openclaw")
FILES = ("index.js", "bridge.js")
_COMMON = {"autoRecall": "Recall automatically", "autoCapture": "Capture automatically"}
_SPELT = {
    "ack": "acknowledgement", "chars": "characters", "dims": "dimensions", "env": "variable", "lance": "LanceDB",
    "llm": "LLM", "max": "maximum", "min": "minimum", "ms": "(ms)", "timezone": "time zone", "url": "URL",
}  # fmt: skip
"""Words of a setting's name that its label spells otherwise."""


def manifest() -> Mapping[str, Any]:
    """Return `openclaw.plugin.json`."""
    told, texts = _told(), Settings.descriptions()
    properties = {name: own["schema"] for name, own in told["settings"].items()}
    hints = {name: own["hint"] for name, own in told["settings"].items()}
    for field, schema in Settings.model_json_schema()["properties"].items():
        name = camel(field)
        properties[name] = _setting(schema)
        for key, text in table.descriptions().items() if (table := table_of(field)) else ():
            properties[name]["properties"][camel(key)]["description"] = text
        label = _COMMON.get(name) or _label(field)
        hints[name] = {"label": label, "help": _help(texts[field], schema.get("default"))}
        hints[name] |= {} if name in _COMMON else {"advanced": True}
    schema = {"type": "object", "additionalProperties": False, "properties": properties}
    contracts = {"tools": [tool.name for tool in TOOLS]}
    return told["manifest"] | {"contracts": contracts, "uiHints": hints, "configSchema": schema}


def package(entry: str) -> Mapping[str, Any]:
    """Return `package.json`; the JavaScript `entry` is named from the folder of the package."""
    told = _told()
    files = [f"{Path(entry).parent.as_posix()}/*.js*".removeprefix("./"), "openclaw.plugin.json"]
    host = {"extensions": [f"./{entry}"], "compat": {"pluginApi": f">={OLDEST_HOST}"}}
    return told["package"] | {"version": told["manifest"]["version"], "files": files, "openclaw": host}


def generated() -> Mapping[str, Any]:
    """Return what the entry must know before the child runs: the tools, the flush plan, the lines of the prompt."""
    flush = Settings().flush
    [section] = prompt_sections("full", memory_md=None, runtime={})
    prompt = [*section.text.split("\n"), *_told()["prompt"]["lines"], ""]
    tools = [{"name": tool.name, "description": tool.description, "parameters": tool.parameters} for tool in TOOLS]
    plan = {
        "softThresholdTokens": flush.soft_tokens, "reserveTokensFloor": flush.reserve_tokens,
        "forceFlushTranscriptBytes": FLUSH_BYTES, "prompt": DEFAULT_PROMPT, "systemPrompt": DEFAULT_SYSTEM_PROMPT,
    }  # fmt: skip
    return {"tools": tools, "flush": plan, "prompt": prompt}


def source_files() -> Mapping[str, str]:
    """Return the generated files of a source folder, by path."""
    return {
        "openclaw.plugin.json": _json(manifest()),
        "package.json": _json(package((ENTRY / "index.js").as_posix())),
        (ENTRY / "generated.json").as_posix(): _json(generated()),
    }


def plugin_files() -> Mapping[str, str]:
    """Return all files of a folder that OpenClaw can load, by name. They stand on an installed perdure only."""
    return {
        "openclaw.plugin.json": _json(manifest()),
        "package.json": _json(package("index.js")),
        "generated.json": _json(generated()),
        **{name: (HERE / name).read_text(encoding="utf-8") for name in FILES},
    }


def camel(name: str) -> str:
    """Return a setting's name as OpenClaw's config has it."""
    head, *rest = name.split("_")
    return head + "".join(part.capitalize() for part in rest)


def _label(field: str) -> str:
    label = " ".join(_SPELT.get(word, word) for word in field.split("_"))
    return label[0].upper() + label[1:]


def _setting(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the schema of a setting: unset is left out instead of null, a path is a string."""
    parts = [part for part in schema.get("anyOf", ()) if part.get("type") != "null"]
    if len(parts) > 1:
        return {"anyOf": [_setting(part) for part in parts]}
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


def _told() -> dict[str, dict[str, Any]]:
    return tomllib.loads((HERE / "plugin.toml").read_text(encoding="utf-8"))


def _json(value: Mapping[str, Any]) -> str:
    return json.dumps(value, ensure_ascii=False, indent=2) + "\n"


def main(folder: Path) -> None:
    """Write the generated files of a source folder."""
    for name, text in source_files().items():
        (folder / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
