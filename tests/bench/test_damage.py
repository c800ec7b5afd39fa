"""Whatever has happened to a store, each command and each method answers or says in words why not."""

from __future__ import annotations

import json

from click.testing import CliRunner

from bench.damage import main


def test_a_deleted_truth_is_told_everywhere_and_comes_back_from_the_export() -> None:
    done = CliRunner().invoke(main, ["--json", "--only", "deleted"])
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    assert [each["fails"] for each in found.values()] == [[], []]
    assert (found["none"]["lost"], found["deleted"]["lost_before_export"]) == (0, 0)
    assert "perdure recover" in found["deleted"]["sentences"][0]
    assert found["deleted"]["tells"] > found["none"]["tells"]
