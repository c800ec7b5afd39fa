"""The public at-rest cases: all are noticed, and what nothing in a folder can tell is said to be accepted."""

from __future__ import annotations

import json

from click.testing import CliRunner

from bench.integrity import main


def test_every_case_is_noticed() -> None:
    done = CliRunner().invoke(main, ["--json"])
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    assert {case["verdict"] for case in found["cases"]} == {"REJECTED", "REPORTED"}
    assert (found["passed"], found["of"]) == (9, 9)
    # A store that went back does not open.
    assert [case["verdict"] for case in found["cases"] if "rollback" in case["edit"]] == ["REPORTED", "REJECTED"]
    assert {how: case["verdict"] for how, case in found["whole_folder"].items()} == {
        "with an anchor": "REPORTED",
        "without one": "ACCEPTED",
    }
