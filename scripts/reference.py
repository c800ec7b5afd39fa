"""Writes what only repeats the code, from the code itself: python -m scripts.reference."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import StrEnum
from pathlib import Path

import click

from perdure.api.tools import TOOLS, Tool
from perdure.cli.main import COMMANDS, cli
from perdure.engine.settings import Settings, Table, table_of
from perdure.hosts.mcp.tools import TOOLS as CLIENTS
from scripts.async_stub import stub

ROOT = Path(__file__).resolve().parents[1]
HEAD = """\
# Commands

<!-- Written by `python -m scripts.reference`; change the commands, not this page. -->

Every command has `--help`, with its options and an example. On a terminal you get tables and colours;
in a pipe each row is one line, with tabs between its cells. Messages go to stderr. With `--json`, a command prints one
JSON object; on error, `{"error": {"kind": "NotFoundError", "message": "..."}}`.

Exit codes: 0 success; 1 nothing found, a check failed, or an error; 2 a usage error, or `perdure verify` could not
check; 130 interrupted; 141 output pipe closed.

An id may be shortened to its first eight digits; a memory's id can also be given as the
[short id](recall.md#the-block) that models see. A time is 2026-01-15, 2026-01-15T10:00 or epoch seconds.
"""
SETTINGS_HEAD = """\
# Settings

<!-- Written by `python -m scripts.reference`; change `perdure/engine/settings.py`, not this page. -->

Every setting is optional. The first of these places that sets it wins:

1. a keyword: `Memory.open(recall_limit=5)`
2. the environment: `PERDURE_RECALL_LIMIT=5`; lists with commas, tables as JSON
3. the host's config for the plugin, in camelCase too: `recallLimit`
4. a TOML file: `PERDURE_CONFIG`, else `config.toml` in the user's config folder for perdure

`perdure config show --changed` prints what is set and where; `perdure config set recall_limit 5` writes to the file. An
unknown key is refused, and the nearest known one suggested.

A **table** holds settings that belong together: `Memory.open(jobs={"backup": 12})`, in the file `jobs = {backup = 12}`
or `[jobs]`. Keys that you leave out keep their defaults.

The data folder is the argument of `Memory.open`, else `PERDURE_HOME`, else the folder of the host that perdure was
installed into, else the user's data folder.

The value shown is the default; a setting without one is unset or a table. "OpenClaw" names the equivalent OpenClaw
setting, under `agents.defaults` if it begins with `memorySearch`, `compaction` or `workspace`.
"""
OPENCLAW = {
    "sources": "memorySearch.sources",
    "workspace": "workspace",
    "extra_paths": "memorySearch.extraPaths",
    "search.chunk_tokens": "memorySearch.chunking.tokens",
    "search.chunk_overlap": "memorySearch.chunking.overlap",
    "search.max_results": "memorySearch.query.maxResults",
    "search.min_score": "memorySearch.query.minScore",
    "search.candidates": "memorySearch.query.hybrid.candidateMultiplier",
    "search.vector_weight": "memorySearch.query.hybrid.vectorWeight / (vectorWeight + textWeight)",
    "search.citations": "memory.citations",
    "flush.enabled": "compaction.memoryFlush.enabled",
    "flush.reserve_tokens": "compaction.reserveTokensFloor",
    "flush.soft_tokens": "compaction.memoryFlush.softThresholdTokens",
    "flush.prompt": "compaction.memoryFlush.prompt",
    "flush.system_prompt": "compaction.memoryFlush.systemPrompt",
}
"""What OpenClaw calls a setting for the same, from its defaults for agents on."""
SHARED = 3
"""An option that so many commands have, in the same words, is told once, at the top of their page."""
SUMMARY = 63
"""Characters of a line of `--help` at the most."""


def commands(command: click.Command, name: str = "perdure") -> Iterator[tuple[str, click.Command]]:
    """Yield a command and all below it, each with its whole name."""
    yield name, command
    if isinstance(command, click.Group):
        context = click.Context(command, info_name=name)
        for below in command.list_commands(context):
            found = command.get_command(context, below)
            if found is not None:
                yield from commands(found, f"{name} {below}")


def reference() -> str:
    """Return the page of commands."""
    said = [(name, command) for name, command in commands(cli) if _acts(command)]
    known = Counter(line for _, command in said for line in _options(command))
    shared = [line for line, times in known.items() if times >= SHARED]
    rows = (row for name, command in said for row in _command(name, command, shared))
    return "\n".join([
        HEAD, "## Common options", "", *(f"- {line}" for line in shared), "", "## All commands", "", *rows, ""
    ])  # fmt: skip


def settings() -> str:
    """Return the page of settings."""
    tables = {name: table for name in Settings.model_fields if (table := table_of(name))}
    keys = [row for name, table in tables.items() for row in _keys(table, name)]
    return "\n".join([
        SETTINGS_HEAD, "## All settings", "", *_settings(Settings), "", "## Table keys", "", *keys, ""
    ])  # fmt: skip


def _keys(table: type[Table], name: str) -> Iterator[str]:
    # Keys that nothing is said of are all alike: the job of that name, as often as that.
    alike = [field for field in table.model_fields if field not in table.descriptions()]
    if alike:
        yield f"- `{name}`: {', '.join(f'`{_default(table, field)}`' for field in alike)}"
    yield from _settings(table, f"{name}.")


def _settings(table: type[Table], prefix: str = "") -> Iterator[str]:
    for field, said in table.descriptions().items():
        theirs = f" OpenClaw: `{OPENCLAW[prefix + field]}`." if prefix + field in OPENCLAW else ""
        yield f"- `{prefix}{_default(table, field)}`: {_first(said)}{theirs}"


def summaries() -> str:
    """Return the first line of each command's help, as JSON."""
    context = click.Context(cli)
    found = {name: cli.get_command(context, name) for name in sorted(COMMANDS)}
    lines = {name: command.get_short_help_str(SUMMARY) for name, command in found.items() if command is not None}
    return json.dumps(lines, ensure_ascii=False, indent=2) + "\n"


def tools() -> str:
    """Return the page of tools, with its tables as the tools are declared: those of hosts, then those of clients."""
    tables = iter((TOOLS, CLIENTS))
    page = (ROOT / "docs" / "tools.md").read_text("utf-8")
    return re.sub(r"\| Tool \|.*?\n(?!\|)", lambda found: _tools(next(tables)), page, flags=re.S)


def _tools(declared: Sequence[Tool]) -> str:
    rows = [
        f"| `{each.name}` | {', '.join(f'`{name}`' for name in each.parameters['properties'])} | "
        f"{_gist(_first(_aside(each.description)).partition(': ')[0])} |"
        for each in declared
    ]
    return "\n".join(["| Tool | Takes | What it does |", "| --- | --- | --- |", *rows]) + "\n"


def _default(table: type[Table], field: str) -> str:
    """Return a setting with its default, or its name where it is unset or a table."""
    value = table.model_fields[field].get_default()
    if value in (None, (), {}, "") or isinstance(value, Table):
        return field
    if isinstance(value, bool):
        return f"{field}={str(value).lower()}"
    if isinstance(value, tuple):
        return f"{field}={','.join(value)}"
    return f"{field}={value.value if isinstance(value, StrEnum) else value}"


def _acts(command: click.Command) -> bool:
    """Return whether a command does something itself: a group that only holds others does not."""
    return not command.hidden and (not isinstance(command, click.Group) or command.invoke_without_command)


def _command(name: str, command: click.Command, shared: Sequence[str]) -> Iterator[str]:
    # On one line: a wrap may stand within a word.
    words = command.get_usage(click.Context(command, info_name=name, terminal_width=1_000))[7:]
    usage = re.sub(r" (\[OPTIONS\]|(\[?COMMAND\]? )?\[ARGS\]\.\.\.|\[?COMMAND\]?)", "", words).removeprefix("perdure ")
    said = [f"`{usage}`: {_first(command.help or '').partition(': ')[0]}"]
    said += [command.epilog] if command.epilog else []
    said += [line for line in _options(command) if line not in shared]
    yield "- " + " ".join(map(_gist, said))


def _options(command: click.Command) -> list[str]:
    return [
        f"`{_names(each)}`: {each.help}" if each.help else f"`{_names(each)}`" for each in command.params
        if isinstance(each, click.Option) and not each.hidden
    ]  # fmt: skip


def _first(text: str) -> str:
    """Return the first sentence of a help text."""
    return re.split(r"(?<=[.!?])\s", " ".join(text.partition("Example: ")[0].split()), maxsplit=1)[0]


def _aside(text: str) -> str:
    """Return a text without what it says in parentheses."""
    return re.sub(r" \([^()]*\)", "", text)


def _gist(line: str) -> str:
    """Return a line without what is behind its semicolon: a detail or a default, which `--help` tells."""
    return f"{line.partition('; ')[0].rstrip('.')}."


def _names(option: click.Option) -> str:
    names = ", ".join([*option.opts, *option.secondary_opts])
    if option.is_flag:
        return names
    kind = (
        "|".join(map(str, option.type.choices)) if isinstance(option.type, click.Choice) else option.type.name.upper()
    )
    return f"{names}={option.metavar or kind.removesuffix(' RANGE')}"


PAGES: Mapping[Path, Callable[[], str]] = {
    ROOT / "docs" / "commands.md": reference,
    ROOT / "docs" / "settings.md": settings,
    ROOT / "docs" / "tools.md": tools,
    ROOT / "perdure" / "cli" / "data" / "summaries.json": summaries,
    ROOT / "perdure" / "api" / "async_memory.pyi": stub,
}
"""What is written, and by what."""


if __name__ == "__main__":
    for path, written in PAGES.items():
        path.write_text(written(), encoding="utf-8")
