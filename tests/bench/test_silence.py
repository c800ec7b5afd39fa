"""The bench that forgets, in short: nothing comes back, and nothing else goes."""

from __future__ import annotations

import json
from pathlib import Path

from click.testing import CliRunner

from bench.silence import main

STORE = {
    "memories": [
        {"text": "My sister Orla keeps bees behind her house in Sligo."},
        {"text": "I'm allergic to walnuts."},
        {"text": "We moved to Bristol two years ago because of the job at the harbour."},
        {"text": "Our cat is called Pepper."},
    ],
    "prompts": [{"text": "Where does Orla keep her bees?"}, {"text": "Why did we move to Bristol?"}],
}


def test_what_is_forgotten_stays_away_and_what_is_told_again_does_not(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text(json.dumps(STORE))
    done = CliRunner().invoke(main, [str(tmp_path), "--memories", "2", "--prompts", "6", "--json"])
    assert done.exit_code == 0, done.output
    figures = json.loads(done.stdout)
    assert figures.pop("prompts") >= 6
    assert figures == {
        "forgotten": 2, "imported": 0, "told_again": 2, "near": 2, "others": 2, "kept": 2, "came": 0, "ways": {},
    }  # fmt: skip
