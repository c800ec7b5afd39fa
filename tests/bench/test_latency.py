"""The bench of latency in short: it measures what it says."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench import latency
from bench.latency import bench, prompts


@pytest.fixture(autouse=True)
def where_children_find_perdure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(Path(__file__).parents[2])


def test_it_measures_recall_beside_what_it_cannot_do_without() -> None:
    result = bench([40], chunks=120, samples=5, embedder="hash")
    [row] = result["sizes"]
    assert (result["chunks"], row["facts"], row["recalled"]) == (120, 40, 5)
    assert row["p95_ms"] >= row["p50_ms"] > 0
    assert row["parts_ms"].keys() == {"all", "sqlite", "lookup", "semantic", "passages"}
    assert row["parts_ms"]["all"] > 0
    assert min(row["embed_p50_ms"], row["fts_p50_ms"], row["cold_cpu_s"], row["recall_to_embed_ratio"]) > 0
    assert {"rest_to_dot_and_fts_ratio", "dot_p50_ms", "cold_imports_numpy", "rss_mb"} <= row.keys()


def test_peers_that_are_not_installed_are_named_and_skipped(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(latency, "PEERS", {"no_such_store": None})
    assert latency.beside(tmp_path, 1, ["heron?"], "hash") == {}
    assert "no_such_store: skipped, it is not installed" in capsys.readouterr().err


def test_each_prompt_is_asked_once() -> None:
    assert len(set(prompts(300, 100))) == 100
