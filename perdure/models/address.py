"""Where a server is, and the key that it asks for."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import SplitResult, urlsplit

from perdure.errors import ModelError, SettingsError


@dataclass(frozen=True, slots=True)
class Key:
    """A key, by the name of the environment variable that holds it. The key itself is never kept.

    Attributes:
        variable: name of the environment variable.
        header: the header that carries the key.
        prefix: what stands in front of it there.
        needed: whether there is no use in asking without it.
    """

    variable: str
    header: str = "Authorization"
    prefix: str = "Bearer "
    needed: bool = True

    def headers(self) -> dict[str, str]:
        """Return the header with the key as it is now; nothing if it may be missing and is.

        Raises:
            ModelError: the variable is not set, or holds what no header can carry.
        """
        value = self.value
        if not value:
            if self.needed:
                raise ModelError(f"environment variable {self.variable} is not set; put the key of the service in it")
            return {}
        if not (value.isascii() and value.isprintable()):
            raise ModelError(f"environment variable {self.variable} holds characters that no key has; set it anew")
        return {self.header: self.prefix + value}

    @property
    def value(self) -> str:
        """The key, or "" if the variable is not set."""
        return os.environ.get(self.variable, "").strip()


@dataclass(frozen=True, slots=True)
class Address:
    """The base address of an API, such as "http://localhost:11434/v1".

    Attributes:
        url: http or https, with a host; without user, password, query or fragment.
        key: what it asks for; None: nothing.
        headers: further headers of each request.

    Raises:
        SettingsError: the address does not fit.
    """

    url: str
    key: Key | None = None
    headers: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        try:
            parts = urlsplit(self.url)
            usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
        except ValueError:
            raise SettingsError(
                "the address of a model server cannot be read; give one like http://host:port/v1"
            ) from None
        # What stands before an @ could be a password: it is not repeated.
        if "@" in parts.netloc:
            raise SettingsError(
                f"the address of {parts.hostname} holds a user or a password; name an environment variable instead"
            )
        if not usable or parts.query or parts.fragment:
            raise SettingsError(f"address {self.url!r} cannot be used; give one like http://host:port/v1")

    @property
    def parts(self) -> SplitResult:
        """The address, taken apart."""
        return urlsplit(self.url)

    @property
    def site(self) -> str:
        """Scheme, host and port, for messages."""
        return f"{self.parts.scheme}://{self.parts.netloc}"
