"""The values of a host's config, in JSON or in TOML with its comments, and what of them is ours."""

from __future__ import annotations

import json
import shlex
import sys
import tomllib
from collections.abc import Iterator, Mapping, MutableMapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import tomlkit
from tomlkit.exceptions import TOMLKitError
from tomlkit.items import Table

from perdure.errors import HostError
from perdure.hosts.command.dialects import DIALECTS, TOOL
from perdure.hosts.connect.config_file import ConfigFile
from perdure.regex import lazy

Values = MutableMapping[str, Any]
Keys = tuple[str, ...]

NAME = "perdure"
SECONDS = 10
"""After so long a host gives up a hook. One takes a second at the most, and longer only on a machine out of breath."""
_HOOK = ["-I", "-m", NAME, "hook"]
_BOM = "\ufeff"
_INDENT = lazy(r"\n([ \t]+)\S")
_LONE = lazy("[\ud800-\udfff]")
_STRING = r'("(?:[^"\\\n]|\\.)*")'
_COMMENT = lazy(rf"{_STRING}|//[^\r\n]*|/\*[\s\S]*?\*/")
_COMMA = lazy(rf"{_STRING}|,(?=\s*[}}\]])")
_GAP = " \t\r\n,:"
MISSING = object()


@dataclass(frozen=True, slots=True)
class Wiring:
    """What a host runs. The text never changes between versions: a host may trust a command by its hash."""

    host: str  # the name that our commands know it by
    home: Path | None = None  # the data folder, if it is named
    python: str = sys.executable  # absolute path of the interpreter that perdure is installed in
    reminds: bool = False  # whether it is asked before tools run, too

    def __post_init__(self) -> None:
        """See that a config can name the paths."""
        for path in (self.python, str(self.home)):
            try:
                path.encode()
            except UnicodeEncodeError:
                raise HostError(
                    f"the path {path!r} is not valid UTF-8, so no config file can contain it; use another path"
                ) from None

    def hook(self, event: str) -> str:
        """Return the shell command for an event."""
        return shlex.join([self.python, *_HOOK, event, "--host", self.host, *self._home()])

    def events(self) -> Mapping[str, str]:
        """Return our events that the host is to tell of, and what it calls them."""
        return {event: name for event, name in DIALECTS[self.host].names.items() if self.reminds or event != TOOL}

    def server(self) -> dict[str, Any]:
        """Return the command of the MCP server, as both hosts name its parts."""
        return {"command": self.python, "args": ["-I", "-m", NAME, "mcp", "--host", self.host, *self._home()]}

    def _home(self) -> list[str]:
        return [] if self.home is None else ["--home", str(self.home)]


def parse(path: Path, content: bytes | None) -> Values:
    """Return what a config file says; an absent or empty one says nothing."""
    try:
        text = (content or b"").decode().removeprefix(_BOM)
        values: Any = tomlkit.parse(text) if path.suffix == ".toml" else json.loads(_plain(path, text) or "{}")
    except (ValueError, RecursionError, TOMLKitError) as error:
        if isinstance(error, json.JSONDecodeError) and error.doc[error.pos :].startswith(("//", "/*")):
            raise HostError(
                f"{path} has a comment on line {error.lineno}; the program that reads it does not allow comments, "
                "and may ignore the whole file. Remove the comments, then run this again. Nothing was changed"
            ) from None
        kind = path.suffix.lstrip(".").upper()
        raise HostError(f"{path} is not valid {kind} ({error}); fix it first. Nothing was changed") from None
    if not isinstance(values, MutableMapping):
        raise HostError(f"{path} must contain an object; fix it first. Nothing was changed")
    return values


def read_values(path: Path) -> Values:
    """Return what a config file says, as it stands on the disk."""
    return parse(path, ConfigFile.read(path).content)


def dump(path: Path, values: Values, former: bytes | None) -> bytes:
    """Return the file that says this; all else stays as it was written."""
    text = (former or b"").decode()
    bom = _BOM if text.startswith(_BOM) else ""
    if isinstance(values, tomlkit.TOMLDocument):
        return (bom + _written(path, values)).encode()
    text = text if text.removeprefix(bom).strip() else f"{bom}{{}}\n"
    indent, newline = _INDENT.search(text), "\r\n" if "\r\n" in text else "\n"
    changes = _changes(_plain(path, text), 0, parse(path, former), values, indent[1] if indent else "  ", "\n")
    for start, end, new in sorted(changes, reverse=True):
        while not new and text[start - 1].isspace():
            start -= 1
        text = text[:start] + new.replace("\n", newline) + text[end:]
    # JSON can name half of a character, UTF-8 cannot.
    text = _LONE.sub(lambda match: f"\\u{ord(match[0]):04x}", text)
    if parse(path, text.encode()) != values:
        raise HostError(f"{path} cannot be edited safely as written; fix it first. Nothing was changed")
    return text.encode()


def _plain(path: Path, text: str) -> str:
    """Return JSON without the comments and trailing commas that some hosts allow; what is left keeps its place."""
    allowed = path.name == "mcp.json" or path.parent.name == ".gemini"
    for extra in (_COMMENT, _COMMA) if allowed else ():
        text = extra.sub(lambda match: match[1] or " " * len(match[0]), text)
    return text


def _changes(plain: str, at: int, old: Values, new: Values, step: str, line: str) -> Iterator[tuple[int, int, str]]:
    """Yield from where to where the text of an object changes, and into what."""

    def past(place: int) -> int:
        while plain[place] in _GAP:
            place += 1
        return place

    decoder, kept = json.JSONDecoder(), False
    at = end = plain.index("{", at) + 1
    while plain[at := past(at)] != "}":
        begins, before = at, end
        key, at = decoder.raw_decode(plain, at)
        start = past(at)
        at = end = decoder.raw_decode(plain, start)[1]
        if key not in new:
            # With the comma before it, or behind it if nothing before it stays.
            comma = plain.find(",", before, begins) if kept else plain.find(",", end, past(end))
            yield from ((begins, end, ""), (comma, comma + 1, ""))[: 1 + (comma > 0)]
        elif isinstance(old[key], dict) and isinstance(new[key], dict):
            yield from _changes(plain, start, old[key], new[key], step, line + step)
        elif new[key] != old[key]:
            yield start, end, json.dumps(new[key], ensure_ascii=False, indent=step).replace("\n", line + step)
        kept = kept or key in new
    if added := {key: value for key, value in new.items() if key not in old}:
        body = json.dumps(added, ensure_ascii=False, indent=step)[1:-2].replace("\n", line)
        yield end, end, "," + body if kept else body + line


def at(values: Any, *keys: str) -> Any:
    """Return what stands at a place, or MISSING."""
    for key in keys:
        if not isinstance(values, MutableMapping) or key not in values:
            return MISSING
        values = values[key]
    return values


def child(values: Values, key: str, kind: type[dict[str, Any]] | type[list[Any]]) -> Any:
    """Return the object or the list at a key; it is made if there is none."""
    if key not in values:
        values[key] = kind()
    found = values[key]
    if not isinstance(found, MutableMapping if kind is dict else kind):
        raise HostError(f"its {key!r} has the wrong type; fix it first. Nothing was changed")
    return found


def interpreter(command: object) -> str | None:
    """Return the interpreter that a hook's command runs, or None if the command is not ours."""
    try:
        words = shlex.split(command) if isinstance(command, str) else []
    except ValueError:
        return None
    return words[0] if words[1 : 1 + len(_HOOK)] == _HOOK else None


def reminds(hook: Mapping[str, Any]) -> bool:
    """Return whether a hook of ours is for tools that are about to run."""
    return shlex.split(hook["command"])[1 + len(_HOOK) :][:1] == [TOOL]


def our_hooks(values: Values) -> Iterator[tuple[str, int, int, dict[str, Any]]]:
    """Yield our hooks: the host's name of the event, the number of the group, that of the hook in it, and the hook.

    A hook that stands in no group is one by itself.
    """
    hooks = at(values, "hooks")
    for event, groups in hooks.items() if isinstance(hooks, Mapping) else ():
        for number, group in enumerate(groups if isinstance(groups, list) else ()):
            held = at(group, "hooks")
            for place, hook in enumerate(held if isinstance(held, list) else [group]):
                if interpreter(at(hook, "command")) is not None:
                    yield event, number, place, hook


class HookHost:
    """A host whose hooks and MCP servers stand in files of the user."""

    name: str
    folder: Path  # what is there if the host was ever started
    program: str | None  # its program; None: it is not on the PATH
    config: Path  # the file with the MCP servers
    servers: Keys  # where they are in it
    hooks_file: Path  # the file with the hooks
    # What switches all hooks off: places in the settings, each with its value.
    off: ClassVar[Mapping[Keys, bool]] = {("hooksConfig", "enabled"): False}

    @property
    def settings(self) -> Path:
        """The file with what switches all hooks off."""
        return self.config

    @property
    def remembers(self) -> bool:
        """Whether memories come up with each prompt."""
        return "prompt" in DIALECTS[self.name].shown

    def elsewhere(self) -> Sequence[Path]:
        """Return other places that have our hooks."""
        return ()

    def doubts(self) -> Sequence[str]:
        """Return what keeps our hooks from running, beside what is seen of any host."""
        return ()

    def flaws(self) -> Sequence[str]:
        """Return what is wrong and keeps no hook from running, beside what is seen of any host."""
        return ()

    def hooks(self) -> list[dict[str, Any]]:
        """Return our hooks. Like the others, raises HostError if the file cannot be read."""
        return [hook for *_, hook in our_hooks(read_values(self.hooks_file))]

    def has_server(self) -> bool:
        """Return whether the config has our MCP server."""
        return at(read_values(self.config), *self.servers, NAME) is not MISSING

    def switched_off(self) -> str | None:
        """Return what keeps the host from running any hook, or None."""
        values = read_values(self.settings)
        found = next((keys for keys, value in self.off.items() if at(values, *keys) is value), None)
        return f"{'.'.join(found)} is {str(self.off[found]).lower()} in {self.settings}" if found else None


def folder_of(environ: Mapping[str, str], variable: str, usual: str) -> Path:
    """Return the folder of a host: what the environment names, else the usual one in the home folder."""
    named = environ.get(variable)
    return Path(named).absolute() if named else home_of(environ) / usual


def home_of(environ: Mapping[str, str]) -> Path:
    """Return the user's home folder."""
    try:
        return Path(environ.get("HOME") or Path.home())
    except RuntimeError:
        raise HostError("this user has no home folder for host settings; set HOME") from None


class Part:
    """A part of a config that is ours."""

    @property
    def containers(self) -> Sequence[Keys]:
        """Places that go with us if they were made for us, the innermost first."""
        return ()

    def put(self, values: Values) -> None:
        """Put it in. What is there already is made right, and keeps its place."""

    def take(self, values: Values, former: Values) -> None:
        """Take it out, and put back what the former config had in its place."""


@dataclass(frozen=True, slots=True)
class Hooks(Part):
    """Our hooks, one for each event of which the host tells."""

    wiring: Wiring  # what they run
    seconds: Mapping[str, int] = field(default_factory=dict)  # a host's own caps on the seconds of an event
    # Of a hook, beside its command.
    form: Mapping[str, Any] = field(default_factory=lambda: {"type": "command", "timeout": SECONDS})
    grouped: bool = True  # whether hooks stand in groups

    @property
    def containers(self) -> Sequence[Keys]:
        """The lists of the events, and the object around them."""
        return (*(("hooks", event) for event in DIALECTS[self.wiring.host].names.values()), ("hooks",))

    def put(self, values: Values) -> None:
        """Put them in, each behind the hooks of others: where a hook stands is part of its name.

        One that is wanted no more is taken out.
        """
        hooks = child(values, "hooks", dict)
        mine = {event: hook for event, _, _, hook in our_hooks(values)}
        kind = {key: self.form[key] for key in ("type",) if key in self.form}
        dialect, wanted = DIALECTS[self.wiring.host], self.wiring.events()
        for name in mine.keys() & (set(dialect.names.values()) - set(wanted.values())):
            _drop(hooks[name])
            if not hooks[name]:
                hooks.pop(name)
        for event, name in wanted.items():
            groups = child(hooks, name, list)
            command = {"command": self.wiring.hook(event)}
            if name in mine:
                mine[name].update(kind | command)
                _drop(groups, keep=mine[name])
            else:
                hook = kind | command | dict(self.form)
                if event in self.seconds:
                    hook["timeout"] = self.seconds[event]
                matched = {"matcher": dialect.tools} if event == TOOL else {}
                groups.append({**matched, "hooks": [hook]} if self.grouped else hook)

    def take(self, values: Values, former: Values) -> None:
        """Take them out, and groups that held nothing else."""
        for event in {event for event, *_ in our_hooks(values)}:
            _drop(values["hooks"][event])


@dataclass(frozen=True, slots=True)
class Server(Part):
    """Our MCP server, at a place of the config."""

    wiring: Wiring  # what it runs
    servers: Keys  # where the host keeps its servers
    extra: Mapping[str, Any] = field(default_factory=dict)  # what this host should know besides

    @property
    def containers(self) -> Sequence[Keys]:
        """The object of all servers, and those around it."""
        return tuple(self.servers[:length] for length in range(len(self.servers), 0, -1))

    def put(self, values: Values) -> None:
        """Put it in. What else the user has set for it stays, unless it was a server of another kind."""
        for key in self.servers:
            values = child(values, key, dict)
        wanted = {**self.extra, **self.wiring.server()}
        if at(values, NAME, "command") is MISSING:
            values[NAME] = wanted
            if isinstance(values[NAME], Table):
                # With a line of its own below.
                values[NAME].add(tomlkit.nl())
        else:
            for key, value in wanted.items():
                if at(values, NAME, key) != value:
                    values[NAME][key] = value

    def take(self, values: Values, former: Values) -> None:
        """Take it out. A server of that name from before comes back."""
        if at(values, *self.servers, NAME) is MISSING:
            return
        servers, before = at(values, *self.servers), at(former, *self.servers, NAME)
        if before is MISSING:
            servers.pop(NAME)
        else:
            servers[NAME] = before


def prune(values: Values, before: Values, former: Values, containers: Sequence[Keys]) -> None:
    """Remove what is empty now, was not before our part was taken out, and was not there before it was put in."""
    for keys in containers:
        if at(values, *keys) in ({}, []) and at(before, *keys) not in ({}, []) and at(former, *keys) is MISSING:
            at(values, *keys[:-1]).pop(keys[-1])


@dataclass(frozen=True, slots=True)
class Version(Part):
    """The version of a file's form, which its host asks for."""

    number: int

    def put(self, values: Values) -> None:
        """Put it in, unless there is one."""
        values.setdefault("version", self.number)

    def take(self, values: Values, former: Values) -> None:
        """Take it out, if nothing else is left."""
        if set(values) == {"version"} and "version" not in former:
            values.clear()


def _drop(groups: list[Any], keep: dict[str, Any] | None = None) -> None:
    """Remove our hooks from an event's groups, but for one, and the groups that this empties."""
    emptied = []
    for number, group in enumerate(groups):
        held = at(group, "hooks")
        if isinstance(held, list):
            left = [hook for hook in held if hook is keep or interpreter(at(hook, "command")) is None]
            if held and not left:
                emptied.append(number)
            held[:] = left
        elif group is not keep and interpreter(at(group, "command")) is not None:
            emptied.append(number)
    for number in reversed(emptied):
        del groups[number]


def _written(path: Path, values: tomlkit.TOMLDocument) -> str:
    text = values.as_string().rstrip("\n")
    text += "\n" if text else ""
    # A second reader sees to it that what is written says what is meant.
    with suppress(tomllib.TOMLDecodeError):
        if tomllib.loads(text) == values.unwrap():
            return text
    raise HostError(
        f"{path} cannot be edited safely as written; put each table under a single [header], and run this again."
        " Nothing was changed"
    )
