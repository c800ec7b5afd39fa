"""Connecting hosts by plain files, after the forms that each publishes; Gemini CLI alone is run besides."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from perdure.engine.settings import CODING
from perdure.errors import HostError, InputError
from perdure.hosts.command.dialects import DIALECTS
from perdure.hosts.connect.hermes import Hermes
from perdure.hosts.connect.hook_hosts import PLAIN, PlainHost, plain_hosts
from perdure.hosts.connect.parts import Wiring, parse
from perdure.hosts.connect.survey import checkups, survey
from tests.cli.calling import call, call_json
from tests.hosts.machine import PYTHON, Machine, values

SERVERS = {
    "cursor": '{\n  "mcpServers": {\n    "docs": {"command": "npx", "args": ["-y", "docs"]}\n  }\n}\n',
    "vscode": '{\n\t"servers": {\n\t\t"docs": {"type": "stdio", "command": "npx"}\n\t},\n\t"inputs": []\n}\n',
    "gemini": '{\n  "theme": "GitHub",\n  "mcpServers": {}\n}',
}
PLACES = {"cursor": ".cursor/mcp.json", "vscode": ".config/Code/User/mcp.json", "gemini": ".gemini/settings.json"}
HERMES = """\
#!/bin/sh
case "$1 $2" in
  "config set") printf 'memory:\\n  provider: %s\\n' "$4" > "$HERMES_HOME/config.yaml" ;;
  "memory off") printf 'memory:\\n  provider: none\\n' > "$HERMES_HOME/config.yaml" ;;
esac
"""


@pytest.fixture(params=PLAIN)
def host(request: pytest.FixtureRequest, machine: Machine) -> PlainHost:
    found = plain_hosts()[str(request.param)]
    assert found.config == machine.home / PLACES[found.name]
    found.config.parent.mkdir(parents=True)
    return found


def files(home: Path) -> dict[Path, bytes]:
    return {
        path: path.read_bytes() for path in home.rglob("*") if path.is_file() and ".config/perdure" not in str(path)
    }


@pytest.mark.parametrize("kept", [True, False], ids=["with servers", "without a file"])
def test_it_is_connected_and_disconnected_byte_for_byte(machine: Machine, host: PlainHost, kept: bool) -> None:
    if kept:
        host.config.write_text(SERVERS[host.name])
    before = files(machine.home)
    assert "+" in call("connect", host.name, "--dry-run").stdout
    assert files(machine.home) == before
    call("connect", host.name)
    server = values(host.config)["servers" if host.name == "vscode" else "mcpServers"]["perdure"]
    assert server["command"] == PYTHON
    assert server["args"] == ["-I", "-m", "perdure", "mcp", "--host", host.name]
    assert ("type" in server) == (host.name == "vscode")
    assert call("connect", host.name).stdout.startswith("Nothing to change.")
    call("disconnect", host.name)
    assert files(machine.home) == before


def test_each_event_of_the_host_runs_its_hook(machine: Machine, host: PlainHost) -> None:
    call("connect", host.name)
    hooks = values(host.hooks_file)["hooks"]
    assert list(hooks) == list(DIALECTS[host.name].names.values())
    commands = [hook["command"] for hook in host.hooks()]
    assert [command.split()[5] for command in commands] == list(DIALECTS[host.name].names)
    assert all(command.endswith(f"--host {host.name}") for command in commands)
    if host.name == "gemini":  # milliseconds
        assert {hook["timeout"] for hook in host.hooks()} == {10_000}
    else:
        assert all("hooks" not in entry for entries in hooks.values() for entry in entries)
    assert (values(host.hooks_file).get("version") == 1) == (host.name == "cursor")


def test_hooks_of_others_stay_what_they_are(machine: Machine, host: PlainHost) -> None:
    event = DIALECTS[host.name].names["prompt"]
    other = (
        {"command": "say done"} if host.name != "gemini" else {"hooks": [{"type": "command", "command": "say done"}]}
    )
    host.hooks_file.parent.mkdir(parents=True, exist_ok=True)
    host.hooks_file.write_text(json.dumps({"hooks": {event: [other]}}))
    call("connect", host.name)
    assert values(host.hooks_file)["hooks"][event][0] == other
    # Edited by hand: now our own keys alone are taken out.
    host.hooks_file.write_text(host.hooks_file.read_text() + "\n")
    call("disconnect", host.name)
    assert values(host.hooks_file)["hooks"] == {event: [other]}


def test_the_list_says_how_it_remembers(machine: Machine, host: PlainHost) -> None:
    assert [(found.memory, found.places) for found in survey(names=[host.name])] == [("none", ())]
    call("connect", host.name)
    [found] = survey(names=[host.name])
    assert (found.memory, found.problems) == ("automatic" if host.name == "gemini" else "on request", ())
    changed = values(host.hooks_file)
    changed["hooks"].pop(DIALECTS[host.name].names["prompt"])
    host.hooks_file.write_text(json.dumps(changed))
    [found] = survey(names=[host.name])
    assert "hooks are present" in found.problems[0]


def test_hooks_that_gemini_does_not_run_are_told(machine: Machine) -> None:
    host = plain_hosts()["gemini"]
    host.folder.mkdir()
    host.config.write_text('{"hooksConfig": {"enabled": false}}')
    assert any("hooksConfig.enabled" in note for note in call_json("connect", "gemini")["notes"])
    [found] = survey(names=["gemini"])
    assert found.memory == "on request"


def test_what_is_not_here_and_what_is_broken_is_left_alone(machine: Machine, host: PlainHost) -> None:
    host.config.write_text('{"broken": ')
    with pytest.raises(HostError, match="fix it first"):
        call("connect", host.name)
    assert host.config.read_text() == '{"broken": '
    host.config.unlink()
    host.config.parent.rmdir()
    if host.folder.exists():
        host.folder.rmdir()
    with pytest.raises(HostError, match="was not found"):
        call("connect", host.name)


def test_what_another_installation_put_in_is_made_right(machine: Machine, host: PlainHost) -> None:
    host.for_user(Wiring(host.name, python="/old/python")).connect()
    call("connect", host.name)
    assert not any(b"/old/python" in content for content in files(machine.home).values())
    assert len(host.hooks()) == len(DIALECTS[host.name].names)


def test_a_rule_goes_into_a_project_and_names_no_path(machine: Machine, tmp_path: Path) -> None:
    plain_hosts()["cursor"].folder.mkdir()
    project = tmp_path / "project"
    project.mkdir()
    call("connect", "cursor", "--project", str(project))
    rule = (project / ".cursor" / "rules" / "perdure.mdc").read_text()
    assert "alwaysApply: true" in rule
    assert "memory_search" in rule
    assert str(tmp_path) not in rule
    call("disconnect", "cursor", "--project", str(project))
    assert list(project.iterdir()) == []


def test_a_rule_that_somebody_else_wrote_stays(machine: Machine, tmp_path: Path) -> None:
    plain_hosts()["cursor"].folder.mkdir()
    rule = tmp_path / ".cursor" / "rules" / "perdure.mdc"
    call("connect", "cursor", "--project", str(tmp_path))
    rule.write_text("Mine.")
    call("disconnect", "cursor", "--project", str(tmp_path))
    assert rule.read_text() == "Mine."
    with pytest.raises(HostError, match="not written by perdure"):
        call("connect", "cursor", "--project", str(tmp_path))


@pytest.mark.parametrize("name", ["vscode", "gemini", "hermes"])
def test_a_host_that_takes_no_rule_of_a_project_says_so(machine: Machine, tmp_path: Path, name: str) -> None:
    with pytest.raises((HostError, InputError), match="omit --project"):
        call("connect", name, "--project", str(tmp_path))


@pytest.fixture
def hermes(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> Hermes:
    folder = machine.home / ".hermes"
    folder.mkdir()
    monkeypatch.setenv("HERMES_HOME", str(folder))
    program = machine.home / "bin" / "hermes"
    program.write_text(HERMES)
    program.chmod(0o755)
    return Hermes()


@pytest.mark.skipif(sys.platform == "win32", reason="the program is a shell script")
def test_hermes_is_given_a_provider_by_its_own_command(machine: Machine, hermes: Hermes, tmp_path: Path) -> None:
    with pytest.raises(HostError, match="no Python interpreter next to it"):
        call("connect", "hermes")
    (machine.home / "bin" / "python").write_text("#!/bin/sh\nexit 1\n")
    (machine.home / "bin" / "python").chmod(0o755)
    with pytest.raises(HostError, match="pip install perdure"):
        call("connect", "hermes")
    (machine.home / "bin" / "python").write_text("#!/bin/sh\nexit 0\n")
    before = files(machine.home)
    assert "config set memory.provider perdure" in call("connect", "hermes", "--dry-run").stdout
    assert files(machine.home) == before
    call("connect", "hermes", "--home", str(tmp_path / "mine"))
    assert f"home={str(tmp_path / 'mine')!r}" in (hermes.plugin / "__init__.py").read_text()
    assert [found.memory for found in survey(names=["hermes"])] == ["automatic"]
    call("disconnect", "hermes")
    assert not hermes.plugin.exists()
    assert [found.memory for found in survey(names=["hermes"])] == ["none"]


def test_a_provider_that_hermes_does_not_use_is_told(machine: Machine, hermes: Hermes) -> None:
    hermes.for_user(None).connect()
    (hermes.folder / "config.yaml").write_text("memory:\n  provider: other\n")
    [found] = survey(names=["hermes"])
    assert found.memory == "none"
    assert "does not name perdure" in found.problems[0]


COMMENTED = {
    "cursor": '{\n  // mine\n  "mcpServers": {\n    "docs": {"command": "npx"}, // "a": {},\n  }\n}\n',
    "vscode": '// top\r\n{\r\n\t"servers": {},\r\n\t"inputs": [1, /* , } */ 2,],\r\n}\r\n',
    "gemini": '\ufeff{"theme": "a // b", /* none yet */ }',
}


def test_comments_stay_where_the_host_allows_them(machine: Machine, host: PlainHost) -> None:
    before = COMMENTED[host.name]
    host.config.write_bytes(before.encode())
    assert '"perdure"' in call("connect", host.name, "--dry-run").stdout
    call("connect", host.name)
    after = host.config.read_bytes().decode()
    assert "perdure" in host.hooks_file.read_text()
    assert host.has_server()
    # What stood there stands there in its order: nothing but what is ours came between.
    rest = iter(after)
    assert all(char in rest for char in before)
    host.config.write_bytes(after.replace("{", "{ // edited\n", 1).encode())
    call("disconnect", host.name)
    left = host.config.read_bytes().decode()
    assert "perdure" not in left
    assert "// edited" in left
    assert parse(host.config, left.encode()) == parse(host.config, before.encode())


def test_what_no_host_could_read_is_refused(machine: Machine, host: PlainHost) -> None:
    for broken in ('{"a": 1', '{"a": 1 // }', '{"a" /* : */ 1}', '{,, "a": 1}', "// nothing"):
        host.config.write_text(broken)
        with pytest.raises(HostError, match="not valid JSON"):
            call("connect", host.name)
        assert host.config.read_text() == broken


def private_hosts() -> list[str]:
    return list(call_json("config", "get", "private_hosts")["value"])


def test_a_yes_to_what_is_private_is_kept_until_it_is_taken_back(machine: Machine, host: PlainHost) -> None:
    assert "Its sessions do not start with" in call_json("connect", host.name)["notes"][-1]
    assert private_hosts() == []
    assert "health, money" in call("connect", host.name, "--private", "--dry-run").stdout
    assert private_hosts() == []
    assert "also start with" in call_json("connect", host.name, "--private")["notes"][-1]
    call("connect", host.name)
    assert private_hosts() == [host.name]
    [told] = [each.state for each in checkups() if each.name == host.name]
    assert "private" in told
    call("connect", host.name, "--no-private")
    assert private_hosts() == []
    call("connect", host.name, "--private")
    call("disconnect", host.name)
    assert private_hosts() == []


def test_what_the_environment_says_of_private_hosts_is_told_and_not_kept(
    machine: Machine, host: PlainHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    call("connect", host.name)
    monkeypatch.setenv("PERDURE_PRIVATE_HOSTS", f"{host.name},codex")
    [told] = call_json("connect", host.name, "--no-private")["notes"][-1:]
    assert "also start with" in told
    assert "(set by PERDURE_PRIVATE_HOSTS in the environment)" in told
    monkeypatch.setenv("PERDURE_PRIVATE_HOSTS", "codex")
    [told] = call_json("connect", host.name, "--private")["notes"][-1:]
    assert "do not start with" in told
    assert "(not in PERDURE_PRIVATE_HOSTS in the environment)" in told
    monkeypatch.delenv("PERDURE_PRIVATE_HOSTS")
    assert private_hosts() == [host.name]


def test_on_a_terminal_it_is_asked_for_once(machine: Machine, host: PlainHost, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("perdure.hosts.connect.cli.is_asked", lambda: True)
    refused = call("connect", host.name, stdin="n\n")
    assert f"May a session in {host.name} also start with" in refused.stderr
    assert private_hosts() == []
    call("connect", host.name, stdin="y\n")
    assert private_hosts() == [host.name]
    assert "May a session" not in call("connect", host.name).stderr


def test_only_a_coding_host_is_asked_about(machine: Machine) -> None:
    assert set(DIALECTS) == CODING
    with pytest.raises(InputError, match="omit --private"):
        call("connect", Hermes.name, "--private")
