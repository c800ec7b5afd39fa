"""Connecting Claude Code, and taking perdure out of it again."""

from __future__ import annotations

import json
import stat
from pathlib import Path
from typing import Any

import pytest

from perdure.errors import HostError
from perdure.hosts.connect.hook_hosts import ClaudeCode, refuse_committed
from perdure.hosts.connect.parts import Wiring
from perdure.hosts.connect.survey import Found, survey
from tests.hosts.machine import PYTHON, Machine, commands, git, values

MINE: dict[str, Any] = {
    "model": "opus",
    "env": {"ANTHROPIC_API_KEY": "sk-of-mine"},
    "hooks": {
        "Stop": [{"matcher": "", "hooks": [{"type": "command", "command": "say done"}]}],
        "PostToolUse": [{"hooks": [{"type": "command", "command": "lint"}]}],
    },
}
SETTINGS = [
    pytest.param(None, id="no file"),
    pytest.param("{}", id="empty"),
    pytest.param('{"model":"opus"}', id="on one line"),
    pytest.param(json.dumps(MINE, indent=4) + "\n", id="busy"),
    pytest.param('\ufeff{\r\n\t"hooks": {"Stop": []},\r\n\t"name": "Zoë"\r\n}\r\n', id="of another system"),
]
WIRING = Wiring("claude-code")


def found() -> Found:
    return survey(names=[ClaudeCode.name])[0]


@pytest.mark.parametrize("settings", SETTINGS)
def test_disconnect_brings_every_file_back_byte_for_byte(machine: Machine, settings: str | None) -> None:
    if settings is not None:
        machine.settings.write_bytes(settings.encode())
        machine.settings.chmod(0o640)
    machine.servers.write_text('{"numStartups": 7}')
    machine.for_claude_code().connect()
    assert (found().memory, found().problems) == ("automatic", ())
    assert machine.for_claude_code().connect() == []
    done = machine.for_claude_code().disconnect()
    assert [edit.restored for edit in done] == [True, True]
    assert machine.servers.read_text() == '{"numStartups": 7}'
    if settings is None:
        assert not machine.settings.exists()
    else:
        assert machine.settings.read_bytes() == settings.encode()
        assert stat.S_IMODE(machine.settings.stat().st_mode) == 0o640
    assert list(machine.records.iterdir()) == []


@pytest.mark.parametrize("settings", [param for param in SETTINGS if param.id != "of another system"])
def test_after_edits_only_our_keys_go(machine: Machine, settings: str | None) -> None:
    if settings is not None:
        machine.settings.write_text(settings)
    machine.for_claude_code().connect()
    for path in (machine.settings, machine.servers):
        path.write_text(json.dumps(values(path) | {"later": 1}))
    assert not any(edit.restored for edit in machine.for_claude_code().disconnect())
    assert values(machine.settings) == json.loads(settings or "{}") | {"later": 1}
    assert values(machine.servers) == {"later": 1}


def test_a_file_that_was_made_for_us_goes_though_it_was_edited(machine: Machine) -> None:
    machine.for_claude_code().connect()
    machine.settings.write_text(machine.settings.read_text() + "\n\n")
    machine.for_claude_code().disconnect()
    assert not machine.settings.exists()


def test_what_is_written_names_the_interpreter_and_keeps_all_else(machine: Machine) -> None:
    machine.settings.write_text(json.dumps(MINE))
    machine.for_claude_code().connect()
    names = {"SessionStart": "session-start", "UserPromptSubmit": "prompt", "Stop": "stop", "PreCompact": "compact"}
    ours = {
        event: [f"{PYTHON} -I -m perdure hook {name} --host claude-code"]
        for event, name in (names | {"SessionEnd": "session-end"}).items()
    }
    assert commands(machine.settings) == {**ours, "Stop": ["say done", *ours["Stop"]], "PostToolUse": ["lint"]}
    assert values(machine.settings)["env"] == MINE["env"]
    assert values(machine.servers)["mcpServers"] == {
        "perdure": {"type": "stdio", "command": PYTHON, "args": ["-I", "-m", "perdure", "mcp", "--host", "claude-code"]}
    }


def test_another_interpreter_or_data_folder_takes_the_place_of_the_former(machine: Machine) -> None:
    machine.settings.write_text(json.dumps(MINE))
    machine.for_claude_code().connect()
    wiring = Wiring("claude-code", home=Path("/data/it's here"), python="/opt/my python/bin/python")
    machine.claude_code().for_user(wiring).connect()
    stop = commands(machine.settings)["Stop"]
    assert stop == [
        "say done",
        "'/opt/my python/bin/python' -I -m perdure hook stop --host claude-code --home '/data/it'\"'\"'s here'",
    ]
    assert values(machine.servers)["mcpServers"]["perdure"]["args"][-2:] == ["--home", "/data/it's here"]
    assert "cannot be started" in found().problems[0]
    machine.for_claude_code().disconnect()
    assert values(machine.settings) == MINE


def test_it_is_asked_before_tools_run_only_if_it_is_to_remind(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    theirs = {"matcher": "Bash", "hooks": [{"type": "command", "command": "guard"}]}
    machine.settings.write_text(json.dumps({"hooks": {"PreToolUse": [theirs]}}))
    before = machine.settings.read_text()
    reminding = machine.claude_code().for_user(Wiring("claude-code", reminds=True))
    reminding.connect()
    [first, ours] = values(machine.settings)["hooks"]["PreToolUse"]
    assert first == theirs
    assert ours["matcher"] == "Bash|Edit|MultiEdit|NotebookEdit|Write"
    assert ours["hooks"][0]["command"] == f"{PYTHON} -I -m perdure hook tool --host claude-code"
    assert ours["hooks"][0]["timeout"] == 10
    assert found().memory == "automatic"
    assert 'agent_log is not "remind", but its hook is installed' in found().problems[0]
    monkeypatch.setenv("PERDURE_AGENT_LOG", "remind")
    assert found().problems == ()
    machine.for_claude_code().connect()
    assert commands(machine.settings)["PreToolUse"] == ["guard"]
    assert 'agent_log is "remind", but its hook is missing' in found().problems[0]
    reminding.connect()
    machine.for_claude_code().disconnect()
    assert machine.settings.read_text() == before


def test_a_hook_that_is_wanted_no_more_leaves_nothing_behind(machine: Machine) -> None:
    machine.claude_code().for_user(Wiring("claude-code", reminds=True)).connect()
    machine.for_claude_code().connect()
    assert "PreToolUse" not in values(machine.settings)["hooks"]
    machine.for_claude_code().disconnect()
    assert not machine.settings.exists()


def test_hooks_that_are_there_twice_become_one_and_what_the_user_set_for_one_stays(machine: Machine) -> None:
    machine.for_claude_code().connect()
    doubled = values(machine.settings)
    doubled["hooks"]["Stop"] = [*doubled["hooks"]["Stop"], *doubled["hooks"]["Stop"]]
    doubled["hooks"]["PreCompact"][0]["hooks"][0]["timeout"] = 30
    machine.settings.write_text(json.dumps(doubled))
    machine.for_claude_code().connect()
    assert len(commands(machine.settings)["Stop"]) == 1
    assert values(machine.settings)["hooks"]["PreCompact"][0]["hooks"][0]["timeout"] == 30


def test_a_server_of_our_name_from_before_comes_back(machine: Machine) -> None:
    before = {"mcpServers": {"perdure": {"command": "perdure", "args": ["mcp"], "env": {"A": "1"}}}}
    machine.servers.write_text(json.dumps(before))
    assert found().memory == "on request"
    machine.for_claude_code().connect()
    assert values(machine.servers)["mcpServers"]["perdure"]["env"] == {"A": "1"}
    machine.servers.write_text(json.dumps(values(machine.servers) | {"numStartups": 8}))
    machine.for_claude_code().disconnect()
    assert values(machine.servers) == before | {"numStartups": 8}


def test_a_server_that_is_elsewhere_gives_way_as_a_whole(machine: Machine) -> None:
    machine.servers.write_text('{"mcpServers": {"perdure": {"type": "http", "url": "https://example.com"}}}')
    machine.for_claude_code().connect()
    assert "url" not in values(machine.servers)["mcpServers"]["perdure"]


@pytest.mark.parametrize("config", [{}, {"CLAUDE_CONFIG_DIR": "elsewhere"}])
def test_the_folder_that_the_environment_names_is_used(machine: Machine, config: dict[str, str]) -> None:
    environ = {name: str(machine.home / value) for name, value in config.items()}
    host = machine.claude_code(**environ)
    host.for_user(WIRING).connect()
    written = {path.relative_to(machine.home).as_posix() for path in machine.home.rglob("*.json")}
    settings, servers = (".claude/settings.json", ".claude.json")
    wanted = {"elsewhere/settings.json", "elsewhere/.claude.json"} if config else {settings, servers}
    assert {path for path in written if not path.startswith(".config/")} == wanted
    host.for_user(WIRING).disconnect()
    assert not (machine.home / "elsewhere").exists(), "a folder that was made for us goes with us"


def test_an_old_name_of_the_file_with_the_servers_is_used_where_claude_code_uses_it(machine: Machine) -> None:
    old = machine.settings.parent / ".config.json"
    old.write_text('{"numStartups": 7}')
    machine.for_claude_code().connect()
    assert "perdure" in values(old)["mcpServers"]
    assert not machine.servers.exists()


@pytest.mark.parametrize("setting", [{"disableAllHooks": True}])
def test_hooks_that_are_switched_off_are_told_of(machine: Machine, setting: dict[str, Any]) -> None:
    machine.settings.write_text(json.dumps(setting))
    machine.for_claude_code().connect()
    assert found().memory == "on request"
    assert "disableAllHooks" in found().problems[0]


def test_missing_hooks_and_a_missing_server_are_told_of(machine: Machine) -> None:
    machine.for_claude_code().connect()
    machine.servers.rename(machine.home / "kept")
    assert (found().memory, len(found().problems)) == ("automatic", 1)
    cut = values(machine.settings)
    del cut["hooks"]["Stop"]
    machine.settings.write_text(json.dumps(cut))
    assert found().memory == "none"
    assert [problem.partition(";")[0] for problem in found().problems] == [
        "4 of 5 hooks are present",
        "its MCP server is missing",
    ]


@pytest.fixture
def repository(machine: Machine) -> Path:
    folder = machine.home / "work" / "site"
    folder.mkdir(parents=True)
    git(folder, "init", "-q")
    return folder


def test_a_project_is_connected_by_files_that_stay_on_this_machine(machine: Machine, repository: Path) -> None:
    (repository / "pages").mkdir()
    connection = machine.claude_code().for_project(repository / "pages", WIRING)
    connection.connect()
    assert len(commands(repository / "pages" / ".claude" / "settings.local.json")) == 5
    assert list(values(machine.servers)["projects"]) == [str(repository)], "as Claude Code names a project"
    assert machine.claude_code().projects() == [repository / "pages"]
    assert found().places == (str(repository / "pages"),)
    connection.disconnect()
    assert not (repository / "pages" / ".claude").exists()
    assert not machine.servers.exists()


@pytest.mark.parametrize("tracked", [False, True])
def test_what_git_would_commit_is_refused(repository: Path, tracked: bool) -> None:
    file = repository / ".claude" / "settings.local.json"
    with pytest.raises(HostError, match="git does not ignore"):
        refuse_committed([file])
    if tracked:
        file.parent.mkdir()
        file.write_text("{}")
        git(repository, "add", ".")
        git(repository, "commit", "-qm", "First")
    (repository / ".git" / "info" / "exclude").write_text("/.claude/settings.local.json\n")
    if tracked:
        with pytest.raises(HostError, match="rm --cached"):
            refuse_committed([file])
    else:
        refuse_committed([file])


def test_without_git_a_file_in_a_repository_is_refused(machine: Machine, repository: Path) -> None:
    (machine.home / "bin" / "git").unlink()
    with pytest.raises(HostError, match="git is not on the PATH"):
        refuse_committed([repository / "a.json"])
    refuse_committed([machine.home / "a.json"])


def test_settings_of_a_project_that_are_a_link_out_of_it_are_refused(machine: Machine, repository: Path) -> None:
    machine.settings.write_text("{}")
    (repository / ".claude").symlink_to(machine.settings.parent)
    with pytest.raises(HostError, match="leads out of"):
        machine.claude_code().for_project(repository, WIRING).connect()
    assert machine.settings.read_text() == "{}"


def test_a_plugin_is_a_folder_that_can_be_taken_away(machine: Machine) -> None:
    folder = machine.home / "plugins" / "memory"
    connection = machine.claude_code().as_plugin(folder, WIRING)
    connection.connect()
    assert values(folder / ".claude-plugin" / "plugin.json")["name"] == "perdure"
    assert len(commands(folder / "hooks" / "hooks.json")) == 5
    assert values(folder / ".mcp.json")["mcpServers"]["perdure"]["command"] == PYTHON
    assert (found().memory, found().places) == ("automatic", (str(folder),))
    assert machine.claude_code().as_plugin(folder, WIRING).connect() == []
    (folder / "hooks" / "hooks.json").write_text(json.dumps(values(folder / "hooks" / "hooks.json")))
    machine.claude_code().as_plugin(folder, WIRING).disconnect()
    assert not (machine.home / "plugins").exists()


def test_a_plugin_takes_no_folder_that_is_in_use(machine: Machine) -> None:
    with pytest.raises(HostError, match="already contains other files"):
        machine.claude_code().as_plugin(machine.home, WIRING)


def test_settings_and_a_plugin_together_are_refused(machine: Machine, repository: Path) -> None:
    host, folder = machine.claude_code(), machine.home / "memory"
    host.for_user(WIRING).connect()
    with pytest.raises(HostError, match=r"settings.*would run both.*`perdure disconnect claude-code`"):
        host.refuse_twice(plugin=folder)
    with pytest.raises(HostError, match="would run both"):
        host.refuse_twice(project=repository)
    host.for_user(WIRING).disconnect()
    host.as_plugin(folder, WIRING).connect()
    host.refuse_twice(plugin=folder)
    with pytest.raises(HostError, match=f"the plugin in {folder}"):
        host.refuse_twice()
    host.as_plugin(folder, WIRING).disconnect()
    host.for_project(repository, WIRING).connect()
    host.refuse_twice(project=repository)
    with pytest.raises(HostError, match=f"--project {repository}"):
        host.refuse_twice()


@pytest.mark.parametrize("way", ["installed", "by itself"])
def test_a_plugin_that_claude_code_loads_is_found_unless_it_is_disabled(machine: Machine, way: str) -> None:
    folder = machine.settings.parent
    path = folder / ("skills/memory" if way == "by itself" else "plugins/cache/perdure/perdure/0.1.0")
    machine.claude_code().as_plugin(path, WIRING).connect()
    for each in machine.records.iterdir():  # as if another machine had written it
        (each / "record.json").unlink()
    name = "memory@skills-dir" if way == "by itself" else "perdure@market"
    if way == "installed":
        installed = {"version": 2, "plugins": {name: [{"scope": "user", "installPath": str(path)}]}}
        (folder / "plugins" / "installed_plugins.json").write_text(json.dumps(installed))
    (folder / "skills" / "other" / "hooks").mkdir(parents=True)
    (folder / "skills" / "other" / "hooks" / "hooks.json").write_text("{broken")
    assert machine.claude_code().plugins() == [path]
    with pytest.raises(HostError, match="would run both"):
        machine.claude_code().refuse_twice()
    machine.for_claude_code().connect()
    assert "run twice" in found().problems[0]
    machine.for_claude_code().disconnect()
    machine.settings.write_text(json.dumps({"enabledPlugins": {name: False}}))
    machine.claude_code().refuse_twice()
