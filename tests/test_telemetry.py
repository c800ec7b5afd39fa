"""What perdure does about a library that reports its use, by when it is imported and what the environment says."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
VARIABLE = "ORT_DISABLE_TELEMETRY"
PROGRAM = """
import json, os, sys, types

if sys.argv[1] == "first":
    sys.modules["onnxruntime"] = types.ModuleType("onnxruntime")  # a host has imported it
import perdure.hooks.types
from perdure import telemetry

print(json.dumps([os.environ["ORT_DISABLE_TELEMETRY"], telemetry.wanted(), telemetry.was_late()]))
"""


@pytest.mark.parametrize(
    ("order", "given", "value", "wanted", "late"),
    [
        ("then", None, "1", False, False),
        ("then", "", "1", False, False),
        ("first", None, "1", False, True),
        # Somebody has decided, for whatever is started here.
        ("then", "0", "0", True, False),
        ("first", "0", "0", True, False),
        ("first", "1", "1", False, False),
        ("first", "True", "True", False, False),
    ],
)
def test_it_is_turned_off_unless_somebody_has_decided(
    order: str, given: str | None, value: str, wanted: bool, late: bool
) -> None:
    environment = {name: text for name, text in os.environ.items() if name != VARIABLE} | {"PYTHONPATH": str(ROOT)}
    if given is not None:
        environment[VARIABLE] = given
    command = [sys.executable, "-c", PROGRAM, order]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60)
    assert json.loads(done.stdout or "null") == [value, wanted, late], done.stderr
