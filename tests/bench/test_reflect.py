"""What reflection says of labelled memories is written down with what it rests on."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

from bench.reflect import LABELLED, of_labelled


def test_each_sentence_stands_in_the_file_with_its_memories(tmp_path: Path) -> None:
    for name in ("stores/o-01.json", "stores/o-04.json", "days/aa-01.json"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        shutil.copy(LABELLED / name, tmp_path / name)
    figures = of_labelled(tmp_path, tmp_path / "said.jsonl")
    said = [json.loads(line) for line in (tmp_path / "said.jsonl").read_text(encoding="utf-8").splitlines()]
    assert figures["sentences"] == len(said) > 0
    assert figures["stores"] == {"en": 3}
    assert figures["silent"]["en"] < 3
    for each in said:
        assert len(each["evidence"]) > 1
        assert any(f'"{text[:20]}' in each["text"] for text in each["evidence"])
