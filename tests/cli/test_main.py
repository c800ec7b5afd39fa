"""The command line as a whole: help without imports, completion, exit codes."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from perdure.api.memory import Memory

ROOT = Path(__file__).resolve().parents[2]
READS = (
    "list", "show ID", "lookup user", "history ID", "graph ID", "stats", "review",
    "jobs", "files status", "backup list", "checkpoint list", "config show",
)  # fmt: skip
READ_ALL = """
import json, sys
from perdure.cli.main import cli

heavy = {"numpy", "lancedb", "onnxruntime", "pyarrow", "tokenizers", "rich", "asyncio"}
for words in json.loads(sys.argv[1]):
    cli.main(words, standalone_mode=False)
    found = sorted(heavy & set(sys.modules))
    if found:
        break
print(words[0], found) if found else print([])
"""
"""Runs commands in one process until one of them has imported something that takes long to import."""


def perdure(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "perdure", *arguments],
        env={**os.environ, "PYTHONPATH": str(ROOT), **environment},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_help_and_completion_import_no_command() -> None:
    code = (
        "import sys\n"
        "from perdure.cli.main import cli\n"
        "from click.shell_completion import ShellComplete\n"
        "help = cli.get_help(__import__('click').Context(cli))\n"
        "assert 'recall' in help and 'Show what a prompt would recall' in help\n"
        "found = ShellComplete(cli, {}, 'perdure', '_PERDURE_COMPLETE').get_completions([], 'reca')\n"
        "assert [item.value for item in found] == ['recall']\n"
        "heavy = {'pydantic', 'apsw', 'numpy'}\n"
        "print(sorted(name for name in sys.modules if name.startswith('perdure.cli.') or name in heavy))\n"
    )
    child = subprocess.run(
        [sys.executable, "-c", code], env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True
    )
    assert child.stdout.strip() == "['perdure.cli.log_lines', 'perdure.cli.main', 'perdure.cli.output']", child.stderr


def test_reading_imports_nothing_heavy(tmp_path: Path) -> None:
    with Memory.open(tmp_path, embedder="none", timers=False) as memory:
        fact = memory.store("The staging database is called heron.")
    reads = [line.replace("ID", fact.id).split() for line in READS]
    child = subprocess.run(
        [sys.executable, "-c", READ_ALL, json.dumps(reads)],
        env={**os.environ, "PYTHONPATH": str(ROOT), "PERDURE_HOME": str(tmp_path)},
        capture_output=True,
        text=True,
    )
    assert child.stdout.splitlines()[-1:] == ["[]"], child.stdout + child.stderr
    assert "heron" in child.stdout


def test_a_terminal_is_shown_the_words_as_they_are() -> None:
    pty = pytest.importorskip("pty", reason="there are no terminals here")
    ours, theirs = pty.openpty()
    code = "from perdure.cli.output import Output; Output().line('set :warning: [b]x[/b]', style='bold')"
    child = subprocess.run(
        [sys.executable, "-c", code], env={**os.environ, "PYTHONPATH": str(ROOT), "TERM": "xterm"}, stdout=theirs
    )
    os.close(theirs)
    shown = os.read(ours, 4096).decode()
    os.close(ours)
    assert child.returncode == 0
    assert "set :warning: [b]x[/b]" in shown


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_shell_is_told_how_to_complete(shell: str) -> None:
    script = perdure("completion", shell)
    assert script.returncode == 0
    assert "_PERDURE_COMPLETE" in script.stdout
    assert "perdure" in script.stdout


def test_what_the_script_calls_completes_commands_and_options() -> None:
    def completed(words: str, at: int) -> list[str]:
        answer = perdure(_PERDURE_COMPLETE="bash_complete", COMP_WORDS=words, COMP_CWORD=str(at))
        return [line.partition(",")[2] for line in answer.stdout.splitlines()]

    assert completed("perdure unf", 1) == ["unforget"]
    assert {"store", "get"} <= set(completed("perdure vault ", 2))
    assert "--category" in completed("perdure list --cat", 2)


def test_exit_codes(tmp_path: Path) -> None:
    assert perdure("list", "--home", str(tmp_path / "home")).returncode == 0
    missing = perdure("show", "00000000", "--home", str(tmp_path / "home"))
    assert missing.returncode == 1
    assert missing.stderr.startswith("perdure: ")
    assert perdure("list", "--no-such-option").returncode == 2
    assert perdure("no-such-command").returncode == 2


@pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash")
def test_bash_completes(tmp_path: Path) -> None:
    program = tmp_path / "perdure"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m perdure "$@"\n')
    program.chmod(0o755)
    script = (
        'eval "$(perdure completion bash)"; complete -p perdure >/dev/null || exit 1\n'
        'try() { COMP_WORDS=("$@"); COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); COMPREPLY=()\n'
        '        _perdure_completion perdure; echo "${COMPREPLY[@]}"; }\n'
        "try perdure unf\ntry perdure vault ro\ntry perdure list --cat\ntry perdure link a b --type CAU\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}"}
    done = subprocess.run(
        ["bash", "--norc", "-c", script], env=environment, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.stdout.splitlines() == ["unforget", "rotate", "--category", "CAUSED_BY"], done.stderr
