"""The two files by which OpenClaw knows this folder as a plugin."""

from __future__ import annotations

import json
import shutil
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest

from perdure.api.tools import TOOLS
from perdure.engine.settings import Settings
from perdure.hosts.openclaw.manifest import camel, source_files
from tests.kit import for_each

ROOT = Path(__file__).parents[1]
TYPES = {"string": str, "boolean": bool, "integer": int}
OWN = {"python", "home", "recallTimeoutMs", "captureTimeoutMs"}
"""Settings of the entry; all others are those of perdure."""
HOOK_LIMIT_MS = {"recallTimeoutMs": 15_000, "captureTimeoutMs": 30_000}
"""OpenClaw's own limits for before_prompt_build and agent_end."""

MANIFEST: dict[str, Any] = json.loads((ROOT / "openclaw.plugin.json").read_text())
PACKAGE: dict[str, Any] = json.loads((ROOT / "package.json").read_text())
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
PROPERTIES: dict[str, dict[str, Any]] = MANIFEST["configSchema"]["properties"]


def test_the_manifest_names_a_memory_that_loads_at_start() -> None:
    assert MANIFEST["id"] == PROJECT["name"]
    assert MANIFEST["name"] == "Perdure memory"
    assert MANIFEST["kind"] == "memory"
    assert MANIFEST["activation"] == {"onStartup": True}


def test_labels_spell_out_what_names_of_settings_shorten() -> None:
    labels = [MANIFEST["uiHints"][name]["label"] for name in ("llmKeyEnv", "storeDirectUrl", "recallDeadlineMs")]
    assert labels == ["LLM key variable", "Store direct URL", "Recall deadline (ms)"]


def test_versions_are_those_of_the_project() -> None:
    assert MANIFEST["version"] == PACKAGE["version"] == PROJECT["version"]


def test_the_package_names_entry_and_host() -> None:
    assert PACKAGE["name"] == "openclaw-perdure"
    assert PACKAGE["type"] == "module"
    assert PACKAGE["license"] == PROJECT["license"]
    assert PACKAGE["openclaw"]["compat"] == {"pluginApi": ">=2026.9.0"}
    assert PACKAGE["openclaw"]["extensions"] == ["./perdure/hosts/openclaw/index.js"]


def test_packed_files_hold_the_entry_and_the_manifest() -> None:
    [entry] = PACKAGE["openclaw"]["extensions"]
    assert any(Path(entry).match(pattern) for pattern in PACKAGE["files"])
    assert "openclaw.plugin.json" in PACKAGE["files"]


def test_npm_packs_what_openclaw_needs_and_nothing_else(tmp_path: Path) -> None:
    npm = shutil.which("npm")
    if npm is None:
        pytest.skip("npm is not installed")
    command = [npm, "pack", "--dry-run", "--json", "--offline", "--cache", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    [packed] = json.loads(done.stdout)
    entry = {f"perdure/hosts/openclaw/{name}" for name in ("bridge.js", "generated.json", "index.js")}
    assert {each["path"] for each in packed["files"]} == entry | {
        "LICENSE", "README.md", "openclaw.plugin.json", "package.json",
    }  # fmt: skip


def test_tools_are_listed_by_name() -> None:
    assert MANIFEST["contracts"]["tools"] == [tool.name for tool in TOOLS]


@for_each("name", source_files())
def test_generated_files_are_those_of_the_settings_and_tools(name: str) -> None:
    again = "run `python -m perdure.hosts.openclaw.manifest .`"
    assert (ROOT / name).read_text(encoding="utf-8") == source_files()[name], again


def test_a_value_of_the_config_is_one_that_the_settings_take() -> None:
    """OpenClaw checks a config against the schema: what that lets through must not stop the start."""
    Settings.load({}, host_config={"recallPlacement": "tail", "recallFormat": "short", "minCosine": 0.3}, environ={})
    Settings.load({}, host_config={"captureLimits": {"maxChars": 400}, "jobs": {"backup": 0}}, environ={})
    assert PROPERTIES["captureLimits"]["properties"]["maxChars"]["maximum"] == 16_000
    assert PROPERTIES["captureLimits"]["additionalProperties"] is False
    assert PROPERTIES["recallPlacement"]["enum"] == ["head", "tail", "system"]
    assert PROPERTIES["minCosine"]["minimum"] == -1
    assert [each["type"] for each in PROPERTIES["recallThreshold"]["anyOf"]] == ["number", "string"]
    assert PROPERTIES["sources"]["items"]["enum"] == ["memory", "sessions"]


def test_settings_are_closed_and_each_has_a_hint() -> None:
    schema = MANIFEST["configSchema"]
    assert schema["type"] == "object"
    assert schema["additionalProperties"] is False
    assert set(PROPERTIES) == OWN | {camel(name) for name in Settings.model_fields}
    assert set(MANIFEST["uiHints"]) == set(PROPERTIES)


@for_each("name", PROPERTIES)
def test_a_hint_has_words(name: str) -> None:
    hint = MANIFEST["uiHints"][name]
    assert hint["label"]
    assert hint["help"].endswith(".")
    assert set(hint) <= {"label", "help", "advanced"}


@for_each("name", sorted(PROPERTIES.keys() - OWN))
def test_a_setting_of_perdure_has_no_default_that_would_hide_the_settings_file(name: str) -> None:
    assert "default" not in PROPERTIES[name]
    assert PROPERTIES[name].keys() & {"type", "enum", "anyOf"}


@for_each("name", sorted(OWN))
def test_a_default_has_the_type_and_the_bounds_of_its_setting(name: str) -> None:
    setting = PROPERTIES[name]
    assert type(setting["default"]) is TYPES[setting["type"]]
    if setting["type"] == "integer":
        assert setting["minimum"] <= setting["default"] <= setting["maximum"]


@for_each(("name", "limit"), HOOK_LIMIT_MS.items())
def test_perdure_gives_up_before_the_host_does(name: str, limit: int) -> None:
    assert PROPERTIES[name]["maximum"] < limit
