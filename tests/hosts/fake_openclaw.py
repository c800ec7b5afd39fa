"""A small OpenClaw for tests: its command line as far as an install needs it, over a real config file."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any


def merged(value: Any, patch: Any) -> Any:
    """Apply a JSON merge patch (RFC 7396)."""
    if not isinstance(patch, dict):
        return patch
    result = dict(value) if isinstance(value, dict) else {}
    for key, part in patch.items():
        if part is None:
            result.pop(key, None)
        else:
            result[key] = merged(result.get(key), part)
    return result


def main(arguments: list[str]) -> int:
    """Run a command."""
    config = Path(os.environ["OPENCLAW_CONFIG_PATH"])
    if arguments == ["--version"]:
        sys.stdout.write(f"OpenClaw {os.environ.get('FAKE_VERSION', '2026.9.6')} (eb377ac)\n")
        return 0
    # Comments are what this one knows of JSON5.
    text = "\n".join(line for line in config.read_text().split("\n") if not line.strip().startswith("//"))
    values = json.loads(text)
    if arguments == ["config", "get", "plugins", "--json"]:
        sys.stdout.write(json.dumps(values["plugins"]) if "plugins" in values else "")
        return int("plugins" not in values)
    if arguments[:2] == ["plugins", "install"]:
        return 0
    if arguments[:2] == ["plugins", "uninstall"]:
        if "perdure" in values.get("plugins", {}).get("entries", {}):
            values["plugins"]["entries"]["perdure"] = {"enabled": False}
            values["plugins"]["slots"].pop("memory", None)
            config.write_text(json.dumps(values))
        return 0
    patch = json.loads(sys.stdin.read())
    if os.environ.get("FAKE_REFUSES"):
        sys.stderr.write("OpenClaw config is invalid\n")
        return 1
    config.write_text(json.dumps({**merged(values, patch), "meta": {"lastTouchedVersion": "2026.9.6"}}, indent=2))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
