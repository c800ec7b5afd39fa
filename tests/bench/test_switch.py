"""The bench of a switch in short: nothing is lost or mixed up, and the way back is open."""

from __future__ import annotations

import numpy as np

from bench.switch import OLD, bench, count_wrong
from perdure.embed.deterministic import HashEmbedder


def test_a_switch_with_recalls_and_two_deaths() -> None:
    result = bench(300, 256)
    assert (result["facts"], result["dims"], result["kills"]) == (300, 256, 2)
    assert result["recalls"] > result["without_vectors"]
    assert (result["failed"], result["empty"], result["lost_facts"], result["mixed_vectors"]) == (0, 0, 0, 0)
    assert result["rollback_ok"] is True


def test_vectors_of_another_text_or_model_are_counted() -> None:
    texts = {"a": "heron", "b": "kestrel", "c": "plover"}
    rows = [row.astype("<f4").tobytes() for row in OLD.embed(list(texts.values()))]
    assert count_wrong(texts, dict(zip(texts, rows, strict=True)), OLD) == 0
    swapped = {"a": rows[1], "b": rows[0], "c": rows[2]}
    assert count_wrong(texts, swapped, OLD) == 2
    other = HashEmbedder(256).embed(["plover"])[0]
    assert count_wrong(texts, {"c": other.astype(np.float32).tobytes(), "d": rows[0]}, OLD) == 2
