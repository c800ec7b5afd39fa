"""The vault: nothing opens without the key, nothing altered passes, nothing is lost when a rotation dies."""

from __future__ import annotations

import base64
import json
import os
import signal
import stat
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import apsw
import keyring
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from keyring.backend import KeyringBackend
from keyring.backends.fail import Keyring as NoKeyring
from keyring.errors import KeyringLocked, PasswordDeleteError

from perdure.api.memory import Memory
from perdure.clock import ManualClock
from perdure.errors import (
    AmbiguousIdError,
    InputError,
    NotFoundError,
    StoreClosedError,
    StoreCorruptError,
    StoreTooNewError,
    StoreUnavailableError,
)
from perdure.store.folder import vault_file
from perdure.vault.keys import KEYRING_SERVICE, PASSPHRASE_VARIABLE
from perdure.vault.record import KINDS, MAX_NAME, MAX_VALUE, VaultRecord, pointer_text
from perdure.vault.vault import Vault

PASSPHRASE = "correct horse battery staple"
VALUE = "qv7-Zephyr-Mangrove-91x"

ROTATOR = """
import json, os, signal, sys
from pathlib import Path

import keyring
from keyring.backend import KeyringBackend

from perdure.vault.vault import Vault

folder, ring_file, moment = Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3]


class FileKeyring(KeyringBackend):
    priority = 5

    def _all(self):
        return json.loads(ring_file.read_text())

    def get_password(self, service, username):
        return self._all().get(username)

    def set_password(self, service, username, password):
        ring_file.write_text(json.dumps(self._all() | {username: password}))
        die("kept")

    def delete_password(self, service, username):
        die("committed")
        ring_file.write_text(json.dumps({k: v for k, v in self._all().items() if k != username}))


def die(now):
    if now == moment:
        os.kill(os.getpid(), signal.SIGKILL)


count = 0

def on_record():
    global count
    count += 1
    die(f"record {count}")


keyring.set_keyring(FileKeyring())
with Vault(folder) as vault:
    vault.rotate(on_record=on_record)
    die("done")
"""

SEARCHER = """
import json, sys
from pathlib import Path

needles = [bytes.fromhex(word) for word in sys.argv[2:]]
found = []
for path in [path for path in Path(sys.argv[1]).rglob("*") if path.is_file()]:
    try:
        held = path.read_bytes()
    except FileNotFoundError:  # a worker tidies meanwhile
        continue
    found += [path.name] if any(needle in held for needle in needles) else []
print(json.dumps(found))
"""


class DictKeyring(KeyringBackend):
    """A keyring of keyring's own interface that lives in memory."""

    priority = 5.0

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.entries: dict[str, str] = {}
        self.locked = False

    def get_password(self, service: str, username: str) -> str | None:
        self._check(service)
        return self.entries.get(username)

    def set_password(self, service: str, username: str, password: str) -> None:
        self._check(service)
        self.entries[username] = password

    def delete_password(self, service: str, username: str) -> None:
        self._check(service)
        if username not in self.entries:
            raise PasswordDeleteError(username)
        del self.entries[username]

    def _check(self, service: str) -> None:
        assert service == KEYRING_SERVICE
        if self.locked:
            raise KeyringLocked


class ForgetfulKeyring(DictKeyring):
    """Takes a key and does not keep it, as keyring's null backend does."""

    def set_password(self, service: str, username: str, password: str) -> None:
        """Keep nothing."""


class BusyKeyring(DictKeyring):
    """Lets something happen just before it is asked for a key for the first time."""

    def __init__(self, entries: dict[str, str], happen: Callable[[], object]) -> None:
        super().__init__()
        self.entries = entries
        self._happen: Callable[[], object] | None = happen

    def get_password(self, service: str, username: str) -> str | None:
        happen, self._happen = self._happen, None
        if happen is not None:
            happen()
        return super().get_password(service, username)


class PlainFileKeyring(DictKeyring):
    """What keyring recommends to nobody, such as a file in plain text."""

    priority = 0.5


@pytest.fixture
def ring() -> Iterator[DictKeyring]:
    before = keyring.get_keyring()
    fake = DictKeyring()
    keyring.set_keyring(fake)
    yield fake
    keyring.set_keyring(before)


@pytest.fixture
def no_ring(ring: DictKeyring) -> None:
    keyring.set_keyring(NoKeyring())  # type: ignore[no-untyped-call]


@pytest.fixture
def vault(tmp_path: Path, clock: ManualClock, ring: DictKeyring) -> Iterator[Vault]:
    with Vault(tmp_path / "store", clock=clock) as opened:
        yield opened


def sql(folder: Path, statement: str, *values: object) -> list[tuple[Any, ...]]:
    """Do to vault.db what no function of perdure does."""
    connection = apsw.Connection(str(vault_file(folder)))
    try:
        return list(connection.execute(statement, values))
    finally:
        connection.close()


def files_with(folder: Path, *needles: bytes) -> list[str]:
    """Return the names of the files that hold one of the needles.

    Another process looks: closing a file that SQLite has open in this one would take away SQLite's locks on it.
    """
    command = [sys.executable, "-c", SEARCHER, str(folder), *(needle.hex() for needle in needles)]
    names = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    assert isinstance(names, list)
    return names


class TestRecords:
    def test_a_value_comes_back_and_the_list_shows_the_rest(self, vault: Vault, clock: ManualClock) -> None:
        record = vault.store("GitHub", VALUE, kind="token", name="work", expires_at=clock.now() + 5)

        secret = vault.get(record.id)

        assert secret.value == VALUE
        assert vault.get(record.id[:8]).record == record
        assert vault.records() == [record]
        assert record == VaultRecord(record.id, "GitHub", "token", "work", clock.now(), clock.now() + 5)
        assert VALUE not in repr(secret)
        assert VALUE not in str(secret)
        assert VALUE not in repr(vault.records())

    def test_it_is_there_after_closing(self, tmp_path: Path, ring: DictKeyring) -> None:
        with Vault(tmp_path) as vault:
            record = vault.store("GitHub", VALUE, expires_at=7)
        with Vault(tmp_path) as vault:
            assert vault.get(record.id).value == VALUE

    def test_it_is_private(self, vault: Vault, tmp_path: Path) -> None:
        vault.store("GitHub", VALUE)
        path = vault_file(tmp_path / "store")
        files = [file for file in path.parent.iterdir() if file.name.startswith(path.name)]
        assert len(files) == 3  # with -wal and -shm
        assert {stat.S_IMODE(file.stat().st_mode) for file in files} == {0o600}

    @settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
    @given(value=st.text(st.characters(codec="utf-8"), min_size=1, max_size=200))
    def test_any_text_comes_back_unchanged(self, vault: Vault, value: str) -> None:
        # In a letter that no generated value consists of: a value must not stand in its own name.
        record = vault.store("\N{SNOWMAN}" * 3 if "\N{SNOWMAN}" not in value else "x" * 50, value, replace_value=True)
        assert vault.get(record.id).value == value

    def test_the_longest_value_comes_back_and_one_more_byte_is_refused(self, vault: Vault) -> None:
        assert vault.get(vault.store("A", "é" * (MAX_VALUE // 2)).id).value == "é" * (MAX_VALUE // 2)
        with pytest.raises(InputError, match=f"65537 bytes; it must have 1 to {MAX_VALUE}"):
            vault.store("B", "x" * (MAX_VALUE + 1))

    def test_a_second_value_of_the_same_name_needs_to_be_asked_for(self, vault: Vault) -> None:
        first = vault.store("GitHub", VALUE, kind="token")
        with pytest.raises(InputError, match=first.id):
            vault.store("GitHub", "another value", kind="token")
        assert vault.get(first.id).value == VALUE

        second = vault.store("GitHub", "another value", kind="token", replace_value=True)

        assert second.id == first.id
        assert vault.get(first.id).value == "another value"
        assert len(vault.records()) == 1
        vault.store("GitHub", "a third value", kind="token", name="home")
        vault.store("GitHub", "a fourth value", kind="password")
        assert len(vault.records()) == 3

    @pytest.mark.parametrize(
        ("service", "value", "more", "message"),
        [
            ("", VALUE, {}, "service is empty"),
            ("a" * (MAX_NAME + 1), VALUE, {}, "201 characters; give one line of at most 200"),
            ("Git\nHub", VALUE, {}, "give one line"),
            (" GitHub", VALUE, {}, "printable characters"),
            ("GitHub", VALUE, {"name": "a\0b"}, "the name has 3 characters"),
            (f"GitHub {VALUE}", VALUE, {}, "the service seems to contain the secret"),
            ("GitHub", VALUE, {"name": VALUE}, "the name seems to contain the secret"),
            ("my password: 8Hgk29sk2KLs9", VALUE, {}, "the service seems to contain"),
            ("GitHub", VALUE, {"kind": "cookie"}, "kind 'cookie' is unknown; use one of token"),
            ("GitHub", VALUE, {"expires_at": float("nan")}, "expires_at is nan"),
            ("GitHub", "", {}, "has 0 bytes"),
            ("GitHub", f"{VALUE}\ud800", {}, "lone surrogate"),
        ],
    )
    def test_what_does_not_fit_is_refused_without_showing_it(
        self, vault: Vault, service: str, value: str, more: dict[str, str], message: str
    ) -> None:
        with pytest.raises(InputError, match=message) as caught:
            vault.store(service, value, **more)  # type: ignore[arg-type]
        assert VALUE not in str(caught.value)
        assert vault.records() == []

    def test_forgotten_is_gone_and_needs_no_key(self, vault: Vault, ring: DictKeyring) -> None:
        record, other = vault.store("GitHub", VALUE), vault.store("Heron", VALUE)
        ring.locked = True
        assert vault.forget(record.id[:8]) == record
        assert vault.records() == [other]
        with pytest.raises(NotFoundError, match=record.id):
            vault.get(record.id)

    def test_ids_that_do_not_lead_to_one_record(self, vault: Vault, tmp_path: Path) -> None:
        for number, service in enumerate("AB"):
            record = vault.store(service, VALUE)
            sql(tmp_path / "store", "UPDATE records SET id = ? WHERE id = ?", f"12345678-{number}", record.id)
        with pytest.raises(AmbiguousIdError, match="12345678"):
            vault.get("12345678")
        with pytest.raises(InputError, match="at least 8"):
            vault.get("1234567")
        with pytest.raises(InputError, match="hex digits"):
            vault.get("GitHub-token")
        with pytest.raises(NotFoundError, match="87654321"):
            vault.get("87654321")

    def test_the_state_counts(self, vault: Vault, clock: ManualClock) -> None:
        assert (vault.state().source, vault.state().generation) == ("none", 0)
        vault.store("GitHub", VALUE, expires_at=clock.now() + 10)
        vault.store("Heron", VALUE)
        assert (vault.state().records, vault.state().expired) == (2, 0)
        clock.advance(10)
        assert (vault.state().records, vault.state().expired) == (2, 1)
        assert (vault.state().source, vault.state().generation, vault.state().old_keys) == ("keyring", 1, 0)

    @pytest.mark.timeout(400)  # ten thousand synced transactions on whatever disk there is
    def test_no_nonce_twice_in_ten_thousand_writes(self, vault: Vault, tmp_path: Path) -> None:
        for number in range(10_000):
            vault.store(f"service {number}", VALUE)
        counts = sql(tmp_path / "store", "SELECT count(*), count(DISTINCT nonce), min(length(nonce)) FROM records")
        assert counts == [(10_000, 10_000, 12)]
        assert sql(tmp_path / "store", "SELECT count(DISTINCT ciphertext) FROM records") == [(10_000,)]

    def test_the_database_refuses_a_nonce_that_was_used(self, vault: Vault, tmp_path: Path) -> None:
        vault.store("GitHub", VALUE)
        columns = "service, kind, name, created_at, expires_at, generation, nonce, ciphertext"
        with pytest.raises(apsw.ConstraintError, match="nonce"):
            sql(tmp_path / "store", f"INSERT INTO records SELECT 'x', 'other ' || {columns} FROM records")

    def test_it_can_be_used_from_several_threads(self, vault: Vault) -> None:
        def work(number: int) -> None:
            for turn in range(10):
                record = vault.store(f"thread {number}", f"{VALUE}{number}.{turn}", replace_value=True)
                assert vault.get(record.id).value == f"{VALUE}{number}.{turn}"
                done.append(turn)

        done: list[int] = []
        threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        for _ in range(3):
            vault.rotate()
        for thread in threads:
            thread.join()
        assert len(done) == 40

    def test_closed_is_closed(self, vault: Vault) -> None:
        vault.close()
        vault.close()
        with pytest.raises(StoreClosedError):
            vault.records()


class TestKeys:
    def test_without_any_key_nothing_is_stored(self, tmp_path: Path, no_ring: None) -> None:
        with Vault(tmp_path) as vault:
            with pytest.raises(StoreUnavailableError, match=PASSPHRASE_VARIABLE):
                vault.store("GitHub", VALUE)
            assert vault.records() == []
            assert vault.state().generation == 0
        assert files_with(tmp_path, VALUE.encode()) == []
        assert [path.name for path in tmp_path.iterdir()] == ["vault.db"]

    @pytest.mark.parametrize("bad", [ForgetfulKeyring, PlainFileKeyring])
    def test_a_keyring_that_is_not_fit_for_secrets_is_not_used(
        self, bad: type[DictKeyring], tmp_path: Path, ring: DictKeyring
    ) -> None:
        unfit = bad()
        keyring.set_keyring(unfit)
        with Vault(tmp_path) as vault:
            with pytest.raises(StoreUnavailableError, match=PASSPHRASE_VARIABLE):
                vault.store("GitHub", VALUE)
            assert vault.records() == []
        assert unfit.entries == {}

    def test_the_passphrase_of_the_argument_the_environment_and_the_prompt(
        self, tmp_path: Path, no_ring: None, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        asked: list[bool] = []

        def ask(new: bool) -> str:
            asked.append(new)
            return PASSPHRASE

        with Vault(tmp_path, ask=ask) as vault:
            record = vault.store("GitHub", VALUE)
            vault.rotate()
        assert asked == [True]
        with Vault(tmp_path, ask=ask) as vault:
            vault.unlock()
            assert vault.get(record.id).value == VALUE
        assert asked == [True, False]
        with Vault(tmp_path, passphrase=PASSPHRASE) as vault:
            assert vault.get(record.id).value == VALUE
        monkeypatch.setenv(PASSPHRASE_VARIABLE, PASSPHRASE)
        with Vault(tmp_path) as vault:
            assert vault.get(record.id).value == VALUE
            assert vault.state().source == "passphrase"

    def test_a_given_passphrase_goes_before_the_keyring(self, tmp_path: Path, ring: DictKeyring) -> None:
        with Vault(tmp_path, passphrase=PASSPHRASE) as vault:
            vault.store("GitHub", VALUE)
            assert vault.state().source == "passphrase"
        assert ring.entries == {}

    def test_accents_may_be_typed_either_way(self, tmp_path: Path) -> None:
        with Vault(tmp_path, passphrase="déjà vu déjà vu") as vault:
            record = vault.store("GitHub", VALUE)
        with Vault(tmp_path, passphrase="de\u0301ja\u0300 vu de\u0301ja\u0300 vu") as vault:
            assert vault.get(record.id).value == VALUE

    def test_a_short_passphrase_is_refused(self, tmp_path: Path) -> None:
        with Vault(tmp_path, passphrase="eleven char") as vault:
            with pytest.raises(InputError, match="11 characters; use at least 12"):
                vault.store("GitHub", VALUE)
            assert vault.state().generation == 0

    def test_the_derivation_is_slow_and_salted(self, tmp_path: Path) -> None:
        for name in ("a", "b"):
            with Vault(tmp_path / name, passphrase=PASSPHRASE) as vault:
                vault.store("GitHub", VALUE)
        [(cost, salt)] = sql(tmp_path / "a", "SELECT cost, salt FROM keys")
        assert isinstance(cost, int)
        assert cost >= 2**15
        assert isinstance(salt, bytes)
        assert len(salt) == 32
        assert [(cost, salt)] != sql(tmp_path / "b", "SELECT cost, salt FROM keys")

    def test_a_wrong_passphrase_opens_and_changes_nothing(self, tmp_path: Path) -> None:
        with Vault(tmp_path, passphrase=PASSPHRASE) as vault:
            record = vault.store("GitHub", VALUE)
        before = vault_file(tmp_path).read_bytes()
        with Vault(tmp_path, passphrase="wrong horse battery staple") as vault:
            for attempt in (
                vault.unlock,
                lambda: vault.get(record.id),
                lambda: vault.store("Heron", VALUE),
                lambda: vault.store("GitHub", "another", replace_value=True),
                vault.rotate,
                lambda: vault.rotate(passphrase="a new one that is long"),
            ):
                with pytest.raises(
                    StoreUnavailableError, match=r"passphrase does not open the vault.*Nothing was"
                ) as e:
                    attempt()
                assert "horse" not in str(e.value)
        assert vault_file(tmp_path).read_bytes() == before

    def test_after_a_slip_of_the_fingers_it_asks_again(self, tmp_path: Path, no_ring: None) -> None:
        with Vault(tmp_path, passphrase=PASSPHRASE) as vault:
            record = vault.store("GitHub", VALUE)
        typed = iter(["wrong horse battery staple", PASSPHRASE])
        with Vault(tmp_path, ask=lambda new: next(typed)) as vault:
            with pytest.raises(StoreUnavailableError, match="does not open"):
                vault.unlock()
            assert vault.get(record.id).value == VALUE

    def test_the_key_is_gone_wrong_or_locked_in_the_keyring(self, tmp_path: Path, ring: DictKeyring) -> None:
        with Vault(tmp_path) as vault:
            record = vault.store("GitHub", VALUE)
        [entry] = ring.entries
        right = ring.entries.pop(entry)
        before = vault_file(tmp_path).read_bytes()
        for wrong, message in (
            (None, "is not in the OS keyring"),
            (base64.b64encode(os.urandom(32)).decode(), "does not open the vault"),
            (base64.b64encode(os.urandom(31)).decode(), "is not a vault key"),
            ("not base64!", "is not a vault key"),
        ):
            ring.entries = {} if wrong is None else {entry: wrong}
            with Vault(tmp_path) as vault:
                for attempt in (lambda: vault.get(record.id), lambda: vault.store("B", VALUE), vault.rotate):
                    with pytest.raises(StoreUnavailableError, match=message):
                        attempt()
            assert ring.entries == ({} if wrong is None else {entry: wrong})
        ring.entries = {entry: right}
        ring.locked = True
        with Vault(tmp_path) as vault, pytest.raises(StoreUnavailableError, match="KeyringLocked"):
            vault.get(record.id)
        assert vault_file(tmp_path).read_bytes() == before
        ring.locked = False
        with Vault(tmp_path) as vault:
            assert vault.get(record.id).value == VALUE

    def test_without_the_extra_the_error_says_what_to_install(self, tmp_path: Path) -> None:
        code = (
            "import sys\n"
            "sys.modules[sys.argv[2]] = None\n"  # what the import system does for a package that is known to be absent
            "from pathlib import Path\n"
            "from perdure.errors import StoreUnavailableError\n"
            "from perdure.vault.vault import Vault\n"
            "vault = Vault(Path(sys.argv[1]), passphrase=sys.argv[3] or None)\n"
            "try:\n"
            "    vault.store('GitHub', 'qv7')\n"
            "except StoreUnavailableError as error:\n"
            "    print(error, vault.records())\n"
        )
        for package, passphrase in (("cryptography", PASSPHRASE), ("keyring", "")):
            command = [sys.executable, "-c", code, str(tmp_path), package, passphrase]
            result = subprocess.run(command, capture_output=True, text=True, check=True, cwd=Path(__file__).parents[2])
            assert 'pip install "perdure[vault]"' in result.stdout
            assert package in result.stdout
            assert result.stdout.endswith("[]\n")


class TestDamage:
    @pytest.mark.parametrize(
        "change",
        [
            "ciphertext = CAST(x'00' || substr(ciphertext, 2) AS BLOB)",
            "ciphertext = substr(ciphertext, 1, length(ciphertext) - 1)",
            "ciphertext = x''",
            "ciphertext = zeroblob(100)",
            "nonce = zeroblob(12)",
            "nonce = substr(nonce, 1, 5)",
            "nonce = x''",
            "service = 'GitLab'",
            "kind = 'ssh'",
            "name = 'home'",
            "expires_at = 9e9",
            "created_at = created_at + 1",
        ],
    )
    def test_what_was_altered_is_named_and_does_not_pass(self, vault: Vault, tmp_path: Path, change: str) -> None:
        record, whole = vault.store("GitHub", VALUE, kind="token"), vault.store("Heron", "whole")
        sql(tmp_path / "store", f"UPDATE records SET {change} WHERE id = ?", record.id)

        with pytest.raises(StoreCorruptError, match=record.id) as caught:
            vault.get(record.id)
        assert VALUE not in str(caught.value)
        with pytest.raises(StoreCorruptError, match=record.id):
            vault.rotate()

        assert vault.state().generation == 1
        assert vault.get(whole.id).value == "whole"
        vault.forget(record.id)
        vault.rotate()
        assert vault.get(whole.id).value == "whole"

    def test_values_cannot_be_swapped_between_records(self, vault: Vault, tmp_path: Path) -> None:
        first, second = vault.store("GitHub", VALUE), vault.store("Heron", VALUE)
        columns = "nonce, ciphertext"
        [sealed] = sql(tmp_path / "store", f"SELECT {columns} FROM records WHERE id = ?", first.id)
        vault.forget(first.id)
        sql(tmp_path / "store", "UPDATE records SET nonce = ?, ciphertext = ? WHERE id = ?", *sealed, second.id)
        with pytest.raises(StoreCorruptError, match=second.id):
            vault.get(second.id)

    def test_a_record_under_another_id_does_not_open(self, vault: Vault, tmp_path: Path) -> None:
        record = vault.store("GitHub", VALUE)
        sql(tmp_path / "store", "UPDATE records SET id = ?", "0" * 8)
        assert record.id != "0" * 8
        with pytest.raises(StoreCorruptError, match="0" * 8):
            vault.get("0" * 8)

    def test_an_old_value_cannot_be_put_back_after_a_rotation(self, vault: Vault, tmp_path: Path) -> None:
        record = vault.store("GitHub", VALUE)
        [old] = sql(tmp_path / "store", "SELECT nonce, ciphertext FROM records")
        vault.rotate()
        sql(tmp_path / "store", "UPDATE records SET nonce = ?, ciphertext = ?", *old)
        with pytest.raises(StoreCorruptError, match=record.id):
            vault.get(record.id)

    @pytest.mark.parametrize("change", ["cost = 2", "cost = 1099511627776", "salt = x'00'"])
    def test_a_damaged_record_of_the_key_is_told_from_a_wrong_key(self, tmp_path: Path, change: str) -> None:
        with Vault(tmp_path, passphrase=PASSPHRASE) as vault:
            record = vault.store("GitHub", VALUE)
        sql(tmp_path, f"UPDATE keys SET {change}")
        with (
            Vault(tmp_path, passphrase=PASSPHRASE) as vault,
            pytest.raises(StoreCorruptError, match="key 1 is damaged"),
        ):
            vault.get(record.id)

    def test_a_file_of_something_else_is_left_alone(self, tmp_path: Path) -> None:
        for name, content in (("a", b"not a database" * 100), ("b", None)):
            (tmp_path / name).mkdir()
            path = vault_file(tmp_path / name)
            if content is None:
                sql(tmp_path / name, "CREATE TABLE theirs (x)")
            else:
                path.write_bytes(content)
            before = path.read_bytes()
            with pytest.raises(StoreCorruptError, match=r"vault\.db"):
                Vault(tmp_path / name)
            assert path.read_bytes() == before

    def test_a_newer_vault_is_left_alone(self, tmp_path: Path) -> None:
        Vault(tmp_path).close()
        sql(tmp_path, "PRAGMA user_version = 99")
        with pytest.raises(StoreTooNewError, match="schema 99"):
            Vault(tmp_path)


class TestRotation:
    def test_everything_is_sealed_anew_and_the_old_key_is_gone(
        self, vault: Vault, tmp_path: Path, ring: DictKeyring
    ) -> None:
        records = [vault.store(f"service {number}", f"{VALUE}{number}") for number in range(5)]
        [old_key] = ring.entries.values()
        before = sql(tmp_path / "store", "SELECT ciphertext FROM records ORDER BY id")
        seen: list[None] = []

        assert vault.rotate(on_record=lambda: seen.append(None)) == 2

        assert len(seen) == 5
        assert [vault.get(record.id).value for record in records] == [f"{VALUE}{number}" for number in range(5)]
        assert old_key not in ring.entries.values()
        assert len(ring.entries) == 1
        assert not set(before) & set(sql(tmp_path / "store", "SELECT ciphertext FROM records"))
        assert vault.records() == sorted(records, key=lambda record: record.service)
        assert (vault.state().generation, vault.state().old_keys) == (2, 0)

    def test_from_keyring_to_passphrase_to_another_and_back(self, tmp_path: Path, ring: DictKeyring) -> None:
        with Vault(tmp_path) as vault:
            record = vault.store("GitHub", VALUE)
            vault.rotate(passphrase=PASSPHRASE)
            assert ring.entries == {}
            assert vault.state().source == "passphrase"
            vault.rotate(passphrase="another one that is long")
            assert vault.get(record.id).value == VALUE
        with Vault(tmp_path, passphrase=PASSPHRASE) as vault, pytest.raises(StoreUnavailableError, match="passphrase"):
            vault.get(record.id)
        with Vault(tmp_path, passphrase="another one that is long") as vault:
            vault.rotate(keyring=True)
        with Vault(tmp_path) as vault:
            assert vault.get(record.id).value == VALUE
            assert vault.state().source == "keyring"

    def test_one_source_only(self, vault: Vault) -> None:
        with pytest.raises(InputError, match="choose one"):
            vault.rotate(passphrase=PASSPHRASE, keyring=True)
        with pytest.raises(InputError, match="5 characters"):
            vault.rotate(passphrase="short")
        assert vault.state().generation == 0

    def test_one_that_fails_leaves_no_key_behind(self, vault: Vault, ring: DictKeyring) -> None:
        record = vault.store("GitHub", VALUE)
        entries = dict(ring.entries)

        def fail() -> None:
            raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            vault.rotate(on_record=fail)
        assert ring.entries == entries
        assert vault.get(record.id).value == VALUE

    def test_a_keyring_that_keeps_nothing_changes_nothing(self, tmp_path: Path, ring: DictKeyring) -> None:
        with Vault(tmp_path) as vault:
            record = vault.store("GitHub", VALUE)
            forgetful = ForgetfulKeyring()
            forgetful.entries = ring.entries
            keyring.set_keyring(forgetful)
            with pytest.raises(StoreUnavailableError, match="did not keep"):
                vault.rotate()
        with Vault(tmp_path) as vault:
            assert vault.get(record.id).value == VALUE

    def test_another_open_vault_goes_on_with_the_new_key(self, tmp_path: Path, ring: DictKeyring) -> None:
        with Vault(tmp_path) as one, Vault(tmp_path) as two:
            record = one.store("GitHub", VALUE)
            assert two.get(record.id).value == VALUE
            one.rotate()
            assert two.get(record.id).value == VALUE
            other = two.store("Heron", VALUE)
            assert one.get(other.id).value == VALUE

    def test_a_rotation_between_a_record_and_its_key_is_no_error(self, tmp_path: Path, ring: DictKeyring) -> None:
        with Vault(tmp_path) as one, Vault(tmp_path) as two:
            record = one.store("GitHub", VALUE)
            busy = BusyKeyring(ring.entries, one.rotate)
            keyring.set_keyring(busy)
            assert two.get(record.id).value == VALUE
            assert two.state().generation == 2

    @pytest.mark.parametrize("moment", ["kept", *(f"record {number}" for number in range(1, 9)), "committed"])
    def test_killed_at_any_moment_every_record_is_readable(
        self, tmp_path: Path, ring: DictKeyring, moment: str
    ) -> None:
        folder, ring_file = tmp_path / "store", tmp_path / "keyring.json"
        with Vault(folder) as vault:
            records = [vault.store(f"service {number}", f"{VALUE}{number}") for number in range(8)]
        ring_file.write_text(json.dumps(ring.entries))

        command = [sys.executable, "-c", ROTATOR, str(folder), str(ring_file), moment]
        result = subprocess.run(command, cwd=Path(__file__).parents[2], capture_output=True, text=True)
        assert result.returncode == -signal.SIGKILL, result.stderr

        ring.entries = json.loads(ring_file.read_text())
        with Vault(folder) as vault:
            committed = moment == "committed"
            assert (vault.state().generation, vault.state().old_keys) == ((2, 1) if committed else (1, 0))
            assert [vault.get(record.id).value for record in records] == [f"{VALUE}{number}" for number in range(8)]
            vault.rotate()
            assert vault.state().old_keys == 0
            assert [vault.get(record.id).value for record in records] == [f"{VALUE}{number}" for number in range(8)]


class TestNowhereElse:
    @pytest.mark.parametrize("kind", list(KINDS))
    @pytest.mark.parametrize(("service", "name"), [("GitHub", ""), ("api.example.com", "deploy@heron")])
    def test_the_pointer_is_not_redacted(self, kind: str, service: str, name: str, tmp_path: Path) -> None:
        record = VaultRecord("1234abcd-0000-4000-8000-000000000000", service, kind, name, 0.0, None)
        text = pointer_text(record)
        with Memory.open(tmp_path, embedder="hash") as memory:
            assert memory.store(text, category="entity").text == text
        assert "(id 1234abcd)" in text

    def test_the_pointer_of_a_password(self) -> None:
        record = VaultRecord("1234abcd-0000-4000-8000-000000000000", "GitHub", "password", "", 0.0, None)
        assert pointer_text(record) == "A password for GitHub is in the vault (id 1234abcd)."

    def test_the_value_is_in_no_file_no_answer_and_no_log(
        self, tmp_path: Path, ring: DictKeyring, caplog: pytest.LogCaptureFixture
    ) -> None:
        caplog.set_level("DEBUG")
        spellings = (
            VALUE.encode(),
            VALUE.encode("utf-16-le"),
            base64.b64encode(VALUE.encode()),
            VALUE.encode().hex().encode(),
        )
        with Memory.open(tmp_path, embedder="hash", vector_index="lance") as memory, Vault(tmp_path) as vault:
            memory.ready()
            record = vault.store("GitHub", VALUE, kind="password")
            memory.store(pointer_text(record), category="entity", entity="GitHub", key="password")
            recall = memory.recall("What is the password for GitHub?")
            assert recall is not None
            assert record.id[:8] in recall.block
            assert VALUE not in repr(recall)
            vault.get(record.id)
            vault.rotate()
            assert files_with(tmp_path, *spellings) == []
            vault.store("GitHub", "the next value", kind="password", replace_value=True)
            vault.forget(record.id)
            assert memory.admin.sync_index(90)
            assert files_with(tmp_path, *spellings) == []
        assert files_with(tmp_path, *spellings, *(key.encode() for key in ring.entries.values())) == []
        assert VALUE not in caplog.text
        with Memory.open(tmp_path, embedder="hash") as memory:
            assert memory.recall(VALUE) is None

    def test_the_search_for_bytes_finds_what_is_there(self, tmp_path: Path) -> None:
        (tmp_path / "below").mkdir()
        (tmp_path / "below" / "leak").write_bytes(b"..." + VALUE.encode())
        assert files_with(tmp_path, VALUE.encode()) == ["leak"]
