"""Keys of the vault: where they come from, how they are checked, and how they seal a value."""

from __future__ import annotations

import base64
import binascii
import json
import os
import unicodedata
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from perdure.errors import InputError, StoreCorruptError, StoreUnavailableError
from perdure.extras import how_to_install

if TYPE_CHECKING:
    from keyring.backend import KeyringBackend

PASSPHRASE_VARIABLE = "PERDURE_VAULT_PASSPHRASE"  # noqa: S105 - the name of a variable
MIN_PASSPHRASE = 12
KEYRING_SERVICE = "perdure-vault"

KEY_BYTES = 32
NONCE_BYTES = 12
SALT_BYTES = 32
SCRYPT_COST = 2**17
"""128 MB and a third of a second for each guess at the passphrase."""
_SCRYPT_COSTS = tuple(2**power for power in range(15, 21))
_PROOF = b"perdure vault"

Ask = Callable[[bool], str]
"""Asks a person for the passphrase; told whether it is a new one, to be typed twice."""


@dataclass(frozen=True, slots=True)
class KeyRow:
    """What the vault knows of a key. None of it is secret."""

    generation: int  # 1 for the first key, one more with each rotation
    source: str  # "keyring" or "passphrase"
    entry: str  # its name in the OS keyring; empty for a passphrase
    salt: bytes  # of scrypt (r 8, p 1); empty for the keyring
    cost: int  # of scrypt; 0 for the keyring
    # With `proof`, a known text sealed with the key: it reveals a wrong key before anything is done.
    nonce: bytes
    proof: bytes


class Key:
    """An AES-256-GCM key of one generation."""

    def __init__(self, secret: bytes, generation: int) -> None:
        with needs_extra():
            from cryptography.hazmat.primitives.ciphers.aead import AESGCM
        self.generation = generation
        self._cipher = AESGCM(secret)

    def seal(self, value: bytes, bound: tuple[object, ...]) -> tuple[bytes, bytes]:
        """Return a fresh nonce and the ciphertext, which opens only together with the same `bound`."""
        nonce = os.urandom(NONCE_BYTES)
        return nonce, self._cipher.encrypt(nonce, value, self._aad(bound))

    def open(self, nonce: bytes, sealed: bytes, bound: tuple[object, ...]) -> bytes | None:
        """Return the value, or None if nonce, ciphertext, key or what it is bound to is not what it was."""
        from cryptography.exceptions import InvalidTag

        try:
            return self._cipher.decrypt(nonce, sealed, self._aad(bound))
        except (InvalidTag, ValueError):  # ValueError: a nonce of a length that GCM does not take
            return None

    def _aad(self, bound: tuple[object, ...]) -> bytes:
        return json.dumps([*bound, self.generation]).encode()


class KeyringKeys:
    """Random keys that the keyring of the operating system keeps."""

    def create(self, generation: int) -> tuple[KeyRow, Key]:
        """Make a key and keep it in the keyring under a fresh name; StoreUnavailableError if that fails."""
        secret = os.urandom(KEY_BYTES)
        entry = str(uuid.uuid4())
        with _keyring() as ring:
            ring.set_password(KEYRING_SERVICE, entry, base64.b64encode(secret).decode())
        if self._load(entry) != secret:
            raise StoreUnavailableError(f"the OS keyring did not keep the vault's key; set {PASSPHRASE_VARIABLE}")
        key = Key(secret, generation)
        return KeyRow(generation, "keyring", entry, b"", 0, *key.seal(_PROOF, ())), key

    def unlock(self, row: KeyRow) -> Key:
        """Return the key of a row; StoreUnavailableError if the keyring does not have it, or has another one."""
        secret = self._load(row.entry)
        if secret is None:
            raise StoreUnavailableError(
                f"the vault's key (entry {row.entry}) is not in the OS keyring; "
                "unlock the keyring of the user who created the vault. Nothing was changed"
            )
        return _proven(Key(secret, row.generation), row, f"the key in the OS keyring (entry {row.entry})")

    def discard(self, row: KeyRow) -> None:
        """Remove a key from the keyring; it is no error if it is not there."""
        if self._load(row.entry) is not None:
            with _keyring() as ring:
                ring.delete_password(KEYRING_SERVICE, row.entry)

    def _load(self, entry: str) -> bytes | None:
        with _keyring() as ring:
            text = ring.get_password(KEYRING_SERVICE, entry)
        try:
            secret = None if text is None else base64.b64decode(text, validate=True)
        except binascii.Error:
            secret = b""
        if secret is not None and len(secret) != KEY_BYTES:
            raise StoreUnavailableError(f"entry {entry} of the OS keyring is not a vault key; restore it there")
        return secret


class PassphraseKeys:
    """Keys made of a passphrase by scrypt. The salt stands in the vault, the passphrase nowhere."""

    def __init__(self, passphrase: str | None, ask: Ask | None) -> None:
        """Take the passphrase, else that of the environment, else ask a person for it when it is needed."""
        self._given = passphrase if passphrase is not None else os.environ.get(PASSPHRASE_VARIABLE)
        self._ask = ask

    @property
    def given(self) -> bool:
        """Whether there is a passphrase without asking."""
        return bool(self._given)

    def create(self, generation: int) -> tuple[KeyRow, Key]:
        """Make a key with a fresh salt; InputError for a short passphrase, StoreUnavailableError without one."""
        passphrase = self._passphrase(new=True)
        if len(passphrase) < MIN_PASSPHRASE:
            raise InputError(
                f"the passphrase has {len(passphrase)} characters; use at least {MIN_PASSPHRASE}, such as a few words"
            )
        salt = os.urandom(SALT_BYTES)
        key = Key(_derive(passphrase, salt, SCRYPT_COST), generation)
        self._given = passphrase
        return KeyRow(generation, "passphrase", "", salt, SCRYPT_COST, *key.seal(_PROOF, ())), key

    def unlock(self, row: KeyRow) -> Key:
        """Return the key of a row; StoreUnavailableError if the passphrase is missing or wrong.

        StoreCorruptError means that the vault's record of the key is damaged.
        """
        if row.cost not in _SCRYPT_COSTS or len(row.salt) != SALT_BYTES:
            raise StoreCorruptError(f"the vault's record of key {row.generation} is damaged; restore a backup")
        passphrase = self._passphrase(new=False)
        key = _proven(Key(_derive(passphrase, row.salt, row.cost), row.generation), row, "the passphrase")
        self._given = passphrase  # asked for once, and again only if it was wrong
        return key

    def discard(self, row: KeyRow) -> None:
        """Do nothing: a passphrase is kept nowhere."""

    def _passphrase(self, *, new: bool) -> str:
        if self._given:
            return self._given
        if self._ask is None:
            raise StoreUnavailableError(
                "the vault needs a passphrase (there is no OS keyring, or the vault was created with a passphrase); "
                f"give it as argument or in {PASSPHRASE_VARIABLE}. Nothing was stored"
            )
        return self._ask(new)


def keys_for(row: KeyRow, phrase: PassphraseKeys) -> KeyringKeys | PassphraseKeys:
    """Return what unlocks an existing key."""
    return KeyringKeys() if row.source == "keyring" else phrase


def keys_for_new(phrase: PassphraseKeys) -> KeyringKeys | PassphraseKeys:
    """Return what makes the first key: a given passphrase, else the OS keyring, else a passphrase asked for."""
    return phrase if phrase.given or not has_keyring() else KeyringKeys()


def has_keyring() -> bool:
    """Return whether the system has a keyring fit for secrets; StoreUnavailableError without the extra."""
    with needs_extra():
        import keyring
    ring = keyring.get_keyring()
    # A chain writes to its first member. Below priority 1 keyring itself recommends a backend to nobody: the
    # one that fails, the one that forgets, and files in plain text.
    members = getattr(ring, "backends", None) or [ring]
    return bool(members[0].priority >= 1)


@contextmanager
def needs_extra() -> Iterator[None]:
    """Raise StoreUnavailableError, saying what to install, if an import in the block fails."""
    try:
        yield
    except ImportError as error:
        raise StoreUnavailableError(
            f"the vault needs the package {error.name}; run: {how_to_install('vault')}"
        ) from error


@contextmanager
def _keyring() -> Iterator[KeyringBackend]:
    if not has_keyring():
        raise StoreUnavailableError(
            f"this machine has no OS keyring suitable for secrets; use a passphrase ({PASSPHRASE_VARIABLE})"
        )
    import keyring
    from keyring.errors import KeyringError

    try:
        yield keyring.get_keyring()
    except KeyringError as error:
        raise StoreUnavailableError(
            f"the OS keyring refused ({type(error).__name__}); unlock it and retry, or use a passphrase"
        ) from error


def _derive(passphrase: str, salt: bytes, cost: int) -> bytes:
    with needs_extra():
        from cryptography.hazmat.primitives.kdf.scrypt import Scrypt
    # Keyboards differ in how they compose an accented letter.
    normal = unicodedata.normalize("NFC", passphrase).encode("utf-8", "surrogatepass")
    return Scrypt(salt=salt, length=KEY_BYTES, n=cost, r=8, p=1).derive(normal)


def _proven(key: Key, row: KeyRow, what: str) -> Key:
    if key.open(row.nonce, row.proof, ()) != _PROOF:
        raise StoreUnavailableError(f"{what} does not open the vault; use the right one. Nothing was changed")
    return key
