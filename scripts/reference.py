"""Writes what only repeats the code, from the code itself: python -m scripts.reference."""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import StrEnum
from pathlib import Path

import click
from click.testing import CliRunner

from perdure.api.tools import TOOLS, Tool
from perdure.cli.main import COMMANDS, cli
from perdure.cli.replay import demo
from perdure.engine.settings import Settings, Table, table_of
from perdure.hosts.mcp.tools import TOOLS as CLIENTS
from scripts.async_stub import stub

ROOT = Path(__file__).resolve().parents[1]
HEAD = """\
# Commands

<!-- Written by `python -m scripts.reference`; change the commands, not this page. -->

Every command ends with an exit code that a script can use:

| Code | Meaning |
| --- | --- |
| 0 | done |
| 1 | nothing was found, a check found something, or an error, which is told on stderr |
| 2 | a wrong call, such as an unknown option; `perdure verify`: it could not look |
| 130 | stopped by you |
| 141 | whoever read the output has closed the pipe, as `head` does |

On a terminal there are tables and colours; in a pipe each row is one line, with tabs between its cells. With `--json` a
command prints one JSON object and nothing else; that of an error is
`{"error": {"kind": "NotFoundError", "message": "..."}}`. Messages and progress go to stderr, progress to a terminal
only.

Ids can be shortened to their first eight digits. Times are written as 2026-01-15, 2026-01-15T10:00 or epoch seconds.
"""
SETTINGS_HEAD = """\
# Settings

<!-- Written by `python -m scripts.reference`; change `perdure/engine/settings.py`, not this page. -->

A setting is read from four places; the first that has it wins:

1. a keyword: `Memory.open(recall_limit=5)`
2. the environment: `PERDURE_RECALL_LIMIT=5`
3. the host's config for the plugin, where camelCase is understood: `recallLimit`
4. a TOML file: the one that `PERDURE_CONFIG` names, else `config.toml` in the user's config folder for perdure

A key that is not below is refused by name, with the nearest one that is.
`perdure config show --changed` says what is set and where, `perdure config set recall_limit 5` writes to the file.

The data folder is the argument of `Memory.open`, else `PERDURE_HOME`, else the folder of the host that perdure was
installed into, else the user's data folder. `PERDURE_LOAD_EXTENSIONS=0` turns third-party extensions off.

In the environment a list is written with commas: `PERDURE_SOURCES=memory,sessions`.

Settings that belong together are a **table**. What it leaves out keeps its default, and each key is taken from the
first of the four places that has it:

- in code: `Memory.open(jobs={"backup": 12})`
- in the environment and with `perdure config set`, as JSON: `PERDURE_JOBS='{"backup": 12}'`
- in the host's config: `"captureLimits": {"maxChars": 4000}`
- in the file: `jobs = {backup = 12}`, or a part of its own, `[jobs]`

The settings from `sources` to `flush` are about files and conversations, and [files.md](files.md) explains them. Where
OpenClaw has a setting for the same, its name stands behind; names that begin with `memorySearch`, `compaction` or
`workspace` are below `agents.defaults` there.
"""
SETTINGS_TAIL = (ROOT / "scripts" / "fixed_settings.md").read_text(encoding="utf-8")
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
    "citations": "memory.citations",
    "flush.enabled": "compaction.memoryFlush.enabled",
    "flush.reserve_tokens": "compaction.reserveTokensFloor",
    "flush.soft_tokens": "compaction.memoryFlush.softThresholdTokens",
    "flush.prompt": "compaction.memoryFlush.prompt",
    "flush.system_prompt": "compaction.memoryFlush.systemPrompt",
}
"""What OpenClaw calls a setting for the same, from its defaults for agents on."""
SHOWN = "peanuts"
"""What the turns of the demo are about that the README shows."""
SUMMARY = 100
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
    return "\n".join([HEAD, *(_section(name, command) for name, command in commands(cli) if command is not cli)])


def settings() -> str:
    """Return the page of settings."""
    whole = f"There are {len(Settings.model_fields)} settings.\n"
    tables = {name: table for name in Settings.model_fields if (table := table_of(name))}
    keys = [row for name, table in tables.items() for row in _settings(table, f"{name}.")]
    rules = "| --- | --- | --- |"
    return "\n".join([
        SETTINGS_HEAD, whole, "| Setting | Default | What it does |", rules, *_settings(Settings), "",
        "## The keys of tables", "", "| Key | Default | What it does |", rules, *keys, "", SETTINGS_TAIL,
    ])  # fmt: skip


def _settings(table: type[Table], prefix: str = "") -> Iterator[str]:
    said = table.descriptions()
    for field, model in table.model_fields.items():
        name = f"{prefix}{field}"
        told = said.get(field, f"Job `{field}`, hours.").replace("|", "\\|")
        theirs = f" OpenClaw: `{OPENCLAW[name]}`." if name in OPENCLAW else ""
        default = "a table" if table_of(name) else _default(model.get_default())
        yield f"| `{name}` | {default} | {told}{theirs} |"


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
        f"| `{each.name}` | {', '.join(f'`{name}`' for name in each.parameters['properties'])} | {each.description} |"
        for each in declared
    ]
    return "\n".join(["| Tool | Takes | What it does |", "| --- | --- | --- |", *rows]) + "\n"


def readme() -> str:
    """Return the README, with its first screen as the demo prints it now."""
    return re.sub(
        r"(?<=```text\n).*?(?=```)",
        lambda found: screen(),
        (ROOT / "README.md").read_text("utf-8"),
        count=1,
        flags=re.S,
    )


def screen() -> str:
    """Play the demo; return what it prints of one matter, without times."""
    played = CliRunner().invoke(demo, [], standalone_mode=False, catch_exceptions=False)
    turns = re.split(r"\n(?=user |---)", played.stdout.partition("\n--- summary")[0])
    kept = [turn for turn in turns if turn.startswith("---") or SHOWN in turn]
    lines = [line for turn in kept for line in turn.strip().splitlines() if not line.startswith("  recall ")]
    return "".join(f"\n{line}\n" if line.startswith("---") and at else f"{line}\n" for at, line in enumerate(lines))


def _default(value: object) -> str:
    if value in (None, (), {}):
        return "unset"
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    if isinstance(value, tuple):
        return f"`{','.join(value)}`"
    return f"`{value.value if isinstance(value, StrEnum) else value}`"


def _section(name: str, command: click.Command) -> str:
    context = click.Context(command, info_name=name)
    body, _, example = inspect.cleandoc(command.help or "").partition("Example: ")
    parts = [f"{'##' if name.count(' ') == 1 else '###'} {name}", body.strip(), _code(command.get_usage(context)[7:])]
    options = [each for each in command.params if isinstance(each, click.Option)]
    if options:
        rows = [f"| `{_names(option)}` | {_told(option, context)} |" for option in options]
        parts.append("\n".join(["| Option | |", "| --- | --- |", *rows]))
    parts.append("For example:\n\n" + _code(example.strip(), "sh"))
    return "\n\n".join(parts) + "\n"


def _names(option: click.Option) -> str:
    names = ", ".join([*option.opts, *option.secondary_opts])
    if option.is_flag:
        return names
    kind = (
        "|".join(map(str, option.type.choices)) if isinstance(option.type, click.Choice) else option.type.name.upper()
    )
    return f"{names} {option.metavar or kind}".replace("|", "\\|")


def _told(option: click.Option, context: click.Context) -> str:
    default = option.get_default(context) if option.show_default else None
    told = (option.help or "").replace("|", "\\|")
    return f"{told} Default: {default}.".strip() if default is not None else told


def _code(text: str, language: str = "text") -> str:
    return f"```{language}\n{' '.join(text.split())}\n```"


PAGES: Mapping[Path, Callable[[], str]] = {
    ROOT / "docs" / "commands.md": reference,
    ROOT / "docs" / "settings.md": settings,
    ROOT / "docs" / "tools.md": tools,
    ROOT / "perdure" / "cli" / "data" / "summaries.json": summaries,
    ROOT / "perdure" / "api" / "async_memory.pyi": stub,
    ROOT / "README.md": readme,
}
"""What is written, and by what."""


if __name__ == "__main__":
    for path, written in PAGES.items():
        path.write_text(written(), encoding="utf-8")
