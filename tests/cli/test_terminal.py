"""What is stored, named or typed never reaches a terminal as a command to it, whichever command prints it."""

from __future__ import annotations

import ast
import itertools
import json
import os
import pty
import re
import shutil
import subprocess
import sys
import tty
import unicodedata
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import pytest

from perdure.cli.main import cli
from tests.cli.haunted import CONTROLS, EVIL, FAKE, MARK, PASSPHRASE, build
from tests.kit import for_each

ROOT = Path(__file__).resolve().parents[2]
CLI = ROOT / "perdure" / "cli"
OURS = re.compile(r"\x1b\[(?:\d{1,2}|1;4|1;36)m|\x1b\[(?:\?25[lh]|2K|1A)|\r")
"""What rich writes on a terminal: styles, and what draws a bar anew."""
HIDDEN = {"Cc", "Cf", "Cs", "Zl", "Zp"}
"""Controls, formats such as directions and what has no width, lone surrogates, separators of lines."""

CALLS: Mapping[str, list[list[str]] | str] = {
    "alias add": [["heron", EVIL]],
    "alias list": [[]],
    "alias remove": [["heron", "--dry-run"], [EVIL]],
    "anchor": [[]],
    "assign": [["agent:main", "--to", "user:alice", "--dry-run"], [EVIL, "--all-users"]],
    "backup": [["--to", "{files}/backup.db"], []],
    "backup list": [[]],
    "backup restore": [["{files}/broken.jsonl"], ["{files}/backup.db", "--dry-run"]],
    "checkpoint list": [[]],
    "checkpoint restore": [[]],
    "checkpoint save": [[EVIL, "--state", EVIL, "--expected", EVIL]],
    "classify": [["--dry-run"]],
    "completion": [["bash"]],
    "config get": [["disabled_extensions"], ["categories"]],
    "config path": [[]],
    "config set": [["disabled_extensions", EVIL], ["recall_limit", EVIL]],
    "config show": [["--changed"]],
    "config unset": [["disabled_extensions"]],
    "connect": [["claude-code", "--dry-run"], ["codex", "--dry-run"], [], ["claude-code", "--project", EVIL]],
    "consolidate": [["--dry-run"]],
    "demo": [["--script", "{files}/script.json", "--keep", "{files}/demo"]],
    "disconnect": [["claude-code", "--dry-run"], ["codex", "--dry-run"], ["claude-code", "--project", EVIL]],
    "distill": [["--dry-run"], []],
    "doctor": [[], ["--foreign", "{files}"]],
    "opening": [[], ["--host", EVIL]],
    "eval": [["--size", "2"], ["--size", "2", "--compare", "{files}/broken.jsonl"]],
    "edit": [["{one}"], [EVIL]],
    "export": [["{files}/export.jsonl"], ["{files}/talk.jsonl"], ["{files}/pages", "--format", "markdown"]],
    "files add": [["{files}"], ["{files}/nowhere"]],
    "files note": [[EVIL, "--title", EVIL]],
    "files read": [["MEMORY.md"], [EVIL]],
    "files remove": [["{files}", "--dry-run"]],
    "files search": [["gate"], [EVIL]],
    "files status": [["--deep"]],
    "files transcript": [["{files}/talk.jsonl"], ["{files}/script.json"]],
    "forget": [["{two}", "--dry-run"], [EVIL], ["kettle"]],
    "graph": [["{one}"]],
    "history": [[], ["{two}"]],
    "import": [
        ["{files}/import.jsonl", "--dry-run"],
        ["{files}/broken.jsonl"],
        ["{files}/import.jsonl"],
        ["{files}/pages"],
    ],
    "index": [[]],
    "jobs": [[]],
    "jobs run": [[EVIL]],
    "librarian log": [[]],
    "librarian off": [[]],
    "librarian on": [[]],
    "librarian run": [[]],
    "librarian status": [[]],
    "link": [["{one}", "{two}"]],
    "list": [[], ["--fading"], ["--limit", "2"], ["--tag", EVIL], ["--scope", "{scope}"]],
    "lookup": [[f"ent {EVIL}"]],
    "hook": "speaks JSON with a host; nothing of it is for a terminal",
    "mcp": "speaks JSON of its protocol with a program; nothing of it is for a terminal",
    "move": [["--to", "{files}/moved"], ["--to", "postgresql://somebody@127.0.0.1:1/there", "--dry-run"]],
    "ui": "prints an address of its own making; what is remembered stands in a page",
    "model fetch": [[EVIL, "--dry-run"]],
    "model list": [[]],
    "model prune": [["--dry-run"]],
    "model rollback": [["--dry-run"]],
    "model status": [[]],
    "model switch": [["--embedder", "none", "--dry-run"]],
    "model use": [[EVIL, "--dry-run"]],
    "openclaw install": [["--openclaw", "{openclaw}", "--dry-run"]],
    "openclaw status": [["--openclaw", "{openclaw}"], ["--openclaw", "{files}/nothing"]],
    "openclaw uninstall": [["--openclaw", "{openclaw}", "--dry-run"]],
    "more": [[]],
    "pin": [["{one}"]],
    "prune": [["--dry-run"]],
    "purge": [["{one}"], ["--query", "heron", "--dry-run"], ["--query", EVIL, "--yes", "--dry-run"], ["--status"]],
    "recall": [["Which staging database is called heron?", "--explain", "--why-not", "{two}"], [EVIL]],
    "recover": [[]],
    "reflect": [["--dry-run"]],
    "replay": [["{files}/talk.jsonl"], ["{files}/talk.jsonl", "--conversation", EVIL], ["{files}/broken.jsonl"]],
    "review": [[], ["--replaced"]],
    "review approve": [["{waits}", "--dry-run"], [EVIL]],
    "review audit": [[], ["--fix"]],
    "review drop": [[EVIL, "--dry-run"]],
    "review list": [[]],
    "review propose": [[]],
    "review take-back": [["{former}", "--dry-run"]],
    "review reject": [["{waits}", "--dry-run"]],
    "scrub": [["--dry-run"]],
    "search": [["heron"], ["--tag", f"tag {EVIL}", "heron"]],
    "show": [["{one}"]],
    "stats": [["--all"], ["--scope", "{scope}"], []],
    "status": [[]],
    "store": [[f"New {EVIL}", "--tags", EVIL, "--entity", EVIL], ["x", "--scope", EVIL]],
    "try": [
        ["--from", "openclaw", "{home}/workspace", "--prompts-from", "{files}/talk.jsonl"],
        ["--from", "mem0", EVIL],
    ],
    "undo": [["--dry-run"], ["--batch", EVIL]],
    "unforget": [["{gone}"]],
    "uninstall": [["--dry-run", "--purge-data"], []],
    "unlink": [["{one}", "{two}", "--type", "CAUSED_BY", "--dry-run"]],
    "unpin": [["{one}"]],
    "update": [["{two}", "--why", EVIL]],
    "vault forget": [["{record}", "--dry-run"]],
    "vault get": [["{record}"]],
    "vault list": [[]],
    "vault rotate": [["--dry-run"]],
    "vault status": [[]],
    "vault store": [[EVIL, "--name", EVIL]],
    "verify": [[]],
    "why": [["--all"]],
    "why-not": [["{one}"]],
}
"""Calls of every command that reach what is haunted; or why a command needs none."""
RAW = {"vault get": "a secret goes into a pipe byte for byte, and to a terminal like anything else"}
LINES = {"files read", "vault get"}
"""Commands that print a text of several lines as such, and nothing else."""
PLAIN_TEXT = {
    "checkpoint list", "checkpoint restore", "demo", "files read", "files search",
    "files status", "graph", "history", "import", "list", "lookup", "recall", "review", "review audit", "review list",
    "search", "show", "stats", "try", "undo", "unforget", "vault get", "why", "why-not",
}  # fmt: skip
"""Commands whose calls must show something of what is haunted: else nothing would be tested here."""


def commands(command: click.Command, path: tuple[str, ...] = ()) -> Iterator[tuple[str, click.Command]]:
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            found = command.get_command(context, name)
            assert found is not None
            yield from commands(found, (*path, name))
    if not isinstance(command, click.Group) or (path and command.invoke_without_command):
        yield " ".join(path), command


TREE = dict(commands(cli))
NUMBERS = itertools.count()


def odd_calls() -> Iterator[tuple[str, list[str]]]:
    """Yield calls that errors complain of: an unknown option of each command, something haunted for each option."""
    tried = set()
    for name, command in TREE.items():
        needed = [EVIL for each in command.params if isinstance(each, click.Argument) and each.required]
        yield name, [*needed, f"--no-{EVIL}"]
        for option in command.params:
            if isinstance(option, click.Option) and not option.is_flag and option.name not in tried:
                tried.add(option.name)
                yield name, [*needed, option.opts[0], EVIL]


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, str]:
    """A haunted folder under a haunted name, and what is in it."""
    home = tmp_path_factory.mktemp("haunted") / f"home {CONTROLS}\n{FAKE}"
    home.mkdir(mode=0o700)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PERDURE_EMBEDDER", "none")
        patch.setenv("PERDURE_LOAD_EXTENSIONS", "0")
        found = build(home)
    openclaw = home.parent / "openclaw"
    openclaw.write_text(f'#!/bin/sh\nexec {sys.executable} {ROOT}/tests/hosts/fake_openclaw.py "$@"\n')
    openclaw.chmod(0o700)
    config = {"plugins": {"slots": {"memory": f"other {CONTROLS}"}, "entries": {}}}
    (home.parent / "openclaw.json").write_text(json.dumps(config))
    hook = {"type": "command", "command": f"python -I -m perdure hook {EVIL}"}
    for name in ("settings.json", "hooks.json"):
        (home.parent / name).write_text(json.dumps({EVIL: EVIL, "hooks": {"Stop": [{"hooks": [hook]}]}, "x": EVIL}))
    settings = home.parent / "config.toml"
    odd = json.dumps(f"word {EVIL}".replace("\U000e0041", ""))  # which TOML wants written in another way
    settings.write_text(f'disabled_extensions = [{odd}]\n[categories]\n"kind \\u001b[35;7mE" = "heron"\n')
    return {**found, "home": str(home), "openclaw": str(openclaw), "settings": str(settings)}


def environment(places: Mapping[str, str], home: str) -> dict[str, str]:
    given = {
        **dict.fromkeys(("XDG_CONFIG_HOME", "XDG_CACHE_HOME", "XDG_DATA_HOME"), str(Path(home).parent / "xdg")),
        "PYTHONPATH": str(ROOT), "PERDURE_HOME": home, "PERDURE_EMBEDDER": "none", "PERDURE_TIMERS": "false",
        "PERDURE_CONFIG": places["settings"], "PERDURE_VAULT_PASSPHRASE": PASSPHRASE, "PERDURE_LOAD_EXTENSIONS": "0",
        **dict.fromkeys(("CLAUDE_CONFIG_DIR", "CODEX_HOME"), str(Path(home).parent)),
        "OPENCLAW_CONFIG_PATH": str(Path(places["openclaw"]).parent / "openclaw.json"), "FAKE_VERSION": "2026.9.6",
        "TERM": "xterm", "COLUMNS": "100000", "PYTHONUTF8": "1",
        "EDITOR": "true", "VISUAL": "true",
    }  # fmt: skip
    return {**os.environ, **given}


def printed(places: Mapping[str, str], calls: list[list[str]], *, terminal: bool) -> list[list[str]]:
    """Run calls on a copy of the haunted folder; return what each printed, by stream: a terminal has one for both."""
    home = Path(places["home"])
    copy = home.with_name(f"{next(NUMBERS)} {home.name}")
    shutil.copytree(home, copy, symlinks=True)
    filled = [[word.format_map(places) if word.startswith("{") else word for word in call] for call in calls]
    order = copy.with_name(f"{copy.name.partition(' ')[0]}.json")
    order.write_text(json.dumps(filled))
    command = [sys.executable, "-m", "tests.cli.haunted", str(order)]
    given: dict[str, Any] = {"env": environment(places, str(copy)), "cwd": copy.parent, "stdin": subprocess.DEVNULL}
    if not terminal:
        done = subprocess.run(command, **given, capture_output=True, check=True)
        streams = [stream.decode().split(MARK)[1:] for stream in (done.stdout, done.stderr)]
        return [list(parts) for parts in zip(*streams, strict=True)]
    outer, inner = pty.openpty()
    tty.setraw(inner)  # what is written comes out byte for byte
    seen = b""
    with subprocess.Popen(command, **given, stdout=inner, stderr=inner, start_new_session=True) as child:
        os.close(inner)
        with suppress(OSError):  # Linux says so that nobody has the other side open any more.
            while block := os.read(outer, 65536):
                seen += block
        os.close(outer)
    assert child.returncode == 0
    # One terminal takes both streams, and so both marks.
    return [[OURS.sub("", part)] for part in seen.decode().split(MARK * 2)[1:]]


@dataclass(frozen=True)
class Said:
    """What one call printed on one stream."""

    call: list[str]
    way: str
    text: str


Everything = Mapping[str, list[Said]]


@pytest.fixture(scope="module")
def everything(places: Mapping[str, str]) -> Everything:
    """What every call of every command printed into pipes; the first of each also with --json, and on a terminal."""
    calls = [(name, call) for name, known in CALLS.items() if not isinstance(known, str) for call in known]
    firsts = list(dict(reversed(calls)).items())
    as_json = [
        (name, [*call, "--json"]) for name, call in firsts if "as_json" in {each.name for each in TREE[name].params}
    ]
    found: dict[str, list[Said]] = {name: [] for name in TREE}
    for part, ways, terminal in (
        ([*calls, *odd_calls()], ("pipe", "stderr"), False),
        (as_json, ("json", "stderr"), False),
        (firsts, ("terminal",), True),
    ):
        lines = [[*name.split(), *call] for name, call in part]
        for (name, _), line, streams in zip(part, lines, printed(places, lines, terminal=terminal), strict=True):
            found[name] += [Said(line, way, text) for way, text in zip(ways, streams, strict=True)]
    return found


def test_every_command_is_called_or_excused() -> None:
    assert CALLS.keys() == TREE.keys()


@for_each("name", [name for name, calls in CALLS.items() if not isinstance(calls, str)])
def test_nothing_that_a_terminal_obeys_is_printed(name: str, everything: Everything) -> None:
    assert everything[name]
    for said in everything[name]:
        if name in RAW and said.way == "pipe":
            continue
        allowed = "\n\t" if said.way == "pipe" else "\n"
        obeyed = {char for char in said.text if unicodedata.category(char) in HIDDEN and char not in allowed}
        assert not obeyed, (said.way, said.call, said.text[:400])
        # Of what was forgotten in between, a search of conversations shows the second line alone, in its own cell.
        cell = "" if name == "files search" else rf"|\t{FAKE}"
        fake = re.search(rf"^\s*{FAKE}|{FAKE}\t{cell}", said.text, re.MULTILINE)
        assert name in LINES or fake is None, (said.way, said.call, said.text)
        assert "Traceback" not in said.text, (said.way, said.call, said.text)


@for_each("name", sorted(PLAIN_TEXT))
def test_what_is_haunted_is_shown_in_signs(name: str, everything: Everything) -> None:
    for way in ("pipe", "terminal"):
        shown = "".join(said.text for said in everything[name] if said.way == way)
        if not (name in RAW and way == "pipe"):
            assert "\\x1b[35;7mE" in shown, way


@for_each("name", [name for name, calls in CALLS.items() if not isinstance(calls, str)])
def test_json_holds_what_is_stored_as_it_is(name: str, everything: Everything) -> None:
    for said in everything[name]:
        if said.way == "json":
            assert isinstance(json.loads(said.text), dict), said


@for_each("name", ["show", "list", "search", "lookup", "history", "graph", "recall", "checkpoint list"])
def test_what_is_printed_as_json_reads_back_as_it_was(name: str, everything: Everything) -> None:
    values = [json.loads(said.text) for said in everything[name] if said.way == "json"]
    assert any(CONTROLS in text for value in values for text in strings(value))


def strings(value: object) -> Iterator[str]:
    match value:
        case str():
            yield value
        case dict():
            for item in value.values():
                yield from strings(item)
        case list():
            for item in value:
                yield from strings(item)


def test_a_bar_shows_what_was_typed_in_signs(places: Mapping[str, str]) -> None:
    [[shown]] = printed(places, [["jobs", "run", f"[red]{CONTROLS}"]], terminal=True)
    assert "[red]\\x1b[35;7mE" in shown.partition("perdure:")[0]


def test_only_one_module_prints() -> None:
    """Whatever prints by itself would pass by what makes texts harmless."""
    found = [
        f"{path.name}:{node.lineno}"
        for path in sorted(CLI.glob("*.py"))
        if path.name != "output.py"
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.expr | ast.stmt) and _prints(node)
    ]
    assert found == []


def _prints(node: ast.AST) -> bool:
    match node:
        case ast.Call(func=ast.Name(id="print")):
            return True
        case ast.Attribute(value=ast.Name(id="click"), attr="echo" | "secho" | "prompt" | "confirm" | "pager"):
            return True
        case ast.Attribute(value=ast.Attribute(value=ast.Name(id="sys"), attr="stdout" | "stderr"), attr="write"):
            return True
        case ast.ImportFrom(module=module) | ast.Import(names=[ast.alias(name=module)]):
            return (module or "").partition(".")[0] == "rich"
    return False
