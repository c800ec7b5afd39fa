"""`perdure vault`: encrypted secrets, and memories that point to them."""

from __future__ import annotations

import sys
import time
from dataclasses import asdict
from datetime import datetime
from pathlib import Path

import click

from perdure.api.memory import Memory
from perdure.cli.operation import operation
from perdure.cli.output import Output, ask_secret, progress
from perdure.errors import InputError
from perdure.hooks.types import Channel
from perdure.store.folder import vault_file
from perdure.text.pluralize import counted
from perdure.vault.record import KINDS, MIN_PREFIX, VaultRecord, pointer_text
from perdure.vault.vault import Vault

DAY = 86_400.0
EXPIRY_WARNING_DAYS = 7


@click.group()
def vault() -> None:
    """Store secrets encrypted; the agent only knows that they exist.

    The key is in the OS keyring or derived from a passphrase: PERDURE_VAULT_PASSPHRASE, else a prompt.

    Example: perdure vault store GitHub --kind token
    """


@operation(vault, "store")
@click.option("--kind", type=click.Choice(list(KINDS)), default="other", show_default=True, help="Kind of secret.")
@click.option("--name", default="", help="Name, if a service has several secrets of a kind.")
@click.option("--days", type=click.FloatRange(min=0, min_open=True), help="Days until it expires.")
@click.option("--replace", "replace_value", is_flag=True, help="Permanently replace the stored value.")
def store_secret(
    folder: Path, output: Output, service: str, kind: str, name: str, days: float | None, replace_value: bool
) -> None:
    """Store a secret, and a memory that points to it.

    The value is prompted for, or read from a pipe.

    Example: perdure vault store GitHub --kind ssh < ~/.ssh/id_ed25519
    """
    expires_at = None if days is None else time.time() + days * DAY
    # Open the memory first: an invalid setting fails before anything is stored.
    # Each pointer names its own secret by id, so similar ones are no duplicates.
    with (
        Memory.open(folder, timers=False, compare={"vector": 0, "classify": False}) as memory,
        _opened(folder) as opened,
    ):
        opened.unlock()
        record = opened.store(
            service, _value(), kind=kind, name=name, expires_at=expires_at, replace_value=replace_value
        )
        # Its own slot keeps the pointer from being split or taken for another secret's.
        key = f"{kind} {name}".strip()
        memory.store(pointer_text(record), category="entity", entity=service, key=key, channel=Channel.CLI)
    output.line(pointer_text(record))
    output.json(record)


@operation(vault, "get")
def get_secret(folder: Path, output: Output, record_id: str) -> None:
    """Print a secret and nothing else.

    Example: perdure vault get 1234abcd | wl-copy
    """
    with _existing(folder) as opened:
        secret = opened.get(record_id)
    if not output.as_json:
        output.raw(secret.value)
    output.json({"record": asdict(secret.record), "sensitive": {"value": secret.value}})


@operation(vault, "list")
def list_secrets(folder: Path, output: Output) -> None:
    """List secrets without their values. Needs no key.

    Example: perdure vault list
    """
    records = _records(folder)
    empty = "The vault is empty. Store a secret: perdure vault store GitHub --kind token"
    header = ("id", "service", "kind", "name", "stored", "expires")
    output.both({"records": records}, header, map(_row, records), none=empty)


@operation(vault, "forget")
def forget_secret(folder: Path, output: Output, record_id: str, dry_run: bool) -> None:
    """Remove a secret and its memory for good. Needs no key.

    Example: perdure vault forget 1234abcd --dry-run
    """
    with _existing(folder) as opened:
        record = opened.find(record_id)
        if not dry_run:
            _forget_pointer(record, folder)
            opened.forget(record.id)
    done = "Would forget" if dry_run else "Forgot"
    output.line(f"{done}: {record.kind} for {record.service} (id {record.id[:MIN_PREFIX]})")
    output.json({"forgotten": not dry_run, "record": record})


@operation(vault, "rotate")
@click.option("--to", "target", type=click.Choice(["keyring", "passphrase"]), help="New source of the key.")
def rotate_key(folder: Path, output: Output, target: str | None, dry_run: bool) -> None:
    """Re-encrypt the vault with a new key.

    `--to passphrase` asks for a new passphrase.

    Example: perdure vault rotate
    """
    with _existing(folder) as opened:
        total, generation = opened.state().records, opened.state().generation
        if dry_run:
            _rotated(output, total, generation + 1, dry_run=True)
            return
        opened.unlock()
        passphrase = _new_passphrase() if target == "passphrase" else None
        with progress("encrypting", total, quiet=output.as_json) as step:
            generation = opened.rotate(passphrase=passphrase, keyring=target == "keyring", on_record=step)
    _rotated(output, total, generation, dry_run=False)


@operation(vault, "status")
def vault_status(folder: Path, output: Output) -> None:
    """Show the state of the vault and secrets about to expire.

    Needs no key.

    Example: perdure vault status
    """
    values: dict[str, object] = {"exists": _exists(folder)}
    if values["exists"]:
        with _opened(folder) as opened:
            values |= asdict(opened.state())
            soon = time.time() + EXPIRY_WARNING_DAYS * DAY
            expiring = {record.id: record.expires_at for record in opened.records() if record.expires_at is not None}
            values["expiring_soon"] = [name for name, at in expiring.items() if time.time() < at <= soon]
    rows = [(name.replace("_", " "), value) for name, value in values.items()]
    output.both(values, ("", ""), rows)


def _rotated(output: Output, total: int, generation: int, *, dry_run: bool) -> None:
    if dry_run:
        output.line(f"Would re-encrypt {counted(total, 'secret')} with key {generation} and destroy the previous key.")
    else:
        output.line(f"Re-encrypted {counted(total, 'secret')} with key {generation}; the previous key is destroyed.")
    output.json({"generation": generation, "records": total, "dry_run": dry_run})


def _records(folder: Path) -> list[VaultRecord]:
    if not _exists(folder):
        return []
    with _opened(folder) as opened:
        return opened.records()


def _forget_pointer(record: VaultRecord, folder: Path) -> None:
    with Memory.open(folder, timers=False) as memory:
        for fact in memory.lookup(record.service):
            if fact.text == pointer_text(record):
                memory.forget(fact.id)


def _opened(folder: Path) -> Vault:
    return Vault(folder, ask=_ask if sys.stdin.isatty() else None)


def _existing(folder: Path) -> Vault:
    if not _exists(folder):
        raise InputError(f"no vault in {folder}; create one with: perdure vault store")
    return _opened(folder)


def _exists(folder: Path) -> bool:
    return vault_file(folder).exists()


def _ask(new: bool) -> str:
    text = "New passphrase for the vault" if new else "Passphrase of the vault"
    return ask_secret(text, again=new)


def _value() -> str:
    if sys.stdin.isatty():
        return ask_secret("Secret")
    return sys.stdin.read().removesuffix("\n")


def _new_passphrase() -> str:
    return _ask(True) if sys.stdin.isatty() else sys.stdin.readline().removesuffix("\n")


def _row(record: VaultRecord) -> tuple[str, ...]:
    until = "never" if record.expires_at is None else _date(record.expires_at)
    return record.id[:MIN_PREFIX], record.service, record.kind, record.name, _date(record.created_at), until


def _date(at: float) -> str:
    return datetime.fromtimestamp(at).astimezone().date().isoformat()
