"""All benches are one program: it lists them, runs one by its name, and says which is near."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from bench.__main__ import benches, main
from bench.program import SkippedError, numbers, program

ROOT = Path(__file__).parents[2]
LIST = """
import sys
from bench.__main__ import main
main([])
assert not {"numpy", "perdure", "click"} & sys.modules.keys()
"""


@click.option("--sizes", default="1,20", callback=numbers)
@click.option("--lost", default=0)
@click.option("--nowhere", is_flag=True)
def bench(sizes: list[int], lost: int, nowhere: bool) -> dict[str, object]:
    """Measure nothing."""
    if nowhere:
        raise SkippedError("no file")
    return {"sizes": [{"size": size} for size in sizes], "kinds": {"ä": 1}, "lost": lost}


command = program(bench, failed=lambda found: found["lost"])


def test_the_list_has_a_line_for_each_and_imports_none() -> None:
    done = subprocess.run([sys.executable, "-c", LIST], capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    for name, line in benches().items():
        assert f"{name} " in done.stdout
        assert line in done.stdout
    assert {"days", "crash", "latency"} <= benches().keys()
    assert not {"kills", "program", "measuring"} & benches().keys()


def test_a_name_that_is_near_is_said() -> None:
    with pytest.raises(SystemExit, match=r"no bench 'latancy': did you mean latency\?"):
        main(["latancy", "--json"])
    with pytest.raises(SystemExit, match="that `python -m bench` lists"):
        main(["qqq"])


@pytest.mark.parametrize("words", [["bench", "notes"], ["bench.notes"]])
def test_a_bench_is_run_by_its_name_and_as_a_module(words: list[str]) -> None:
    done = subprocess.run([sys.executable, "-m", *words, "nowhere.json"], capture_output=True, text=True, cwd=ROOT)
    assert (done.returncode, done.stdout) == (0, "")
    assert "skipped: no LoCoMo file" in done.stderr


def test_figures_are_one_object_or_lines_and_decide_the_exit_code() -> None:
    done = CliRunner().invoke(command, ["--json"])
    assert (done.exit_code, done.output) == (
        0, '{"sizes": [{"size": 1}, {"size": 20}], "kinds": {"ä": 1}, "lost": 0}\n',
    )  # fmt: skip
    done = CliRunner().invoke(command, ["--sizes", "3", "--lost", "2"])
    assert done.exit_code == 1
    assert [line.split() for line in done.output.splitlines()] == [
        ["sizes"],
        ["size", "3"],
        ["kinds", "ä", "1"],
        ["lost", "2"],
    ]
    done = CliRunner().invoke(command, ["--nowhere"])
    assert (done.exit_code, done.output) == (0, "skipped: no file\n")
