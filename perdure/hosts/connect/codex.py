"""Codex: its hooks, its MCP servers, and which hooks it trusts."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from perdure.errors import HostError
from perdure.hosts.connect.connection import Connection, Target
from perdure.hosts.connect.parts import (
    MISSING,
    HookHost,
    Hooks,
    Keys,
    Part,
    Server,
    Values,
    Wiring,
    at,
    folder_of,
    our_hooks,
    read_values,
)

LONGEST = {"session-end": 3}
"""Codex gives this event so many seconds, and warns at each start if a hook asks for more."""
NOT_TRUSTED = "its hooks are not trusted yet, so none runs: start `codex` and type /hooks"
_STATE: Keys = ("hooks", "state")
_FORWARDED = ["PERDURE_CONFIG", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_RUNTIME_DIR"]
"""Codex hides these from its servers, but not from its hooks: the two would look for memories in different folders."""


class Codex(HookHost):
    """Codex on this machine."""

    name, servers = "codex", ("mcp_servers",)
    off: ClassVar[Mapping[Keys, bool]] = {("features", "hooks"): False, ("features", "codex_hooks"): False}

    def __init__(self, environ: Mapping[str, str] = os.environ) -> None:
        self.folder = folder_of(environ, "CODEX_HOME", ".codex")
        self.program = shutil.which("codex", path=environ.get("PATH"))
        self.config = self.folder / "config.toml"
        self.hooks_file = self.folder / "hooks.json"

    def for_user(self, wiring: Wiring) -> Connection:
        """Return the connection for all of the user's projects."""
        server = Server(wiring, self.servers, {"env_vars": _FORWARDED})
        # The record of trust is read by what the hooks are, so it is taken out before them.
        return Connection(self.name, [
            Target(self.config, [server, _Trust(self)]),
            Target(self.hooks_file, [Hooks(wiring, LONGEST)]),
        ])  # fmt: skip

    def doubts(self) -> Sequence[str]:
        """Return that Codex does not trust our hooks."""
        try:
            return [NOT_TRUSTED] if self.distrusted() else []
        except HostError as error:
            return [f"whether its hooks are trusted cannot be read: {error}"]

    def distrusted(self) -> list[str]:
        """Return the events whose hook of ours Codex does not run until a person has trusted it with `/hooks`.

        Raises:
            HostError: Codex's record of trust cannot be read.
        """
        state = at(read_values(self.config), *_STATE)
        if state is not MISSING and not isinstance(state, Mapping):
            raise HostError(f"{'.'.join(_STATE)} in {self.config} is of a form that perdure does not know")
        found = []
        for event, keys, digest in self.identities():
            records = [at(state, key) for key in keys]
            if not any(at(each, "trusted_hash") == digest and at(each, "enabled") is not False for each in records):
                found.append(event)
        return found

    def identities(self) -> Iterator[tuple[str, list[str], str]]:
        """Yield of each hook of ours its event, the names that Codex may know it by, and the hash of what it is.

        Raises:
            HostError: the file with the hooks cannot be read.
        """
        values = read_values(self.hooks_file)
        # Codex resolves the folder if CODEX_HOME names it, and does not otherwise.
        folders = dict.fromkeys((self.folder, Path(os.path.realpath(self.folder))))
        for event, group, place, hook in our_hooks(values):
            label = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", event).lower()
            matcher = at(values["hooks"][event][group], "matcher")
            names = [f"{folder / self.hooks_file.name}:{label}:{group}:{place}" for folder in folders]
            yield event, names, _hash(label, hook, matcher)

    def overtaken(self) -> bool:
        """Return whether hooks of others stand behind ours: their places, and so their names, change without us.

        Raises:
            HostError: the file with the hooks cannot be read.
        """
        values = read_values(self.hooks_file)
        last = {event: group for event, group, _, _ in our_hooks(values)}
        return any(group + 1 < len(values["hooks"][event]) for event, group in last.items())


@dataclass(frozen=True, slots=True)
class _Trust(Part):
    """What Codex has noted of our hooks. It is never put in: that is for a person to do, in Codex."""

    codex: Codex

    @property
    def containers(self) -> Sequence[Keys]:
        return (_STATE, _STATE[:1])

    def take(self, values: Values, former: Values) -> None:
        for _, names, digest in self.codex.identities():
            for name in names:
                if at(values, *_STATE, name, "trusted_hash") == digest:
                    at(values, *_STATE).pop(name)


def _hash(label: str, hook: Mapping[str, Any], matcher: object) -> str:
    """Return the hash that Codex trusts a hook by: of the JSON of what it does, with sorted keys."""
    does = {key: hook[key] for key in ("command", "type", "statusMessage") if key in hook}
    usual, most = (1, LONGEST["session-end"]) if label == "session_end" else (600, sys.maxsize)
    timeout = hook.get("timeout", usual)
    if isinstance(timeout, int):
        timeout = max(1, min(timeout, most))
    does |= {"async": bool(hook.get("async")), "timeout": timeout}
    identity: dict[str, Any] = {"event_name": label, "hooks": [does]}
    # At these events Codex does not look at matchers.
    if isinstance(matcher, str) and label not in ("user_prompt_submit", "stop"):
        identity["matcher"] = matcher
    text = json.dumps(identity, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"
