"""What the command line does with its streams: pipes, terminals, nobody there; and what it says with --json."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import re
import shutil
import signal
import struct
import subprocess
import sys
import termios
from pathlib import Path

import pytest

from perdure.hooks.types import Channel
from perdure.store.fact import Fact
from perdure.store.store import Store
from perdure.store.transaction import Author
from tests.kit import for_each

ROOT = Path(__file__).resolve().parents[2]
MANY = 2_000
"""Memories of which a list is longer than a pipe holds."""


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with many memories."""
    folder = tmp_path_factory.mktemp("streams") / "home"
    store = Store(folder)
    with store.write(Author(Channel.CLI)) as tx:
        for number in range(MANY):
            text = f"The machine number {number} stands in hall {number % 7}, behind the door that is painted green."
            tx.add(Fact(text, channel=Channel.CLI, scope="user", scope_target="owner"))
    store.close()
    return folder


def environment(home: Path) -> dict[str, str]:
    # Buffered, as for people: without, Python itself swallows what does not fit into a pipe.
    given = {**os.environ, "PYTHONPATH": str(ROOT), "PERDURE_HOME": str(home), "PERDURE_EMBEDDER": "none"}
    return {name: value for name, value in given.items() if name != "PYTHONUNBUFFERED"}


def perdure(home: Path, *words: str, said: str | None = None, **more: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "perdure", *words],
        env=environment(home) | more, input=said or "", capture_output=True, encoding="utf-8", errors="replace",
        timeout=60, check=False,
    )  # fmt: skip


def on_terminal(home: Path, *words: str, columns: int = 80, interrupt_at: bytes | None = None) -> tuple[int, str]:
    """Run a command on a terminal; return its exit code and what stood there."""
    outer, inner = pty.openpty()
    fcntl.ioctl(inner, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    child = subprocess.Popen(
        [sys.executable, "-m", "perdure", *words],
        env={**environment(home), "NO_COLOR": "1", "TERM": "xterm"}, stdin=inner, stdout=inner, stderr=inner,
        start_new_session=True,
    )  # fmt: skip
    os.close(inner)
    seen = b""
    try:
        while block := os.read(outer, 4096):
            seen += block
            if interrupt_at is not None and interrupt_at in seen:
                child.send_signal(signal.SIGINT)
                interrupt_at = None
    except OSError:
        pass  # Linux says so that nobody has the other side open any more.
    finally:
        os.close(outer)
    return child.wait(60), seen.decode()


ENCODINGS = (
    {"PYTHONIOENCODING": "cp1252"}, {"PYTHONIOENCODING": "ascii"},
    {"LC_ALL": "C", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0"},
)  # fmt: skip
SPOKEN = (
    "store Žofie's_dog_is_called_Žuk.", "list", "list --json", "search Žuk", "recall Žuk", "show {id}", "history {id}",
    "why", "status", "doctor", "--help", "stats --json", "nöpe", "show ž", "show ž --json", "list --limit ž",
)  # fmt: skip


@pytest.mark.timeout(400)
@for_each("variables", ENCODINGS)
def test_what_a_console_has_no_sign_for_is_spelled_out(tmp_path: Path, variables: dict[str, str]) -> None:
    home, said = tmp_path / variables.get("PYTHONIOENCODING", "C"), "Žofie's boat is called 🐶 Ž."
    made = perdure(home, "store", said, "--tags", "über", **variables)
    assert made.returncode == 0, made.stderr
    found = json.loads(perdure(home, "list", "--json", **variables).stdout)["facts"]
    assert [(fact["text"], fact["tags"]) for fact in found] == [(said, ["über"])]
    assert perdure(home, "search", "Žofie", "--tag", "über", **variables).stdout.count("boat") == 1
    for words in SPOKEN:
        done = perdure(home, *words.format(id=found[0]["id"][:8]).replace("_", " ").split(), **variables)
        assert "Traceback" not in done.stderr, words


@for_each("words", ["vault", "config", "files", "model", "alias", "checkpoint", "openclaw"])
def test_a_group_alone_prints_its_help_and_ends_well(tmp_path: Path, words: str) -> None:
    done = perdure(tmp_path, *words.split())
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(f"Usage: perdure {words} ")
    assert max(map(len, done.stdout.splitlines())) <= 120
    assert done.stdout == perdure(tmp_path, words, "--help").stdout


@pytest.mark.parametrize("more", [[], ["--json"]])
def test_a_pipe_that_is_closed_early_ends_the_command_without_a_word(home: Path, more: list[str]) -> None:
    with subprocess.Popen(
        [sys.executable, "-m", "perdure", "list", "--limit", str(MANY), *more],
        env=environment(home), stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    ) as child:  # fmt: skip
        assert child.stdout
        assert child.stdout.readline()
        child.stdout.close()
        assert child.stderr
        assert child.stderr.read() == b""
        assert child.wait(60) == 141


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no file that is always full")
def test_a_full_disk_is_told_in_a_line(home: Path) -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "perdure", "list"], env=environment(home), stdout=full, stderr=subprocess.PIPE
        )
    assert done.returncode == 1
    assert done.stderr.startswith(b"perdure: cannot read or write the output: No space left")
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize(
    ("words", "code", "kind"),
    [
        (["show", "deadbeef"], 1, "NotFoundError"),
        (["list", "--after", "tomorrow"], 1, "InputError"),
        (["list", "--limit", "0"], 2, "BadParameter"),
        (["list", "--no-such-option"], 2, "NoSuchOption"),
        (["no-such-command"], 2, "NoSuchCommand"),
        (["verify", "--home", "/nonexistent"], 2, "StoreUnavailableError"),
        (["purge", "--query", "machine number 7"], 1, "InputError"),
        (["import", "x" * 300], 1, "OSError"),
    ],
    ids=lambda value: value[0] if isinstance(value, list) else None,
)
def test_with_json_an_error_is_an_object_too(home: Path, words: list[str], code: int, kind: str) -> None:
    done = perdure(home, *words, "--json")
    error = json.loads(done.stdout)["error"]
    assert done.returncode == code
    assert error["kind"] == kind
    assert error["message"].splitlines()[0] in done.stderr


def test_where_nobody_can_be_asked_the_way_on_is_named(home: Path) -> None:
    done = perdure(home, "purge", "--query", "machine number 7")
    assert (done.returncode, "repeat with --yes" in done.stderr) == (1, True)
    refused = perdure(home, "purge", "--query", "machine number 7", said="n\n")
    assert (refused.returncode, refused.stderr.endswith("perdure: aborted\n")) == (130, True)


def test_a_long_memory_has_one_line_in_a_table_and_is_shown_whole(home: Path) -> None:
    text = "The gate code of the harbour changes " + "every second Thursday " * 20 + "at noon."
    short = json.loads(perdure(home, "store", text, "--json").stdout)["facts"][0]["id"][:8]
    _, listed = on_terminal(home, "list", "--limit", "1", columns=60)
    assert "…" in listed
    assert "at noon." not in listed
    assert len([line for line in listed.splitlines() if "Thursday" in line]) <= 1
    _, shown = on_terminal(home, "show", short, columns=60)
    assert "at noon." in shown
    assert text in perdure(home, "list", "--limit", "1").stdout


def test_on_a_narrow_terminal_ids_and_days_stay_whole(home: Path) -> None:
    code, seen = on_terminal(home, "list", "--limit", "1", columns=45)
    assert code == 0
    assert re.search(r"^[0-9a-f]{8}  \d{4}-\d\d-\d\d  present +\w+ +The", seen, re.MULTILINE)
    assert "\x1b[1;36m" not in seen


def test_progress_is_for_terminals_only(home: Path, tmp_path: Path) -> None:
    code, seen = on_terminal(home, "export", str(tmp_path / "one.jsonl"))
    assert (code, "exporting" in seen) == (0, True)
    piped = perdure(home, "export", str(tmp_path / "two.jsonl"))
    assert (piped.returncode, piped.stderr) == (0, "")
    assert "exporting" not in piped.stdout


def test_ctrl_c_stops_long_work_and_says_so(home: Path, tmp_path: Path) -> None:
    copy = tmp_path / "home"
    shutil.copytree(home, copy)
    code, seen = on_terminal(copy, "eval", "--size", "1000", interrupt_at=b"evaluating")
    assert (code, "perdure: aborted" in seen, "Traceback" in seen) == (130, True, False)
