"""The config files that connecting changes: broken, linked, busy, of somebody else."""

from __future__ import annotations

import json
import os
import stat
import threading
from pathlib import Path

import pytest

from perdure.errors import HostError
from perdure.hosts.connect.config_file import ConfigFile, locked, recorded
from perdure.hosts.connect.parts import Wiring, dump, parse
from tests.hosts.machine import Machine, commands, values

BROKEN = [
    pytest.param(".claude.json", b'{"a": 1', "is not valid JSON", id="JSON"),
    pytest.param(".claude/settings.json", b'{"a": 1,\n// mine\n"b": 2}', "comment on line 2", id="comments"),
    pytest.param(".claude/settings.json", b'{"a": 1, /* mine */ "b": 2}', "comment on line 1", id="a comment"),
    pytest.param(".claude/settings.json", b'{"a": "// no", "b": }', "is not valid JSON", id="no comment"),
    pytest.param(".claude/settings.json", b"\xff\xfe", "is not valid JSON", id="no text"),
    pytest.param(".claude/settings.json", b"[" * 100_000, "is not valid JSON", id="deep"),
    pytest.param(".claude/settings.json", b"[]", "must contain an object", id="a list"),
    pytest.param(".claude/settings.json", b'{"hooks": []}', "'hooks'", id="hooks of another kind"),
    pytest.param(".claude/settings.json", b'{"hooks": {"Stop": {}}}', "'Stop'", id="an event of another kind"),
    pytest.param(".claude.json", b'{"mcpServers": 3}', "'mcpServers'", id="servers of another kind"),
    pytest.param(".codex/config.toml", b"a = = 1", "is not valid TOML", id="TOML"),
    pytest.param(".codex/config.toml", b"mcp_servers = 1", "'mcp_servers'", id="servers in TOML"),
    pytest.param(".codex/hooks.json", b"{", "is not valid JSON", id="hooks of Codex"),
]


def snapshot(machine: Machine) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in machine.home.rglob("*") if path.is_file() and "bin" not in path.parts}


@pytest.mark.parametrize(("name", "content", "message"), BROKEN)
def test_a_broken_config_is_named_and_nothing_is_changed(
    machine: Machine, name: str, content: bytes, message: str
) -> None:
    (machine.home / name).write_bytes(content)
    connection = machine.for_codex() if name.startswith(".codex") else machine.for_claude_code()
    before = snapshot(machine)
    with pytest.raises(HostError, match=message) as caught:
        connection.connect()
    assert snapshot(machine) == before
    assert "Nothing was changed" in str(caught.value)


def test_a_link_stays_and_what_it_leads_to_is_changed(machine: Machine) -> None:
    dotfiles = machine.home / "dotfiles"
    dotfiles.mkdir()
    (dotfiles / "claude.json").write_text("{}")
    (dotfiles / "claude.json").chmod(0o644)
    machine.settings.symlink_to(Path("..") / "dotfiles" / "claude.json")
    machine.for_claude_code().connect()
    assert machine.settings.is_symlink()
    assert len(commands(dotfiles / "claude.json")) == 5
    assert stat.S_IMODE((dotfiles / "claude.json").stat().st_mode) == 0o644
    machine.for_claude_code().disconnect()
    assert machine.settings.is_symlink()
    assert (dotfiles / "claude.json").read_text() == "{}"
    assert [path.name for path in dotfiles.iterdir()] == ["claude.json"]


@pytest.mark.parametrize("kind", ["nowhere", "circle", "fifo", "folder"])
def test_what_is_no_plain_file_is_refused(machine: Machine, kind: str) -> None:
    match kind:
        case "nowhere":
            machine.settings.symlink_to(machine.home / "gone.json")
        case "circle":
            machine.settings.symlink_to(machine.settings)
        case "fifo":
            os.mkfifo(machine.settings)
        case "folder":
            machine.settings.mkdir()
    with pytest.raises(HostError, match=r"settings\.json"):
        machine.for_claude_code().connect()
    assert not machine.servers.exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
def test_a_file_of_another_user_is_refused(machine: Machine) -> None:
    machine.settings.write_text("{}")
    os.chown(machine.settings, 12345, 12345)
    with pytest.raises(HostError, match="belongs to another user"):
        machine.for_claude_code().connect()


def test_the_backup_is_for_its_owner_alone(machine: Machine) -> None:
    machine.settings.write_text('{"env": {"TOKEN": "t"}}')
    machine.for_claude_code().connect()
    [*found] = machine.records.rglob("*")
    assert len(found) == 5  # a folder for each file, a record in each, and a backup of the one that was there
    assert {stat.S_IMODE(path.stat().st_mode) for path in found} == {0o600, 0o700}
    [backup] = [path for path in found if path.name == "before"]
    assert backup.read_text() == '{"env": {"TOKEN": "t"}}'
    assert set(recorded("claude-code")) == {machine.settings, machine.servers}
    assert not list(recorded("codex"))


def test_the_first_backup_stays_when_perdure_is_connected_again(machine: Machine) -> None:
    machine.settings.write_text('{"model": "opus", "hooks": {}}')
    machine.for_claude_code().connect()
    edited = values(machine.settings)
    del edited["hooks"]["Stop"]
    machine.settings.write_text(json.dumps(edited | {"later": 1}))
    machine.for_claude_code().connect()
    settings = machine.for_claude_code().disconnect()[0]
    assert not settings.restored, "it would take away what the user has added meanwhile"
    assert values(machine.settings) == {"model": "opus", "hooks": {}, "later": 1}


def test_a_broken_record_is_named(machine: Machine) -> None:
    machine.for_claude_code().connect()
    [record, *_] = machine.records.glob("*/record.json")
    record.write_text("{")
    with pytest.raises(HostError, match=r"record\.json cannot be read .*; delete it"):
        machine.for_claude_code().disconnect()


def test_a_file_that_changes_between_reading_and_writing_is_not_overwritten(machine: Machine) -> None:
    machine.settings.write_text("{}")
    file = ConfigFile.read(machine.settings)
    machine.settings.write_text('{"later": 1}')
    with pytest.raises(HostError, match="changed by another program"):
        file.write(b"{}")
    assert values(machine.settings) == {"later": 1}


def test_a_file_that_cannot_be_written_stays_and_leaves_no_record(machine: Machine) -> None:
    long = machine.home / ("x" * 250)  # no draft with a longer name can be made beside it
    long.write_text("{}")
    machine.settings.symlink_to(long)
    with pytest.raises(HostError, match=r"settings\.json cannot be written"):
        machine.for_claude_code().connect()
    assert long.read_text() == "{}"
    assert list(machine.records.iterdir()) == []


def test_a_path_that_no_config_can_name_is_refused() -> None:
    with pytest.raises(HostError, match="not valid UTF-8"):
        Wiring("codex", home=Path("/data/\udcff"))


def test_the_lock_of_the_host_is_waited_for(machine: Machine) -> None:
    inside, leave = threading.Event(), threading.Event()

    def hold() -> None:
        with locked(machine.servers):
            inside.set()
            leave.wait(10)

    holder = threading.Thread(target=hold)
    holder.start()
    inside.wait(10)
    timer = threading.Timer(0.2, leave.set)
    timer.start()
    machine.for_claude_code().connect()
    assert leave.is_set()
    holder.join()
    timer.join()
    assert not Path(f"{machine.servers}.lock").exists()


def test_a_lock_that_was_left_behind_is_taken_over(machine: Machine) -> None:
    lock = Path(f"{machine.servers}.lock")
    lock.mkdir()
    os.utime(lock, (0, 0))
    machine.for_claude_code().connect()
    assert not lock.exists()


@pytest.mark.parametrize(
    "text", ['{"a": "\\ud83d"}', '{"a": 1e3}', '{\n "a": [],\n "b": {}\n}\n', '{\n\t"ü": "\\u2028"\n}'], ids=ascii
)
def test_what_json_says_is_kept(text: str) -> None:
    path = Path("a.json")
    kept = dump(path, parse(path, text.encode()), text.encode())
    assert json.loads(kept) == json.loads(text)
    assert kept.endswith(b"\n") == text.endswith("\n")
