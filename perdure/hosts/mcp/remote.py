"""A desk whose store is open in the helper of the data folder; where there can be no helper, in this process."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from perdure import errors
from perdure.engine.paths import data_folder
from perdure.errors import HostError
from perdure.hooks.types import Consent
from perdure.service.client import OK, STALE, ask

if TYPE_CHECKING:
    from perdure.hooks.types import ToolResult
    from perdure.hosts.mcp.client import McpClient
    from perdure.hosts.mcp.desk import Desk

SECONDS = 60.0
"""Within which the helper is to have done a request."""
BEGINNING = 15.0
"""Seconds that a helper has to begin in; then the store is opened here."""
PAUSE = 0.05


class RemoteDesk:
    """Asks for what `Desk` does, with the same methods. Usable from any thread."""

    def __init__(self, home: Path | None, client: McpClient) -> None:
        """Prepare; nothing is asked yet. The arguments are those of `Desk`."""
        self._home, self._client = data_folder(home), client
        self._here: Desk | None = None
        self._lock = threading.Lock()

    def memory(self) -> None:
        """Have the store opened."""
        self._asked("memory", {})

    def call(self, name: str, values: Mapping[str, Any], *, consent: Consent = Consent.UNASKED) -> ToolResult:
        """Call a tool; see `Desk.call`."""
        from perdure.hooks.types import ToolResult

        found = self._asked("call", {"name": name, "values": dict(values), "consent": consent.value})
        return ToolResult(**found)

    def recalled(self, question: str) -> str:
        """Return a question as a model should see it; see `Desk.recalled`."""
        return str(self._asked("recalled", {"question": question}))

    def files(self) -> dict[str, str]:
        """Return the memory files that may be read; see `Desk.files`."""
        return dict(self._asked("files", {}))

    def read(self, uri: str) -> tuple[str, str]:
        """Return the MIME type and the text of a resource; see `Desk.read`."""
        mime_type, text = self._asked("read", {"uri": uri})
        return mime_type, text

    def close(self) -> None:
        """Close what was opened here; the helper goes on."""
        if self._here is not None:
            self._here.close()

    def _asked(self, what: str, values: dict[str, Any]) -> Any:
        body = json.dumps({"who": asdict(self._client), "do": what, "with": values}).encode()
        answer = None if self._here else self._told(body)
        if answer is None:
            from perdure.hosts.mcp.desk import done

            return done(self._opened(), what, values)
        return json.loads(answer)

    def _told(self, body: bytes) -> bytes | None:
        """Return what the helper answers, once it is there; None if there can be none."""
        until = time.monotonic() + BEGINNING
        while time.monotonic() < until:
            try:
                answer = ask(str(self._home), "desk", body, SECONDS)
            except TimeoutError:
                raise HostError(f"memory did not answer within {SECONDS:.0f} seconds; try again") from None
            except OSError:
                return None
            if answer is not None and answer[0] == OK:
                return answer[1]
            if answer is not None and answer[0] != STALE:
                raise getattr(errors, answer[0], HostError)(answer[1].decode())
            time.sleep(PAUSE)
        return None

    def _opened(self) -> Desk:
        with self._lock:
            if self._here is None:
                from perdure.hosts.mcp.desk import Desk

                self._here = Desk(self._home, self._client)
            return self._here
