"""The bench of placements: every way is played, and the order is what a prompt cache makes of it."""

from __future__ import annotations

import json

from click.testing import CliRunner

from bench.placement import main


def test_what_each_placement_bills_anew() -> None:
    done = CliRunner().invoke(main, ["--json", "--embedder", "hash"])
    assert done.exit_code == 0, done.output
    figures = json.loads(done.stdout)
    assert set(figures) == {f"{place}, {kept}" for place in ("head", "tail", "system") for kept in ("kept", "not kept")}
    per_turn = {name: each["per_turn"] for name, each in figures.items()}
    # A kept block is a prefix of the next request; one that goes is billed from its place on in the next turn again.
    assert per_turn["head, kept"] < per_turn["head, not kept"]
    assert per_turn["tail, not kept"] <= per_turn["head, not kept"]
    # In front of the history a block that changes bills all of the history anew, the more the longer it is.
    assert per_turn["system, kept"] > per_turn["head, kept"]
    assert per_turn["system, not kept"] > 2 * per_turn["head, not kept"]
    assert figures["system, not kept"]["last"] > per_turn["system, not kept"]
