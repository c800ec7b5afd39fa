"""Connecting Codex, which trusts each hook by itself, and taking perdure out of it again."""

from __future__ import annotations

import json
import tomllib
from typing import Any

import pytest

from perdure.errors import HostError
from perdure.hosts.connect.hook_hosts import Codex
from perdure.hosts.connect.parts import Wiring
from perdure.hosts.connect.survey import Found, checkups, survey
from tests.hosts.machine import PYTHON, Machine, commands, values

CONFIGS = [
    pytest.param(None, id="no file"),
    pytest.param("", id="empty"),
    pytest.param('# mine\nmodel = "x"   # the quick one', id="no line end"),
    pytest.param('[mcp_servers.docs]\ncommand = "docs"\n\n[projects."/a"]\ntrust_level = "trusted"\n', id="servers"),
    pytest.param('mcp_servers = { docs = { command = "docs" } }\n[tui]\nx = 1\n', id="inline"),
    pytest.param('[mcp_servers.a]\ncommand = "a"\n[tui]\nx = 1\n[mcp_servers.b]\ncommand = "b"\n', id="out of order"),
    pytest.param('\ufeffmodel = "x"\r\n\r\n[features]\r\nhooks = true\r\n', id="of another system"),
]
WIRING = Wiring("codex")
EVENTS = ["SessionStart", "UserPromptSubmit", "Stop", "PreCompact", "SessionEnd"]


def found() -> Found:
    return survey(names=[Codex.name])[0]


def trust(machine: Machine, **changes: Any) -> None:
    """Write down what Codex does when a person trusts our hooks."""
    lines = ["", "[hooks.state]"]
    for _, names, digest in Codex().identities():
        lines += ["", f'[hooks.state."{names[0]}"]', f'trusted_hash = "{changes.get("digest", digest)}"']
        lines += [f"enabled = {changes['enabled']}"] if "enabled" in changes else []
    with (machine.codex / "config.toml").open("a") as file:
        file.write("\n".join(lines) + "\n")


@pytest.mark.parametrize("config", CONFIGS)
def test_disconnect_brings_every_file_back_byte_for_byte(machine: Machine, config: str | None) -> None:
    if config is not None:
        (machine.codex / "config.toml").write_bytes(config.encode())
    machine.for_codex().connect()
    text = (machine.codex / "config.toml").read_bytes().decode("utf-8-sig")
    before = tomllib.loads((config or "").removeprefix("\ufeff"))
    server = tomllib.loads(text)["mcp_servers"].pop("perdure")
    assert (server["command"], server["args"]) == (PYTHON, ["-I", "-m", "perdure", "mcp", "--host", "codex"])
    assert all(
        line in text for line in (config or "").removeprefix("\ufeff").split("\r\n") if "mcp_servers" not in line
    )
    assert tomllib.loads(text).items() >= {key: each for key, each in before.items() if key != "mcp_servers"}.items()
    assert machine.for_codex().connect() == []
    assert all(edit.restored for edit in machine.for_codex().disconnect())
    left = {path.name: path.read_bytes() for path in machine.codex.iterdir()}
    assert left == ({} if config is None else {"config.toml": config.encode()})


@pytest.mark.parametrize("config", CONFIGS)
def test_after_a_person_trusted_the_hooks_only_our_keys_go(machine: Machine, config: str | None) -> None:
    if config is not None:
        (machine.codex / "config.toml").write_bytes(config.encode())
    machine.for_codex().connect()
    trust(machine)
    assert found().memory == "automatic"
    machine.for_codex().disconnect()
    text = (machine.codex / "config.toml").read_bytes().decode("utf-8-sig") if config is not None else ""
    assert tomllib.loads(text) == tomllib.loads((config or "").removeprefix("\ufeff"))
    assert not (machine.codex / "hooks.json").exists()


def test_a_config_that_cannot_be_changed_safely_is_left_alone(machine: Machine) -> None:
    config = 'mcp_servers.docs.command = "docs"\nmodel = "x"\n[tui]\nx = 1\n'
    (machine.codex / "config.toml").write_text(config)
    with pytest.raises(HostError, match=r"under a single \[header\]"):
        machine.for_codex().connect()
    assert [path.name for path in machine.codex.iterdir()] == ["config.toml"]
    assert (machine.codex / "config.toml").read_text() == config


def test_each_event_has_a_hook_and_no_event_more_seconds_than_codex_gives(machine: Machine) -> None:
    machine.for_codex().connect()
    assert list(commands(machine.codex / "hooks.json")) == EVENTS
    hooks = values(machine.codex / "hooks.json")["hooks"]
    assert {event: groups[0]["hooks"][0]["timeout"] for event, groups in hooks.items()} == {
        **dict.fromkeys(EVENTS, 10),
        "SessionEnd": 3,
    }


def test_before_tools_run_it_is_asked_of_commands_and_patches_and_trusted_by_that(machine: Machine) -> None:
    Codex().for_user(Wiring("codex", reminds=True)).connect()
    [group] = values(machine.codex / "hooks.json")["hooks"]["PreToolUse"]
    assert group["matcher"] == "Bash|apply_patch"
    trust(machine)
    assert Codex().distrusted() == []
    whole = (machine.codex / "hooks.json").read_bytes()
    changed = values(machine.codex / "hooks.json")
    changed["hooks"]["PreToolUse"][0]["matcher"] = "Bash"
    (machine.codex / "hooks.json").write_text(json.dumps(changed))
    assert Codex().distrusted() == ["PreToolUse"]
    assert found().memory == "automatic"
    assert [each for each in found().problems if "only its pre-tool reminder hook is not trusted yet" in each]
    (machine.codex / "hooks.json").write_bytes(whole)
    machine.for_codex().connect()
    assert Codex().distrusted() == []
    assert "pre_tool_use" not in (machine.codex / "config.toml").read_text()


def test_hooks_of_others_keep_their_places_by_which_codex_knows_them(machine: Machine) -> None:
    theirs = {"hooks": [{"type": "command", "command": "say done"}]}
    (machine.codex / "hooks.json").write_text(json.dumps({"hooks": {"Stop": [theirs]}}))
    machine.for_codex().connect()
    assert commands(machine.codex / "hooks.json")["Stop"][0] == "say done"
    assert [names[0].rpartition("hooks.json:")[2] for event, names, _ in Codex().identities() if event == "Stop"] == [
        "stop:1:0"
    ]
    assert not Codex().overtaken()
    later = values(machine.codex / "hooks.json")
    later["hooks"]["Stop"].append(theirs)
    (machine.codex / "hooks.json").write_text(json.dumps(later))
    assert Codex().overtaken()


def test_a_hook_is_trusted_by_the_hash_that_codex_computes(machine: Machine) -> None:
    # As codex 0.169.0 answers to "hooks/list" of its app-server.
    known = {
        "SessionStart": "sha256:2dc73739c335d76280a95b95e533b3351ac0a8cd1eb2091571bccc268ab1bfa5",
        "UserPromptSubmit": "sha256:ff4a14b247880f895c66e21407129a785b3b17f2e7db9d2e5bb3f8ee5338fcad",
        "Stop": "sha256:40803567c03203683a395511253f5481f32272b6728556290ca4d4554a1f9792",
        "PreCompact": "sha256:368daef4bb9a01489e19c46ca6c34a3968a3309f72203c180acc46b8f0719c8c",
        "SessionEnd": "sha256:adafd7d37db6570936f3a20ed45a8eb3ae02be86db43aa197abc070e031e698b",
    }
    machine.codex.joinpath("hooks.json").write_text(json.dumps({"hooks": {}}))
    Codex().for_user(Wiring("codex", python="/opt/perdure/bin/python")).connect()
    computed = {event: digest for event, _, digest in Codex().identities()}
    assert computed == known


def test_what_a_person_has_changed_of_a_hook_is_hashed_as_codex_does(machine: Machine) -> None:
    # As above; codex caps the seconds of two of these, and looks at the matcher of one.
    def hook(event: str, **changes: Any) -> dict[str, Any]:
        command = f"/opt/p/bin/python -I -m perdure hook {event} --host codex"
        return {"type": "command", "command": command, **changes}

    hooks = {
        "SessionStart": [{"matcher": "startup", "hooks": [hook("session-start", timeout=10)]}],
        "UserPromptSubmit": [{"matcher": "x", "hooks": [hook("prompt", statusMessage="hé", timeout=5)]}],
        "SessionEnd": [{"matcher": "clear", "hooks": [hook("session-end", timeout=10)]}],
        "PreCompact": [{"matcher": "manual", "hooks": [hook("compact", timeout=0)]}],
    }
    (machine.codex / "hooks.json").write_text(json.dumps({"hooks": hooks}))
    assert {event: digest.removeprefix("sha256:")[:18] for event, _, digest in Codex().identities()} == {
        "SessionStart": "ee635b040cc2e3b81d",
        "UserPromptSubmit": "778ba43612f562e1fd",
        "SessionEnd": "e3d1573d73d31ef0f1",
        "PreCompact": "c0b23abbc53c2ef59c",
    }


def test_hooks_are_not_trusted_until_codex_has_noted_all_of_them(machine: Machine) -> None:
    machine.for_codex().connect()
    assert Codex().distrusted() == EVENTS
    assert found().memory == "on request"
    assert "not trusted yet" in found().problems[0]
    assert [("/hooks" in each.state, each.wrong) for each in checkups()] == [
        (False, False),
        (True, True),
    ]
    trust(machine)
    assert Codex().distrusted() == []
    Codex().for_user(Wiring("codex", python="/usr/bin/env")).connect()
    assert Codex().distrusted() == EVENTS, "another command is another hook"


@pytest.mark.parametrize("change", [{"digest": "sha256:0"}, {"enabled": "false"}])
def test_a_record_that_names_another_hook_or_switches_ours_off_is_no_trust(
    machine: Machine, change: dict[str, str]
) -> None:
    machine.for_codex().connect()
    trust(machine, **change)
    assert Codex().distrusted() == EVENTS


def test_a_record_of_trust_in_an_unknown_form_is_told_of(machine: Machine) -> None:
    machine.for_codex().connect()
    with (machine.codex / "config.toml").open("a") as file:
        file.write("\n[hooks]\nstate = 7\n")
    with pytest.raises(HostError, match="a form that perdure does not recognise"):
        Codex().distrusted()
    assert "cannot read whether" in found().problems[0]


def test_a_folder_that_is_a_link_is_known_by_both_names(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    (machine.home / "linked").symlink_to(machine.codex)
    machine.for_codex().connect()
    trust(machine)
    monkeypatch.setenv("CODEX_HOME", str(machine.home / "linked"))
    assert Codex().distrusted() == []


def test_hooks_that_are_switched_off_are_told_of(machine: Machine) -> None:
    (machine.codex / "config.toml").write_text("[features]\nhooks = false\n")
    machine.for_codex().connect()
    trust(machine)
    assert "features.hooks is false" in found().problems[0]
