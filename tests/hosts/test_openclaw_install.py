"""Putting perdure into OpenClaw's config and taking it out again."""

from __future__ import annotations

import json
import os
import stat
import sys
from pathlib import Path
from typing import Any

import platformdirs
import pytest
from click.testing import CliRunner

from perdure.cli.main import cli
from perdure.engine.paths import data_folder
from perdure.errors import HostError
from perdure.hosts.openclaw.install import Installation, OpenClaw, bring_table, checkups
from tests.cli.calling import call_json

FAKE = Path(__file__).with_name("fake_openclaw.py")
BUSY: dict[str, Any] = {
    "gateway": {"port": 18789, "auth": {"token": "secret-of-the-gateway"}},
    "plugins": {
        "allow": ["telegram"],
        "load": {"paths": ["/my/plugin"], "watch": True},
        "slots": {"memory": "memory-lancedb"},
        "entries": {"telegram": {"enabled": True}, "memory-core": {"enabled": True, "config": {"a": 1}}},
    },
}
CONFIGS = [
    pytest.param("{}", id="empty"),
    pytest.param('{"gateway": {"port": 1}}\n', id="no plugins"),
    pytest.param(json.dumps(BUSY, indent=4), id="busy"),
    pytest.param('{\n  // mine\n  "gateway": {"port": 1},\n  "plugins": {"slots": {}}\n}\n', id="with comments"),
    pytest.param(
        '{"plugins": {"entries": {"memory-core": {"enabled": false}}, "load": {"paths": []}}}', id="half there"
    ),
]


class Site:
    """A home with an OpenClaw in it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.config = folder / "openclaw.json"
        self.command = folder / "bin" / "openclaw"
        self.command.parent.mkdir()
        self.command.write_text(f'#!/bin/sh\nexec "{sys.executable}" "{FAKE}" "$@"\n')
        self.command.chmod(0o755)
        self.environ = {
            **os.environ, "OPENCLAW_CONFIG_PATH": str(self.config), "OPENCLAW_STATE_DIR": str(folder / "state"),
            "PATH": f"{self.command.parent}{os.pathsep}{os.environ['PATH']}",
        }  # fmt: skip
        self.environ.pop("PERDURE_HOME", None)

    def installation(self, **environ: str) -> Installation:
        return Installation(OpenClaw.find(environ={**self.environ, **environ}))

    def values(self) -> dict[str, Any]:
        values: dict[str, Any] = json.loads(self.config.read_text())
        return values


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Site:
    site = Site(tmp_path)
    monkeypatch.setattr(platformdirs, "user_config_dir", lambda *names, **options: str(tmp_path / "config"))
    monkeypatch.delenv("PERDURE_HOME", raising=False)
    return site


@pytest.mark.parametrize("config", CONFIGS)
def test_uninstall_brings_the_config_back_byte_for_byte(site: Site, config: str) -> None:
    site.config.write_text(config)
    site.config.chmod(0o640)
    site.installation().install()
    assert not any(site.installation().checks().values()), site.installation().checks()
    assert site.installation().install().changes == ()
    plan = site.installation().uninstall()
    assert plan.restored
    assert site.config.read_text() == config
    assert stat.S_IMODE(site.config.stat().st_mode) == 0o640
    assert not (site.folder / "state" / "perdure").exists()


@pytest.mark.parametrize("config", [param for param in CONFIGS if param.id != "with comments"])
def test_after_edits_uninstall_takes_only_our_keys(site: Site, config: str) -> None:
    site.config.write_text(config)
    site.installation().install()
    edited = site.values() | {"agents": {"defaults": {}}}
    edited["plugins"]["entries"]["perdure"]["config"]["recallLimit"] = 4
    site.config.write_text(json.dumps(edited))
    assert not site.installation().uninstall().restored
    left = site.values()
    assert left.pop("agents") == {"defaults": {}}
    left.pop("meta")
    assert left.get("plugins", {}) == json.loads(config).get("plugins", {})


def test_what_the_user_set_before_stays(site: Site) -> None:
    site.config.write_text(json.dumps(BUSY))
    site.installation().install()
    plugins = site.values()["plugins"]
    assert plugins["allow"] == ["telegram", "perdure"]
    assert plugins["load"] == {
        "paths": ["/my/plugin", str(site.folder / "state" / "perdure" / "plugin")],
        "watch": True,
    }
    assert plugins["slots"] == {"memory": "perdure"}
    assert plugins["entries"]["memory-core"] == {"enabled": False, "config": {"a": 1}}
    assert plugins["entries"]["perdure"]["config"]["python"] == sys.executable
    edited = site.values()
    edited["plugins"]["entries"]["perdure"]["config"]["recallLimit"] = 4
    site.config.write_text(json.dumps(edited))
    site.installation().install(home=site.folder / "memories")
    kept = site.values()["plugins"]["entries"]["perdure"]["config"]
    assert kept == {"python": sys.executable, "recallLimit": 4, "home": str(site.folder / "memories")}


def test_without_an_allow_list_none_is_made(site: Site) -> None:
    site.config.write_text("{}")
    site.installation().install()
    assert "allow" not in site.values()["plugins"]


def test_install_notes_the_data_folder_for_every_process(site: Site) -> None:
    site.config.write_text("{}")
    site.installation().install()
    assert data_folder(environ={}) == site.folder / "state" / "memory" / "perdure"
    site.installation().install(home=site.folder / "memories")
    assert data_folder(environ={}) == site.folder / "memories"


def test_a_refusal_leaves_the_config_as_it_was(site: Site) -> None:
    site.config.write_text("{}")
    with pytest.raises(HostError, match="OpenClaw config is invalid"):
        site.installation(FAKE_REFUSES="1").install()
    assert site.config.read_text() == "{}"
    site.installation().install()
    site.installation().uninstall()
    assert site.config.read_text() == "{}"


def test_the_plugins_files_are_whole_and_named_by_the_package(site: Site) -> None:
    site.config.write_text("{}")
    site.installation().install()
    plugin = site.installation().plugin
    package = json.loads((plugin / "package.json").read_text())
    assert (plugin / package["openclaw"]["extensions"][0]).is_file()
    (plugin / "index.js").write_text("// changed")
    assert "a different version" in str(site.installation().checks()["plugin files"])
    site.installation().install()
    assert site.installation().checks()["plugin files"] is None


@pytest.mark.parametrize(
    ("environ", "config", "message"),
    [
        ({"PATH": "/nowhere"}, "{}", "npm install -g openclaw"),
        ({"FAKE_VERSION": "2026.8.30"}, "{}", "2026.8.30 is too old, 2026.9.0 is needed"),
        ({"FAKE_VERSION": "soon"}, "{}", "printed no version"),
        ({}, None, "openclaw onboard"),
    ],
)
def test_a_host_that_cannot_be_used_is_named_with_the_next_step(
    site: Site, environ: dict[str, str], config: str | None, message: str
) -> None:
    if config is not None:
        site.config.write_text(config)
    with pytest.raises(HostError, match=message):
        site.installation(**environ)


def test_the_commands_show_what_changes_and_no_secret(site: Site) -> None:
    site.config.write_text(json.dumps(BUSY))
    before = site.config.read_bytes()

    def run(*words: str) -> Any:
        return CliRunner().invoke(cli, ["openclaw", *words], env=site.environ, standalone_mode=False)

    dry = run("install", "--dry-run")
    assert dry.exception is None
    assert "+ plugins.entries.perdure.hooks.allowConversationAccess: true" in dry.output
    assert '- plugins.slots.memory: "memory-lancedb"' in dry.output
    assert "secret-of-the-gateway" not in dry.output
    assert site.config.read_bytes() == before
    assert run("status").return_value == 1
    assert run("install").return_value == 0
    assert run("status").return_value == 0
    assert json.loads(run("uninstall", "--json").output)["done"] is True
    assert site.config.read_bytes() == before


def test_lancedb_comes_with_the_install_where_it_is_not_and_its_failure_is_told(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    python, noted = site.folder / "python", site.folder / "noted"
    python.write_text(
        f'#!/bin/sh\necho "$*" >>"{noted}"\ntest ! -e "{site.folder}/offline" || {{ echo no way >&2; exit 1; }}\n'
    )
    python.chmod(0o755)
    assert bring_table(str(python)) == ""
    assert not noted.exists(), "it is installed here"
    monkeypatch.setitem(sys.modules, "lancedb", None)
    assert bring_table(str(python)) == ""
    assert noted.read_text() == "-m pip install --quiet perdure[lancedb]\n"
    (site.folder / "offline").touch()
    assert bring_table(str(python)) == "no way"
    assert bring_table(str(site.folder / "none")) == "FileNotFoundError"


def wiring(site: Site) -> list[tuple[str, str]]:
    return [(each.state, each.fix) for each in checkups(site.environ)]


def test_the_doctor_says_nothing_where_there_is_no_openclaw(site: Site) -> None:
    assert wiring(site) == []


def test_the_doctor_finds_what_keeps_openclaw_from_calling_perdure(site: Site) -> None:
    site.config.write_text(json.dumps(BUSY))
    [(state, fix)] = wiring(site)
    assert ("perdure openclaw install" in state, fix) == (True, "")
    site.installation().install()
    [(state, fix)] = wiring(site)
    assert ("is set up for perdure" in state, fix) == (True, "")
    values = site.values()
    values["plugins"]["slots"]["memory"] = "memory-core"
    values["plugins"]["entries"]["perdure"]["hooks"]["allowConversationAccess"] = False
    site.config.write_text(json.dumps(values))
    found = wiring(site)
    assert [state.partition(":")[0] for state, _ in found] == ["memory slot", "conversation access"]
    assert {fix for _, fix in found} == {"perdure openclaw install"}


def test_the_doctor_says_that_an_openclaw_with_perdure_in_it_is_gone(site: Site) -> None:
    site.config.write_text("{}")
    site.installation().install()
    site.command.unlink()
    [(state, fix)] = wiring(site)
    assert "OpenClaw was not found" in state
    assert "perdure openclaw status" in fix


def test_the_doctor_command_tells_of_openclaw(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    site.config.write_text("{}")
    for name in ("OPENCLAW_CONFIG_PATH", "OPENCLAW_STATE_DIR", "PATH"):
        monkeypatch.setenv(name, site.environ[name])
    monkeypatch.setenv("PERDURE_HOME", str(site.folder / "home"))
    assert [check["ok"] for check in call_json("doctor")["checks"] if check["name"] == "openclaw"] == [True]
