"""`perdure connect` and `perdure disconnect`."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from perdure.errors import HostError, InputError
from perdure.hosts.connect.hook_hosts import Codex
from tests.cli.calling import call, call_json
from tests.hosts.machine import Machine, commands, values

ROOT = Path(__file__).parents[2]
FAKE_OPENCLAW = Path(__file__).parents[1] / "hosts" / "fake_openclaw.py"


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    return Machine(tmp_path / "user", monkeypatch)


def hosts() -> dict[str, Any]:
    return {each["name"]: each for each in call_json("connect")["hosts"]}


def test_the_change_is_shown_without_secrets_and_made(machine: Machine) -> None:
    secret = "sk-ant-api03-" + "aB3dE5gH7j" * 8
    machine.settings.write_text(json.dumps({"env": {"ANTHROPIC_API_KEY": secret}}))
    before = machine.settings.read_bytes()
    dry = call("connect", "claude-code", "--dry-run").stdout
    assert '+            "command": "' in dry
    assert secret not in dry
    assert (machine.settings.read_bytes(), machine.servers.exists(), machine.records.exists()) == (before, False, False)
    done = call("connect", "claude-code").stdout
    assert done.startswith(dry)
    assert "Done." in done
    assert secret in machine.settings.read_text()
    assert call("connect", "claude-code").stdout == "Nothing to change.\n"
    assert secret not in call("disconnect", "claude-code", "--dry-run").stdout
    assert len(commands(machine.settings)) == 5
    assert "byte for byte" in call("disconnect", "claude-code").stdout
    assert machine.settings.read_bytes() == before


def test_reminders_before_tools_are_connected_by_their_setting(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    call("connect", "claude-code")
    assert "PreToolUse" not in commands(machine.settings)
    monkeypatch.setenv("PERDURE_AGENT_LOG", "remind")
    assert "hook tool --host claude-code" in call("connect", "claude-code").stdout
    assert len(commands(machine.settings)["PreToolUse"]) == 1
    monkeypatch.delenv("PERDURE_AGENT_LOG")
    call("connect", "claude-code")
    assert "PreToolUse" not in commands(machine.settings)


def test_json_says_what_was_done(machine: Machine) -> None:
    done = call_json("connect", "codex")
    assert (done["host"], done["done"]) == ("codex", True)
    assert [Path(each["path"]).name for each in done["files"]] == ["config.toml", "hooks.json"]
    assert any("not trusted yet" in note for note in done["notes"])
    assert call_json("disconnect", "codex", "--dry-run")["done"] is False
    undone = call_json("disconnect", "codex")
    assert [each["restored"] for each in undone["files"]] == [True, True]
    assert list(machine.codex.iterdir()) == []


@pytest.mark.parametrize("way", ["option", "variable", "neither"])
def test_the_data_folder_is_named_only_if_somebody_names_it(
    machine: Machine, way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if way == "variable":
        monkeypatch.setenv("PERDURE_HOME", str(machine.home / "memories"))
    option = ("--home", machine.home / "memories") if way == "option" else ()
    call("connect", "claude-code", *option)
    named = f" --home {machine.home / 'memories'}"
    [stop] = commands(machine.settings)["Stop"]
    assert stop == f"{sys.executable} -I -m perdure hook stop --host claude-code{'' if way == 'neither' else named}"


def test_a_person_is_told_to_trust_the_hooks_of_codex_until_they_have(machine: Machine) -> None:
    assert "/hooks" in call("connect", "codex").stdout
    checks = {check["name"]: check for check in call_json("doctor", code=None)["checks"]}
    assert "not trusted yet" in checks["codex"]["state"]
    assert checks["claude-code"]["ok"] is True
    records = "".join(
        f'[hooks.state."{names[0]}"]\ntrusted_hash = "{digest}"\n' for _, names, digest in Codex().identities()
    )
    with (machine.codex / "config.toml").open("a") as file:
        file.write(records)
    assert "/hooks" not in call("connect", "codex").stdout
    assert hosts()["codex"]["memory"] == "automatic"


def test_hooks_of_others_that_move_up_are_told_of(machine: Machine) -> None:
    call("connect", "codex")
    later = values(machine.codex / "hooks.json")
    later["hooks"]["Stop"].append({"hooks": [{"type": "command", "command": "say done"}]})
    (machine.codex / "hooks.json").write_text(json.dumps(later))
    assert "trust them again" in call("disconnect", "codex").stdout


def test_the_list_tells_what_is_here_and_how_it_remembers(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    assert {name: (each["installed"], each["memory"]) for name, each in hosts().items()} == {
        "claude-code": (str(machine.settings.parent), "none"),
        "codex": (str(machine.codex), "none"),
        **dict.fromkeys(("openclaw", "hermes", "cursor", "vscode", "gemini"), (None, "none")),
    }
    call("connect", "claude-code")
    machine.servers.rename(machine.home / "kept")
    openclaw = machine.home / "bin" / "openclaw"
    openclaw.write_text(f'#!/bin/sh\nexec "{sys.executable}" "{FAKE_OPENCLAW}" "$@"\n')
    openclaw.chmod(0o755)
    (machine.home / "openclaw.json").write_text("{}")
    monkeypatch.setenv("OPENCLAW_CONFIG_PATH", str(machine.home / "openclaw.json"))
    monkeypatch.setenv("OPENCLAW_STATE_DIR", str(machine.home / "state"))
    assert "its MCP server is missing" in hosts()["claude-code"]["problems"][0]
    assert (hosts()["openclaw"]["places"], hosts()["openclaw"]["problems"]) == ([], [])
    call("openclaw", "install")
    assert (hosts()["openclaw"]["memory"], hosts()["openclaw"]["installed"]) == ("automatic", str(openclaw))
    assert "perdure connect codex" in call("connect").stdout


def test_a_config_that_cannot_be_read_spoils_the_list_of_no_other_host(machine: Machine) -> None:
    machine.settings.write_text("{")
    (machine.home / ".openclaw").mkdir()
    (machine.home / ".openclaw" / "openclaw.json").write_text("{}")
    assert "is not valid JSON" in hosts()["claude-code"]["problems"][0]
    assert "no openclaw on the PATH" in hosts()["openclaw"]["problems"][0]
    assert hosts()["codex"]["problems"] == []


def test_a_host_that_is_not_here_is_not_connected(machine: Machine) -> None:
    machine.codex.rmdir()
    with pytest.raises(HostError, match=r"codex was not found: .*\.codex is missing"):
        call("connect", "codex")
    (machine.home / "bin" / "codex").write_text("#!/bin/sh\n")
    (machine.home / "bin" / "codex").chmod(0o755)
    call("connect", "codex")
    call("disconnect", "codex")
    assert not machine.codex.exists()


def test_a_project_is_connected_only_if_git_ignores_its_settings(machine: Machine) -> None:
    project = machine.home / "site"
    subprocess.run(["git", "init", "-q", str(project)], check=True)
    with pytest.raises(HostError, match="git does not ignore"):
        call("connect", "claude-code", "--project", project)
    assert [path.name for path in project.iterdir()] == [".git"]
    (project / ".git" / "info" / "exclude").write_text(".claude/settings.local.json\n")
    call("connect", "claude-code", "--project", project)
    assert len(commands(project / ".claude" / "settings.local.json")) == 5
    with pytest.raises(HostError, match="would run both"):
        call("connect", "claude-code")
    call("disconnect", "claude-code", "--project", project)
    assert [path.name for path in project.iterdir()] == [".git"]


def test_a_plugin_says_how_it_is_started(machine: Machine) -> None:
    away, loaded = machine.home / "memory", machine.settings.parent / "skills" / "memory"
    assert f"claude --plugin-dir {away}" in call("connect", "claude-code", "--plugin", away).stdout
    with pytest.raises(HostError, match="would run both"):
        call("connect", "claude-code")
    assert f"still connected: {away}" in call("disconnect", "claude-code").stdout
    call("disconnect", "claude-code", "--plugin", away)
    assert "--plugin-dir" not in call("connect", "claude-code", "--plugin", loaded).stdout
    call("disconnect", "claude-code", "--plugin", loaded)
    call("connect", "claude-code")


def test_uninstall_leaves_no_hook_that_points_to_nothing(machine: Machine) -> None:
    call("store", "The staging database is called heron.")
    call("connect", "codex")
    assert "run first: perdure disconnect codex" in call("uninstall", "--dry-run").stdout
    for words in ([], ["--purge-data", "--yes"]):
        with pytest.raises(HostError, match="run first: perdure disconnect codex"):
            call("uninstall", *words)
    assert call_json("list")["total"] == 1
    call("disconnect", "codex")
    assert "disconnect" not in call("uninstall", "--dry-run").stdout
    call("uninstall", "--purge-data", "--yes")


def test_options_need_a_host(machine: Machine) -> None:
    with pytest.raises(InputError, match="specify the host to connect: claude-code, codex"):
        call("connect", "--project", machine.home)


@pytest.mark.parametrize(
    "words",
    [["codex", "--project", "."], ["codex", "--plugin", "x"], ["claude-code", "--project", ".", "--plugin", "x"]],
)
def test_a_way_that_a_host_does_not_have_is_refused(machine: Machine, words: list[str]) -> None:
    for command in ("connect", "disconnect"):
        with pytest.raises(InputError):
            call(command, *words)


def test_what_the_user_wrote_down_for_an_agent_is_offered_and_taken_in_by_its_command(
    machine: Machine, home: Path
) -> None:
    written = machine.home / ".claude" / "CLAUDE.md"
    written.write_text("# Me\n\n- Always answer in metric units.\n- My boat is called Wanda.\n")
    told = call("connect", "claude-code").stdout
    assert f"perdure import {written} --trust" in told
    assert "Wanda" not in call("list").stdout
    call("import", str(written), "--trust")
    assert "Wanda" in call("recall", "What is my boat called?").stdout


def at_a_terminal(answer: str) -> None:
    pty = pytest.importorskip("pty", reason="there are no terminals here")
    outer, inner = pty.openpty()
    os.write(outer, answer.encode())
    command = [sys.executable, "-m", "perdure", "connect", "claude-code"]
    subprocess.run(command, stdin=inner, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=ROOT, check=True)
    os.close(inner)
    os.close(outer)


def test_somebody_at_a_terminal_is_asked_and_no_word_is_a_no(machine: Machine, home: Path) -> None:
    (machine.home / ".claude" / "CLAUDE.md").write_text("- My boat is called Wanda.\n")
    at_a_terminal("\n\n")
    assert "Wanda" not in call("list").stdout
    call("disconnect", "claude-code")
    at_a_terminal("n\ny\n")
    assert "Wanda" in call("recall", "What is my boat called?").stdout


def test_a_bare_connect_connects_what_is_ticked(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    shown = call("connect").stdout
    assert "To connect claude-code: perdure connect claude-code" in shown
    monkeypatch.setattr("perdure.hosts.connect.cli.is_asked", lambda: True)
    call("connect", stdin="\n")
    assert not machine.settings.exists()
    call("connect", "--dry-run", stdin="all\n")
    assert not machine.settings.exists()
    done = call("connect", stdin="3\n2\nn\n")
    assert "invalid answer '3'; type numbers from 1 to 2" in done.stderr
    assert hosts()["codex"]["places"]
    assert not hosts()["claude-code"]["places"]
    call("connect", stdin="1\nn\n")
    assert hosts()["claude-code"]["places"]
    assert "Connect" not in call("connect").stderr
