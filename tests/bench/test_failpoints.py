"""Fail points: each that is listed is called in one place, each call names a listed one, and one that is armed ends
the process."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest

from perdure.failpoints import EXIT_CODE, FAIL_POINTS, VARIABLE, fail_point

ROOT = Path(__file__).parents[2]
REACH = """
from perdure.failpoints import fail_point
for count in range(3):
    print(count, flush=True)
    fail_point("commit.before")
    fail_point("commit.after")
"""


def calls(source: str) -> list[str]:
    """Return the names with which a module calls `fail_point`."""
    return [
        ast.literal_eval(node.args[0])
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "fail_point"
    ]


def reach(armed: str) -> tuple[int, int]:
    """Return the exit code of a process that passes fail points three times, and how far it came."""
    child = subprocess.run(
        [sys.executable, "-c", REACH], env=os.environ | {VARIABLE: armed, "PYTHONPATH": str(ROOT)}, capture_output=True
    )
    return child.returncode, len(child.stdout.split())


def test_each_fail_point_is_called_in_one_place() -> None:
    found = [name for path in sorted((ROOT / "perdure").rglob("*.py")) for name in calls(path.read_text())]
    assert sorted(found) == sorted(FAIL_POINTS)
    assert len(FAIL_POINTS) >= 20


def test_the_scan_sees_calls() -> None:
    assert calls("def f():\n    fail_point('a')\n    with g():\n        fail_point('b')\n    other('c')") == ["a", "b"]


@pytest.mark.parametrize(
    ("armed", "code", "passes"),
    [
        ("commit.before", EXIT_CODE, 1),
        ("commit.after:2", EXIT_CODE, 2),
        ("commit.after:4", 0, 3),
        ("no.such.point", 0, 3),
        ("", 0, 3),
    ],
)
def test_an_armed_fail_point_ends_the_process_at_its_count(armed: str, code: int, passes: int) -> None:
    assert reach(armed) == (code, passes)


def test_without_the_variable_nothing_happens() -> None:
    for name in FAIL_POINTS:
        fail_point(name)
