"""Connecting hosts that take memory as tools alone, after the form of config that each publishes; none is run."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from perdure.errors import HostError
from perdure.hosts.connect.by_tools import BY_TOOLS, hosts_by_tools
from perdure.hosts.connect.parts import Wiring
from perdure.hosts.connect.survey import survey
from tests.cli.calling import call, call_json
from tests.hosts.machine import PYTHON, Machine, values

CONFIGS = {
    "cursor": '{\n  "mcpServers": {\n    "docs": {"command": "npx", "args": ["-y", "docs"]}\n  }\n}\n',
    "vscode": '{\n\t"servers": {\n\t\t"docs": {"type": "stdio", "command": "npx"}\n\t},\n\t"inputs": []\n}\n',
    "gemini": '{\n  "theme": "GitHub",\n  "mcpServers": {}\n}',
}
PLACES = {"cursor": ".cursor/mcp.json", "vscode": ".config/Code/User/mcp.json", "gemini": ".gemini/settings.json"}


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    return Machine(tmp_path / "user", monkeypatch)


@pytest.fixture(params=BY_TOOLS)
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def config(machine: Machine, name: str) -> Path:
    path = machine.home / PLACES[name]
    assert hosts_by_tools()[name].config == path
    path.parent.mkdir(parents=True)
    return path


@pytest.mark.parametrize("kept", [True, False], ids=["with servers", "without a file"])
def test_the_server_is_put_in_and_taken_out_byte_for_byte(machine: Machine, name: str, kept: bool) -> None:
    path = config(machine, name)
    if kept:
        path.write_text(CONFIGS[name])
    assert "+" in call("connect", name, "--dry-run").stdout
    assert path.exists() == kept
    call("connect", name)
    servers = values(path)["servers" if name == "vscode" else "mcpServers"]
    assert servers["perdure"]["command"] == PYTHON
    assert servers["perdure"]["args"] == ["-I", "-m", "perdure", "mcp", "--host", name]
    assert ("type" in servers["perdure"]) == (name == "vscode")
    assert ("docs" in servers) == (kept and name != "gemini")
    assert call("connect", name).stdout.startswith("Nothing to change.")
    call("disconnect", name)
    assert (path.read_text() if path.exists() else None) == (CONFIGS[name] if kept else None)


def test_the_list_says_that_it_remembers_on_request(machine: Machine, name: str) -> None:
    config(machine, name)
    assert [(found.memory, found.places) for found in survey(names=[name])] == [("none", ())]
    notes = call_json("connect", name)["notes"]
    assert any("when it thinks of it" in note for note in notes)
    [found] = survey(names=[name])
    assert (found.memory, found.problems) == ("on request", ())


def test_what_is_not_here_and_what_is_broken_is_left_alone(machine: Machine, name: str) -> None:
    with pytest.raises(HostError, match="was not found"):
        call("connect", name)
    path = config(machine, name)
    path.write_text('{"broken": ')
    with pytest.raises(HostError, match="mend it first"):
        call("connect", name)
    assert path.read_text() == '{"broken": '


def test_a_server_of_ours_from_elsewhere_is_made_right(machine: Machine, name: str) -> None:
    path = config(machine, name)
    hosts_by_tools()[name].for_user(Wiring(name, python="/old/python")).connect()
    call("connect", name)
    assert "/old/python" not in path.read_text()
    json.loads(path.read_text())
