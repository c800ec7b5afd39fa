"""The desks of several servers over one open store: in the helper, so that each need not load a model of its own."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import Any

from perdure.api.memory import Memory
from perdure.errors import PerdureError
from perdure.hooks.types import Consent
from perdure.hosts.mcp.desk import Desk
from perdure.recent import Recent

DESKS = 64
"""Connections whose desk is at hand, those that asked last; another is made anew."""


class SharedDesks:
    """Does what servers ask. Usable from any thread."""

    def __init__(self, store: Callable[[], Memory], said: Callable[[str, str], bool]) -> None:
        """Prepare.

        Args:
            store: returns the open store.
            said: tells whether the user of a host, its name first, has said something lately.
        """
        self._store, self._said = store, said
        self._desks: Recent[str, Desk] = Recent(DESKS)

    def answer(self, body: bytes) -> bytes:
        """Answer a request of `RemoteDesk`."""
        asked = json.loads(body)
        try:
            result = done(self._desk(asked["who"]), asked["do"], asked["with"])
        except PerdureError as error:
            return json.dumps({"error": type(error).__name__, "message": str(error)}).encode()
        return json.dumps({"result": result}).encode()

    def _desk(self, who: Mapping[str, Any]) -> Desk:
        key = json.dumps(who, sort_keys=True)
        known = self._desks.get(key)
        if known is not None:
            return known
        host = str(who["host"])
        return self._desks.first(
            key,
            Desk(
                None,
                agent=who["agent"],
                user=who["user"],
                workspace=who["workspace"],
                project=who["project"],
                host=host,
                session=who["session"],
                said=lambda quote: self._said(host, quote),
                shared=self._store,
            ),
        )


def done(desk: Desk, what: str, values: Mapping[str, Any]) -> Any:
    """Do what was asked of a desk; return the result as JSON values.

    Raises:
        PerdureError: it cannot be done.
    """
    match what:
        case "call":
            return asdict(desk.call(values["name"], values["values"], consent=Consent(values["consent"])))
        case "recalled":
            return desk.recalled(values["question"])
        case "files":
            return desk.files()
        case "read":
            return desk.read(values["uri"])
        case _:
            desk.memory()
            return None
