"""What is worked out at every start is kept for the next process, and what is damaged is worked out anew."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

EVENT = """
import json, re
from perdure import kept
kept.begin()
from dataclasses import dataclass
import perdure.speech.spans, perdure.secrets.redact
from perdure.regex import Lazy, lazy
from perdure.text.lexicon import table

@dataclass(frozen=True, slots=True)
class Heron:
    name: str
    nests: int = 1

patterns = [each for module in (perdure.speech.spans, perdure.secrets.redact) for each in vars(module).values()
            if isinstance(each, Lazy)] + [lazy(r"(?i)(?P<bird>heron)(s)?"), lazy(rb"\\d+")]
same = [each.search.__self__ == re.compile(each.pattern, each.flags) for each in patterns]
print(json.dumps([len(same), all(same), repr(Heron("Ida")), Heron("Ida") == Heron("Ida", 1),
                  sorted(table("speech", "orders")), patterns[-2].search("two Herons")["bird"]]))
kept.keep()
"""


def event(folder: Path) -> tuple[list[Any], list[Path]]:
    """Run a process that uses and keeps; return what it printed, and the files that are kept in a folder."""
    given = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    done = subprocess.run(
        [sys.executable, "-c", EVENT], env={**given, "PYTHONPYCACHEPREFIX": str(folder)}, stdout=subprocess.PIPE,
        check=True, cwd=Path(__file__).parents[1],
    )  # fmt: skip
    return json.loads(done.stdout), [*folder.rglob("*.kept*")]


def test_the_next_process_finds_what_was_kept_and_does_the_same_with_it(tmp_path: Path) -> None:
    first, [file] = event(tmp_path)
    assert first[0] > 10
    assert first[1] is True
    written = file.stat().st_mtime_ns, file.read_bytes()
    again, [same] = event(tmp_path)
    assert again == first
    assert (same.stat().st_mtime_ns, same.read_bytes()) == written, "nothing had to be made"


def test_what_is_cut_short_or_changed_is_made_anew(tmp_path: Path) -> None:
    first, [file] = event(tmp_path)
    whole = file.read_bytes()
    for damaged in (b"", whole[: len(whole) // 2], whole[:-9] + b"\0" * 9):
        file.write_bytes(damaged)
        again, [file] = event(tmp_path)
        assert again == first
        assert len(file.read_bytes()) == len(whole)
