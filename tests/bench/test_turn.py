"""The bench of the end of a turn in short: it measures what it says."""

from __future__ import annotations

from pathlib import Path

from bench.turn import Bare, bench, said


def test_it_measures_the_end_of_a_turn_beside_a_bare_append() -> None:
    result = bench(4, embedder="hash")
    assert result["facts"] == 9  # one for each turn, those of the warm-up as well
    assert result["bytes"] > len(said(0))
    assert min(result[name] for name in ("bare_p50_ms", "agent_end_p50_ms", "capture_p50_ms", "embed_p50_ms")) > 0
    assert result["agent_end_ratio"] > 0
    assert result["capture_ratio"] > 0


def test_the_bare_append_writes_as_many_bytes(tmp_path: Path) -> None:
    bare = Bare(tmp_path / "bare")
    bare.append(700)
    bare.append(50)
    bare.close()
    assert (tmp_path / "bare").stat().st_size == 750
