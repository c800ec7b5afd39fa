"""The bench of questions about memory itself, in short."""

from __future__ import annotations

import json
from pathlib import Path

from click.testing import CliRunner

from bench.about import main

CASES = {
    "memories": [
        {"id": "name", "text": "My name is Teo.", "days": 9},
        {"id": "note", "text": "Tried a new gasket on the pump.", "days": 2, "by": "agent"},
    ],
    "questions": [
        {"text": "what's my name?", "asks": "own", "needs": ["name"]},
        {"text": "what did you try on the pump?", "asks": "tried", "needs": ["note"]},
        {"text": "who is Petra?", "asks": "who", "needs": ["petra"]},
    ],
    "nothing": ["who is the president of France?"],
}


def test_it_counts_what_is_answered_and_names_what_is_not(tmp_path: Path) -> None:
    file = tmp_path / "cases.json"
    file.write_text(json.dumps(CASES))
    done = CliRunner().invoke(main, [str(file), "--verbose", "--json"])
    assert done.exit_code == 0, done.output
    figures = json.loads(done.stdout)
    assert (figures["answered"], figures["met"], figures["silence"], figures["tool"]) == (0.667, 0.667, 1.0, 1.0)
    assert figures["by_kind"] == {"own": 1.0, "tried": 1.0, "who": 0.0}
    assert [case.partition(":")[0] for case in figures["wrong"]] == ["who is Petra?"]
