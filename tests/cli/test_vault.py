"""`perdure vault`, as a person and as a pipe use it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import keyring
import pytest
from keyring.backend import KeyringBackend
from keyring.backends.fail import Keyring as NoKeyring

from perdure.api.memory import Memory
from perdure.errors import InputError, NotFoundError, StoreUnavailableError
from perdure.vault.cli import vault
from perdure.vault.vault import Vault
from tests.cli.calling import call, call_json

ROOT = Path(__file__).parents[2]
PASSPHRASE = "correct horse battery staple"
VALUE = "qv7-Zephyr-Mangrove-91x"
COMMANDS = {"store", "get", "list", "forget", "rotate", "status"}


class DictKeyring(KeyringBackend):
    """A keyring of keyring's own interface that lives in memory."""

    priority = 5.0

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.entries: dict[str, str] = {}

    def get_password(self, service: str, username: str) -> str | None:
        return self.entries.get(username)

    def set_password(self, service: str, username: str, password: str) -> None:
        self.entries[username] = password

    def delete_password(self, service: str, username: str) -> None:
        del self.entries[username]


@pytest.fixture(autouse=True)
def home(home: Path) -> Iterator[Path]:
    before = keyring.get_keyring()
    keyring.set_keyring(DictKeyring())
    yield home
    keyring.set_keyring(before)


def pointers(home: Path) -> list[str]:
    with Memory.open(home) as memory:
        return sorted(fact.text for fact in memory.lookup("GitHub"))


def test_stored_listed_got_and_forgotten(home: Path) -> None:
    record = call_json("vault", "store", "GitHub", "--kind", "password", "--days", "3", stdin=f"{VALUE}\n")
    key = str(record["id"])[:8]

    assert call("vault", "get", key).stdout == f"{VALUE}\n"
    assert call_json("vault", "get", key) == {"record": record, "sensitive": {"value": VALUE}}
    assert call_json("vault", "list") == {"records": [record]}
    listed = call("vault", "list").stdout
    assert key in listed
    assert "GitHub" in listed
    assert VALUE not in listed
    assert pointers(home) == [f"A password for GitHub is in the vault (id {key})."]
    status = call_json("vault", "status")
    assert (status["records"], status["source"], status["expiring_soon"]) == (1, "keyring", [record["id"]])

    assert call_json("vault", "forget", key, "--dry-run") == {"forgotten": False, "record": record}
    assert call("vault", "get", key).stdout == f"{VALUE}\n"
    assert call_json("vault", "forget", key) == {"forgotten": True, "record": record}
    assert pointers(home) == []
    with pytest.raises(NotFoundError, match=key):
        call("vault", "get", key)


def test_two_secrets_of_a_service_have_two_pointers(home: Path) -> None:
    for kind, name in (("password", ""), ("token", ""), ("token", "work")):
        call("vault", "store", "GitHub", "--kind", kind, "--name", name, stdin=VALUE)
    assert len(pointers(home)) == 3
    with Memory.open(home) as memory:
        assert {(fact.category, fact.value) for fact in memory.lookup("GitHub")} == {("entity", None)}


def test_replacing_keeps_the_pointer(home: Path) -> None:
    first = call_json("vault", "store", "GitHub", stdin=VALUE)
    with pytest.raises(InputError, match=str(first["id"])):
        call("vault", "store", "GitHub", stdin="the next value")
    second = call_json("vault", "store", "GitHub", "--replace", stdin="the next value")
    assert second["id"] == first["id"]
    assert len(pointers(home)) == 1


def test_a_key_of_many_lines_goes_through_pipes_unchanged() -> None:
    value = "first line\n  second line\n\nlast line\n"
    record = call_json("vault", "store", "heron", "--kind", "ssh", stdin=value)
    assert call("vault", "get", str(record["id"])).stdout == value


def test_rotating_to_a_passphrase_and_back(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    record = call_json("vault", "store", "GitHub", stdin=VALUE)
    assert call_json("vault", "rotate", "--dry-run") == {"generation": 2, "records": 1, "dry_run": True}
    assert call_json("vault", "rotate") == {"generation": 2, "records": 1, "dry_run": False}
    assert call_json("vault", "rotate", "--to", "passphrase", stdin=f"{PASSPHRASE}\n") == {
        "generation": 3,
        "records": 1,
        "dry_run": False,
    }
    with pytest.raises(StoreUnavailableError, match="PERDURE_VAULT_PASSPHRASE"):
        call("vault", "get", str(record["id"]))
    monkeypatch.setenv("PERDURE_VAULT_PASSPHRASE", PASSPHRASE)
    assert call("vault", "get", str(record["id"])).stdout == f"{VALUE}\n"
    assert call_json("vault", "store", "Heron", stdin=VALUE)["service"] == "Heron"
    assert "Re-encrypted 2 secrets with key 4" in call("vault", "rotate", "--to", "keyring").stdout
    monkeypatch.delenv("PERDURE_VAULT_PASSPHRASE")
    assert call("vault", "get", str(record["id"])).stdout == f"{VALUE}\n"


def test_looking_makes_no_vault(home: Path) -> None:
    assert call_json("vault", "list") == {"records": []}
    assert call_json("vault", "status") == {"exists": False}
    assert "empty" in call("vault", "list").stdout
    for command in (["get", "12345678"], ["forget", "12345678"], ["rotate"]):
        with pytest.raises(InputError, match="no vault in"):
            call("vault", *command)
    assert not home.exists()


def test_without_a_key_nothing_is_stored_and_nothing_points_to_it(home: Path) -> None:
    keyring.set_keyring(NoKeyring())  # type: ignore[no-untyped-call]
    with pytest.raises(StoreUnavailableError, match="needs a passphrase"):
        call("vault", "store", "GitHub", stdin=VALUE)
    assert call_json("vault", "list") == {"records": []}
    assert pointers(home) == []


@pytest.mark.skipif(os.name != "posix", reason="there are no pseudo-terminals")
def test_at_a_terminal_it_asks_and_does_not_show_what_is_typed(home: Path) -> None:
    import pty

    code = "import sys; from perdure.vault.cli import vault; vault(sys.argv[1:], standalone_mode=False)"
    environment = os.environ | {"PYTHON_KEYRING_BACKEND": "keyring.backends.fail.Keyring"}
    outer, inner = pty.openpty()
    child = subprocess.Popen(
        [sys.executable, "-c", code, "store", "GitHub"],
        stdin=inner, stdout=subprocess.PIPE, stderr=inner, cwd=ROOT, env=environment, start_new_session=True,
    )  # fmt: skip
    os.close(inner)
    seen = b""
    for question, answer in ((b"Secret", VALUE), (b"New passphrase", PASSPHRASE), (b"Repeat", PASSPHRASE)):
        while question not in seen:
            seen += os.read(outer, 1024)
        os.write(outer, f"{answer}\n".encode())
    printed, _ = child.communicate(timeout=60)
    os.close(outer)

    assert child.returncode == 0
    assert b"A secret for GitHub is in the vault" in printed
    assert VALUE.encode() not in seen + printed
    with Vault(home, passphrase=PASSPHRASE) as opened:
        [record] = opened.records()
        assert opened.get(record.id).value == VALUE


def test_each_command_has_help_with_an_example() -> None:
    assert set(vault.commands) == COMMANDS
    for name in COMMANDS:
        assert f"Example: perdure vault {name}" in call("vault", name, "--help").stdout
