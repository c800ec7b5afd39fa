"""`perdure vault`: secrets, encrypted beside the memories that point to them."""

from __future__ import annotations

import sys
import time
from dataclasses import asdict
from datetime import datetime
from pathlib import Path

import click

from perdure.api.memory import Memory
from perdure.cli.options import dry_run_option, home_option, json_option
from perdure.cli.output import OK, Output, ask_secret, progress
from perdure.engine.paths import data_folder
from perdure.errors import InputError
from perdure.hooks.types import Channel
from perdure.store.folder import vault_file
from perdure.vault.record import KINDS, MIN_PREFIX, VaultRecord, pointer_text
from perdure.vault.vault import Vault

DAY = 86_400.0
EXPIRY_WARNING_DAYS = 7


@click.group()
def vault() -> None:
    """Keep secrets encrypted; the agent remembers only that they are there.

    The key comes from the OS keyring, or from a passphrase: PERDURE_VAULT_PASSPHRASE, else you are asked.

    Example: perdure vault store GitHub --kind token
    """


@vault.command("store")
@click.argument("service")
@click.option("--kind", type=click.Choice(list(KINDS)), default="other", show_default=True, help="What it is.")
@click.option("--name", default="", help="Tells several of a service and kind apart.")
@click.option("--days", type=click.FloatRange(min=0, min_open=True), help="So long it is good.")
@click.option("--replace", "replace_value", is_flag=True, help="Replace the value stored before; it is gone then.")
@home_option
@json_option
def store_secret(
    service: str, kind: str, name: str, days: float | None, replace_value: bool, home: Path | None, as_json: bool
) -> int:
    """Store a secret, and a memory that points to it. The value is asked for, or read from a pipe.

    Example: perdure vault store GitHub --kind ssh < ~/.ssh/id_ed25519
    """
    expires_at = None if days is None else time.time() + days * DAY
    # The memory is opened first: what is wrong with a setting is known before anything is stored.
    # A pointer names its secret by an id: no two of them say the same, however alike they are.
    with (
        Memory.open(home, timers=False, classify_before_write=False, duplicate_vector=False) as memory,
        _opened(home) as opened,
    ):
        opened.unlock()
        record = opened.store(
            service, _value(), kind=kind, name=name, expires_at=expires_at, replace_value=replace_value
        )
        # With a slot of its own the pointer is neither taken apart nor taken for that of another secret.
        key = f"{kind} {name}".strip()
        memory.store(pointer_text(record), category="entity", entity=service, key=key, channel=Channel.CLI)
    output = Output(as_json)
    output.line(pointer_text(record))
    return _ended(output, asdict(record))


@vault.command("get")
@click.argument("record_id", metavar="ID")
@home_option
@json_option
def get_secret(record_id: str, home: Path | None, as_json: bool) -> int:
    """Print a secret, and nothing else, for a pipe or the clipboard.

    Example: perdure vault get 1234abcd | wl-copy
    """
    with _existing(home) as opened:
        secret = opened.get(record_id)
    if not as_json:
        Output().raw(secret.value)
    return _ended(Output(as_json), {"record": asdict(secret.record), "sensitive": {"value": secret.value}})


@vault.command("list")
@home_option
@json_option
def list_secrets(home: Path | None, as_json: bool) -> int:
    """List what is in the vault, without the values. No key is needed.

    Example: perdure vault list
    """
    output, records = Output(as_json), _records(home)
    if records:
        output.table(("id", "service", "kind", "name", "stored", "expires"), map(_row, records))
    else:
        output.line("The vault is empty. Store something: perdure vault store GitHub --kind token")
    return _ended(output, {"records": [asdict(record) for record in records]})


@vault.command("forget")
@click.argument("record_id", metavar="ID")
@dry_run_option
@home_option
@json_option
def forget_secret(record_id: str, dry_run: bool, home: Path | None, as_json: bool) -> int:
    """Remove a secret for good, and the memory that points to it. No key is needed; nothing brings it back.

    Example: perdure vault forget 1234abcd --dry-run
    """
    with _existing(home) as opened:
        record = opened.find(record_id)
        if not dry_run:
            _forget_pointer(record, home)
            opened.forget(record.id)
    output, done = Output(as_json), "Would forget" if dry_run else "Forgot"
    output.line(f"{done}: {record.kind} for {record.service} (id {record.id[:MIN_PREFIX]})")
    return _ended(output, {"forgotten": not dry_run, "record": asdict(record)})


@vault.command("rotate")
@click.option("--to", "target", type=click.Choice(["keyring", "passphrase"]), help="Where the key comes from then.")
@dry_run_option
@home_option
@json_option
def rotate_key(target: str | None, dry_run: bool, home: Path | None, as_json: bool) -> int:
    """Encrypt everything anew with a new key. With `--to passphrase` a new passphrase is asked for.

    Example: perdure vault rotate
    """
    with _existing(home) as opened:
        total, generation = opened.state().records, opened.state().generation
        if dry_run:
            return _rotated(Output(as_json), total, generation + 1, dry_run=True)
        opened.unlock()
        passphrase = _new_passphrase() if target == "passphrase" else None
        with progress("encrypting", total, quiet=as_json) as step:
            generation = opened.rotate(passphrase=passphrase, keyring=target == "keyring", on_record=step)
    return _rotated(Output(as_json), total, generation, dry_run=False)


@vault.command("status")
@home_option
@json_option
def vault_status(home: Path | None, as_json: bool) -> int:
    """Show how the vault is, and what will soon be out of date. No key is needed.

    Example: perdure vault status
    """
    values: dict[str, object] = {"exists": _exists(home)}
    if values["exists"]:
        with _opened(home) as opened:
            values |= asdict(opened.state())
            soon = time.time() + EXPIRY_WARNING_DAYS * DAY
            expiring = {record.id: record.expires_at for record in opened.records() if record.expires_at is not None}
            values["expiring_soon"] = [name for name, at in expiring.items() if time.time() < at <= soon]
    rows = [(name.replace("_", " "), value) for name, value in values.items()]
    Output(as_json).both(values, ("", ""), rows)
    return OK


def _rotated(output: Output, total: int, generation: int, *, dry_run: bool) -> int:
    if dry_run:
        output.line(f"{total} secrets would be encrypted with key {generation}, and the key before would be gone.")
    else:
        output.line(f"{total} secrets are encrypted with key {generation}; the key before is gone.")
    return _ended(output, {"generation": generation, "records": total, "dry_run": dry_run})


def _ended(output: Output, values: object) -> int:
    if output.as_json:
        output.json(values)
    return OK


def _records(home: Path | None) -> list[VaultRecord]:
    if not _exists(home):
        return []
    with _opened(home) as opened:
        return opened.records()


def _forget_pointer(record: VaultRecord, home: Path | None) -> None:
    with Memory.open(home, timers=False) as memory:
        for fact in memory.lookup(record.service):
            if fact.text == pointer_text(record):
                memory.forget(fact.id)


def _opened(home: Path | None) -> Vault:
    return Vault(data_folder(home), ask=_ask if sys.stdin.isatty() else None)


def _existing(home: Path | None) -> Vault:
    if not _exists(home):
        raise InputError(f"{data_folder(home)} has no vault yet; make one with: perdure vault store")
    return _opened(home)


def _exists(home: Path | None) -> bool:
    return vault_file(data_folder(home)).exists()


def _ask(new: bool) -> str:
    text = "New passphrase of the vault" if new else "Passphrase of the vault"
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
