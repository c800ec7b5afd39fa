"""Every error that perdure raises.

PerdureError
    SettingsError       a setting is unknown, of the wrong type or out of range
    InputError          a value given to a public function cannot be accepted
        UnsafePathError         a path could lead out of its folder, or to something other than a regular file
    ScopeError          a scope is malformed, or may not be read or written by the caller
    NotFoundError       no memory has this id
    AmbiguousIdError    several memories' ids begin with this prefix
    StoreError          the data folder cannot be used as requested
        StoreUnavailableError   it cannot be created, opened or written
        StoreCorruptError       a file in it is damaged; it was left untouched
        StoreLostError          facts.db is missing, older than before, or from another store; nothing was changed
        StoreTooNewError        it was written by a newer perdure; it was left untouched
        StoreFullError          the disk is full; nothing half-written remains
        StoreBusyError          another process held the database for too long
        StoreClosedError        it was used after close()
    ModelError          a model is missing, altered or failed
        EndpointError           a model's server did not answer as it should
        TokenBudgetError        the language model's tokens for today are used up
    ExtensionError      an extension could not be loaded or registered
    HostError           a host is missing, too old, or refused a change to its config

A message names the value, the limit and the next step. It never holds the text of a memory.
"""

from __future__ import annotations

from types import UnionType

_SHOWN = 80
"""Characters of a value in a message."""


class PerdureError(Exception):
    """Base class of all perdure errors."""


def refused(value: object, accepted: str, name: str = "") -> InputError:
    """Return the error for an invalid value; it names the argument, the value, and what is expected."""
    shown = repr(value)
    told = shown if len(shown) <= _SHOWN else f"{shown[:_SHOWN]}…"
    return InputError(f"{f'{name}: ' if name else ''}{told} is not accepted; give {accepted}")


def expect(value: object, kinds: type | tuple[type, ...] | UnionType, accepted: str, name: str) -> None:
    """Raise InputError, as `refused` words it, if a value is of none of these types."""
    if not isinstance(value, kinds):
        raise refused(value, accepted, name)


class SettingsError(PerdureError):
    """A setting is unknown, of the wrong type or out of range."""


class InputError(PerdureError, ValueError):
    """A value given to a public function cannot be accepted."""


class UnsafePathError(InputError):
    """A path could lead out of its folder, or to something other than a regular file."""


class ScopeError(PerdureError):
    """A scope is malformed, or may not be read or written by the caller."""


class NotFoundError(PerdureError, LookupError):
    """No memory has this id."""


class AmbiguousIdError(PerdureError, LookupError):
    """Several memories' ids begin with this prefix."""


class StoreError(PerdureError):
    """The data folder cannot be used as requested."""


class StoreUnavailableError(StoreError):
    """The data folder cannot be created, opened or written."""


class StoreCorruptError(StoreError):
    """A file in the data folder is damaged; it was left untouched."""


class StoreLostError(StoreError):
    """facts.db does not match the data folder's record of it; nothing was changed.

    Attributes:
        truth: "missing", "older", "foreign" or "rekeyed"; see `perdure.store.rollback_guard.Truth`.
    """

    def __init__(self, message: str, truth: str = "missing") -> None:
        """Say what happened; `truth` as in the class. A caller that only passes the message on need not set it."""
        super().__init__(message)
        self.truth = truth


class StoreTooNewError(StoreError):
    """The data folder was written by a newer perdure; it was left untouched."""


class StoreFullError(StoreError):
    """The disk is full; nothing half-written remains."""


class StoreBusyError(StoreError):
    """Another process held the database for longer than the busy timeout."""


class StorePurgedError(StoreUnavailableError):
    """All memories of a tenant were purged, possibly by another machine; this cannot be undone."""


class StoreClosedError(StoreError):
    """The store was used after it had been closed."""


class ModelError(PerdureError):
    """A model is missing, altered, or failed while it ran."""


class EndpointError(ModelError):
    """A model's server could not be reached, or did not answer as it should.

    Attributes:
        status: the HTTP status, or None if there was no response.
        sent: whether the server may have got the request, and charge for it.
    """

    def __init__(self, message: str, *, status: int | None = None, sent: bool = False) -> None:
        """Say what happened; `status` and `sent` as in the class."""
        super().__init__(message)
        self.status = status
        self.sent = sent


class TokenBudgetError(ModelError):
    """The tokens that the language model may use today are used up.

    Attributes:
        never: whether the request exceeds even a full day's budget.
    """

    def __init__(self, message: str, *, never: bool = False) -> None:
        """Say what happened; `never` as in the class."""
        super().__init__(message)
        self.never = never


class ExtensionError(PerdureError):
    """An extension could not be loaded or registered."""


class HostError(PerdureError):
    """A host is missing, too old, or refused a change to its config."""
