"""The bench of the index of files in short: it measures what it says, and a rebuild disturbs no search."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.files import bench, opened, put_random_vectors, reindex, texts, write_files


@pytest.fixture(autouse=True)
def where_children_find_the_bench(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(Path(__file__).parents[2])


def test_it_measures_building_keeping_and_searching() -> None:
    result = bench(files=100, chunks=300, model=False, searches=20)
    assert (result["files"], result["chunks"], result["chunks_per_cpu_second_model"]) == (100, 300, None)
    measured = {key: value for key, value in result.items() if key != "chunks_per_cpu_second_model"}
    assert min(value for value in measured.values() if value is not None) >= 0
    assert result["search_p95_ms"] >= result["search_p50_ms"] > 0
    assert min(result["embed_p50_ms"], result["chunks_per_cpu_second"], result["search_to_embed_ratio"]) > 0


def test_a_rebuild_disturbs_no_search_and_a_kill_leaves_a_working_index() -> None:
    result = reindex(files=100, chunks=300)
    assert result["searches"] >= 2
    assert (result["failed"], result["empty"], result["old_generation_writes"]) == (0, 0, 0)
    assert result["works_after_kill"]


def test_files_are_the_same_each_time_and_each_names_itself(tmp_path: Path) -> None:
    assert texts(20, 1) == texts(20, 1)
    assert len(set(texts(300, 1))) == 300
    write_files(tmp_path, 10, 30)
    with opened(tmp_path) as one:
        assert one.index.sync([one.root]).chunks == 30
        assert one.index.difference([one.root]).unsettled == 0
        put_random_vectors(one.index, one.embedder.identity)
        assert one.index.pending(one.embedder.identity.id) == 0
        assert one.ask("what is zephyr3?").results[0].path == "memory/3/3.md"
