"""What every command and every public method says and does when the store is damaged, and what was lost of it.

python -m bench damage [--json] [--only NAME]

A store of forty memories, with a daily export, a backup, vectors and three memories since, is damaged in each way: its
database truncated, cut in half, deleted, another file put in its place, an older copy put back, that of another store
put in its place; its folder read-only; its disk full. Then each command and each method is called with sample
arguments, each on a copy of its own. Read-only folders and full disks need mounts, so root; without, they are left out
and named.

answers: how many gave what they were asked for. tells: how many refused in words, with exit code 1 or 2 or an error of
perdure's. fails: those that did neither (a traceback, an error of another library); there must be none. The sentences
are those that were said most, without those that are said of an undamaged store too. lost: memories that `perdure
recover --apply` did not bring back, and how many of these were older than the last export; there must be none of those.
Where nothing needs recovery, it is what is missing after the folder can be written again.
"""

from __future__ import annotations

import inspect
import json
import os
import re
import shutil
import subprocess
import tempfile
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from functools import partial
from operator import attrgetter
from pathlib import Path
from typing import Any

import click
from click.testing import CliRunner

from bench.memories import opened
from bench.program import program
from perdure.api.admin import Admin
from perdure.api.files import Files
from perdure.api.memory import Memory
from perdure.api.turns import Turns
from perdure.api.upkeep import Proposals, Upkeep
from perdure.cli.main import cli
from perdure.errors import PerdureError
from perdure.hooks.types import TurnContext
from perdure.store.listing import Filter

EXPORTED, SINCE = 40, 3
ENDLESS = {
    "mcp", "ui", "hook", "connect", "disconnect", "completion", "demo", "openclaw install", "openclaw status",
    "openclaw uninstall", "model fetch", "config set", "config unset", "config path", "config get", "config show",
    "uninstall",
}  # fmt: skip
"""Commands that speak with a program, or have nothing to do with the store of a folder."""
NO_CALL = {"Memory.open", "Memory.close", "Turns.looked"}
SIZE = "96M"
SAID = 4
NEW = "The new bridge is green."


def samples(home: Path, ids: Sequence[str]) -> dict[str, Any]:
    """Return an argument for each name of a parameter; where one method takes another kind, by its name as well."""
    message = [{"role": "user", "content": "My aunt is called Berta."}]
    talk = home.parent / "talk.jsonl"
    talk.write_text(f"{json.dumps(message[0])}\n", encoding="utf-8")
    return {
        "fact_id": ids[0], "source": ids[0], "target": ids[1], "fact_ids": ids[2], "ids": ids[3], "proposal_id": ids[4],
        "record_id": "vault-1", "file": talk, "path": home / "workspace", "folder": home / "workspace",
        "root": home / "workspace",
        "query": "heron", "prompt": "Where does heron 7 nest?", "text": NEW, "words": NEW, "said": NEW, "user": "ann",
        "intent": "Move the nest.", "entity": "heron", "key": "nest", "name": "prune", "scope": "user:owner",
        "service": "heron", "turn": None, "given": {"tool_name": "Bash", "tool_input": {"command": "make"}},
        "messages": message, "session": "talk", "success": True, "context": TurnContext(session_id="talk"),
        "chosen": Filter(category="nothing"), "total_tokens": 1, "context_window": 2, "compactions": 0,
        "whose": "user:owner", "wanted": True, "to": "user:owner", "other": "ardea", "which": "heron",
        "Admin.export target": home.parent / "out.jsonl", "Files.read path": "MEMORY.md",
        "Turns.one turn": "0" * 8, "Turns.replay turn": "0" * 8, "Turns.mark turn": "0" * 8,
    }  # fmt: skip


def commands(group: click.Group, path: tuple[str, ...] = ()) -> Iterator[tuple[str, click.Command]]:
    """Yield every command with its name."""
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if isinstance(command, click.Group):
            yield from commands(command, (*path, name))
        elif command is not None:
            yield " ".join((*path, name)), command


def call_command(name: str, command: click.Command, given: Mapping[str, Any], home: Path) -> tuple[str, str]:
    """Call a command; return "answers", "tells" or "fails", and what it said."""
    arguments = [
        str(given[parameter.name]) for parameter in command.params
        if isinstance(parameter, click.Argument) and parameter.name and given[parameter.name] is not None
    ]  # fmt: skip
    result = CliRunner().invoke(cli, [*name.split(), *arguments, "--home", str(home)], input="")
    said = (result.stderr or result.output).strip()
    if isinstance(result.exception, PerdureError):
        return "tells", str(result.exception)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        return "fails", "".join(traceback.format_exception_only(result.exception)).strip()
    return ("answers" if result.exit_code == 0 else "tells"), said


def methods() -> Iterator[tuple[str, str, Callable[..., Any]]]:
    """Yield every public method: its name, the attribute of `Memory` that has it, and itself."""
    owners = {"": Memory, "admin": Admin, "files": Files, "turns": Turns, "upkeep": Upkeep,
              "upkeep.proposals": Proposals}  # fmt: skip
    for attribute, owner in owners.items():
        for name, method in inspect.getmembers(owner, inspect.isfunction):
            if not name.startswith("_") and f"{owner.__name__}.{name}" not in NO_CALL:
                yield f"{owner.__name__}.{name}", attribute, method


def call_method(attribute: str, method: Callable[..., Any], given: Mapping[str, Any], home: Path) -> tuple[str, str]:
    """Call a method of a store that is opened for it."""
    needed = [each for each in list(inspect.signature(method).parameters.values())[1:] if each.default is each.empty]
    arguments = [
        given.get(f"{method.__qualname__} {each.name}", given[each.name])
        for each in needed if each.kind is not each.VAR_KEYWORD
    ]  # fmt: skip
    try:
        with Memory.open(home, embedder="none", timers=False, watch=False) as memory:
            owner = attrgetter(attribute)(memory) if attribute else memory
            getattr(owner, method.__name__)(*arguments)
    except PerdureError as error:
        return "tells", str(error)
    except Exception as error:  # noqa: BLE001 - what is looked for
        return "fails", f"{type(error).__name__}: {error}"
    return "answers", ""


def build(home: Path) -> list[str]:
    """Fill a folder; return the ids of its memories."""
    with opened(home, embedder="hash", vector_index="lance", timers=False, watch=False) as memory:
        aimed = [f"who lives at kilometre {number}" for number in range(2)]
        ids = [memory.store(_text(number), triggers=aimed).id for number in range(EXPORTED)]
        memory.admin.sync_index()
        memory.admin.backup()
        memory.admin.run_job("export")
        ids += [memory.store(_text(number)).id for number in range(EXPORTED, EXPORTED + SINCE)]
        memory.recall("Where does heron 7 nest?")
        memory.settle()
    (home / "workspace").mkdir()
    (home / "workspace" / "MEMORY.md").write_text("# Herons\n\nThey nest early.\n", encoding="utf-8")
    return ids


def _text(number: int) -> str:
    return f"Heron {number} nests at the {number * 7 + 3}th kilometre of the river."


def _facts(home: Path) -> Path:
    for leftover in ("facts.db-wal", "facts.db-shm"):
        (home / leftover).unlink(missing_ok=True)
    return home / "facts.db"


def _put(home: Path, other: Path) -> None:
    shutil.copyfile(other, _facts(home))


DAMAGES: Mapping[str, Callable[[Path, Path], None]] = {
    "none": lambda home, spare: None,
    "truncated": lambda home, spare: os.truncate(_facts(home), 0),
    "cut in half": lambda home, spare: os.truncate(_facts(home), _facts(home).stat().st_size // 8192 * 4096),
    "deleted": lambda home, spare: _facts(home).unlink(),
    "swapped": lambda home, spare: _put(home, spare / "no-database"),
    "older": lambda home, spare: _put(home, spare / "older.db"),
    "foreign": lambda home, spare: _put(home, spare / "foreign.db"),
    "read-only": lambda home, spare: None,
    "full": lambda home, spare: None,
}


@contextmanager
def _read_only(home: Path) -> Iterator[None]:
    subprocess.run(["mount", "--bind", str(home), str(home)], check=True)
    subprocess.run(["mount", "-o", "remount,ro,bind", str(home)], check=True)
    try:
        yield
    finally:
        subprocess.run(["umount", str(home)], check=True)


@contextmanager
def _full(home: Path) -> Iterator[None]:
    aside = home.with_name(f"{home.name}-aside")
    home.rename(aside)
    home.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={SIZE}", "tmpfs", str(home)], check=True)
    try:
        shutil.copytree(aside, home, dirs_exist_ok=True)
        filler = home / "filler"
        with filler.open("wb", buffering=0) as file, suppress(OSError):
            while True:
                file.write(b"\0" * 4096)
        yield
        filler.unlink(missing_ok=True)
        shutil.rmtree(aside)
        shutil.copytree(home, aside)
    finally:
        subprocess.run(["umount", str(home)], check=True)
        home.rmdir()
        aside.rename(home)


STATES = {"read-only": _read_only, "full": _full}
"""Damages that last only while something is called: states of the folder or the disk."""


def state(name: str, home: Path) -> AbstractContextManager[None]:
    """Return the state of the folder or the disk that lasts while something is called."""
    return STATES[name](home) if name in STATES else nullcontext()


def measure(name: str, whole: Path, spare: Path, ids: Sequence[str], folder: Path) -> dict[str, Any]:
    """Call everything under one kind of damage; return what was said."""
    verdicts, said, fails = Counter[str](), Counter[str](), []
    by_command = [(name, partial(call_command, name, each)) for name, each in commands(cli) if name not in ENDLESS]
    by_method = [(name, partial(call_method, attribute, each)) for name, attribute, each in methods()]
    for number, (call_name, call) in enumerate([*by_command, *by_method]):
        home = folder / f"{number}" / "home"
        shutil.copytree(whole, home)
        DAMAGES[name](home, spare)
        given = samples(home, ids)
        with state(name, home):
            verdict, text = call(given, home)
        verdicts[verdict] += 1
        if verdict == "tells":
            said[_sentence(text, home)] += 1
        elif verdict == "fails":
            fails.append(f"{call_name}: {text}")
        shutil.rmtree(home.parent)
    gone, exported = lost(name, whole, spare, folder)
    return {
        "commands": len(by_command), "methods": len(by_method), "answers": verdicts["answers"],
        "tells": verdicts["tells"], "fails": fails, "sentences": [text for text, _ in said.most_common()],
        "lost": gone, "lost_before_export": exported,
    }  # fmt: skip


def _sentence(text: str, home: Path) -> str:
    plain = text.replace(str(home), "HOME").replace(str(home.parent), "FOLDER")
    return re.sub(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|[0-9a-f]{8}\b", "ID", plain).split("\n")[0][:200]


def lost(name: str, whole: Path, spare: Path, folder: Path) -> tuple[int, int]:
    """Return how many memories are gone for good, and how many of these had been exported."""
    home = folder / "recovered" / "home"
    shutil.copytree(whole, home)
    DAMAGES[name](home, spare)
    with state(name, home):
        CliRunner().invoke(cli, ["status", "--home", str(home)])
    CliRunner().invoke(cli, ["recover", "--apply", "--home", str(home)])
    try:
        with Memory.open(home, embedder="none", timers=False, watch=False) as memory:
            there = {fact.text for fact in memory.admin.list(limit=1000)}
            there |= {fact.text for fact in memory.admin.review(limit=1000)}
    except PerdureError:
        there = set()
    gone = [number for number in range(EXPORTED + SINCE) if _text(number) not in there]
    shutil.rmtree(home.parent)
    return len(gone), sum(number < EXPORTED for number in gone)


def _mounts() -> bool:
    with tempfile.TemporaryDirectory() as folder:
        tried = subprocess.run(["mount", "-t", "tmpfs", "tmpfs", folder], check=False, capture_output=True)
        if tried.returncode == 0:
            subprocess.run(["umount", folder], check=True)
        return tried.returncode == 0


@click.option("--only", type=click.Choice(list(DAMAGES)), multiple=True, help="Only this kind of damage.")
def bench(only: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Call everything under every kind of damage."""
    chosen = [name for name in DAMAGES if not only or name in only or name == "none"]
    if not _mounts():
        click.echo("read-only and full are left out: nothing can be mounted here", err=True)
        chosen = [name for name in chosen if name not in STATES]
    result: dict[str, dict[str, Any]] = {}
    usual: list[str] = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        spare = folder / "spare"
        spare.mkdir()
        ids = build(folder / "whole")
        build(folder / "other")
        shutil.copyfile(next((folder / "whole" / "backups").glob("*.db")), spare / "older.db")
        shutil.copyfile(folder / "other" / "facts.db", spare / "foreign.db")
        (spare / "no-database").write_bytes(b"no database at all " * 100)
        for damage in chosen:
            found = measure(damage, folder / "whole", spare, ids, folder / damage.replace(" ", "-"))
            usual = usual or found["sentences"]
            own = [each for each in found["sentences"] if damage == "none" or each not in usual]
            result[damage] = {**found, "sentences": own[:SAID]}
    return result


main = program(bench)
